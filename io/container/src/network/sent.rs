// SPDX-License-Identifier: Apache-2.0
//! How many packets containers send, held where they come out of their links.
//!
//! One table of nf_tables for each instance, which is named after it: a map leads what came in by a container's link to that
//! container's chain. The table stays while the node runs. A table of each link would do the same, but whenever a hook of
//! nf_tables leaves a network namespace, the kernel drops all packets there that wait for a verdict (`nf_queue_nf_hook_drop`).

use std::io;

use netserv_model::container_link::{container_link_prefix, is_container_link};
use netserv_model::policy::NetworkRate;
use netserv_netlink::Socket;
use netserv_netlink::nftables::{self, Hook, Rule, Table, Transaction};

use super::error::NetworkError;
use super::rate;

/// Makes a chain of a link's name, of nothing yet, for the packets that come out of the link.
pub(super) fn see(rules: &Socket, link: &str, index: u32) -> Result<(), NetworkError> {
    let mut batch = Transaction::of(table_of(link));
    batch.table();
    batch.chain(SENT, Some(Hook::Prerouting(PRIORITY)));
    batch.verdict_map(LINKS);
    batch.remove_rules_of(SENT);
    batch.rule(SENT, &Rule::new().by_device(LINKS), "what containers send");
    batch.chain(link, None);
    batch.remove_rules_of(link);
    batch.counter(link);
    batch.lead(LINKS, &index.to_ne_bytes(), link);
    Ok(rules.carry_out(&batch.finish())?)
}

/// Bounds the packets that come out of a link, or has another bound than before.
pub(super) fn bound(rules: &Socket, link: &str, rate: NetworkRate) -> Result<(), NetworkError> {
    let mut batch = Transaction::of(table_of(link));
    batch.remove_rules_of(link);
    batch.rule(link, &rate::over(rate, link), "packets in a second");
    Ok(rules.carry_out(&batch.finish())?)
}

/// Returns how many of the packets that came out of a link were dropped.
pub(super) fn dropped(rules: &Socket, link: &str) -> io::Result<u64> {
    let counters = nftables::counters(rules, &table_of(link))?;
    let found = counters.into_iter().find(|(name, _)| name == link);
    found.map(|(_, packets)| packets).ok_or_else(|| io::Error::other("the kernel has no counter of this link"))
}

/// Returns whether the table is there, with what it needs of a link.
pub(super) fn is_there(rules: &Socket, link: &str) -> io::Result<bool> {
    if !nftables::has_table(rules, &table_of(link))? {
        return Ok(false);
    }
    Ok(nftables::counters(rules, &table_of(link))?.iter().any(|(name, _)| name == link))
}

/// Forgets a link, if it is known.
pub(super) fn forget(rules: &Socket, link: &str, index: u32) -> Result<(), NetworkError> {
    let mut batch = Transaction::of(table_of(link));
    batch.remove_element(LINKS, &index.to_ne_bytes());
    batch.remove_chain(link);
    batch.remove_counter(link);
    match rules.carry_out(&batch.finish()) {
        Err(refused) if refused.source.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        done => Ok(done?),
    }
}

/// Takes the table of an instance away.
pub(super) fn remove_table(rules: &Socket, instance: &str) -> Result<(), NetworkError> {
    Ok(nftables::remove_table(rules, table_of(&container_link_prefix(instance)))?)
}

/// The table is called as the links, with another end.
fn table_of(link: &str) -> Table {
    debug_assert!(is_container_link(link) || link.ends_with('n'), "{link}");
    let digits = link.trim_end_matches(|byte: char| byte.is_ascii_digit());
    Table::inet(&format!("{}s", digits.trim_end_matches('n')))
}

const SENT: &str = "sent";
const LINKS: &str = "links";
/// Before fragments are put together (`NF_IP_PRI_CONNTRACK_DEFRAG`).
const PRIORITY: i32 = -450;
