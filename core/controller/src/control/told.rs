// SPDX-License-Identifier: Apache-2.0
//! The last messages of modules that are not installed any more.

use std::collections::BTreeMap;

use netserv_model::{Refusal, RefusalKind, UnixTime};

use crate::cx::Cx;
use crate::cx::request::Key;
use crate::limits::TOLD_REMEMBERED_MAX;
use crate::tenants::inbox::Control;

/// The last messages of modules that are not installed any more: none of them is taken again by one of the same name.
#[derive(Debug, Default)]
pub(crate) struct ToldBefore {
    newest: BTreeMap<Key, Told>,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    seq: u64,
    created: UnixTime,
    /// Until when it could come once more.
    until: UnixTime,
}

impl ToldBefore {
    fn remember(&mut self, key: &Key, told: Told, wall: UnixTime) {
        self.newest.retain(|_, told| told.until >= wall);
        if self.newest.len() >= TOLD_REMEMBERED_MAX && !self.newest.contains_key(key) {
            let first = self.newest.iter().min_by_key(|(_, told)| told.until).map(|(key, _)| key.clone());
            self.newest.remove(&first.expect("a full table has a first entry"));
        }
        self.newest.insert(key.clone(), told);
    }

    #[cfg(test)]
    pub(crate) fn remember_for_tests(&mut self, key: &Key, seq: u64, wall: UnixTime) {
        self.remember(key, Told { seq, created: wall, until: wall + std::time::Duration::from_secs(seq) }, wall);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.newest.len()
    }

    /// Checks that a message did not come before its module was installed anew.
    pub(crate) fn check(&self, key: &Key, seq: u64, created: UnixTime) -> Result<(), Refusal> {
        let is_old = |told: &&Told| seq <= told.seq && created <= told.created;
        let Some(told) = self.newest.get(key).filter(is_old) else { return Ok(()) };
        let detail = format!("seq {seq} is not above {}, which came before the module was installed anew", told.seq);
        Err(Refusal::new(RefusalKind::OldSequence, detail))
    }
}

/// Remembers which messages a module had that goes, so that none of them is taken again.
pub(crate) fn remember_told(cx: &Cx, told_before: &mut ToldBefore, key: &Key, control: &Control) {
    let Some(seq) = control.newest() else { return };
    let until = cx.now.wall + 2 * cx.policy.clock_skew_max;
    told_before.remember(key, Told { seq, created: control.created(), until }, cx.now.wall);
}
