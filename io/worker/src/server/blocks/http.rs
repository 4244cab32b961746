// SPDX-License-Identifier: Apache-2.0
//! `netserv:http/hand-over`.

use std::time::Duration;

use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::DynInputStream;
use wasmtime_wasi_http::p2::body::HyperOutgoingBody;
use wasmtime_wasi_http::p2::types::{HostOutgoingResponse, HostResponseOutparam};

use crate::limits;
use crate::server::http::held::{Bounds, HeldBody};
use crate::server::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "package netserv:host-http; world host { import netserv:http/hand-over@1.0.0; }",
        imports: { default: trappable },
        require_store_data_send: true,
        with: {
            "wasi:http": wasmtime_wasi_http::p2::bindings::http,
            "wasi:io": wasmtime_wasi::p2::bindings::io,
        },
    });
}

use bindings::netserv::http::hand_over::{self as wit, Error};

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn hand_over(
        &mut self,
        out: Resource<HostResponseOutparam>,
        head: Resource<HostOutgoingResponse>,
        source: Resource<DynInputStream>,
        bounds: wit::Bounds,
    ) -> wasmtime::Result<Result<(), Error>> {
        let is_private = self.blocks.lending.find(source.rep());
        let source = self.table.delete(source)?;
        let mut head = self.table.delete(head)?;
        let out = self.table.delete(out)?;
        let refusal = match self.module.held_places.reserve(1) {
            Ok(_) if head.body.is_some() => (StatusCode::INTERNAL_SERVER_ERROR, Error::HasBody),
            Ok(place) => {
                let (body, held) = HeldBody::new(source, is_private, &head.headers, bounds.into(), &self.module, place);
                head.body = Some(body.boxed_unsync());
                let mut response = Response::<HyperOutgoingBody>::try_from(head)?;
                response.extensions_mut().insert(held);
                (out.send)(Ok(response));
                return Ok(Ok(()));
            }
            Err(_) => (StatusCode::SERVICE_UNAVAILABLE, Error::Quota),
        };
        let mut response = Response::new(Empty::new().map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() = refusal.0;
        (out.send)(Ok(response));
        Ok(Err(refusal.1))
    }
}

impl From<wit::Bounds> for Bounds {
    fn from(bounds: wit::Bounds) -> Bounds {
        let wit::Bounds { idle_ms, total_ms, least_rate } = bounds;
        let within = |ms: u32, most: Duration| match ms {
            0 => most,
            ms => Duration::from_millis(ms.into()).min(most),
        };
        Bounds {
            idle: within(idle_ms, limits::HELD_IDLE_TIME_MAX),
            total: within(total_ms, limits::HELD_TIME_MAX),
            least_rate: least_rate.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_no_more_than_the_nodes_own() {
        let check = |idle_ms, total_ms, least_rate, expected: (Duration, Duration, u32)| {
            let Bounds { idle, total, least_rate } = wit::Bounds { idle_ms, total_ms, least_rate }.into();
            assert_eq!((idle, total, least_rate), expected);
        };
        let (idle, total) = (limits::HELD_IDLE_TIME_MAX, limits::HELD_TIME_MAX);
        check(0, 0, 0, (idle, total, 1));
        check(u32::MAX, u32::MAX, u32::MAX, (idle, total, u32::MAX));
        check(1, 2, 3, (Duration::from_millis(1), Duration::from_millis(2), 3));
    }
}
