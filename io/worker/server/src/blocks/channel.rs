// SPDX-License-Identifier: Apache-2.0
//! `netserv:channel/channel`.

use bytes::Bytes;
use netserv_worker_base::shared::channel::{Behind, ChannelError, Framing, Reader, Start};
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::{DynInputStream, InputStream, IoError, Pollable, StreamError, StreamResult};

use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: ["../../../wit/deps/wasi-io", "../../../wit/deps/netserv-channel"],
        inline: "package netserv:host-channel; world host { import netserv:channel/channel@1.0.0; }",
        imports: { default: trappable },
        require_store_data_send: true,
        with: { "wasi:io": wasmtime_wasi::p2::bindings::io },
    });
}

use bindings::netserv::channel::channel::{self as wit, Error};

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn publish(
        &mut self,
        topic: String,
        message: Vec<u8>,
        key: Option<Vec<u8>>,
    ) -> wasmtime::Result<Result<u64, Error>> {
        Ok(self.module.channel.publish(&topic, &message, key.as_deref()).map_err(Error::from))
    }

    fn subscribe(
        &mut self,
        topic: String,
        start: wit::Start,
        framing: wit::Framing,
    ) -> wasmtime::Result<Result<Resource<DynInputStream>, Error>> {
        match self.module.channel.subscribe(&topic, start.into(), framing.into()) {
            Ok(reader) => {
                let stream: DynInputStream = Box::new(Messages(reader));
                Ok(Ok(self.table.push(stream)?))
            }
            Err(error) => Ok(Err(error.into())),
        }
    }

    fn close(&mut self, topic: String) -> wasmtime::Result<()> {
        self.module.channel.close(&topic);
        Ok(())
    }

    fn is_behind(&mut self, error: Resource<IoError>) -> wasmtime::Result<bool> {
        Ok(self.table.get(&error)?.is::<Behind>())
    }
}

impl From<wit::Start> for Start {
    fn from(start: wit::Start) -> Start {
        match start {
            wit::Start::Oldest => Start::Oldest,
            wit::Start::Newest => Start::Newest,
            wit::Start::After(number) => Start::After(number),
        }
    }
}

impl From<wit::Framing> for Framing {
    fn from(framing: wit::Framing) -> Framing {
        match framing {
            wit::Framing::Bytes => Framing::Bytes,
            wit::Framing::Events => Framing::Events,
            wit::Framing::Records => Framing::Records,
        }
    }
}

impl From<ChannelError> for Error {
    fn from(error: ChannelError) -> Error {
        match error {
            ChannelError::Quota => Error::Quota,
            ChannelError::TooLarge => Error::TooLarge,
            ChannelError::InvalidTopic => Error::InvalidTopic,
            ChannelError::Gone => Error::Gone,
        }
    }
}

/// The messages of a topic as a stream.
struct Messages(Reader);

#[wasmtime_wasi::async_trait]
impl Pollable for Messages {
    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for Messages {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        match self.0.read(size) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(StreamError::Closed),
            Err(behind) => Err(StreamError::LastOperationFailed(wasmtime::Error::new(behind))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netserv_worker_base::limits::{CHANNEL_MESSAGE_BYTES_MAX, CHANNEL_TOPIC_BYTES_MAX, CHANNEL_TOPICS_MAX};

    use wit::Host as _;

    use super::*;
    use crate::blocks::testing::{run, state};
    use crate::module::Shared;

    #[test]
    fn a_stream_has_messages_as_they_come_and_ends_with_its_topic() {
        run(async {
            let mut state = state(Shared::for_tests);
            let stream = subscribe(&mut state, "t", wit::Start::Oldest).unwrap();
            let messages = state.table.get_mut(&stream).unwrap();
            assert!(tokio::time::timeout(Duration::from_millis(5), messages.ready()).await.is_err());
            assert!(messages.read(9).unwrap().is_empty());
            publish(&mut state, "t", b"news").unwrap();
            let messages = state.table.get_mut(&stream).unwrap();
            assert_eq!(messages.blocking_read(9).await.unwrap(), "news");
            state.close("t".to_owned()).unwrap();
            let messages = state.table.get_mut(&stream).unwrap();
            assert!(matches!(messages.blocking_read(9).await, Err(StreamError::Closed)));
        });
    }

    #[test]
    fn a_slow_reader_is_told_apart() {
        let mut state = state(Shared::for_tests);
        let stream = subscribe(&mut state, "t", wit::Start::Newest).unwrap();
        for _ in 0..=CHANNEL_TOPIC_BYTES_MAX / CHANNEL_MESSAGE_BYTES_MAX {
            publish(&mut state, "t", &[0; CHANNEL_MESSAGE_BYTES_MAX]).unwrap();
        }
        let messages = state.table.get_mut(&stream).unwrap();
        let Err(StreamError::LastOperationFailed(error)) = messages.read(9) else { panic!("it is not behind") };
        assert!(matches!(messages.read(9), Err(StreamError::Closed)));
        let error = state.table.push(error).unwrap();
        assert!(state.is_behind(error).unwrap());
        let other = state.table.push(wasmtime::format_err!("another")).unwrap();
        assert!(!state.is_behind(other).unwrap());
    }

    #[test]
    fn errors_are_told_apart() {
        let mut state = state(Shared::for_tests);
        assert!(matches!(publish(&mut state, "no topic", b""), Err(Error::InvalidTopic)));
        assert!(matches!(publish(&mut state, "t", &[0; CHANNEL_MESSAGE_BYTES_MAX + 1]), Err(Error::TooLarge)));
        assert!(matches!(subscribe(&mut state, "t", wit::Start::After(7)), Err(Error::Gone)));
        assert!((0..CHANNEL_TOPICS_MAX).all(|number| publish(&mut state, &number.to_string(), b"x").is_ok()));
        assert!(matches!(publish(&mut state, "t", b"x"), Err(Error::Quota)));
        assert!(matches!(subscribe(&mut state, "t", wit::Start::Newest), Err(Error::Quota)));
    }

    fn publish(state: &mut ServerState, topic: &str, message: &[u8]) -> Result<u64, Error> {
        state.publish(topic.to_owned(), message.to_vec(), None).unwrap()
    }

    fn subscribe(state: &mut ServerState, topic: &str, start: wit::Start) -> Result<Resource<DynInputStream>, Error> {
        state.subscribe(topic.to_owned(), start, wit::Framing::Bytes).unwrap()
    }
}
