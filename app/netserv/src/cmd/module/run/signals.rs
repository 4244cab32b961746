// SPDX-License-Identifier: Apache-2.0
//! What ends the program from outside.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Failure, OrFail};

/// Ctrl-C, and the signals that ask for the end.
pub(super) struct Signals([Signal; 3]);

impl Signals {
    pub(super) fn new() -> Result<Signals, Failure> {
        let listen = |kind| signal(kind).or_fail("cannot wait for signals", "report this as a bug");
        let [interrupt, terminate] = [SignalKind::interrupt(), SignalKind::terminate()].map(listen);
        Ok(Signals([interrupt?, terminate?, listen(SignalKind::hangup())?]))
    }

    pub(super) async fn any(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
