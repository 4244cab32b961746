// SPDX-License-Identifier: Apache-2.0
//! Lists of filters: what a request leaves of a manifest's, and which meet.

use netserv_model::filter::{PortRange, Protocol};
use netserv_model::{Filter, WantedFilter};

/// Returns what a module gets whose manifest has `own` filters, if `asked` for these: them, but for those that name ends
/// only. These narrow the manifest's filters that name none, if there are such.
pub(crate) fn narrowed(own: &[WantedFilter], asked: &[WantedFilter]) -> Vec<WantedFilter> {
    if asked.is_empty() {
        return without_repetitions(own);
    }
    let open = || own.iter().filter(|filter| !filter.has_ends());
    let narrow = |one: &WantedFilter| match one.is_ends_only() && open().next().is_some() {
        true => open().map(|filter| filter.with_ends_of(one)).collect(),
        false => vec![one.clone()],
    };
    without_repetitions(&asked.iter().flat_map(narrow).collect::<Vec<_>>())
}

/// Returns whether two lists name the same filters, in whatever order.
pub(crate) fn same<T: Ord + Clone>(one: &[T], other: &[T]) -> bool {
    let sorted = |filters: &[T]| {
        let mut filters = filters.to_vec();
        filters.sort_unstable();
        filters.dedup();
        filters
    };
    sorted(one) == sorted(other)
}

/// Returns the filters without repetitions, each at its first place.
pub(crate) fn without_repetitions<T: PartialEq + Clone>(filters: &[T]) -> Vec<T> {
    let mut kept: Vec<T> = Vec::with_capacity(filters.len());
    for filter in filters {
        if !kept.contains(filter) {
            kept.push(filter.clone());
        }
    }
    kept
}

/// Returns whether servers at two places would want one port of one protocol, whoever may reach them there.
pub(crate) fn share_port(one: &Filter, other: &Filter) -> bool {
    share_protocol(one, other) && share(one.destination_ports(), other.destination_ports())
}

fn share_protocol(one: &Filter, other: &Filter) -> bool {
    one.protocol() == other.protocol() || [one.protocol(), other.protocol()].contains(&Protocol::Any)
}

fn share(one: Option<PortRange>, other: Option<PortRange>) -> bool {
    let (one, other) = (one.unwrap_or(PortRange::ALL), other.unwrap_or(PortRange::ALL));
    one.first() <= other.last() && other.first() <= one.last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_meet_are_found() {
        let check = |one: &str, other: &str, port: bool| {
            let (one, other): (Filter, Filter) = (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!((share_port(&one, &other), share_port(&other, &one)), (port, port), "{one} {other}");
        };
        check("tcp port 80", "tcp port 80", true);
        check("tcp port 80", "tcp port 81", false);
        check("tcp port 80-90", "tcp port 90-99", true);
        check("tcp port 80", "udp port 80", false);
        check("tcp src 10.1.0.0/16 port 80", "tcp src 10.2.0.0/16 port 80", true);
    }
}
