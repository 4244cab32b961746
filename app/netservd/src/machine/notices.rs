// SPDX-License-Identifier: Apache-2.0
//! What the node cannot do for the time being, for people: it comes and goes while the node runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the node cannot do for the time being, a line for each subject.
#[derive(Clone, Debug, Default)]
pub struct Notices(Arc<Mutex<BTreeMap<&'static str, String>>>);

impl Notices {
    /// Says what is wrong with a subject, or that nothing is. A change is logged.
    pub fn set(&self, subject: &'static str, wrong: Option<String>) {
        let mut all = self.lock();
        if all.get(subject) == wrong.as_ref() {
            return;
        }
        match wrong {
            Some(wrong) => {
                tracing::warn!("{subject}: {wrong}");
                all.insert(subject, wrong);
            }
            None => {
                tracing::info!("{subject}: as it should be");
                all.remove(subject);
            }
        }
    }

    /// Returns a line for each subject with which something is wrong.
    pub fn lines(&self) -> Vec<String> {
        self.lock().iter().map(|(subject, wrong)| format!("{subject}: {wrong}")).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_on_a_subject_counts() {
        let notices = Notices::default();
        let elsewhere = notices.clone();
        elsewhere.set("routing", Some("a rule".to_owned()));
        elsewhere.set("routing", Some("another rule".to_owned()));
        elsewhere.set("links", Some("down".to_owned()));
        assert_eq!(notices.lines(), ["links: down", "routing: another rule"]);
        notices.set("links", None);
        notices.set("never", None);
        assert_eq!(notices.lines(), ["routing: another rule"]);
    }
}
