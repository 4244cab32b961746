// SPDX-License-Identifier: Apache-2.0
//! The control channel between a node and a worker.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netserv_wire::container::frames::{FromWorker, ToWorker};
use rustix::fs::OFlags;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendFlags, recvmsg};

use crate::error::ControlError;
use crate::limits::CONTROL_BUFFER_BYTES;
use crate::protocol::socket::{send_bytes, seqpacket};

/// Frames to and from a worker, one datagram each. Never blocks: wait on its descriptor.
#[derive(Debug)]
pub struct ControlChannel {
    socket: OwnedFd,
}

impl ControlChannel {
    pub(super) fn new(socket: OwnedFd) -> ControlChannel {
        ControlChannel { socket }
    }

    /// Sends one frame, with the parts of a module beside a [`ToWorker::Load`] and sockets beside a
    /// [`ToWorker::Sockets`]; at most [`DESCRIPTORS_MAX`](netserv_wire::container::frames::DESCRIPTORS_MAX).
    ///
    /// # Errors
    /// [`ControlError::Full`] if the worker does not read; others mean that the worker is of no more use.
    pub fn send(&self, frame: &ToWorker, descriptors: &[BorrowedFd<'_>]) -> Result<(), ControlError> {
        let bytes = frame.encode()?;
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        send_bytes(&self.socket, &bytes, descriptors, flags).map_err(|error| {
            if error.kind() == io::ErrorKind::WouldBlock {
                ControlError::Full
            } else if [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset].contains(&error.kind()) {
                ControlError::Closed
            } else {
                ControlError::Io(error)
            }
        })
    }

    /// Receives the next frame, or nothing if none is there.
    ///
    /// # Errors
    /// [`ControlError::Closed`] when the worker is gone, [`ControlError::Frame`] if it sent what is no frame.
    pub fn receive(&self) -> Result<Option<FromWorker>, ControlError> {
        let peek = RecvFlags::PEEK | RecvFlags::TRUNC | RecvFlags::DONTWAIT;
        let Some(length) = self.receive_into(&mut [], peek)? else { return Ok(None) };
        if length == 0 {
            return Err(ControlError::Closed);
        }
        let mut bytes = vec![0; length];
        let Some(received) = self.receive_into(&mut bytes, RecvFlags::DONTWAIT)? else { return Ok(None) };
        Ok(Some(FromWorker::decode(&bytes[..received.min(length)])?))
    }

    /// Descriptors that come along are closed by the kernel, since there is no room for them.
    fn receive_into(&self, bytes: &mut [u8], flags: RecvFlags) -> Result<Option<usize>, ControlError> {
        let mut none = RecvAncillaryBuffer::default();
        let received =
            rustix::io::retry_on_intr(|| recvmsg(&self.socket, &mut [IoSliceMut::new(bytes)], &mut none, flags));
        match received {
            Ok(message) => Ok(Some(message.bytes)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(rustix::io::Errno::CONNRESET) => Err(ControlError::Closed),
            Err(error) => Err(ControlError::Io(error.into())),
        }
    }
}

impl AsFd for ControlChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Makes a control socket: the node's end, which does not block, and the worker's.
pub(super) fn control_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = seqpacket()?;
    for end in [&ours, &theirs] {
        // The kernel doubles the figure, and then one frame of the largest size fits.
        set_socket_send_buffer_size(end, CONTROL_BUFFER_BYTES)?;
    }
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    Ok((ours, theirs))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use netserv_model::effect::ModuleSlot;
    use netserv_model::manifest::ModuleLimits;
    use netserv_wire::container::frames::{FRAME_BYTES_MAX, StorageFailures};

    use super::*;

    #[test]
    fn a_frame_of_the_largest_size_fits_the_socket() {
        let (ours, theirs) = control_pair().unwrap();
        let value = "x".repeat(FRAME_BYTES_MAX - 400);
        let load = ToWorker::Load {
            slot: ModuleSlot(0),
            module: "example.org/a@1.0.0".parse().unwrap(),
            properties: BTreeMap::from([("key".to_owned(), value)]),
            limits: ModuleLimits::default(),
            state_schema: 1,
            parts: vec![],
            server: None,
            blocks: BTreeSet::new(),
            parallel: false,
        };
        let channel = ControlChannel { socket: ours };
        channel.send(&load, &[]).unwrap();
        assert!(matches!(channel.send(&load, &[]), Err(ControlError::Full)));
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        let (length, _) = rustix::net::recv(&theirs, &mut bytes, RecvFlags::empty()).unwrap();
        assert_eq!(ToWorker::decode(&bytes[..length]).unwrap(), load);
    }

    #[test]
    fn what_a_worker_sends_is_a_frame_or_an_error() {
        let (ours, theirs) = control_pair().unwrap();
        let channel = ControlChannel { socket: ours };
        assert!(channel.receive().unwrap().is_none());
        let send = |bytes: &[u8]| rustix::net::send(&theirs, bytes, SendFlags::empty()).unwrap();
        send(br#"{"frame":"loaded","slot":3}"#);
        assert_eq!(channel.receive().unwrap(), Some(FromWorker::Loaded { slot: ModuleSlot(3) }));
        send(b"rubbish");
        assert!(matches!(channel.receive(), Err(ControlError::Frame(_))));
        drop(theirs);
        assert!(matches!(channel.receive(), Err(ControlError::Closed)));
        assert!(matches!(channel.send(&ToWorker::Stats, &[]), Err(ControlError::Closed)));
    }

    #[test]
    fn descriptors_from_a_worker_are_not_kept() {
        let (ours, theirs) = control_pair().unwrap();
        let channel = ControlChannel { socket: ours };
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        send_bytes(&theirs, br#"{"frame":"stats-done"}"#, &[writer.as_fd()], SendFlags::empty()).unwrap();
        drop(writer);
        assert_eq!(channel.receive().unwrap(), Some(FromWorker::StatsDone { storage: StorageFailures::default() }));
        // End of file, since no writer is left.
        assert_eq!(rustix::io::read(&reader, &mut [0; 8][..]).unwrap(), 0);
    }
}
