// SPDX-License-Identifier: Apache-2.0
//! Modules through which an address would be asked: what it says could be theirs, also once the address is another's.

use std::net::IpAddr;

use ipnet::IpNet;
use netserv_model::evidence::Evidence;
use netserv_model::filter::Protocol;
use netserv_model::{Refusal, RefusalKind, WantedFilter};

use crate::cx::Cx;
use crate::tenants::Tenants;
use crate::tenants::tenant::Entry;

/// Returns whether a module on this node sees packets of an address's web server, of a user who has that address by its own word.
pub(crate) fn is_overheard(cx: &Cx, tenants: &Tenants, address: IpAddr) -> bool {
    let has_it = |user| matches!(cx.authority.evidence(user), Some(Evidence::Address(own)) if own.address == address);
    let of_it = tenants.iter().filter(|(user, _)| has_it(user)).flat_map(|(_, tenant)| tenant.modules.values());
    of_it.flat_map(filters_of).any(|filter| hears(filter, address))
}

/// Says why an address is not asked for a user without rights.
pub(crate) fn overheard(_: Refusal) -> Refusal {
    let detail = "a module on the node sees packets of the address's web server: ask again once the rights of its user have ended";
    Refusal::new(RefusalKind::BadProof, detail)
}

/// Returns the filters of a module, and those that it is about to have.
fn filters_of(entry: &Entry) -> impl Iterator<Item = &WantedFilter> {
    let installed = entry.active.iter().flat_map(|active| &active.rules);
    let operation = entry.operation.as_ref();
    let coming = operation.and_then(|operation| operation.stage.candidate()).into_iter().flat_map(|new| &new.rules);
    let asked = operation.into_iter().flat_map(|operation| &operation.setup.filters);
    installed.chain(coming).map(|rule| &rule.filter).chain(asked)
}

/// Returns whether a filter has packets of an address's web server. Whether they are for this node, a filter need not say.
fn hears(filter: &WantedFilter, address: IpAddr) -> bool {
    let of = filter.open();
    let is_of_web = of.source_ports().is_none_or(|ports| WEB.iter().any(|port| ports.contains(*port)));
    !filter.names_container()
        && matches!(of.protocol(), Protocol::Any | Protocol::Tcp)
        && of.source().is_some_and(|source| source.contains(&IpNet::from(address)))
        && is_of_web
}

/// The ports by which an address is asked.
const WEB: [u16; 2] = [80, 443];
