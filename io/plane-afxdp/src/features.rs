// SPDX-License-Identifier: Apache-2.0
//! What devices can do for XDP, as the kernel's `netdev` family tells over generic netlink (Linux 6.3).

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use netserv_netlink::generic::{CONTROL, FAMILY_ID, FAMILY_NAME, GET_FAMILY};
use netserv_netlink::message::{self, FLAG_DUMP, Message};
use netserv_netlink::routes::{self, Routes};
use netserv_netlink::{Family, Socket};
use netserv_plane::{DriverError, sys};

/// What one device can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ability(u64);

impl Ability {
    /// Returns an ability for tests.
    #[cfg(test)]
    pub fn of(native: bool, target: bool, zero_copy: bool) -> Ability {
        let bits = [(native, FEATURE_BASIC), (target, FEATURE_TARGET), (zero_copy, FEATURE_ZERO_COPY)];
        Ability(bits.iter().filter(|(has, _)| *has).map(|(_, bit)| bit).sum())
    }

    /// Returns whether the device's driver runs XDP programs.
    pub fn is_native(self) -> bool {
        self.0 & FEATURE_BASIC != 0
    }

    /// Returns whether the device sends what another has received.
    pub fn is_target(self) -> bool {
        self.0 & FEATURE_TARGET != 0
    }

    /// Returns whether the device has AF_XDP sockets without a copy.
    pub fn is_zero_copy(self) -> bool {
        self.0 & FEATURE_ZERO_COPY != 0
    }
}

/// Asks the kernel what devices can do.
pub(super) struct Features {
    routes: Routes,
    family: u16,
    /// Tells when that changes.
    notices: Socket,
}

impl Features {
    /// Opens the way to ask; `None` where the kernel does not tell.
    pub fn open() -> Result<Option<Features>, DriverError> {
        let routes = Routes::generic()?;
        let (header, list) = ([GET_FAMILY, 1, 0, 0], [(FAMILY_NAME, NAME)]);
        let mut found = None;
        if let Err(error) = routes.ask(CONTROL, 0, &header, &list, |message| found = parse_family(message)) {
            tracing::debug!(%error, "the kernel does not tell what devices can do for XDP");
            return Ok(None);
        }
        let Some((family, group)) = found else { return Ok(None) };
        let notices = routes::listen(Family::Generic, 0)?;
        sys::set_option(&notices, libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, group)
            .map_err(|error| DriverError::system("listening for changes of devices", error))?;
        Ok(Some(Features { routes, family, notices }))
    }

    /// Returns what becomes readable when something changed.
    pub fn notices(&self) -> BorrowedFd<'_> {
        self.notices.as_fd()
    }

    /// Returns whether anything changed since the last call.
    pub fn changed(&self) -> bool {
        self.notices.drain()
    }

    /// Returns how many receive queues a device has at present; 0 where the kernel does not tell.
    pub fn queues(&self, device: u32) -> usize {
        let attributes: [(u16, &[u8]); 1] = [(QUEUE_DEVICE, &device.to_ne_bytes())];
        let mut count = 0;
        let each = |message: Message<'_>| count += usize::from(is_receive_queue(message));
        let asked = self.routes.ask(self.family, FLAG_DUMP, &[GET_QUEUES, 1, 0, 0], &attributes, each);
        if asked.is_ok() { count } else { 0 }
    }

    /// Returns what each device can do, by its index.
    pub fn of_devices(&self) -> Result<BTreeMap<u32, Ability>, DriverError> {
        let mut found = BTreeMap::new();
        let each = |message: Message<'_>| found.extend(parse_device(message));
        self.routes
            .ask(self.family, FLAG_DUMP, &[GET_DEVICE, 1, 0, 0], &[], each)
            .map_err(|error| DriverError::system("asking what devices can do", error))?;
        Ok(found)
    }
}

/// `NETDEV_CMD_QUEUE_GET` (Linux 6.8) and its attributes.
const GET_QUEUES: u8 = 10;
const QUEUE_DEVICE: u16 = 2;
const QUEUE_TYPE: u16 = 3;
/// `NETDEV_QUEUE_TYPE_RX`.
const QUEUE_RECEIVES: u32 = 0;

