// SPDX-License-Identifier: Apache-2.0
//! Programs: one instance of a module, with sockets of its own, for as long as the module is there. A module of another kind may
//! have one beside what it does.

use std::sync::Arc;
use std::time::Duration;

use netserv_model::{Refusal, RefusalKind};
use netserv_worker_base::failure;
use netserv_worker_wasm::one_line;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::CommandPre;

use super::component::{CheckedComponent, failed, stalled};
use super::egress::Egress;
use super::engine::ServerEngine;
use super::module::Module;
use super::sockets::{self, Porter};
use super::state::{ServerState, Sockets};
use crate::limits;

/// What a program is to its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is all of it, and its end is the module's failure.
    Alone,
    /// Other instances answer requests, and go on when it has ended well.
    Resident,
}

/// A program at work. It ends when this is dropped.
pub struct Program {
    task: JoinHandle<()>,
    porter: Porter,
}

impl Program {
    /// Starts the program, which gets no port and no message before [`Program::open_gate`]. `ended` is called if it ends by itself,
    /// unless it may.
    ///
    /// # Errors
    /// [`RefusalKind::MemoryLimit`] or [`RefusalKind::Trapped`] if there can be no instance.
    pub async fn start(
        engine: &Arc<ServerEngine>,
        component: CheckedComponent,
        module: &Arc<Module>,
        role: Role,
        ended: impl FnOnce(Refusal) + Send + 'static,
    ) -> Result<Program, Refusal> {
        let pre =
            CommandPre::new(component.pre).map_err(|error| Refusal::new(RefusalKind::AbiMismatch, one_line(&error)))?;
        let (gate, porter) = sockets::gate();
        let state = ServerState::new(module, Sockets::Permitted(Some(gate.clone())), Egress::new(module));
        let mut store = engine.store(state);
        let (instantiated, made) = oneshot::channel();
        let run = async move {
            let command = match pre.instantiate_async(&mut store).await {
                Ok(command) => command,
                Err(error) => {
                    // Whoever starts it waits for this.
                    let _ = instantiated.send(Err(failed(&error, store.data())));
                    return;
                }
            };
            let _ = instantiated.send(Ok(()));
            let outcome = command.wasi_cli_run().call_run(&mut store).await;
            if is_success(&outcome) {
                store.data_mut().egress.let_go();
            }
            if role == Role::Resident && is_success(&outcome) {
                drop(store);
                // It wants nothing that the version before it has.
                return gate.pass().await;
            }
            ended(end(outcome, store.data()));
        };
        let program = Program { task: tokio::spawn(engine.pace(run)), porter };
        match timeout(limits::START_TIME_MAX, made).await {
            Ok(Ok(made)) => made.map(|()| program),
            Ok(Err(_)) => Err(Refusal::new(RefusalKind::NodeFailed, "the program was not started")),
            Err(_) => Err(stalled()),
        }
    }

    /// Waits until the program wants a port or a message, at most so long, since there are some that never do. Returns
    /// whether it is still at work.
    pub async fn is_at_gate(&mut self, at_most: Duration) -> bool {
        self.porter.wait(at_most).await
    }

    /// Lets the program take ports and messages.
    pub fn open_gate(&self) {
        self.porter.open();
    }

    /// Ends the program, which is not asked.
    pub async fn stop(mut self) {
        self.task.abort();
        // It ended by itself or was aborted; both are its end.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn is_success(outcome: &wasmtime::Result<Result<(), ()>>) -> bool {
    match outcome {
        Ok(Ok(())) => true,
        Ok(Err(())) => false,
        Err(error) => matches!(error.downcast_ref(), Some(I32Exit(0))),
    }
}

/// Says how a program ended. That it did is a failure, whatever it says itself.
fn end(outcome: wasmtime::Result<Result<(), ()>>, state: &ServerState) -> Refusal {
    let exited = |status: i32| {
        let cause = format!("the program ended with status {status}");
        failure::with_words(RefusalKind::Trapped, &cause, &state.said.lines())
    };
    match outcome {
        Ok(Ok(())) => exited(0),
        Ok(Err(())) => exited(1),
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(I32Exit(status)) => exited(*status),
            None => failed(&error, state),
        },
    }
}
