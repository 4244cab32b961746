// SPDX-License-Identifier: Apache-2.0
//! The API's Unix socket, and its clients' connections.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use anyhow::{Context, Result, ensure};
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Binds the socket, in place of one that no process serves any more.
///
/// # Errors
/// Another process serves it, or it cannot be made.
pub fn bind(path: &Path) -> Result<UnixListener> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_folder(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    if let Ok(found) = std::fs::symlink_metadata(path) {
        ensure!(found.file_type().is_socket(), "{} is there and is no socket", path.display());
        let served = std::os::unix::net::UnixStream::connect(path).is_ok();
        ensure!(!served, "another netservd serves {}; stop it, or set `socket` to another path", path.display());
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path).with_context(|| format!("cannot bind {}", path.display()))?;
    // Whoever may write to the socket may use the node's API: the owner and the group.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}

/// Makes the socket's folder if it is not there, one that the socket's group can pass.
fn make_folder(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> =
        path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).collect();
    std::fs::create_dir_all(path)?;
    missing.iter().try_for_each(|folder| std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)))
}

/// Accepts only as many clients as there are places.
pub struct Bounded {
    /// The socket.
    pub listener: UnixListener,
    /// The places.
    pub places: Arc<Semaphore>,
}

impl Listener for Bounded {
    type Io = Client;
    type Addr = tokio::net::unix::SocketAddr;

    async fn accept(&mut self) -> (Client, Self::Addr) {
        let place = self.places.clone().acquire_owned().await.expect("the places are never closed");
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Client { stream, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that gives its place back when it ends.
pub struct Client {
    stream: UnixStream,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for Client {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Client {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/netservd.sock");
        drop(bind(&path).unwrap());
        let listener = bind(&path).unwrap();
        assert!(bind(&path).unwrap_err().to_string().contains("another netservd"));
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        assert!(bind(&path).unwrap_err().to_string().contains("no socket"));
    }

    #[tokio::test]
    async fn the_sockets_group_gets_to_it_and_nobody_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/deep/netservd.sock");
        let _listener = bind(&path).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o660);
        assert_eq!((mode(path.parent().unwrap()), mode(&dir.path().join("run"))), (0o755, 0o755));
    }
}
