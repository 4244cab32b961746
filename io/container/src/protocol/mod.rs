// SPDX-License-Identifier: Apache-2.0
//! What a node and its launcher say to each other, over a `SOCK_SEQPACKET` pair with descriptors beside the bytes.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, UserId};
use netserv_wire::container::frames::DESCRIPTORS_MAX;
use netserv_wire::container::media::MediaTask;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::host::media::MediaFiles;
use crate::limits::LAUNCHER_MESSAGE_BYTES_MAX;

/// Descriptors with one message at most.
const FDS_MAX: usize = DESCRIPTORS_MAX;

/// The node's requests. The first is always `Setup`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Get ready; answered by `Ready` or `Failed`.
    Setup(Box<Setup>),
    /// Start a worker. Beside it: control socket, ring memory, eventfd to the worker, eventfd to the host, the pipe for
    /// the exit report, and the network namespace if it gets one. Answered by `Started` with a pidfd, or `Failed`.
    Serve(Serve),
    /// Start a compilation. Beside it: the Wasm file and the pipe for the exit report. Answered by `Started` with a
    /// pidfd and the directory where the output will be, or `Failed`.
    Compile { limits: ContainerLimits },
    /// Start the making of an archive of Java classes. Beside it: the pipe for the exit report. Answered as `Compile`.
    Archive { limits: ContainerLimits },
    /// Start a media job. Beside it: the pipe for the exit report, the input's end, the output's, and the picture's if
    /// the task has one. Answered by `Started` with a pidfd, or `Failed`.
    Media(MediaOrder),
}

/// A worker that is wanted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Serve {
    pub(crate) user: UserId,
    pub(crate) flavour: Flavour,
    pub(crate) limits: ContainerLimits,
    /// The process whose groups it joins, if that still runs and is of the same user.
    pub(crate) beside: Option<i32>,
    /// Whether a network namespace comes along.
    pub(crate) network: bool,
    pub(crate) storage: Option<StorageSetup>,
}

/// What a worker may keep on disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StorageSetup {
    pub(crate) directory: PathBuf,
    pub(crate) kv_bytes: u64,
    pub(crate) cache_bytes: u64,
}

/// A media job that is wanted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MediaOrder {
    pub(crate) task: MediaTask,
    pub(crate) limits: ContainerLimits,
}

/// What a launcher works with.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) worker: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) name_servers: Vec<IpAddr>,
    pub(crate) authorities: Option<PathBuf>,
    pub(crate) jvm: Option<JvmSetup>,
    pub(crate) media: Option<MediaSetup>,
    pub(crate) instance: String,
    pub(crate) uid_base: u32,
    pub(crate) cgroup_parent: Option<PathBuf>,
}

/// What media jobs are made of; all paths are canonical.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MediaSetup {
    pub(crate) files: MediaFiles,
    pub(crate) root: PathBuf,
}

/// What Java workers are made of; all paths are canonical.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JvmSetup {
    pub(crate) worker: PathBuf,
    pub(crate) java_home: PathBuf,
    pub(crate) host: PathBuf,
    pub(crate) archive: PathBuf,
    pub(crate) name_servers: Vec<IpAddr>,
    pub(crate) root: PathBuf,
}

/// The launcher's answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Ready { enforced: Vec<String>, missing: Vec<String> },
    Started { pid: i32, uid: u32, landlock: String },
    Failed { step: String, detail: String, quota: bool },
}

/// How a process ended, written to its exit pipe by the launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExitReport {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) out_of_memory: bool,
    pub(crate) stderr: String,
}

/// Sends one message.
pub(crate) fn send<T: Serialize>(socket: impl AsFd, message: &T, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > LAUNCHER_MESSAGE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a launcher message is too long"));
    }
    send_bytes(socket, &bytes, fds, SendFlags::NOSIGNAL)
}

/// Sends one datagram with descriptors beside it.
pub(crate) fn send_bytes(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>], flags: SendFlags) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)), "at most {FDS_MAX} descriptors");
    }
    let sent = rustix::io::retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, flags))?;
    if sent == bytes.len() { Ok(()) } else { Err(io::Error::other("a datagram was cut")) }
}

/// Receives one message. Returns nothing when the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; LAUNCHER_MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut fds = vec![];
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a launcher message is too long"));
    }
    Ok(Some((serde_json::from_slice(&bytes[..received.bytes])?, fds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::launcher::seqpacket;

    #[test]
    fn messages_arrive_with_their_descriptors() {
        let (ours, theirs) = seqpacket().unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let request = Request::Compile { limits: ContainerLimits::default() };
        send(&ours, &request, &[writer.as_fd()]).unwrap();
        drop(writer);
        let (received, fds) = receive::<Request>(&theirs).unwrap().unwrap();
        assert!(matches!(received, Request::Compile { limits } if limits == ContainerLimits::default()));
        rustix::io::write(&fds[0], b"x").unwrap();
        assert_eq!(rustix::io::read(&reader, &mut [0; 8][..]), Ok(1));
        drop(ours);
        assert!(receive::<Request>(&theirs).unwrap().is_none());
    }

    #[test]
    fn messages_over_the_bound_are_errors_at_both_ends() {
        let (ours, theirs) = seqpacket().unwrap();
        let text = "x".repeat(LAUNCHER_MESSAGE_BYTES_MAX);
        assert!(send(&ours, &text, &[]).is_err());
        send_bytes(&ours, format!("\"{text}\"").as_bytes(), &[], SendFlags::empty()).unwrap();
        assert!(receive::<String>(&theirs).is_err());
    }
}
