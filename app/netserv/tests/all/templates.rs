// SPDX-License-Identifier: Apache-2.0
//! Each template builds with its own tools and passes its own tests; those whose tools are missing are skipped loudly.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::support::{Home, text};
use netserv_skips::{not_run, skipped};

/// Makes, builds, tests and packages a module, and returns its folder; nothing if something is missing here.
fn build_and_test(home: &Home, template: &str, language: &str, tools: &[&str]) -> Option<PathBuf> {
    let name = format!("{template}-{language}");
    let missing = tools.iter().find(|tool| Command::new(tool).arg("--version").output().is_err());
    if let Some(missing) = missing {
        skipped(&format!("template {name}"), &format!("there is no {missing}"));
        return None;
    }
    let netserv = Path::new(env!("CARGO_BIN_EXE_netserv"));
    if !netserv.with_file_name("netserv-worker").is_file() {
        skipped(&format!("template {name}"), "there is no netserv-worker beside netserv");
        return None;
    }
    let made = home.netserv(&["module", "new", &name, "--template", template, "--lang", language]);
    assert!(made.status.success(), "{made:?}");
    let dir = home.path().join(&name);
    if language == "js" {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("node_modules");
        std::os::unix::fs::symlink(kept, dir.join("node_modules")).unwrap();
    }
    let tested = run(home, &["module", "test", &name]);
    assert!(tested.status.success(), "{name}: {}{}", text(&tested.stdout), text(&tested.stderr));
    let unchanged = processor_time(home, &["module", "test", &name]);
    assert!(unchanged < UNCHANGED_MAX, "{name}, which did not change, was tested in {unchanged:?} of a processor");
    let built = run(home, &["module", "build", &name]);
    let stderr = text(&built.stderr);
    assert!(built.status.success(), "{name}: {stderr}");
    assert!(!stderr.contains("to `dependencies`"), "the manifest of {name} leaves out a building block: {stderr}");
    Some(dir)
}

/// Processor time of a test of an unchanged module at most: it waits neither for a build nor for a compilation.
const UNCHANGED_MAX: Duration = Duration::from_secs(1);

