// SPDX-License-Identifier: Apache-2.0
//! Several HTTP components as one: each but the last hands requests on to the next.

use netserv_model::{Refusal, RefusalKind};
use netserv_worker_server::blocks::CHAIN_INTERFACE;
use wac_graph::types::{Interface, ItemKind, Package};
use wac_graph::{CompositionGraph, EncodeOptions};

/// A component with what it is called in refusals.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// The component.
    pub wasm: Vec<u8>,
}

/// Returns the component in which the first of `parts` gets requests, and hands on to the second, and so on.
///
/// # Errors
/// [`RefusalKind::BadService`] with the part that does not fit and why.
pub fn compose(parts: Vec<Part>) -> Result<Vec<u8>, Refusal> {
    let last = parts.len().saturating_sub(1);
    for (position, part) in parts.iter().enumerate() {
        check(part, position == last)?;
    }
    let mut parts = parts.into_iter().rev();
    let Some(mut composed) = parts.next() else {
        return Err(Refusal::new(RefusalKind::BadService, "a service has parts"));
    };
    for (position, outer) in parts.enumerate() {
        // What is composed already says so.
        let wasm = plug(&outer, &composed, position == 0).map_err(|error| {
            let reason = format!("{} cannot hand requests on to {}: {error:#}", outer.name, composed.name);
            Refusal::new(RefusalKind::BadService, reason)
        })?;
        composed = Part { name: outer.name, wasm };
    }
    Ok(composed.wasm)
}

const HANDLER: &str = "wasi:http/incoming-handler@";

fn check(part: &Part, is_last: bool) -> Result<(), Refusal> {
    let refuse = |why: &str| Err(Refusal::new(RefusalKind::BadService, format!("{} {why}", part.name)));
    let mut graph = CompositionGraph::new();
    let package = match Package::from_bytes(PART, None, part.wasm.clone(), graph.types_mut()) {
        Ok(package) => package,
        Err(error) => return refuse(&format!("is no component: {error:#}")),
    };
    let world = &graph.types()[package.ty()];
    let takes = world.exports.keys().any(|name| name.starts_with(HANDLER));
    let hands_on = world.imports.keys().any(|name| name.starts_with(HANDLER));
    match (takes, hands_on, is_last) {
        (false, _, _) => refuse("takes no HTTP requests: it does not export wasi:http/incoming-handler"),
        (true, false, false) => refuse("answers itself: only the last part of a service may"),
        (true, true, true) => refuse("hands requests on, and is the last part of the service"),
        (true, true, false) | (true, false, true) => Ok(()),
    }
}

/// Has `outer` hand requests on to `inner`. With `says_so`, the component that comes of it imports [`CHAIN_INTERFACE`].
fn plug(outer: &Part, inner: &Part, says_so: bool) -> anyhow::Result<Vec<u8>> {
    let mut graph = CompositionGraph::new();
    let socket = Package::from_bytes(PART, None, outer.wasm.clone(), graph.types_mut())?;
    let plug = Package::from_bytes(NEXT, None, inner.wasm.clone(), graph.types_mut())?;
    let (socket, plug) = (graph.register_package(socket)?, graph.register_package(plug)?);
    wac_graph::plug(&mut graph, vec![plug], socket)?;
    if says_so {
        let nothing = graph.types_mut().add_interface(Interface::default());
        graph.import(CHAIN_INTERFACE, ItemKind::Instance(nothing))?;
    }
    Ok(graph.encode(EncodeOptions::default())?)
}

/// What packages are called inside a composition.
const PART: &str = "netserv:part";
const NEXT: &str = "netserv:next";
