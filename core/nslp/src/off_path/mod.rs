// SPDX-License-Identifier: Apache-2.0
//! Nodes off the path: neighbours, and requests that go to them and no further than their user signed.

mod brought;
mod neighbourhood;
mod spread;
mod state;

#[cfg(test)]
pub(crate) use brought::Brought;
pub(crate) use spread::{
    answering_neighbour, follows, give_up_copies, send_copy, settle_copy, spread, turn_copy_to_datagrams,
};
pub(crate) use state::OffPath;
