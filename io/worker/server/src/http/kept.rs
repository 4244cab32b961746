// SPDX-License-Identifier: Apache-2.0
//! Connections to servers that a module's next requests go by: answers on them have come whole, and nothing is under way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::uri::Authority;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use super::upstream::Sender;
use crate::limits;

/// The kept connections of one module. They end when this is dropped.
#[derive(Default)]
pub struct Kept(Mutex<State>);

#[derive(Default)]
struct State {
    /// Those that were kept first come first.
    idle: Vec<Idle>,
    /// Whether a task ends those that nobody uses.
    is_swept: bool,
}

struct Idle {
    sender: Sender,
    until: Instant,
}

impl Kept {
    /// Takes the connection to a server that was used last, if one is there.
    pub fn take(&self, authority: &Authority, is_secure: bool) -> Option<Sender> {
        let mut state = self.lock();
        let fits = |idle: &Idle| idle.sender.is_to(authority, is_secure) && idle.sender.requests.is_ready();
        let at = state.idle.iter().rposition(fits)?;
        Some(state.idle.remove(at).sender)
    }

    /// Keeps a connection for [`limits::KEPT_TIME_MAX`]. If there are as many to its server as may be, or in all, the oldest ends.
    pub fn keep(self: &Arc<Self>, sender: Sender) {
        // Without a runtime all ends.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut state = self.lock();
        let to_server = |idle: &Idle| idle.sender.is_to(&sender.authority, sender.is_secure);
        let oldest = if state.idle.iter().filter(|idle| to_server(idle)).count() >= limits::KEPT_PER_SERVER_MAX {
            state.idle.iter().position(to_server)
        } else {
            (state.idle.len() >= limits::KEPT_MAX).then_some(0)
        };
        if let Some(oldest) = oldest {
            state.idle.remove(oldest);
        }
        state.idle.push(Idle { sender, until: Instant::now() + limits::KEPT_TIME_MAX });
        if !std::mem::replace(&mut state.is_swept, true) {
            let kept = Arc::downgrade(self);
            runtime.spawn(async move {
                while let Some(next) = kept.upgrade().and_then(|kept| kept.sweep()) {
                    sleep_until(next).await;
                }
            });
        }
    }

    /// Ends all of them.
    pub fn clear(&self) {
        self.lock().idle.clear();
    }

    /// Ends those that nobody has used for long. Returns when the next one is due; nothing if there is none.
    fn sweep(&self) -> Option<Instant> {
        let (mut state, now) = (self.lock(), Instant::now());
        state.idle.retain(|idle| idle.until > now && !idle.sender.requests.is_closed());
        let next = state.idle.first().map(|idle| idle.until);
        state.is_swept = next.is_some();
        next
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, into: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        into.debug_struct("Kept").field("idle", &self.lock().idle.len()).finish()
    }
}
