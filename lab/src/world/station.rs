// SPDX-License-Identifier: Apache-2.0
//! One vertex that signals: the node that `netservd` runs, and the machine around it.

use std::collections::BTreeMap;

use netserv_model::effect::{Notice, RequestId};
use netserv_model::policy::NodePolicy;
use netserv_model::request::Outcome;
use netserv_model::{Instant, Now, RefusalKind, SessionId};
use netserv_node::recording::{Header, Line, OutputDigest, VERSION};
use netserv_node::{Input, Node, NodeConfig, Output};

use super::machine::Machine;

/// A vertex that signals.
pub(super) struct Station {
    pub node: Node,
    pub machine: Machine,
    /// When its next wake-up is in the queue.
    pub armed: Option<Instant>,
    /// Times that it was restarted: what its machine began before comes to nothing.
    pub restarts: u32,
    /// Requests that its node does not call a repetition, and is to answer.
    requests: BTreeMap<RequestId, SessionId>,
    repeated: usize,
    recording: Option<Recording>,
}

/// A recording under way.
struct Recording {
    text: String,
    /// The input whose outputs come out.
    input: Option<(Now, Input, OutputDigest)>,
}

impl Station {
    pub(super) fn new(
        machine: Machine,
        restarts: u32,
        config: NodeConfig,
        policy: NodePolicy,
        seed: [u8; 32],
        records: bool,
    ) -> Station {
        let header =
            Header { recording: VERSION, software: env!("CARGO_PKG_VERSION").to_owned(), config, policy, seed };
        let node = header.node();
        let recording = records.then(|| Recording { text: header.to_line() + "\n", input: None });
        Station { node, machine, armed: None, restarts, requests: BTreeMap::new(), repeated: 0, recording }
    }

    /// Gives the node an input.
    pub(super) fn handle(&mut self, now: Now, input: Input) {
        if let Some(recording) = &mut self.recording {
            recording.input = Some((now, input.clone(), OutputDigest::default()));
        }
        self.node.handle(now, input);
    }

    /// Returns the next output of the node's; after the last, what the node keeps is checked.
    ///
    /// # Panics
    /// If a request is not answered once, or something is not as the node says.
    pub(super) fn poll_output(&mut self, now: Now) -> Option<Output> {
        let output = self.node.poll_output();
        match (&output, &mut self.recording) {
            (Some(output), Some(Recording { input: Some((_, _, digest)), .. })) => digest.add(output),
            (None, Some(Recording { text, input })) => {
                if let Some((now, input, digest)) = input.take() {
                    text.push_str(&Line { now, input, outputs: digest.to_hex() }.to_line());
                    text.push('\n');
                }
            }
            (_, _) => {}
        }
        if output.is_none() {
            self.machine.check(&self.node, now);
        }
        output
    }

    /// Takes note of what the node tells people. Returns the answer to a request with its session, if it is one.
    pub(super) fn take_notice(&mut self, notice: Notice) -> Option<(SessionId, Outcome)> {
        match notice {
            Notice::Requested { request, session, .. } => {
                let before = self.requests.insert(request, session);
                assert!(before.is_none(), "{request:?} came before");
                None
            }
            Notice::Answered { request, outcome, .. } => {
                let session = self.requests.remove(&request);
                let session = session.unwrap_or_else(|| panic!("{request:?} is answered twice, or nobody asked"));
                self.repeated += usize::from(outcome.is_refused_for(RefusalKind::Replayed));
                Some((session, outcome))
            }
            Notice::Notified(_)
            | Notice::Dissolved { .. }
            | Notice::Revoked { .. }
            | Notice::Expired { .. }
            | Notice::Resumed { .. }
            | Notice::Forgotten { .. }
            | Notice::GaveUp { .. }
            | Notice::NotStored { .. }
            | Notice::Listed { .. }
            | Notice::NotListed { .. } => None,
        }
    }

    /// Returns how many requests are to be answered.
    pub(super) fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Returns how many requests the controller knew already.
    pub(super) fn repeated(&self) -> usize {
        self.repeated
    }

    pub(super) fn recording(&self) -> Option<&str> {
        self.recording.as_ref().map(|recording| recording.text.as_str())
    }
}
