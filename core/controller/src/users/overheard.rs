// SPDX-License-Identifier: Apache-2.0
//! Modules through which an address would be asked: what it says could be theirs, also once the address is another's.

use std::net::IpAddr;

use ipnet::IpNet;
use netserv_model::{Refusal, RefusalKind, WantedFilter};

use crate::cx::Cx;
use crate::cx::hearing::is_of_web;
use crate::tenants::Tenants;
use crate::tenants::tenant::Entry;

/// Returns whether a module of a user by any proof sees packets of an address's web server on this node, or may have done so while the address
/// was asked. Users of the configuration have the operator's trust.
pub(crate) fn is_overheard(cx: &Cx, tenants: &Tenants, address: IpAddr) -> bool {
    let strangers = tenants.iter().filter(|(user, _)| cx.authority.evidence(user).is_some());
    let modules = strangers.flat_map(|(_, tenant)| tenant.modules.values());
    modules.flat_map(filters_of).any(|filter| hears(filter, address)) || cx.hearing.has(cx.now.instant, address)
}

/// Says why an address is not asked for a user without rights.
pub(crate) fn overheard(_: Refusal) -> Refusal {
    let detail = "a module on the node sees packets of the address's web server: ask again once that is gone";
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
    let is_of_it = of.source().is_some_and(|source| source.contains(&IpNet::from(address)));
    !filter.names_container() && is_of_it && is_of_web(of)
}
