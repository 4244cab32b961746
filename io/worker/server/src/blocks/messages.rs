// SPDX-License-Identifier: Apache-2.0
//! `netserv:messages/exchange`.

use std::sync::Arc;

use netserv_worker_base::shared::messages::{Exchange, MessageError};
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::sockets::Gate;
use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: ["../../../wit/deps/wasi-io", "../../../wit/deps/netserv-messages"],
        inline: "package netserv:host-messages; world host { import netserv:messages/exchange@1.0.0; }",
        imports: { default: trappable },
        require_store_data_send: true,
        with: { "wasi:io": wasmtime_wasi::p2::bindings::io },
    });
}

use bindings::netserv::messages::exchange::{self as wit, Error};

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn send(&mut self, message: Vec<u8>) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.module.messages.send_to_packets(&message).map_err(Error::from))
    }

    fn receive(&mut self) -> wasmtime::Result<Option<Vec<u8>>> {
        // The version before may have one in hand, which is to be answered first.
        if self.gate.as_ref().is_some_and(|gate| !gate.is_open()) {
            return Ok(None);
        }
        Ok(self.module.messages.receive_for_server().map(<[u8]>::into_vec))
    }

    fn subscribe(&mut self) -> wasmtime::Result<Resource<DynPollable>> {
        let waiting = Waiting { exchange: Arc::clone(&self.module.messages), gate: self.gate.clone() };
        let waiting = self.table.push(waiting)?;
        subscribe(&mut self.table, waiting)
    }
}

impl From<MessageError> for Error {
    fn from(error: MessageError) -> Error {
        match error {
            MessageError::Quota => Error::Quota,
            MessageError::TooLarge => Error::TooLarge,
            MessageError::NoPeer => Error::NoPeer,
        }
    }
}

/// What is ready when there is a message.
struct Waiting {
    exchange: Arc<Exchange>,
    gate: Option<Gate>,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Waiting {
    async fn ready(&mut self) {
        if let Some(gate) = self.gate.clone() {
            gate.pass().await;
        }
        self.exchange.wait_for_server().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netserv_worker_base::storage::limits::{MESSAGE_BYTES_MAX, MESSAGES_MAX};

    use wit::Host as _;

    use super::*;
    use crate::blocks::testing::{run, state};
    use crate::module::Shared;
    use crate::sockets::gate;

    #[test]
    fn errors_are_told_apart() {
        let mut state = state(Shared::for_tests);
        assert!(matches!(state.send(vec![1]).unwrap(), Err(Error::NoPeer)));
        state.module.messages.set_parts(true, true);
        assert!(matches!(state.send(vec![1; MESSAGE_BYTES_MAX + 1]).unwrap(), Err(Error::TooLarge)));
        (0..MESSAGES_MAX).for_each(|_| state.send(vec![1]).unwrap().unwrap());
        assert!(matches!(state.send(vec![1]).unwrap(), Err(Error::Quota)));
        assert_eq!(state.receive().unwrap(), None);
    }

    #[test]
    fn a_pollable_is_ready_when_a_message_comes() {
        run(async {
            let mut state = state(Shared::for_tests);
            state.module.messages.set_parts(true, true);
            let mut waiting = Waiting { exchange: Arc::clone(&state.module.messages), gate: None };
            assert!(tokio::time::timeout(Duration::from_millis(5), waiting.ready()).await.is_err());
            state.module.messages.send_to_server(b"news").unwrap();
            waiting.ready().await;
            assert_eq!(state.receive().unwrap(), Some(b"news".to_vec()));
            let pollable = state.subscribe().unwrap();
            state.table.delete(pollable).unwrap();
        });
    }

    /// Goal: two versions of a program never have messages at the same time, for their answers would come out of order.
    #[test]
    fn a_program_has_no_message_before_the_version_before_it_has_left() {
        run(async {
            let (gate, mut porter) = gate();
            let mut state = state(Shared::for_tests);
            state.gate = Some(gate.clone());
            state.module.messages.set_parts(true, true);
            state.module.messages.send_to_server(b"news").unwrap();
            let mut waiting = Waiting { exchange: Arc::clone(&state.module.messages), gate: Some(gate) };
            assert!(tokio::time::timeout(Duration::from_millis(5), waiting.ready()).await.is_err());
            assert_eq!(state.receive().unwrap(), None);
            assert!(porter.wait(Duration::from_secs(1)).await, "who waits for messages is ready to take over");
            porter.open();
            waiting.ready().await;
            assert_eq!(state.receive().unwrap(), Some(b"news".to_vec()));
        });
    }
}
