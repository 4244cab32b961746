// SPDX-License-Identifier: Apache-2.0
//! A netlink socket: requests out, answers in, one conversation at a time.

use std::io;
use std::os::fd::OwnedFd;

use netserv_wire::netlink::{FLAG_ACK, FLAG_DUMP, FLAG_REQUEST, Message, TYPE_DONE, TYPE_ERROR};
use netserv_wire::netlink::{append, error_number, messages};
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{
    Timeout, set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force, set_socket_timeout,
};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::error::NetworkError;
use super::limits::{ANSWER_TIME_MAX, RULES_BYTES_MAX};

/// A netlink socket. It belongs to the namespace in which it was opened, wherever it is used.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

/// Requests that go to the kernel together. Each has words for what it is about, for errors.
#[derive(Debug, Default)]
pub(super) struct Requests {
    bytes: Vec<u8>,
    whats: Vec<String>,
}

impl Requests {
    /// Appends a request that is acknowledged.
    pub fn push(&mut self, kind: u16, flags: u16, header: &[u8], attributes: &[(u16, &[u8])], what: impl Into<String>) {
        self.whats.push(what.into());
        let sequence = u32::try_from(self.whats.len()).expect("requests are few");
        append(&mut self.bytes, kind, FLAG_REQUEST | FLAG_ACK | flags, sequence, header, attributes);
    }

    /// Appends a request that is not acknowledged.
    pub fn push_silent(&mut self, kind: u16, header: &[u8]) {
        append(&mut self.bytes, kind, FLAG_REQUEST, SILENT, header, &[]);
    }
}

/// The number of requests that are not acknowledged.
const SILENT: u32 = 0;
/// `NETLINK_ROUTE` is protocol 0.
const ROUTES: Option<Protocol> = None;
const ANSWER_BYTES: usize = 64 * 1024;
/// Datagrams of one answer at most.
const ANSWERS_MAX: usize = 16_384;

impl Socket {
    /// Opens a socket for links, addresses, routes and neighbours.
    pub fn routes() -> io::Result<Socket> {
        Socket::open(ROUTES)
    }

    /// Opens a socket for rules of the packet filter.
    pub fn rules() -> io::Result<Socket> {
        Socket::open(Some(netlink::NETFILTER))
    }

    /// Opens a socket for what other parts of the kernel have to say.
    pub fn generic() -> io::Result<Socket> {
        Socket::open(Some(netlink::GENERIC))
    }

    /// Opens a socket that hears of changes of the groups, for waiting.
    pub fn listening(groups: u32) -> io::Result<Socket> {
        let socket = Socket::open(ROUTES)?;
        rustix::net::bind(&socket.0, &SocketAddrNetlink::new(0, groups))?;
        Ok(socket)
    }

    fn open(protocol: Option<Protocol>) -> io::Result<Socket> {
        let flags = SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        set_socket_timeout(&fd, Timeout::Recv, Some(ANSWER_TIME_MAX))?;
        // Only root may, and only root needs it: without, a node has fewer rules.
        let _ = set_socket_recv_buffer_size_force(&fd, RULES_BYTES_MAX);
        let _ = set_socket_send_buffer_size_force(&fd, RULES_BYTES_MAX);
        Ok(Socket(fd))
    }

    /// Returns the descriptor, for waiting.
    pub fn fd(&self) -> &OwnedFd {
        &self.0
    }

    /// Has the kernel carry out requests, and waits until it has.
    ///
    /// # Errors
    /// The first request that the kernel refused. Those after it were carried out all the same, but for rules of the
    /// packet filter, which are taken all or none.
    pub fn carry_out(&self, requests: &Requests) -> Result<(), NetworkError> {
        if requests.bytes.is_empty() {
            return Ok(());
        }
        let failed = |source: Errno| NetworkError::Kernel { step: "ask the kernel".to_owned(), source: source.into() };
        self.send(&requests.bytes).map_err(failed)?;
        let (mut missing, mut first) = (requests.whats.len(), Ok(()));
        let mut buffer = vec![0; ANSWER_BYTES];
        while missing > 0 {
            let length = self.receive(&mut buffer).map_err(failed)?;
            for message in messages(&buffer[..length]).filter(|message| message.kind == TYPE_ERROR) {
                let number = error_number(message.body).unwrap_or(libc::EIO);
                let what =
                    usize::try_from(message.sequence).ok().and_then(|place| requests.whats.get(place.wrapping_sub(1)));
                missing = missing.saturating_sub(usize::from(what.is_some()));
                if number != 0 && first.is_ok() {
                    let step = what.map_or_else(|| "ask the kernel".to_owned(), Clone::clone);
                    first = Err(NetworkError::Kernel { step, source: io::Error::from_raw_os_error(number) });
                    // A refused batch of rules may end without further answers.
                    if what.is_none() {
                        return first;
                    }
                }
            }
        }
        first
    }

    /// Asks a question, and hands over each message of the answer: of many with [`FLAG_DUMP`], else of one datagram.
    pub fn ask(
        &self,
        kind: u16,
        flags: u16,
        header: &[u8],
        attributes: &[(u16, &[u8])],
        mut each: impl FnMut(Message<'_>),
    ) -> io::Result<()> {
        let mut request = Vec::new();
        append(&mut request, kind, FLAG_REQUEST | flags, 1, header, attributes);
        self.send(&request)?;
        let mut buffer = vec![0; ANSWER_BYTES];
        for _ in 0..ANSWERS_MAX {
            let length = self.receive(&mut buffer)?;
            for message in messages(&buffer[..length]) {
                match message.kind {
                    TYPE_DONE => return Ok(()),
                    TYPE_ERROR => {
                        let number = error_number(message.body).unwrap_or(libc::EIO);
                        return if number == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(number)) };
                    }
                    _ => each(message),
                }
            }
            if flags & FLAG_DUMP == 0 {
                return Ok(());
            }
        }
        Err(io::Error::other("the kernel's answer has no end"))
    }

    /// Reads away what has come.
    pub fn drain(&self) {
        let mut buffer = vec![0; ANSWER_BYTES];
        while rustix::net::recv(&self.0, buffer.as_mut_slice(), RecvFlags::DONTWAIT).is_ok() {}
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Errno> {
        rustix::net::sendto(&self.0, bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).map(drop)
    }

    fn receive(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        loop {
            match rustix::net::recv(&self.0, &mut *buffer, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                other => return other.map(|(length, _)| length),
            }
        }
    }
}
