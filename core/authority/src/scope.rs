// SPDX-License-Identifier: Apache-2.0
//! What lies within a user's prefixes and ports.

use std::net::IpAddr;

use ipnet::IpNet;
use netserv_model::filter::{PortRange, Protocol};
use netserv_model::limits::FILTERS_PER_MODULE_MAX;
use netserv_model::policy::{NodePolicy, UserPolicy};
use netserv_model::{Filter, Refusal, RefusalKind, WantedFilter};

/// Checks that there are not too many filters and that each stays inside what the user has proven.
pub fn check(policy: &NodePolicy, user: &UserPolicy, filters: &[WantedFilter]) -> Result<(), Refusal> {
    if filters.len() > FILTERS_PER_MODULE_MAX {
        let detail = format!("{} filters, at most {FILTERS_PER_MODULE_MAX} for one module", filters.len());
        return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
    }
    filters.iter().try_for_each(|filter| {
        if filter.names_container() {
            check_container(policy, user, filter)?;
        } else {
            check_prefixes(user, filter.open())?;
        }
        check_ports(user, filter.open())
    })
}

/// Checks the filters that the sessions of a module asked for together, each of which was checked when it came.
pub fn check_of_sessions(policy: &NodePolicy, user: &UserPolicy, filters: &[WantedFilter]) -> Result<(), Refusal> {
    filters.iter().try_for_each(|filter| check(policy, user, std::slice::from_ref(filter)))
}

/// Checks that floating addresses are the user's own, as the end of a filter has to be, and that there can be a container that
/// they lead to.
pub fn check_floating(policy: &NodePolicy, user: &UserPolicy, addresses: &[IpAddr]) -> Result<(), Refusal> {
    let Some(first) = addresses.first() else { return Ok(()) };
    if !policy.has_network() || !user.needs_network() {
        let detail = match policy.has_network() {
            false => "the containers of this node have no network",
            true => "the user's container has no network: the operator grants neither `listen` nor `connect`",
        };
        return Err(Refusal::new(RefusalKind::NoNetwork, format!("floating address {first}: {detail}")));
    }
    match addresses.iter().find(|address| !is_own(user, IpNet::from(**address))) {
        Some(address) => {
            let detail = format!("floating address {address} does not lie in a prefix of the user");
            Err(Refusal::new(RefusalKind::PrefixNotAllowed, detail))
        }
        None => Ok(()),
    }
}

/// Returns whether what the operator grants holds everything that is wanted: the same protocol or any, the sources of a
/// granted filter, and every port.
pub fn grants(granted: &[Filter], wanted: &Filter) -> bool {
    let within = |outer: Option<IpNet>, inner: Option<IpNet>| match (outer, inner) {
        (None, _) => true,
        (Some(outer), Some(inner)) => outer.contains(&inner),
        (Some(_), None) => false,
    };
    let fits = |one: &&Filter| {
        (one.protocol() == wanted.protocol() || one.protocol() == Protocol::Any)
            && (wanted.opens_only() || !one.opens_only())
            && within(one.source(), wanted.source())
            && within(one.destination(), wanted.destination())
            && one.source_ports().is_none_or(|ports| wanted.source_ports().is_some_and(|own| ports.covers(own)))
    };
    let ports = granted.iter().filter(fits).map(|one| one.destination_ports().unwrap_or(PortRange::ALL));
    covers(&ports.collect::<Vec<_>>(), wanted.destination_ports().unwrap_or(PortRange::ALL))
}

fn check_container(policy: &NodePolicy, user: &UserPolicy, filter: &WantedFilter) -> Result<(), Refusal> {
    let refusal = |detail: &str| Err(Refusal::new(RefusalKind::NoNetwork, format!("filter `{filter}`: {detail}")));
    if !policy.has_network() {
        return refusal("the containers of this node have no network, so no address is their own");
    }
    if !user.needs_network() {
        return refusal(
            "the user's container has no network, so no address is its own: the operator grants neither `listen` nor \
             `connect`",
        );
    }
    Ok(())
}

fn check_prefixes(user: &UserPolicy, filter: &Filter) -> Result<(), Refusal> {
    let own = |net: Option<IpNet>| net.is_some_and(|net| is_own(user, net));
    if own(filter.source()) || own(filter.destination()) {
        return Ok(());
    }
    let detail = if filter.version().is_none() {
        format!("filter `{filter}` names neither source nor destination, so it would see everybody's packets")
    } else {
        format!("neither end of filter `{filter}` lies in a prefix of the user")
    };
    Err(Refusal::new(RefusalKind::PrefixNotAllowed, detail))
}

fn is_own(user: &UserPolicy, net: IpNet) -> bool {
    let given = user.addresses.iter().copied().map(IpNet::from);
    user.prefixes.iter().copied().chain(given).any(|prefix| prefix.contains(&net))
}

fn check_ports(user: &UserPolicy, filter: &Filter) -> Result<(), Refusal> {
    if user.ports.is_empty() {
        return Ok(());
    }
    let covered = |ports: Option<PortRange>| covers(&user.ports, ports.unwrap_or(PortRange::ALL));
    let allowed = match filter.protocol() {
        Protocol::Any => false,
        Protocol::Tcp | Protocol::Udp => covered(filter.destination_ports()) || covered(filter.source_ports()),
        Protocol::Icmp => true,
    };
    let detail = || format!("filter `{filter}` reaches beyond the user's ports {}", list(&user.ports));
    if allowed { Ok(()) } else { Err(Refusal::new(RefusalKind::PortNotAllowed, detail())) }
}

