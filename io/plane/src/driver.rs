// SPDX-License-Identifier: Apache-2.0
//! The contract between the packet thread and a forwarding plane.
//!
//! A new driver must implement the calls marked *required*; the others have a default that is right for every driver
//! and may be replaced by a faster one. The order of calls in the packet thread is:
//!
//! 1. [`Driver::receive`] fills a [`Batch`]; each packet in it is now owed exactly one [`Driver::finish`].
//! 2. [`Driver::finish`] in any order, at any later time, also after further calls of `receive`; [`Driver::inject`]
//!    whenever a new packet is to be sent. Both only queue.
//! 3. [`Driver::flush`] carries out what is queued. Call it at the end of each turn of the loop.
//!
//! Filters are changed through [`Driver::filters`], which any thread may hold, so that a change of rules never stops
//! the packet thread.
//!
//! Both halves of a plane can be in different places: a switch has its filters as flow entries, and gives packets to the node
//! by a device. Such a plane has a [`FilterTable`] of its own and wraps the driver of the plane that serves the device.
//!
//! [`FilterTable::change`] may take a round trip to such a place. The thread that calls it has a ticket for each change, and makes
//! one call of all that come while it waits, so that a user waits for two calls at most.

use std::iter::Sum;
use std::net::IpAddr;
use std::ops::Add;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use netserv_model::Filter;
use netserv_model::api::DeviceInfo;
use netserv_model::effect::FilterId;

use crate::counted::{DestinationCounters, Uncounted};
use crate::{Batch, DriverError, InterfaceId, PacketId, Passage};

/// What becomes of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Final<'a> {
    /// It goes on as it came.
    Pass,
    /// It goes no further.
    Drop,
    /// These bytes go on in its place: a whole IP packet with right lengths and checksums.
    ///
    /// A packet whose source or destination differs from the received one is routed afresh, as a router would: its
    /// TTL or hop limit goes down by one. The caller need not care which of the two happens. It is dropped if its
    /// destination is not one that [`Driver::inject`] takes.
    Replace(&'a [u8]),
}

/// Where a packet goes after its verdict, for people to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Egress {
    /// The driver sends it out by a device itself.
    Out {
        /// The interface that it leaves by: the device, or the VLAN on it.
        interface: InterfaceId,
        /// The name of that interface.
        name: String,
        /// The router or host that it goes to next.
        next_hop: IpAddr,
        /// The next hop's Ethernet address.
        station: [u8; 6],
        /// The tag that the frame gets, if any.
        vlan: Option<u16>,
        /// Bytes of the longest packet on this way.
        mtu: usize,
    },
    /// The kernel has it from there on: it routes, answers, delivers or drops it as it does with its own.
    Kernel {
        /// Why the driver leaves it to the kernel, as the rest of a sentence that starts with "because".
        why: &'static str,
    },
    /// It goes nowhere.
    Refused {
        /// Why, as the rest of a sentence that starts with "because".
        why: &'static str,
    },
}

