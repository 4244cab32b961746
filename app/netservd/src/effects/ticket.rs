// SPDX-License-Identifier: Apache-2.0
//! How an effect is answered: once, by whoever holds its ticket, without waiting.

use std::path::PathBuf;
use std::sync::Arc;

use netserv_model::effect::{EffectId, EffectOutcome};
use netserv_model::{Digest, Flavour, Refusal, RefusalKind};
use netserv_repository::Downloaded;
use tokio::sync::mpsc::UnboundedSender;

use crate::event::CodeParts;
use crate::metrics::gauges::WorkerGauges;

/// What came of an effect.
#[derive(Debug)]
pub struct Answer {
    /// The effect.
    pub id: EffectId,
    /// Its outcome.
    pub outcome: EffectOutcome,
    /// What the control loop keeps for later effects.
    pub cargo: Option<Cargo>,
}

/// Something of the machine that an answer brings along.
#[derive(Debug)]
pub enum Cargo {
    /// Where the code of a package is.
    Code(Digest, Flavour, CodeParts),
    /// The same, with a state that a module of the package is to begin with.
    CodeAndState(Digest, Flavour, CodeParts, Digest, Arc<Downloaded>),
    /// Where the composition of packages' components is.
    Composition(Vec<Digest>, PathBuf),
    /// What workers say of themselves.
    Gauges(WorkerGauges),
}

/// The duty to answer one effect. Dropped without an answer, it refuses it.
///
/// There are as many as there are effects under way, which the controller bounds, so their channel needs no bound.
#[derive(Debug)]
#[must_use = "an effect is answered"]
pub struct Ticket {
    id: EffectId,
    answers: UnboundedSender<Answer>,
    answered: bool,
}

impl Ticket {
    /// Returns the duty to answer an effect.
    pub fn new(id: EffectId, answers: UnboundedSender<Answer>) -> Ticket {
        Ticket { id, answers, answered: false }
    }

    /// Returns the effect that is to be answered.
    pub fn id(&self) -> EffectId {
        self.id
    }

    /// Answers that it is done.
    pub fn done(self) {
        self.answer(EffectOutcome::Done, None);
    }

    /// Answers that it is done, or why not.
    pub fn end(self, result: Result<(), Refusal>) {
        self.answer(result.map_or_else(EffectOutcome::Refused, |()| EffectOutcome::Done), None);
    }

    /// Answers with why it was not done.
    pub fn refuse(self, refusal: Refusal) {
        self.answer(EffectOutcome::Refused(refusal), None);
    }

    /// Answers with what came of it.
    pub fn answer(mut self, outcome: EffectOutcome, cargo: Option<Cargo>) {
        self.send(outcome, cargo);
    }

    /// Answers from a thread of its own, with what is found there.
    pub fn answer_apart(self, thread: &str, find: impl FnOnce() -> Result<EffectOutcome, Refusal> + Send + 'static) {
        let builder = std::thread::Builder::new().name(thread.to_owned());
        let spawned = builder.spawn(move || self.answer(find().unwrap_or_else(EffectOutcome::Refused), None));
        if let Err(error) = spawned {
            // The ticket is dropped with what the thread would have done, and refuses.
            tracing::error!(%error, thread, "no thread for an effect");
        }
    }

    fn send(&mut self, outcome: EffectOutcome, cargo: Option<Cargo>) {
        self.answered = true;
        // The control loop may have ended.
        let _ = self.answers.send(Answer { id: self.id, outcome, cargo });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.answered {
            let refusal = Refusal::new(RefusalKind::NodeFailed, "nobody is left who would do it; restart netservd");
            self.send(EffectOutcome::Refused(refusal), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn each_ticket_is_answered_once_also_when_it_is_dropped() {
        let (answers, mut inbox) = unbounded_channel();
        Ticket::new(EffectId(1), answers.clone()).done();
        drop(Ticket::new(EffectId(2), answers));
        let mut next = || inbox.blocking_recv().map(|answer| (answer.id.0, answer.outcome == EffectOutcome::Done));
        assert_eq!([next(), next(), next()], [Some((1, true)), Some((2, false)), None]);
    }
}
