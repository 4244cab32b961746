// SPDX-License-Identifier: Apache-2.0
//! `netserv:messages/exchange`.

use std::sync::Arc;

use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::messages::{Exchange, MessageError};
use crate::server::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
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
        Ok(self.module.messages.receive_for_server().map(<[u8]>::into_vec))
    }

    fn subscribe(&mut self) -> wasmtime::Result<Resource<DynPollable>> {
        let waiting = self.table.push(Waiting(Arc::clone(&self.module.messages)))?;
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
struct Waiting(Arc<Exchange>);

#[wasmtime_wasi::async_trait]
impl Pollable for Waiting {
    async fn ready(&mut self) {
        self.0.wait_for_server().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wit::Host as _;

    use super::*;
    use crate::server::blocks::testing::{run, state};
    use crate::server::module::Shared;
    use crate::storage::limits::{MESSAGE_BYTES_MAX, MESSAGES_MAX};

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
            let mut waiting = Waiting(Arc::clone(&state.module.messages));
            assert!(tokio::time::timeout(Duration::from_millis(5), waiting.ready()).await.is_err());
            state.module.messages.send_to_server(b"news").unwrap();
            waiting.ready().await;
            assert_eq!(state.receive().unwrap(), Some(b"news".to_vec()));
            let pollable = state.subscribe().unwrap();
            state.table.delete(pollable).unwrap();
        });
    }
}
