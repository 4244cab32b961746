// SPDX-License-Identifier: Apache-2.0
//! One netfilter queue: packets in, verdicts out.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use netserv_plane::{Batch, Counters, DriverError, InterfaceId, PacketId, sys};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, sockopt};
use rustix::thread::{CapabilitySet, capabilities};

use super::message::{self, Decision, Received};
use super::window::{Outcome, Send, Window};
use crate::limits;

/// What a queue has to know to be opened.
#[derive(Clone, Copy, Debug)]
pub struct QueueConfig {
    /// The lowest number to use; the first free one from here on is taken.
    pub first_number: u16,
    /// Packets of 1,500 bytes that may wait in the kernel to be received.
    pub packets: u32,
    /// Bytes that they may take there at most.
    pub receive_buffer_bytes: usize,
    /// Whether packets pass unseen, rather than being lost, when more come than are received.
    pub fail_open: bool,
    /// The upper half of its packets' ids.
    pub tag: u32,
}

/// A queue that this process owns until it is dropped.
pub struct Queue {
    socket: OwnedFd,
    number: u16,
    fail_open: bool,
    tag: u32,
    window: Window,
    outgoing: Vec<u8>,
    counters: Counters,
    /// Packets that the kernel could not give us, and its number of them, which wraps, at the last look.
    missed: Cell<(u64, u32)>,
}

impl Queue {
    /// Takes the first free queue at or above the wanted number.
    pub fn open(config: QueueConfig) -> Result<Queue, DriverError> {
        Ok(Queue::open_row(config, 1)?.swap_remove(0))
    }

    /// Takes the first free queues at or above the wanted number whose numbers are in a row, so many.
    pub fn open_row(config: QueueConfig, count: u16) -> Result<Vec<Queue>, DriverError> {
        let last = config.first_number.saturating_add(limits::QUEUE_NUMBERS_TRIED - 1);
        let mut row: Vec<Queue> = Vec::new();
        let mut queue = Queue::new(config)?;
        for number in config.first_number..=last {
            queue.number = number;
            if !queue.bind(config)? {
                row.clear();
                continue;
            }
            row.push(queue);
            if row.len() >= usize::from(count) {
                return Ok(row);
            }
            queue = Queue::new(config)?;
        }
        Err(DriverError::QueuesTaken { first: config.first_number, last })
    }

