// SPDX-License-Identifier: Apache-2.0
//! `netserv:control`: `inbox`, `topics` and `requester`.

use std::sync::Arc;

use netserv_model::control::ControlMessage;
use netserv_worker_base::clock;
use netserv_worker_base::error::HostError;
use netserv_worker_base::shared::control::ControlPort;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: ["../../../wit/deps/wasi-io", "../../../wit/deps/netserv-control"],
        inline: "package netserv:host-control; world host {
            import netserv:control/inbox@1.0.0;
            import netserv:control/topics@1.0.0;
            import netserv:control/requester@1.0.0;
        }",
        imports: { default: trappable },
        require_store_data_send: true,
        with: { "wasi:io": wasmtime_wasi::p2::bindings::io },
    });
}

use bindings::netserv::control::requester::Error;
use bindings::netserv::control::{inbox, requester, topics, types};

/// Adds the interfaces to a linker.
///
/// # Errors
/// One is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    inbox::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    topics::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    requester::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl types::Host for ServerState {}

impl inbox::Host for ServerState {
    fn receive(&mut self) -> wasmtime::Result<Option<types::Message>> {
        Ok(self.module.control.receive_for_server().map(|message| as_wit(&message)))
    }

    fn subscribe(&mut self) -> wasmtime::Result<Resource<DynPollable>> {
        let waiting = self.table.push(Waiting(Arc::clone(&self.module.control)))?;
        subscribe(&mut self.table, waiting)
    }
}

impl topics::Host for ServerState {
    fn last(&mut self, topic: String) -> wasmtime::Result<Option<types::Message>> {
        Ok(self.module.control.last(&topic).map(|message| as_wit(&message)))
    }
}

impl requester::Host for ServerState {
    fn notify(&mut self, topic: String, body: Vec<u8>) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.module.control.notify(clock::monotonic(), &topic, &body).map_err(Error::from))
    }
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Error {
        match error {
            HostError::Quota => Error::Quota,
            HostError::TooLarge => Error::TooLarge,
            HostError::Invalid | HostError::NotFound | HostError::BadAddress => Error::InvalidTopic,
        }
    }
}

fn as_wit(message: &ControlMessage) -> types::Message {
    let ControlMessage { topic, seq, body } = message;
    types::Message { topic: topic.as_str().to_owned(), seq: *seq, body: body.clone() }
}

/// What is ready when there is a message.
struct Waiting(Arc<ControlPort>);

#[wasmtime_wasi::async_trait]
impl Pollable for Waiting {
    async fn ready(&mut self) {
        self.0.wait_for_server().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use inbox::Host as _;
    use netserv_model::control::{MODULE_NOTIFIES_BURST_MAX, MODULE_NOTIFY_BYTES_MAX};
    use netserv_wire::container::frames::TellVerdict;
    use requester::Host as _;
    use topics::Host as _;

    use super::*;
    use crate::blocks::testing::{run, state};
    use crate::module::Shared;

    #[test]
    fn messages_are_taken_once_and_the_last_of_a_topic_stays() {
        run(async {
            let mut state = state(Shared::for_tests);
            state.module.control.open_for_server(true, true);
            let mut waiting = Waiting(Arc::clone(&state.module.control));
            assert!(tokio::time::timeout(Duration::from_millis(5), waiting.ready()).await.is_err());
            let message = ControlMessage { topic: "purge".parse().unwrap(), seq: 7, body: b"/a".to_vec() };
            assert_eq!(state.module.control.tell(message), TellVerdict::Taken);
            waiting.ready().await;
            let taken = state.receive().unwrap().unwrap();
            assert_eq!((taken.topic.as_str(), taken.seq, &taken.body[..]), ("purge", 7, &b"/a"[..]));
            assert!(state.receive().unwrap().is_none());
            assert_eq!(state.last("purge".to_owned()).unwrap().map(|message| message.seq), Some(7));
            assert!(state.last("other".to_owned()).unwrap().is_none());
            let pollable = state.subscribe().unwrap();
            state.table.delete(pollable).unwrap();
        });
    }

    #[test]
    fn errors_are_told_apart() {
        let mut state = state(Shared::for_tests);
        let mut notify = |topic: &str, bytes: usize| state.notify(topic.to_owned(), vec![0; bytes]).unwrap();
        assert!(matches!(notify("no topic", 1), Err(Error::InvalidTopic)));
        assert!(matches!(notify("a", MODULE_NOTIFY_BYTES_MAX + 1), Err(Error::TooLarge)));
        (0..MODULE_NOTIFIES_BURST_MAX).for_each(|_| notify("a", 1).unwrap());
        assert!(matches!(notify("a", 1), Err(Error::Quota)));
    }
}