/// Returns whether the ranges together hold every port of `wanted`.
pub(crate) fn covers(allowed: &[PortRange], wanted: PortRange) -> bool {
    let mut allowed = allowed.to_vec();
    allowed.sort_unstable();
    let mut next = u32::from(wanted.first());
    for range in allowed {
        if u32::from(range.first()) <= next {
            next = next.max(u32::from(range.last()) + 1);
        }
    }
    next > u32::from(wanted.last())
}

fn list(ports: &[PortRange]) -> String {
    ports.iter().map(PortRange::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_end_must_be_the_users_own() {
        for ok in
            ["udp dst 10.2.0.0/24 port 5060", "src 10.2.3.4", "src 192.0.2.1 dst 10.2.0.0/16", "dst 2001:db8:1::/48"]
        {
            assert_eq!(verdict(&[], &[ok]), None, "{ok}");
        }
        for bad in
            ["ip", "udp port 5060", "dst 10.0.0.0/8", "dst 10.3.0.0/24", "src 192.0.2.1", "dst ::/0", "dst 0.0.0.0/0"]
        {
            assert_eq!(verdict(&[], &[bad]), Some(RefusalKind::PrefixNotAllowed), "{bad}");
        }
    }

    #[test]
    fn every_filter_is_checked() {
        let kind = verdict(&[], &["dst 10.2.0.1", "dst 10.9.0.1"]);
        assert_eq!(kind, Some(RefusalKind::PrefixNotAllowed));
    }

    #[test]
    fn ports_must_be_covered_when_they_are_limited() {
        let ports = ["5060-5061", "5062", "8000-8100"];
        for ok in ["udp dst 10.2.0.1 port 5060-5062", "tcp dst 10.2.0.1 sport 8010", "icmp dst 10.2.0.1"] {
            assert_eq!(verdict(&ports, &[ok]), None, "{ok}");
        }
        for bad in [
            "dst 10.2.0.1",
            "udp dst 10.2.0.1",
            "udp dst 10.2.0.1 port 5060-5063",
            "udp dst 10.2.0.1 port 5059-5060",
            "tcp dst 10.2.0.1 port 5060-8000",
            "tcp dst 10.2.0.1 port 65535",
        ] {
            assert_eq!(verdict(&ports, &[bad]), Some(RefusalKind::PortNotAllowed), "{bad}");
        }
        assert_eq!(verdict(&["0-65535"], &["udp dst 10.2.0.1"]), None);
    }

    #[test]
    fn what_is_granted_holds_what_is_wanted() {
        let check = |granted: &[&str], wanted: &str| {
            let granted: Vec<Filter> = granted.iter().map(|filter| filter.parse().unwrap()).collect();
            grants(&granted, &wanted.parse().unwrap())
        };
        for (granted, wanted) in [
            (&["tcp port 80"][..], "tcp port 80"),
            (&["tcp port 80", "tcp port 81-90"], "tcp port 80-90"),
            (&["tcp"], "tcp port 443"),
            (&["ip"], "udp port 53"),
            (&["tcp src 10.0.0.0/8 port 80"], "tcp src 10.1.0.0/16 port 80"),
        ] {
            assert!(check(granted, wanted), "{granted:?} {wanted}");
        }
        for (granted, wanted) in [
            (&[][..], "tcp port 80"),
            (&["udp port 80"], "tcp port 80"),
            (&["tcp port 80"], "tcp port 81"),
            (&["tcp port 80"], "tcp port 80-81"),
            (&["tcp port 80"], "tcp"),
            (&["tcp port 80"], "ip"),
            (&["tcp src 10.0.0.0/8 port 80"], "tcp port 80"),
            (&["tcp src 10.0.0.0/8 port 80"], "tcp src 2001:db8::/32 port 80"),
            (&["tcp sport 1000 port 80"], "tcp port 80"),
        ] {
            assert!(!check(granted, wanted), "{granted:?} {wanted}");
        }
    }

    #[test]
    fn the_number_of_filters_is_bounded() {
        let filters: Vec<String> = (0..=FILTERS_PER_MODULE_MAX).map(|n| format!("dst 10.2.0.{n}")).collect();
        let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
        assert_eq!(verdict(&[], &filters[1..]), None);
        assert_eq!(verdict(&[], &filters), Some(RefusalKind::QuotaExceeded));
    }

    fn verdict(ports: &[&str], filters: &[&str]) -> Option<RefusalKind> {
        let user = UserPolicy {
            prefixes: vec!["10.2.0.0/16".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
            ports: ports.iter().map(|range| range.parse().unwrap()).collect(),
            ..UserPolicy::default()
        };
        let filters: Vec<WantedFilter> = filters.iter().map(|filter| filter.parse().unwrap()).collect();
        check(&NodePolicy::new("n".parse().unwrap()), &user, &filters).err().map(|refusal| refusal.kind)
    }
}