    fn new(config: QueueConfig) -> Result<Queue, DriverError> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(netlink::NETFILTER),
        )
        .map_err(|error| DriverError::system("opening a netfilter socket", error))?;
        let packets = usize::try_from(config.packets).expect("32 bits fit in usize");
        let receive_buffer = packets.saturating_mul(PACKET_BUFFER_BYTES).min(config.receive_buffer_bytes);
        sockopt::set_socket_recv_buffer_size_force(&socket, receive_buffer)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, receive_buffer))
            .and_then(|()| {
                sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER_BYTES)
                    .or_else(|_| sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES))
            })
            .map_err(|error| DriverError::system("sizing the buffers of a netfilter socket", error))?;
        // Otherwise one packet too many makes all that follow pass, until the socket is empty.
        sys::set_option(&socket, libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS, 1)
            .map_err(|error| DriverError::system("setting up a netfilter socket", error))?;
        Ok(Queue {
            socket,
            number: config.first_number,
            fail_open: config.fail_open,
            tag: config.tag,
            window: Window::new(window_packets(config.packets)),
            outgoing: Vec::new(),
            counters: Counters::default(),
            missed: Cell::default(),
        })
    }

    /// Returns the queue's number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Clears the batch and fills it with the packets that are there, without waiting; returns how many there are.
    pub fn receive(&mut self, batch: &mut Batch) -> Result<usize, DriverError> {
        loop {
            batch.clear();
            let mut lengths = [0; limits::BATCH_PACKETS_MAX];
            match sys::receive_many(&self.socket, batch.storage_mut(), &mut lengths) {
                Ok(count) => {
                    self.take_in(batch, &lengths[..count])?;
                    if !batch.is_empty() {
                        return Ok(batch.len());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) => return Err(DriverError::system("receiving from a netfilter queue", error)),
            }
        }
    }

    /// Returns the source and destination that a packet came with; `None` if it is not owed a verdict.
    #[inline]
    pub fn addresses(&self, packet: PacketId) -> Option<Option<(std::net::IpAddr, std::net::IpAddr)>> {
        self.id(packet).and_then(|id| self.window.addresses(id))
    }

    /// Returns whether a packet came by this queue.
    #[inline]
    pub fn has_tag(&self, packet: PacketId) -> bool {
        packet.0 >> 32 == u64::from(self.tag)
    }

    /// Returns the kernel's number of a packet of this queue.
    fn id(&self, packet: PacketId) -> Option<u32> {
        let id = packet.0 & u64::from(u32::MAX);
        u32::try_from(id).ok().filter(|_| self.has_tag(packet))
    }

    /// Returns what was done so far, with the packets that the kernel could not give us.
    pub fn counters(&self) -> Counters {
        let (mut missed, before) = self.missed.get();
        // A socket that cannot tell says nothing new.
        let now = sys::socket_drops(&self.socket).unwrap_or(before);
        missed += u64::from(now.wrapping_sub(before));
        self.missed.set((missed, now));
        match self.fail_open {
            true => Counters { bypassed: missed, ..self.counters },
            false => Counters { lost: self.counters.lost + missed, ..self.counters },
        }
    }

    /// Queues a verdict; false if the packet is not owed one.
    #[inline]
    pub fn decide(&mut self, packet: PacketId, outcome: Outcome<'_>) -> bool {
        let decided = self.id(packet).is_some_and(|id| self.window.decide(id, outcome));
        if !decided {
            self.counters.unknown += 1;
        } else if self.window.payload_bytes() > CHUNK_BYTES {
            self.collect();
        }
        decided
    }

    /// Sends the queued verdicts.
    pub fn flush(&mut self) -> Result<(), DriverError> {
        self.collect();
        if self.outgoing.is_empty() {
            return Ok(());
        }
        let sent = send_all(&self.socket, &self.outgoing);
        self.outgoing.clear();
        sent.map_err(|error| DriverError::system("sending verdicts", error))
    }

    /// Turns the window's verdicts into messages, and sends early what does not fit into one call.
    fn collect(&mut self) {
        let (number, outgoing) = (self.number, &mut self.outgoing);
        let (socket, counters) = (&self.socket, &mut self.counters);
        self.window.flush(|send| {
            match send {
                Send::One(id, decision) => message::append_verdict(outgoing, number, id, decision, None),
                Send::UpTo(id, decision) => message::append_verdict_up_to(outgoing, number, id, decision),
                Send::Replace(id, bytes) => {
                    message::append_verdict(outgoing, number, id, Decision::Accept, Some(bytes));
                }
            }
            if outgoing.len() > CHUNK_BYTES {
                counters.send_failed += u64::from(send_all(socket, outgoing).is_err());
                outgoing.clear();
            }
        });
    }

    /// Reads the messages that lie in the batch's slots and keeps those that are packets.
    fn take_in(&mut self, batch: &mut Batch, lengths: &[usize]) -> Result<(), DriverError> {
        for (slot, length) in lengths.iter().enumerate() {
            match message::parse(batch.slot(slot, *length)) {
                Received::Packet(queued) => self.note(batch, slot, &queued)?,
                Received::Answer { error: 0, .. } => {}
                Received::Answer { error: libc::ENOENT, .. } => self.counters.unknown += 1,
                Received::Answer { .. } => self.counters.send_failed += 1,
                Received::Other => self.counters.unseen += 1,
            }
        }
        self.counters.received += u64::try_from(batch.len()).expect("a batch is small");
        Ok(())
    }

    fn note(&mut self, batch: &mut Batch, slot: usize, queued: &message::Queued) -> Result<(), DriverError> {
        if !self.window.fits(queued.id) {
            self.flush()?;
            let (number, outgoing, counters) = (self.number, &mut self.outgoing, &mut self.counters);
            let decision = if self.fail_open { Decision::Accept } else { Decision::Drop };
            self.window.expire(queued.id, |id| {
                message::append_verdict(outgoing, number, id, decision, None);
                counters.overdue += 1;
            });
        }
        let bytes = &batch.slot(slot, queued.range.end)[queued.range.start..];
        let addresses = netserv_wire::ip::addresses(bytes);
        if !self.window.insert(queued.id, addresses) {
            self.counters.unseen += 1;
        } else if queued.truncated || addresses.is_none() {
            // Who fails closed has it dropped, as what is too long for a module's ring.
            let decision = if self.fail_open { Decision::Accept } else { Decision::Drop };
            self.counters.unseen += u64::from(self.fail_open);
            self.counters.lost += u64::from(!self.fail_open);
            self.window.decide(queued.id, Outcome::Decided(decision));
        } else {
            let id = PacketId(u64::from(self.tag) << 32 | u64::from(queued.id));
            batch.adopt(id, InterfaceId(queued.interface), slot, queued.range.clone());
        }
        Ok(())
    }

    /// Takes the queue of our number; false if somebody else has it.
    fn bind(&mut self, config: QueueConfig) -> Result<bool, DriverError> {
        let mut request = Vec::new();
        message::append_bind(&mut request, SEQUENCE, self.number, KERNEL_PACKETS_MAX, config.fail_open);
        let answer = send_all(&self.socket, &request).and_then(|()| self.answer(SEQUENCE));
        match answer.map_err(|error| DriverError::system("binding a netfilter queue", error))? {
            0 => Ok(true),
            libc::EBUSY => Ok(false),
            // Said of a queue that another socket has, too.
            libc::EPERM if may_administer() => Ok(false),
            libc::EPERM => Err(DriverError::NotPermitted { what: "binding a netfilter queue" }),
            error => {
                let why = io::Error::from_raw_os_error(error).to_string();
                Err(DriverError::Unsupported { what: "netfilter queues (nfnetlink_queue)", why })
            }
        }
    }

    /// Waits for the answer to a request; packets that come first, for a rule that was there before us, pass.
    fn answer(&mut self, sequence: u32) -> io::Result<i32> {
        let mut buffer = vec![0; limits::SLOT_BYTES];
        let deadline = Instant::now() + ANSWER_TIME_MAX;
        loop {
            match rustix::net::recv(&self.socket, &mut buffer, RecvFlags::empty()) {
                Ok((length, _)) => match message::parse(&buffer[..length]) {
                    Received::Answer { sequence: number, error } if number == sequence => return Ok(error),
                    Received::Packet(queued) => {
                        let mut verdict = Vec::new();
                        message::append_verdict(&mut verdict, self.number, queued.id, Decision::Accept, None);
                        send_all(&self.socket, &verdict)?;
                    }
                    Received::Answer { .. } | Received::Other => {}
                },
                Err(rustix::io::Errno::AGAIN) => match wait(&self.socket, Some(deadline)) {
                    Ok(true) => {}
                    Ok(false) | Err(_) => return Err(io::ErrorKind::TimedOut.into()),
                },
                Err(rustix::io::Errno::INTR | rustix::io::Errno::NOBUFS) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Queue {
    /// Closing the socket drops what waits in the kernel; a queue that fails open lets it go on first, and takes no more.
    fn drop(&mut self) {
        let flushed = self.flush();
        if self.fail_open && flushed.is_ok() {
            let far_ahead = self.window.end().wrapping_add(1 << 30);
            let mut requests = Vec::new();
            message::append_bound(&mut requests, self.number, 0);
            message::append_verdict_up_to(&mut requests, self.number, far_ahead, Decision::Accept);
            if let Err(error) = send_all(&self.socket, &requests) {
                tracing::debug!(%error, queue = self.number, "packets waiting in a closed queue are lost");
            }
        }
    }
}

/// What the kernel takes for a packet of 1,500 bytes that waits to be received; the rest of what it counts is doubled in
/// the size of a socket's buffer.
const PACKET_BUFFER_BYTES: usize = 2048;
/// Packets of a queue in the kernel, waiting to be received or for their verdict. The socket's buffer bounds the former
/// and the window the latter, and packets beyond these are counted; those beyond this would pass without a trace.
const KERNEL_PACKETS_MAX: u32 = 1 << 24;
/// How much goes to the kernel in one call. A single message can be longer.
const CHUNK_BYTES: usize = 128 * 1024;
const SEND_BUFFER_BYTES: usize = 1024 * 1024;
/// Of the one request that is answered.
const SEQUENCE: u32 = 1;
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// Twice what may wait in the kernel, so that a few slow packets do not make the others wait.
fn window_packets(queue_packets: u32) -> usize {
    let wanted = usize::try_from(queue_packets).expect("32 bits fit in usize").saturating_mul(2);
    wanted.clamp(1, limits::WINDOW_PACKETS_MAX)
}

/// Waits until something can be received, or for a moment that is over; returns whether it is not.
pub(super) fn wait(from: impl AsFd, deadline: Option<Instant>) -> Result<bool, DriverError> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    if left == Some(Duration::ZERO) {
        return Ok(false);
    }
    let timeout = left.map(|left| Timespec::try_from(left).expect("a time to wait is short"));
    match poll(&mut [PollFd::new(&from, PollFlags::IN)], timeout.as_ref()) {
        Ok(0) => Ok(false),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(DriverError::system("waiting for a netfilter queue", error)),
    }
}

fn may_administer() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::NET_ADMIN))
}

fn send_all(socket: &OwnedFd, messages: &[u8]) -> io::Result<()> {
    loop {
        match rustix::net::send(socket, messages, SendFlags::empty()) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_window_packets_max_packets_at_most() {
        for (queue, window) in
            [(0, 1), (32, 64), (40_000, limits::WINDOW_PACKETS_MAX), (u32::MAX, limits::WINDOW_PACKETS_MAX)]
        {
            assert_eq!(window_packets(queue), window);
        }
    }
}
