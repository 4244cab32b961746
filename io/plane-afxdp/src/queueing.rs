// SPDX-License-Identifier: Apache-2.0
//! Queueing disciplines, as routing netlink tells of them.

use netserv_netlink::message::{self, Message};

/// Returns the device and the kind of a queueing discipline that does more than to queue.
pub(super) fn parse_queueing(message: Message<'_>) -> Option<(u32, String)> {
    (message.kind == NEW_QUEUEING).then_some(())?;
    let device = u32::from_ne_bytes(*message.body.get(4..)?.first_chunk()?);
    let mut kinds =
        message::attributes(message.body.get(QUEUEING_HEADER_BYTES..)?).filter(|(kind, _)| *kind == QUEUEING_KIND);
    let kind = String::from_utf8_lossy(kinds.next()?.1).trim_end_matches('\0').to_owned();
    (!PLAIN_QUEUES.contains(&kind.as_str())).then_some((device, kind))
}

/// `RTM_NEWQDISC`.
const NEW_QUEUEING: u16 = 36;
/// `RTM_GETQDISC`.
pub(super) const GET_QUEUEING: u16 = 38;
/// Bytes of `struct tcmsg`.
pub(super) const QUEUEING_HEADER_BYTES: usize = 20;
const QUEUEING_KIND: u16 = 1;
/// What devices have unless somebody wants more, by `net.core.default_qdisc` and the number of their queues.
const PLAIN_QUEUES: [&str; 7] = ["noqueue", "noop", "mq", "pfifo", "pfifo_fast", "fq", "fq_codel"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disciplines_that_shape_or_filter_are_told_from_queues() {
        let parse = |kind: &str| {
            let mut bytes = Vec::new();
            let header = [&[0; 4][..], &7_u32.to_ne_bytes(), &[0; 12]].concat();
            message::append(
                &mut bytes,
                NEW_QUEUEING,
                0,
                1,
                &header,
                &[(QUEUEING_KIND, format!("{kind}\0").as_bytes())],
            );
            let message = message::messages(&bytes).next().unwrap();
            // Cut short, it says nothing, and does no harm.
            (0..message.body.len())
                .for_each(|end| drop(parse_queueing(Message { body: &message.body[..end], ..message })));
            parse_queueing(message)
        };
        for kind in ["tbf", "htb", "clsact", "ingress", "cake", "netem"] {
            assert_eq!(parse(kind), Some((7, kind.to_owned())));
        }
        assert!(PLAIN_QUEUES.into_iter().all(|kind| parse(kind).is_none()));
    }
}