/// Runs the program, and returns the time that it and its children had processors.
fn processor_time(home: &Home, arguments: &[&str]) -> Duration {
    let mut command = Command::new("sh");
    // The last line is of the shell's children: `0m0.420s 0m0.080s`.
    command.args(["-c", "\"$@\" >&2 && times", "sh", env!("CARGO_BIN_EXE_netserv")]).args(arguments);
    home.like_a_user(&mut command, &[]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let seconds = |time: &str| -> Option<f64> {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let stdout = text(&output.stdout);
    let times = stdout.lines().last().unwrap().split(' ').map(seconds);
    Duration::from_secs_f64(times.sum::<Option<f64>>().unwrap())
}

fn run(home: &Home, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netserv"));
    command.args(arguments);
    home.like_a_user(&mut command, &[]);
    command.output().unwrap()
}

#[test]
fn a_packet_module_in_c() {
    let home = Home::with_key();
    let Some(dir) = build_and_test(&home, "packet", "c", &["clang-14", "wasm-ld-14"]) else { return };
    // No C library and nothing else that would make it large.
    assert!(std::fs::metadata(dir.join("target/module.wasm")).unwrap().len() < 4096);
    let benched = run(&home, &["-j", "module", "bench", "packet-c", "--no-build", "--time", "200ms"]);
    let report: serde_json::Value = serde_json::from_slice(&benched.stdout).unwrap();
    let ns = |key: &str| report["packet"][key]["median"].as_f64().unwrap();
    assert!(ns("ns_in_batches") > 0.0 && ns("ns_in_batches") < ns("ns_alone"), "{report}");
    assert_eq!(report["packet"]["modified"], 0);
}

/// Go's code is made for WASI, and adapted.
#[test]
fn a_packet_module_in_go() {
    let home = Home::with_key();
    if Command::new("go").arg("version").output().is_err() {
        // Not in CI either: Debian's Go is too old for this.
        return not_run("template packet-go", "there is no go");
    }
    let Some(dir) = build_and_test(&home, "packet", "go", &[]) else { return };
    let inspect = |file: &str| -> serde_json::Value {
        let path = dir.join("target").join(file);
        serde_json::from_slice(&run(&home, &["-j", "module", "inspect", path.to_str().unwrap()]).stdout).unwrap()
    };
    let before = inspect("go.wasm");
    let fix = before["skew"]["fix"].as_str().unwrap();
    assert!(fix.contains("netserv module adapt"), "{before}");
    assert!(inspect("module.wasm")["skew"].is_null());
}

#[test]
fn servers_in_rust() {
    let home = Home::with_key();
    let Some(dir) = build_and_test(&home, "http", "rust", &["cargo"]) else { return };
    let lock: toml::Table = toml::from_str(&std::fs::read_to_string(dir.join("Cargo.lock")).unwrap()).unwrap();
    let crates = lock["package"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
    let small = ["bitflags", "module-http-rust", "netserv-server-sdk", "wit-bindgen"];
    assert_eq!(crates.collect::<Vec<_>>(), small, "each new folder builds these");
    for template in ["tcp", "both"] {
        build_and_test(&home, template, "rust", &["cargo"]).unwrap();
    }
    let inspect = |file: &str| -> serde_json::Value {
        serde_json::from_slice(&run(&home, &["-j", "module", "inspect", file]).stdout).unwrap()
    };
    let kinds = |file: &str, part: &str| inspect(file)["code"]["wasm"][part]["kind"].clone();
    assert_eq!(kinds("http-rust/http-rust-0.1.0.nsm", "server"), "http");
    assert_eq!(kinds("tcp-rust/tcp-rust-0.1.0.nsm", "server"), "tcp");
    let both = "both-rust/both-rust-0.1.0.nsm";
    assert_eq!((kinds(both, "packet"), kinds(both, "server")), ("packet".into(), "http".into()));

    // A golden file that is wrong is said, and accepted when that is wanted.
    let golden = dir.join("tests/greeting.txt");
    std::fs::write(&golden, "Good morning\n").unwrap();
    let failed = run(&home, &["module", "test", "http-rust", "--no-build"]);
    assert_eq!(failed.status.code(), Some(7));
    let stdout = text(&failed.stdout);
    assert!(stdout.contains("- Good morning") && stdout.contains("+ Hello, you are visitor 1"), "{stdout}");
    assert!(run(&home, &["module", "test", "http-rust", "--no-build", "--accept"]).status.success());
    assert_eq!(std::fs::read_to_string(&golden).unwrap(), "Hello, you are visitor 1\n");

    let benched = run(&home, &["-j", "module", "bench", "tcp-rust", "--no-build", "--time", "200ms"]);
    let report: serde_json::Value = serde_json::from_slice(&benched.stdout).unwrap();
    assert!(report["tcp"]["bytes_per_second"]["median"].as_f64().unwrap() > 1e6, "{report}");
    assert_eq!(report["tcp"]["connections"], 1, "lines are short enough for one connection: {report}");
    let shown = text(&run(&home, &["module", "bench", "tcp-rust", "--no-build", "--time", "200ms"]).stdout);
    assert!(shown.contains(" MB per second ("), "{shown}");

    served_without_a_node(&home);
    direct_is_for_http(&home);
}

/// What `--direct` cannot do is said, with what can.
fn direct_is_for_http(home: &Home) {
    for (args, cause) in [
        (&["tcp-rust", "--direct"][..], "handles TCP connections as events, and without a node there is only HTTP"),
        (&["http-rust", "--direct", "--listen", "192.0.2.1:80"], "cannot listen at 192.0.2.1:80"),
    ] {
        let output = run(home, &[&["module", "run"], args].concat());
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains(cause), "{stderr}");
        assert!(stderr.contains("\nfix: "), "{stderr}");
    }
}

/// `module run --direct`: HTTP without a node, for whoever is not root.
fn served_without_a_node(home: &Home) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_netserv"));
    command.args(["-j", "module", "run", "http-rust", "--direct", "--listen", &listen, "--property", "greeting=Hi"]);
    home.like_a_user(&mut command, &[]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let serving = lines.next().unwrap().unwrap();
    assert!(serving.contains("\"serving\""), "{serving}");
    let answer = crate::support::eventually(|| {
        let mut stream = TcpStream::connect(&listen).ok()?;
        write!(stream, "GET / HTTP/1.1\r\nhost: module.test\r\nconnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    });
    assert!(answer.contains("Hi, you are visitor 1"), "{answer}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert!(TcpStream::connect(&listen).is_err(), "the server ends with the command");
}

/// Runs where somebody fetched the tools once; CI does not either, unless it does that.
#[test]
fn a_server_in_javascript() {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if !kept.join(JS_TOOLS).is_dir() {
        let install = format!("npm install --no-save --prefix {} {JS_PACKAGE}", kept.display());
        return not_run("template http-js", &format!("there is no componentize-js, some 400 MB; fix: {install}"));
    }
    build_and_test(&Home::with_key(), "http", "js", &["node"]);
}

const JS_TOOLS: &str = "node_modules/@bytecodealliance/componentize-js";
const JS_PACKAGE: &str = "@bytecodealliance/componentize-js@0.19.3";
