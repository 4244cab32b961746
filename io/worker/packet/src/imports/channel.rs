// SPDX-License-Identifier: Apache-2.0
//! `channel_publish`.

use netserv_model::limits::TOPIC_CHARS_MAX;
use netserv_worker_base::error::HostError;
use netserv_worker_base::limits::{CHANNEL_KEY_BYTES_MAX, CHANNEL_MESSAGE_BYTES_MAX};
use netserv_worker_base::shared::channel::ChannelError;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(
        MODULE,
        "channel_publish",
        |mut caller: Caller<'_, Host>, topic: u32, topic_len: u32, message: u32, len: u32, key: u32, key_len: u32| {
            code(channel_publish(&mut caller, (topic, topic_len), (message, len), (key, key_len)))
        },
    )?;
    Ok(())
}

fn channel_publish(
    caller: &mut Caller<'_, Host>,
    topic: (u32, u32),
    message: (u32, u32),
    key: (u32, u32),
) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    let topic = memory.read(topic.0, topic.1, TOPIC_CHARS_MAX)?;
    let topic = std::str::from_utf8(&topic).map_err(|_| HostError::Invalid)?;
    let message = memory.read(message.0, message.1, CHANNEL_MESSAGE_BYTES_MAX)?;
    let key = memory.read(key.0, key.1, CHANNEL_KEY_BYTES_MAX)?;
    let published = host.channel.publish(topic, &message, Some(&key));
    published.map(|_| 0).map_err(|error| match error {
        ChannelError::Quota => HostError::Quota,
        ChannelError::TooLarge => HostError::TooLarge,
        ChannelError::InvalidTopic | ChannelError::Gone => HostError::Invalid,
    })
}
