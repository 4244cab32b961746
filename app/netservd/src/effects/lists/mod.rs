// SPDX-License-Identifier: Apache-2.0
//! Revocation lists: each is asked for on a thread of its own, so that a slow server holds up no other's. The controller asks for one of an
//! issuer at a time.

use netserv_authority::limits::REVOCATIONS_BYTES_MAX;
use netserv_model::effect::EffectOutcome;
use netserv_repository::ListAsker;
use netserv_repository::limits::LIST_BYTES_MAX;

use super::ticket::Ticket;

#[cfg(test)]
mod tests;

const _: () = assert!(REVOCATIONS_BYTES_MAX as u64 <= LIST_BYTES_MAX, "each list can be had");

/// Asks for the list at a URL.
pub fn ask(asker: &ListAsker, url: String, etag: Option<String>, ticket: Ticket) {
    let asker = asker.clone();
    ticket.answer_apart("revocations", move || asker.ask(&url, etag.as_deref()).map(EffectOutcome::Listed));
}