/// One change of the filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Receive the packets that the filter matches, too.
    Install(FilterId, &'a Filter),
    /// The same for modules that fail closed: packets that the plane cannot hand out since more come than are taken are
    /// dropped, also where filters that were installed otherwise match them. While there is no node, they pass.
    InstallClosed(FilterId, &'a Filter),
    /// Take the filter of this name away.
    Remove(FilterId),
}

netserv_model::counts! {
    sum
    /// What a driver did since it was opened. Every packet that a driver loses or lets go unseen is in one of these.
    pub struct Counters {
        /// Packets handed out by `receive`.
        received = "received",
        /// Verdicts `Pass`.
        passed = "passed",
        /// Verdicts `Drop`.
        dropped = "dropped",
        /// Verdicts `Replace` that were carried out in place.
        replaced = "replaced",
        /// Verdicts `Replace` with other addresses, which were dropped and sent anew.
        redirected = "redirected",
        /// New packets sent for `inject`.
        injected = "injected",
        /// Packets that could not be sent: no route, longer than the link allows, refused by the kernel.
        send_failed = "send-failed",
        /// Verdicts whose bytes are no valid IP packet, or whose TTL ran out on the way; the packet was dropped.
        bad_verdict = "bad-verdict",
        /// Verdicts `Replace` with new addresses whose destination may not receive such a packet, which was dropped.
        refused = "refused",
        /// Verdicts for packets that were not owed one.
        unknown = "unknown",
        /// Packets decided by the driver because they waited over its window.
        overdue = "overdue",
        /// Packets let go unseen because they were cut short on the way to us, could not be understood, came by a queue that
        /// is not served yet, or came while nobody took packets.
        unseen = "unseen",
        /// Packets that the plane let go on unseen, since more came than we took.
        bypassed = "bypassed",
        /// Packets that the plane dropped, since more came than we took.
        lost = "lost",
        /// Packets that no filter wants and that the plane forwarded itself, rather than leaving them to the kernel.
        forwarded,
    }
}

impl Sum for Counters {
    fn sum<I: Iterator<Item = Counters>>(counters: I) -> Counters {
        counters.fold(Counters::default(), Counters::add)
    }
}

/// The filters of a driver: the union of them says which packets `receive` yields.
///
/// A packet is received once however many filters match; whoever receives it finds out for whom it is with
/// [`Filter::matches`]. A driver may yield packets that no filter matches (just after a removal, or because the plane
/// is coarser), and such packets are to be passed.
pub trait FilterTable: Send + Sync {
    /// Makes all the changes in order, or none of them. **Required.**
    ///
    /// # Errors
    /// Refuses the install of a known id, the removal of an unknown one, and more filters than
    /// [`limits::FILTERS_MAX`](crate::limits::FILTERS_MAX); says why the plane did not take the rules.
    fn change(&self, changes: &[Change<'_>]) -> Result<(), DriverError>;
}

/// A forwarding plane, used by one packet thread.
pub trait Driver: Send {
    /// Returns the driver's name as it stands in configuration files. **Required.**
    fn name(&self) -> &'static str;

    /// Returns the driver's filters, for use by any thread, also after the driver is gone. **Required.**
    fn filters(&self) -> Arc<dyn FilterTable>;

    /// Returns the plane's counters of packets by destination, for use by any thread, also after the driver is gone.
    /// *Optional*; without it, nothing is counted. All lanes have the same.
    fn destination_counters(&self) -> Arc<dyn DestinationCounters> {
        Arc::new(Uncounted)
    }

    /// Has the plane take signaling messages for others off its devices from now on, and returns the way by which they
    /// come; `None` where rules of the kernel's packet filter have to do it.
    ///
    /// # Errors
    /// If the plane could, and the system does not let it.
    fn intercept(&mut self) -> Result<Option<Passage>, DriverError> {
        Ok(None)
    }

    /// Clears the batch and fills it with received packets, waiting up to `timeout` for the first one; returns how
    /// many there are, 0 when the time is over. **Required.**
    ///
    /// `None` waits as long as it takes, `Some(Duration::ZERO)` not at all. Packets start with the IP header.
    ///
    /// Whoever uses a driver calls this at least every 250 milliseconds, also when nothing comes: a driver may take the
    /// node for dead after [`limits::HEARTBEAT_MAX`](crate::limits::HEARTBEAT_MAX) without a call, and then lets packets pass
    /// unseen until the next one. A call that waits counts all through its wait.
    ///
    /// # Errors
    /// Only when the plane is gone. Losses are counted and are no error.
    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError>;

    /// Queues the verdict on a received packet. **Required.**
    ///
    /// A verdict cannot fail for the caller: what goes wrong with it is counted.
    fn finish(&mut self, packet: PacketId, verdict: Final<'_>);

    /// Tells where a received packet will go if this is its verdict, without carrying it out. *Optional.*
    ///
    /// For traces: call it before [`Driver::finish`] with the same arguments, on as few packets as somebody looks at,
    /// since it may ask the kernel about routes. It counts nothing, and the packet is still owed its verdict. What is
    /// told is true at that moment; routes and neighbours may change before the packet is sent.
    fn explain(&mut self, packet: PacketId, verdict: Final<'_>) -> Egress {
        let _ = packet;
        match verdict {
            Final::Pass | Final::Replace(_) => Egress::Kernel { why: "this driver has the kernel forward everything" },
            Final::Drop => Egress::Refused { why: "its verdict is to drop it" },
        }
    }

    /// Queues a new IP packet for sending, routed by its destination. **Required.**
    ///
    /// The driver's own filters do not see it. Lengths and checksums must be right, but for the IPv4 header checksum,
    /// which the plane fills in.
    ///
    /// # Errors
    /// Refuses bytes that are no whole IP packet, and with [`DriverError::NoMachine`] a destination that is not one
    /// machine elsewhere: the kernel's own look-up has to find a route of the type `RTN_UNICAST` to it, and it must not be
    /// an address that counts on one link alone. Failures in sending show in [`Counters::send_failed`].
    fn inject(&mut self, packet: &[u8]) -> Result<(), DriverError>;

    /// Carries out the queued verdicts and sends the queued packets. **Required.**
    ///
    /// # Errors
    /// Only when the plane is gone; everything queued was tried or given up.
    fn flush(&mut self) -> Result<(), DriverError>;

    /// Returns what becomes readable when there are packets to receive. **Required**; `None` where there is no such
    /// thing, and then `receive` must be called with a timeout.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Returns what was done so far. **Required.**
    fn counters(&self) -> Counters;

    /// Returns how many packets may be without a verdict at a time before the driver, for lack of memory, loses others or
    /// decides by itself. *Optional*; without it, nothing is known of such a bound.
    fn owed_max(&self) -> usize {
        usize::MAX
    }

    /// Returns the devices that are served now, and how. *Optional*: empty where the plane serves none by itself.
    fn devices(&self) -> Vec<DeviceInfo> {
        Vec::new()
    }

    /// Installs one filter. *Optional.*
    ///
    /// # Errors
    /// As [`FilterTable::change`].
    fn install(&mut self, id: FilterId, filter: &Filter) -> Result<(), DriverError> {
        self.filters().change(&[Change::Install(id, filter)])
    }

    /// Removes one filter. *Optional.*
    ///
    /// # Errors
    /// As [`FilterTable::change`].
    fn remove(&mut self, id: FilterId) -> Result<(), DriverError> {
        self.filters().change(&[Change::Remove(id)])
    }
}

impl<D: Driver + ?Sized> Driver for Box<D> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn intercept(&mut self) -> Result<Option<Passage>, DriverError> {
        (**self).intercept()
    }

    fn filters(&self) -> Arc<dyn FilterTable> {
        (**self).filters()
    }

    fn destination_counters(&self) -> Arc<dyn DestinationCounters> {
        (**self).destination_counters()
    }

    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        (**self).receive(batch, timeout)
    }

    fn finish(&mut self, packet: PacketId, verdict: Final<'_>) {
        (**self).finish(packet, verdict);
    }

    fn explain(&mut self, packet: PacketId, verdict: Final<'_>) -> Egress {
        (**self).explain(packet, verdict)
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), DriverError> {
        (**self).inject(packet)
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        (**self).flush()
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        (**self).poll_fd()
    }

    fn counters(&self) -> Counters {
        (**self).counters()
    }

    fn owed_max(&self) -> usize {
        (**self).owed_max()
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        (**self).devices()
    }

    fn install(&mut self, id: FilterId, filter: &Filter) -> Result<(), DriverError> {
        (**self).install(id, filter)
    }

    fn remove(&mut self, id: FilterId) -> Result<(), DriverError> {
        (**self).remove(id)
    }
}
