// SPDX-License-Identifier: Apache-2.0
//! Who may do what on a node, until when, and by which proof.
//!
//! [`Authority::prove`] looks at who asks and by what evidence: the operator's configuration, grants whose issuer the operator
//! trusts, or somebody who has to be asked first ([`Unproven::Ask`]): an address that vouches for itself, the RPKI for the holder of prefixes.
//! [`Authority::accept`] puts into force what was proven, once the request is found to be in time. Rights end with their
//! proof: [`Authority::rights`] gives none after it, and [`Authority::next_end`] says when to look again. Or its issuer takes a grant back
//! before, by a list for [`Authority::set_list`]. Whether something lies
//! within a user's prefixes and ports is decided in [`scope`] alone, and whether a grant is narrower than another in [`chain`].
#![forbid(unsafe_code)]

mod authority;
pub mod chain;
pub mod checklist;
pub mod grant;
mod granted;
mod jws;
pub mod limits;
mod proving;
pub mod revocations;
pub mod scope;
#[cfg(test)]
mod tests;
mod vouched;

pub use authority::{Authority, Forgotten};
pub use grant::digest_of_grant;
pub use granted::may_pass;
pub use proving::{Proof, Question, Said, Unproven, digest_of};
