// SPDX-License-Identifier: Apache-2.0
//! What the HTTP messages of an instance take of the node's memory, outside of the instance's own.

use std::any::Any;

use http::HeaderMap;
use netserv_worker_base::compute::{Budget, Reserved};
use wasmtime::component::ResourceTable;
use wasmtime_wasi_http::FieldMap;
use wasmtime_wasi_http::p2::bindings::http::types::Method;
use wasmtime_wasi_http::p2::body::{HostFutureTrailers, HostIncomingBody, HostOutgoingBody};
use wasmtime_wasi_http::p2::types::{
    HostFutureIncomingResponse, HostIncomingResponse, HostOutgoingRequest, HostOutgoingResponse,
};

use super::cap::Denied;
use crate::limits;

/// The share of one instance in what all of its module may take.
pub struct MessageMemory {
    reserved: Reserved,
}

impl MessageMemory {
    /// Returns the share of an instance that has no messages.
    pub fn new(budget: &Budget) -> MessageMemory {
        MessageMemory { reserved: budget.reserve(0).expect("there is always nothing") }
    }

    /// Weighs an instance's messages anew: what was added to them since can be at most what one call hands over.
    ///
    /// # Errors
    /// They take more than [`limits::MESSAGES_BYTES_FREE`], and more than there is left for the module.
    pub fn weigh(&mut self, table: &mut ResourceTable) -> Result<(), Denied> {
        let bytes = table.iter_mut().map(|entry| weight(entry)).sum::<usize>();
        let counted = bytes.saturating_sub(limits::MESSAGES_BYTES_FREE);
        let most = limits::MESSAGES_BYTES_FREE + limits::MESSAGES_MEMORY_BYTES_MAX;
        self.reserved.resize(counted).map_err(|_| Denied::new(bytes as u64, most as u64))
    }
}

/// Returns the bytes that a resource takes, at most and roughly; none for those of other interfaces.
fn weight(resource: &(dyn Any + Send)) -> usize {
    if let Some(fields) = resource.downcast_ref::<FieldMap>() {
        headers(fields)
    } else if let Some(request) = resource.downcast_ref::<HostOutgoingRequest>() {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let method = if let Method::Other(name) = &request.method { name.len() } else { 0 };
        let texts = method + length(&request.authority) + length(&request.path_with_query);
        headers(&request.headers) + texts + written(request.body.is_some())
    } else if let Some(response) = resource.downcast_ref::<HostOutgoingResponse>() {
        headers(&response.headers) + written(response.body.is_some())
    } else if resource.is::<HostOutgoingBody>() {
        limits::BODY_CHUNK_BYTES_MAX
    } else if let Some(response) = resource.downcast_ref::<HostIncomingResponse>() {
        headers(&response.headers) + if response.body.is_some() { READ_BYTES } else { 0 }
    } else if resource.is::<HostFutureIncomingResponse>()
        || resource.is::<HostIncomingBody>()
        || resource.is::<HostFutureTrailers>()
    {
        READ_BYTES
    } else {
        0
    }
}

/// What was read of a message and not taken.
const READ_BYTES: usize = limits::HEAD_BYTES_MAX;

fn headers(map: &HeaderMap) -> usize {
    map.iter().map(|(name, value)| name.as_str().len() + value.len() + HEADER_BYTES).sum()
}

/// What a map takes for a header beside its bytes.
const HEADER_BYTES: usize = 128;

/// Returns what a body takes that waits to be sent: one chunk, and one behind it.
fn written(has_body: bool) -> usize {
    if has_body { 2 * limits::BODY_CHUNK_BYTES_MAX } else { 0 }
}
