// SPDX-License-Identifier: Apache-2.0
//! `message_send`, `message_receive`.

use netserv_worker_base::error::HostError;
use netserv_worker_base::shared::messages::MessageError;
use netserv_worker_base::storage::limits::MESSAGE_BYTES_MAX;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "message_send", |mut caller: Caller<'_, Host>, message: u32, length: u32| {
        code(message_send(&mut caller, message, length))
    })?;
    linker.func_wrap(MODULE, "message_receive", |mut caller: Caller<'_, Host>, out: u32, out_length: u32| {
        code(message_receive(&mut caller, out, out_length))
    })?;
    Ok(())
}

fn message_send(caller: &mut Caller<'_, Host>, message: u32, length: u32) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    let sent = host.messages.send_to_server(&memory.read(message, length, MESSAGE_BYTES_MAX)?);
    sent.map(|()| 0).map_err(|error| match error {
        MessageError::Quota => HostError::Quota,
        MessageError::TooLarge => HostError::TooLarge,
        MessageError::NoPeer => HostError::NotFound,
    })
}

fn message_receive(caller: &mut Caller<'_, Host>, out: u32, out_length: u32) -> Result<i32, HostError> {
    let (mut memory, host) = guest(caller)?;
    let received = host.messages.receive_for_packets(|message| {
        let put = memory.put(out, out_length, message);
        (put.is_ok() && message.len() <= out_length as usize, put)
    });
    received.unwrap_or(Err(HostError::NotFound))
}
