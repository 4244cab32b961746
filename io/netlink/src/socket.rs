// SPDX-License-Identifier: Apache-2.0
//! A netlink socket: requests out, answers in, one conversation at a time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{
    Timeout, set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force, set_socket_timeout,
};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::limits::{ANSWER_BYTES, ANSWER_TIME_MAX, ANSWERS_MAX, REQUESTS_BYTES_MAX};
use crate::message::{FLAG_DUMP, FLAG_REQUEST, Message, TYPE_DONE, TYPE_ERROR, append, error_number, messages};
use crate::requests::{Refused, Requests};

/// A part of the kernel that speaks netlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Links, addresses, routes, neighbours and queueing disciplines (`NETLINK_ROUTE`).
    Route,
    /// The packet filter (`NETLINK_NETFILTER`).
    Netfilter,
    /// Families that the kernel numbers when it starts (`NETLINK_GENERIC`).
    Generic,
    /// Policies of IPsec (`NETLINK_XFRM`).
    Xfrm,
}

/// A netlink socket. It belongs to the namespace in which it was opened, wherever it is used.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// Opens a socket for questions and requests.
    ///
    /// # Errors
    /// The kernel has no such family (`EPROTONOSUPPORT`), or gives no socket.
    pub fn open(family: Family) -> io::Result<Socket> {
        let protocol: Option<Protocol> = match family {
            // It has number 0.
            Family::Route => None,
            Family::Netfilter => Some(netlink::NETFILTER),
            Family::Generic => Some(netlink::GENERIC),
            Family::Xfrm => Some(netlink::XFRM),
        };
        let fd = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        set_socket_timeout(&fd, Timeout::Recv, Some(ANSWER_TIME_MAX))?;
        // Only root may, and only root needs it: without, a node has fewer rules.
        let _ = set_socket_recv_buffer_size_force(&fd, REQUESTS_BYTES_MAX);
        let _ = set_socket_send_buffer_size_force(&fd, REQUESTS_BYTES_MAX);
        Ok(Socket(fd))
    }

    /// Opens a socket that hears of changes in these groups (`RTMGRP_*` and the like), for waiting.
    ///
    /// # Errors
    /// As of [`Socket::open`].
    pub fn listening(family: Family, groups: u32) -> io::Result<Socket> {
        let socket = Socket::open(family)?;
        rustix::net::bind(&socket.0, &SocketAddrNetlink::new(0, groups))?;
        Ok(socket)
    }

    /// Has the kernel carry out requests, and waits until it has.
    ///
    /// # Errors
    /// The first request that the kernel refused. Those after it were carried out all the same, but for rules of the
    /// packet filter, which are taken all or none.
    pub fn carry_out(&self, requests: &Requests) -> Result<(), Refused> {
        self.carry_out_and_hear(requests, |_| ())
    }

    /// As [`Socket::carry_out`], and hands over each message by which the kernel tells what it made.
    ///
    /// # Errors
    /// As of [`Socket::carry_out`].
    pub fn carry_out_and_hear(&self, requests: &Requests, mut each: impl FnMut(&Message<'_>)) -> Result<(), Refused> {
        if requests.bytes().is_empty() {
            return Ok(());
        }
        let failed = |source: io::Error| Refused { step: "ask the kernel".to_owned(), source };
        self.drain();
        self.send(requests.bytes()).map_err(failed)?;
        let (mut missing, mut first) = (requests.acknowledged(), Ok(()));
        let mut buffer = vec![0; ANSWER_BYTES];
        while missing > 0 {
            let length = self.receive(&mut buffer).map_err(failed)?;
            for message in messages(&buffer[..length]) {
                if message.kind != TYPE_ERROR {
                    each(&message);
                    continue;
                }
                let number = error_number(message.body).unwrap_or(libc::EIO);
                let what = requests.what(message.sequence);
                missing = missing.saturating_sub(usize::from(what.is_some()));
                if number != 0 && first.is_ok() {
                    let step = what.unwrap_or("ask the kernel").to_owned();
                    first = Err(Refused { step, source: io::Error::from_raw_os_error(number) });
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
    ///
    /// # Errors
    /// What the kernel answers, or that it does not answer in time.
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
        self.drain();
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

    /// Reads what has come, without waiting, and hands it over; `None` in place of what there was no room for.
    pub fn hear(&self, mut each: impl FnMut(Option<Message<'_>>)) {
        let mut buffer = vec![0; ANSWER_BYTES];
        loop {
            match rustix::net::recv(&self.0, buffer.as_mut_slice(), RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                Ok((_, length)) if length > ANSWER_BYTES => each(None),
                Ok((length, _)) => messages(&buffer[..length]).for_each(|message| each(Some(message))),
                Err(Errno::NOBUFS) => each(None),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    /// Throws away what has come; returns whether there was anything.
    pub fn drain(&self) -> bool {
        let mut any = false;
        loop {
            match rustix::net::recv(&self.0, [0_u8; 16].as_mut_slice(), RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                Ok(_) | Err(Errno::NOBUFS) => any = true,
                Err(Errno::INTR) => {}
                Err(_) => return any,
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        rustix::net::sendto(&self.0, bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::net::recv(&self.0, &mut *buffer, RecvFlags::empty()) {
                Ok((length, _)) => return Ok(length),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
