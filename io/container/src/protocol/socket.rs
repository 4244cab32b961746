// SPDX-License-Identifier: Apache-2.0
//! Messages over a `SOCK_SEQPACKET` pair, with descriptors beside the bytes.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netserv_wire::container::frames::DESCRIPTORS_MAX;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ContainerError;
use crate::limits::LAUNCHER_MESSAGE_BYTES_MAX;

/// Descriptors with one message at most.
const FDS_MAX: usize = DESCRIPTORS_MAX;

/// Makes a pair whose messages keep their bounds.
pub(crate) fn seqpacket() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Makes the pipe for an exit report: the node's end, which does not block, and the launcher's.
pub(crate) fn exit_pipe() -> Result<(OwnedFd, OwnedFd), ContainerError> {
    let prepare = |source: rustix::io::Errno| ContainerError::Prepare { step: "make a pipe", source: source.into() };
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(prepare)?;
    rustix::fs::fcntl_setfl(&ours, rustix::fs::OFlags::NONBLOCK).map_err(prepare)?;
    Ok((ours, theirs))
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
    use netserv_model::policy::ContainerLimits;

    use super::*;
    use crate::protocol::Request;

    #[test]
    fn messages_arrive_with_their_descriptors() {
        let (ours, theirs) = seqpacket().unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let request = Request::Compile { limits: ContainerLimits::default(), cpu_seconds: 7 };
        send(&ours, &request, &[writer.as_fd()]).unwrap();
        drop(writer);
        let (received, fds) = receive::<Request>(&theirs).unwrap().unwrap();
        assert!(
            matches!(received, Request::Compile { limits, cpu_seconds: 7 } if limits == ContainerLimits::default())
        );
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
