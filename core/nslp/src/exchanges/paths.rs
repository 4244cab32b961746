// SPDX-License-Identifier: Apache-2.0
//! Paths downstream, for as long as an exchange or a lease uses each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use netserv_model::SessionId;
use netserv_wire::gist::Mri;

use crate::cx::Cx;

/// How many exchanges and leases use each path.
#[derive(Debug, Default)]
pub(crate) struct Paths(BTreeMap<(SessionId, Arc<Mri>), usize>);

impl Paths {
    pub(crate) fn has(&self, session: SessionId, mri: &Arc<Mri>) -> bool {
        self.0.contains_key(&(session, Arc::clone(mri)))
    }

    /// Takes one use more of a path.
    pub(crate) fn enter(&mut self, session: SessionId, mri: &Arc<Mri>) {
        *self.0.entry((session, Arc::clone(mri))).or_default() += 1;
    }

    /// Returns the MRI of a path as all that is kept of that shares it.
    pub(crate) fn shared(&self, session: SessionId, mri: Mri) -> Arc<Mri> {
        let path = (session, Arc::new(mri));
        self.0.get_key_value(&path).map_or(path.1, |((_, mri), _)| Arc::clone(mri))
    }

    /// Takes one use less. After the last one it gives GIST's state downstream up.
    pub(crate) fn leave(&mut self, cx: &mut Cx<'_>, session: SessionId, mri: Arc<Mri>) {
        let path = (session, mri);
        let Some(uses) = self.0.get_mut(&path) else { return };
        *uses -= 1;
        if *uses == 0 {
            self.0.remove(&path);
            cx.keep_state(session, Mri::clone(&path.1), Duration::ZERO);
        }
    }
}
