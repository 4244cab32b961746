// SPDX-License-Identifier: Apache-2.0
//! `control_receive`, `control_notify`.

use netserv_model::control::MODULE_NOTIFY_BYTES_MAX;
use netserv_model::limits::TOPIC_CHARS_MAX;
use netserv_worker_base::error::HostError;
use netserv_worker_base::shared::control::layout;
use wasmtime::{Caller, Linker};

use super::call::{MODULE, code, guest};
use crate::host::Host;

pub(super) fn add(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "control_receive", |mut caller: Caller<'_, Host>, out: u32, out_length: u32| {
        code(control_receive(&mut caller, out, out_length))
    })?;
    linker.func_wrap(
        MODULE,
        "control_notify",
        |mut caller: Caller<'_, Host>, topic: u32, topic_length: u32, body: u32, length: u32| {
            code(control_notify(&mut caller, (topic, topic_length), (body, length)))
        },
    )?;
    Ok(())
}

fn control_receive(caller: &mut Caller<'_, Host>, out: u32, out_length: u32) -> Result<i32, HostError> {
    let (mut memory, host) = guest(caller)?;
    let received = host.control.receive_for_packets(|message| {
        let bytes = layout(message);
        let put = memory.put(out, out_length, &bytes);
        (put.is_ok() && bytes.len() <= out_length as usize, put)
    });
    received.unwrap_or(Err(HostError::NotFound))
}

fn control_notify(caller: &mut Caller<'_, Host>, topic: (u32, u32), body: (u32, u32)) -> Result<i32, HostError> {
    let (memory, host) = guest(caller)?;
    let topic = memory.read(topic.0, topic.1, TOPIC_CHARS_MAX)?;
    let topic = std::str::from_utf8(&topic).map_err(|_| HostError::Invalid)?;
    let body = memory.read(body.0, body.1, MODULE_NOTIFY_BYTES_MAX)?;
    host.control.notify(host.clock.instant(), topic, &body).map(|()| 0)
}
