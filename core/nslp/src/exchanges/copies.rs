// SPDX-License-Identifier: Apache-2.0
//! Where one request went off its path, and what it heard from there.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_model::limits::BESIDE_MAX;
use netserv_model::off_path::Off;
use netserv_wire::gist::Mri;
use netserv_wire::nslp::Spread;

/// A request's copies to neighbours.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    is_begun: bool,
    /// Neighbours that were asked and did not answer, with the flow to each.
    waiting: BTreeMap<IpAddr, Mri>,
    /// How far each of them may send it on.
    share: Option<Spread>,
    /// What those who answered say.
    said: Off,
}

impl Copies {
    /// Returns whether the request has still to be sent to neighbours, which it is once.
    pub(crate) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.is_begun, true)
    }

    /// Takes note of a neighbour that is asked.
    pub(crate) fn add(&mut self, to: IpAddr, mri: Mri) {
        self.waiting.insert(to, mri);
    }

    /// Takes note of how far each neighbour may send it on.
    pub(crate) fn set_share(&mut self, share: Spread) {
        self.share = Some(share);
    }

    pub(crate) fn share(&self) -> Option<Spread> {
        self.share
    }

    /// Takes that so many neighbours are not asked.
    pub(crate) fn leave_out(&mut self, count: usize) {
        self.said.missing += u32::try_from(count).unwrap_or(u32::MAX);
    }

    /// Returns the flow to a neighbour that has not answered.
    pub(crate) fn flow_to(&self, to: IpAddr) -> Option<&Mri> {
        self.waiting.get(&to)
    }

    /// Returns whether a neighbour has not answered.
    pub(crate) fn are_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes what a neighbour said, or that it said nothing; returns the flow to it, if it was asked.
    pub(crate) fn settle(&mut self, to: IpAddr, said: Option<Off>) -> Option<Mri> {
        let mri = self.waiting.remove(&to)?;
        self.said.add(said.unwrap_or(Off { nodes: Vec::new(), missing: 1 }), BESIDE_MAX);
        Some(mri)
    }

    /// Waits for no neighbour any more; returns those that said nothing.
    pub(crate) fn give_up(&mut self) -> Vec<(IpAddr, Mri)> {
        let silent: Vec<IpAddr> = self.waiting.keys().copied().collect();
        silent.into_iter().filter_map(|to| Some((to, self.settle(to, None)?))).collect()
    }

    /// Returns what nodes off the path said, those that others heard of included.
    pub(crate) fn said_with(&self, further: Off) -> Off {
        let mut said = self.said.clone();
        said.add(further, BESIDE_MAX);
        said
    }
}
