// SPDX-License-Identifier: Apache-2.0
//! The executor's side of services: their components composed.

use std::path::{Path, PathBuf};

use netserv_model::effect::{Event as ControllerEvent, JobId};
use netserv_model::{Digest, Flavour, ModuleRef, Refusal, RefusalKind};

use crate::effects::Executor;
use crate::event::Event;
use crate::limits::COMPOSITIONS_MAX;

impl Executor {
    /// Has the components of packages composed, which refusals call by their names.
    pub(in crate::effects) fn compose(&mut self, job: JobId, parts: Vec<Digest>, names: Vec<ModuleRef>) {
        if self.composed.contains_key(&parts) {
            return self.happened.push_back(ControllerEvent::Composed { job });
        }
        if let Some(waiting) = self.composing.get_mut(&parts) {
            return waiting.push(job);
        }
        let component = |digest: &Digest| self.code.get(&(*digest, Flavour::Wasm))?.component.clone();
        let components: Option<Vec<PathBuf>> = parts.iter().map(component).collect();
        let (Some(components), Some(node)) = (components, &self.parts) else {
            let refusal = Refusal::new(RefusalKind::NodeFailed, "a part of the service was not fetched");
            return self.happened.push_back(ControllerEvent::FetchFailed { job, refusal });
        };
        let (packages, events) = (node.packages.clone(), self.events.clone());
        self.composing.insert(parts.clone(), vec![job]);
        tokio::task::spawn_blocking(move || {
            let composed = packages.compose(&parts, &components).map_err(|refusal| named(&refusal, &names));
            // The control loop may have ended.
            let _ = events.blocking_send(Event::Composed(parts, composed));
        });
    }

    /// Takes what a composition ended with, for everybody who waits for it.
    pub fn composed(&mut self, parts: Vec<Digest>, result: Result<PathBuf, Refusal>) {
        if self.composed.len() >= COMPOSITIONS_MAX {
            self.forget_compositions();
        }
        let event = |job: JobId| match &result {
            Ok(_) => ControllerEvent::Composed { job },
            Err(refusal) => ControllerEvent::FetchFailed { job, refusal: refusal.clone() },
        };
        self.happened.extend(self.composing.remove(&parts).into_iter().flatten().map(event));
        if let Ok(code) = result
            && let Some(older) = self.composed.insert(parts, code)
        {
            forget(&older);
        }
    }

    /// What is loaded stays so; a service that is loaded again is composed anew.
    fn forget_compositions(&mut self) {
        std::mem::take(&mut self.composed).values().for_each(|code| forget(code));
    }
}

fn forget(code: &Path) {
    if let Err(error) = std::fs::remove_file(code) {
        tracing::debug!(%error, code = %code.display(), "a composition is left behind");
    }
}

/// Puts modules' names in the place of `part 1` and so on, which is all that a compiler knows.
fn named(refusal: &Refusal, names: &[ModuleRef]) -> Refusal {
    // The last first, as `part 1` is also how `part 12` begins.
    let detail = names.iter().enumerate().rev().fold(refusal.detail.clone(), |detail, (before, name)| {
        detail.replace(&format!("part {}", before + 1), &name.to_string())
    });
    Refusal::new(refusal.kind, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_modules() {
        let names: Vec<ModuleRef> = (1..=12).map(|n| format!("example.org/m{n}@1.0.0").parse().unwrap()).collect();
        let refusal = Refusal::new(RefusalKind::BadService, "part 12 cannot hand requests on to part 1: no part");
        let expected = "example.org/m12@1.0.0 cannot hand requests on to example.org/m1@1.0.0: no part";
        assert_eq!(named(&refusal, &names), Refusal::new(RefusalKind::BadService, expected));
    }
}