/// `CTRL_ATTR_MCAST_GROUPS` and the attributes in it.
const FAMILY_GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;
const NAME: &[u8] = b"netdev\0";
const GROUP: &[u8] = b"mgmt\0";

/// `NETDEV_CMD_DEV_GET` and its attributes.
const GET_DEVICE: u8 = 1;
const DEVICE_INDEX: u16 = 1;
const DEVICE_FEATURES: u16 = 3;
/// `NETDEV_XDP_ACT_BASIC`, `_NDO_XMIT` and `_XSK_ZEROCOPY`.
const FEATURE_BASIC: u64 = 1;
const FEATURE_TARGET: u64 = 4;
const FEATURE_ZERO_COPY: u64 = 8;
/// Bytes of `struct genlmsghdr`.
const HEADER_BYTES: usize = 4;

/// Returns the number of the family, and that of the group that hears of changes.
fn parse_family(message: Message<'_>) -> Option<(u16, i32)> {
    let (mut family, mut group) = (None, None);
    for (attribute, content) in message::attributes(message.body.get(HEADER_BYTES..)?) {
        match attribute {
            FAMILY_ID => family = content.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes)),
            FAMILY_GROUPS => group = message::attributes(content).find_map(|(_, content)| parse_group(content)),
            _ => {}
        }
    }
    family.zip(group)
}

fn parse_group(content: &[u8]) -> Option<i32> {
    let mut name = message::attributes(content).filter(|(attribute, _)| *attribute == GROUP_NAME);
    let mut number = message::attributes(content).filter(|(attribute, _)| *attribute == GROUP_ID);
    (name.next()?.1 == GROUP).then_some(())?;
    number.next()?.1.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes))
}

fn is_receive_queue(message: Message<'_>) -> bool {
    let attributes = message::attributes(message.body.get(HEADER_BYTES..).unwrap_or_default());
    let mut kinds = attributes.filter(|(attribute, _)| *attribute == QUEUE_TYPE);
    let kind = kinds.next().and_then(|(_, content)| content.first_chunk()).map(|bytes| u32::from_ne_bytes(*bytes));
    kind == Some(QUEUE_RECEIVES)
}

fn parse_device(message: Message<'_>) -> Option<(u32, Ability)> {
    let (mut index, mut features) = (None, None);
    for (attribute, content) in message::attributes(message.body.get(HEADER_BYTES..)?) {
        match attribute {
            DEVICE_INDEX => index = content.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes)),
            DEVICE_FEATURES => features = content.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes)),
            _ => {}
        }
    }
    index.zip(features.map(Ability))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        message::append(&mut bytes, 0x20, 0, 1, &[0; HEADER_BYTES], attributes);
        bytes
    }

    fn nested(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        message(attributes)[message::HEADER_BYTES + HEADER_BYTES..].to_vec()
    }

    #[test]
    fn answers_are_understood_and_halves_of_them_do_no_harm() {
        let group = |name: &[u8], number: i32| nested(&[(GROUP_NAME, name), (GROUP_ID, &number.to_ne_bytes())]);
        let groups = nested(&[(1, &group(b"page-pool\0", 8)), (2, &group(GROUP, 9))]);
        let bytes = message(&[(FAMILY_ID, &33_u16.to_ne_bytes()), (FAMILY_GROUPS, &groups)]);
        assert_eq!(message::messages(&bytes).next().and_then(parse_family), Some((33, 9)));
        let features = (FEATURE_BASIC | FEATURE_TARGET).to_ne_bytes();
        let device = message(&[(DEVICE_INDEX, &7_u32.to_ne_bytes()), (DEVICE_FEATURES, &features)]);
        let (index, ability) = message::messages(&device).next().and_then(parse_device).unwrap();
        assert_eq!((index, ability), (7, Ability::of(true, true, false)));
        for length in 0..bytes.len().max(device.len()) {
            for whole in [&bytes, &device] {
                let mut cut = whole[..length.min(whole.len())].to_vec();
                if let Some(field) = cut.first_chunk_mut::<4>() {
                    *field = u32::try_from(length).unwrap().to_ne_bytes();
                }
                for message in message::messages(&cut) {
                    let _ = (parse_family(message), parse_device(message));
                }
            }
        }
    }
}
