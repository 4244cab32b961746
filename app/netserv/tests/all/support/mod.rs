// SPDX-License-Identifier: Apache-2.0
//! A node that answers what the test says, and running the program against it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use tempfile::TempDir;

/// A real HTTP server on a Unix socket, in a thread of its own until the test ends.
pub struct FakeNode {
    pub socket: PathBuf,
    seen: Arc<Mutex<Vec<(String, String)>>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    _dir: TempDir,
}

impl FakeNode {
    /// Answers every request with this status and text.
    pub fn answering(status: u16, answer: impl Into<String>) -> FakeNode {
        let answer = answer.into();
        FakeNode::with(move || (StatusCode::from_u16(status).unwrap(), Body::from(answer.clone())))
    }

    /// Answers every request with what the function makes.
    pub fn with(answer: impl Fn() -> (StatusCode, Body) + Clone + Send + Sync + 'static) -> FakeNode {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("netservd.sock");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let app = Router::new().fallback({
            let seen = seen.clone();
            move |uri: Uri, body: Bytes| {
                seen.lock().unwrap().push((uri.to_string(), String::from_utf8_lossy(&body).into_owned()));
                let (status, body) = answer();
                async move { Response::builder().status(status).body(body).unwrap() }
            }
        });
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn({
            let socket = socket.clone();
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let listener = tokio::net::UnixListener::bind(socket).unwrap();
                    ready.send(()).unwrap();
                    tokio::select! {
                        served = async { axum::serve(listener, app).await } => served.unwrap(),
                        _ = stopped => {}
                    }
                });
            }
        });
        is_ready.recv().unwrap();
        FakeNode { socket, seen, stop: Some(stop), thread: Some(thread), _dir: dir }
    }

    /// Returns the path and body of each request so far.
    pub fn seen(&self) -> Vec<(String, String)> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A home directory with a key in it.
pub struct Home {
    pub dir: TempDir,
}

impl Home {
    pub fn empty() -> Home {
        Home { dir: tempfile::tempdir().unwrap() }
    }

    pub fn with_key() -> Home {
        let home = Home::empty();
        let made = home.netserv(&["key", "new"]);
        assert!(made.status.success(), "{made:?}");
        home
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the command with a clean environment, run in the home directory.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netserv"));
        command.args(arguments);
        self.be_home(&mut command);
        command
    }

    /// Gives a command a clean environment with our programs and the Rust tools of whoever runs the tests.
    pub fn like_a_user(&self, command: &mut Command, programs: &[&Path]) {
        let path = std::env::var_os("PATH").unwrap();
        let path = programs.iter().map(|dir| dir.to_path_buf()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(path).unwrap());
        self.be_home(command);
        let own = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        for (name, dir) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
            let path = std::env::var_os(name).map_or_else(|| own.join(dir), PathBuf::from);
            if path.exists() {
                command.env(name, path);
            }
        }
    }

    fn be_home(&self, command: &mut Command) {
        let netserv = ["NETSERV_SOCKET", "NETSERV_USER", "NETSERV_KEY", "NETSERV_WORKER"];
        for name in netserv.into_iter().chain(["XDG_CONFIG_HOME", "XDG_CACHE_HOME"]) {
            command.env_remove(name);
        }
        command.current_dir(self.path()).stdin(Stdio::null()).env("HOME", self.path()).env("USER", "janedoe");
    }

    /// Runs the program.
    pub fn netserv(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs the program against a node.
    pub fn ask(&self, node: &FakeNode, arguments: &[&str]) -> Output {
        self.command(arguments).env("NETSERV_SOCKET", &node.socket).output().unwrap()
    }
}

/// Checks the exit code and both streams.
#[track_caller]
pub fn check(output: &Output, code: i32, stdout: &str, stderr: &str) {
    assert_eq!(text(&output.stderr), stderr);
    assert_eq!(text(&output.stdout), stdout);
    assert_eq!(output.status.code(), Some(code));
}

/// Returns bytes as text.
#[track_caller]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A body that ends with its sender, which learns when nobody reads it.
pub struct Channel(pub tokio::sync::mpsc::UnboundedReceiver<String>);

impl hyper::body::Body for Channel {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        let text = self.0.poll_recv(context);
        text.map(|text| text.map(|text| Ok(hyper::body::Frame::data(text.into()))))
    }
}

/// Waits for something that becomes so.
#[track_caller]
pub fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(std::time::Instant::now() < end, "it did not come to be");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
