// SPDX-License-Identifier: Apache-2.0
//! HTTP modules without sockets: for `netserv module test` and `bench`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use netserv_model::{Refusal, RefusalKind};
use netserv_worker_base::shared::log::Line;
use tokio::runtime::Runtime;
use wasmtime_wasi_http::p2::bindings::http::types::Scheme;

use super::code::{HostSettings, TestCode, node_failed};
use crate::component::ComponentKind;
use crate::egress::Egress;
use crate::http::body::RequestBody;
use crate::http::service::HttpService;
use crate::module::Module;
use crate::thread;

/// A request.
#[derive(Clone, Debug)]
pub struct TestRequest {
    /// Its method.
    pub method: String,
    /// Its path, with the query if there is one.
    pub path: String,
    /// Its headers; `host` is `module.test` if it is not among them.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug)]
pub struct TestResponse {
    /// Its status.
    pub status: u16,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Its whole body.
    pub body: Vec<u8>,
    /// What the module wrote to its log.
    pub log: Vec<Line>,
    /// How long it took, from the head of the request to the end of the response.
    pub took: Duration,
}

/// An HTTP module under test. Requests share its kv state and counters; each has a fresh instance.
pub struct HttpTester {
    runtime: Runtime,
    service: Arc<HttpService>,
}

impl HttpTester {
    /// Compiles a component.
    ///
    /// # Errors
    /// Those of a node that loads it, and [`RefusalKind::AbiMismatch`] if it answers no HTTP requests.
    pub fn new(component: &[u8], settings: HostSettings) -> Result<HttpTester, Refusal> {
        HttpTester::with(&TestCode::compile_for(component, &settings.blocks)?, settings)
    }

    /// Makes a tester of a component that is compiled.
    ///
    /// # Errors
    /// Those of [`HttpTester::new`].
    pub fn with(code: &TestCode, settings: HostSettings) -> Result<HttpTester, Refusal> {
        let component = code.component(ComponentKind::Http)?;
        let runtime = thread::runtime().map_err(|error| node_failed(&error))?;
        let module = settings.into_module()?;
        let service = Arc::new(runtime.block_on(HttpService::start(&code.engine, component, &module))?);
        Ok(HttpTester { runtime, service })
    }

    /// Has the module answer a request.
    ///
    /// # Errors
    /// [`RefusalKind::BadRequest`] if the request is none, [`RefusalKind::Trapped`] if the response breaks off.
    pub fn respond(&self, request: &TestRequest) -> Result<TestResponse, Refusal> {
        self.runtime.block_on(self.answer(request))
    }

    /// Makes one instance without a request. Returns how long that took.
    ///
    /// # Errors
    /// Those of [`HttpService::instantiate`].
    pub fn instantiate(&self) -> Result<Duration, Refusal> {
        self.runtime.block_on(self.service.instantiate())
    }

    /// Returns what the module counted.
    pub fn module(&self) -> &Arc<Module> {
        self.service.module()
    }

    async fn answer(&self, request: &TestRequest) -> Result<TestResponse, Refusal> {
        let request = build(request).map_err(|error| Refusal::new(RefusalKind::BadRequest, error.to_string()))?;
        let module = self.service.module();
        let begun = Instant::now();
        let deadline = tokio::time::Instant::now() + Duration::from_millis(u64::from(module.limits.request_ms));
        let Some(turn) = self.service.turn(deadline, request.version()).await else {
            return Err(Refusal::new(RefusalKind::QuotaExceeded, "the module serves no requests at a time"));
        };
        let request = request.map(|body| RequestBody::new(body, module));
        let state = self.service.state(Egress::new(module));
        let response = self.service.answer(request, Scheme::Http, state, turn, deadline, None).await;
        let (head, body) = response.into_parts();
        let broken = |error: wasmtime_wasi_http::Error| {
            Refusal::new(RefusalKind::Trapped, format!("the response broke off: {error:?}"))
        };
        // One that the node pumps by itself may have no end.
        let Ok(body) = tokio::time::timeout_at(deadline, body.collect()).await else {
            return Err(Refusal::new(RefusalKind::Stalled, "the response was not whole within limits.request-ms"));
        };
        let body = body.map_err(broken)?.to_bytes();
        let took = begun.elapsed();
        let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.as_str().to_owned(), value.as_bytes().to_vec())
        };
        Ok(TestResponse {
            status: head.status.as_u16(),
            headers: head.headers.iter().map(header).collect(),
            body: body.to_vec(),
            log: module.take_last_log(),
            took,
        })
    }
}

type Body = http_body_util::combinators::MapErr<Full<Bytes>, fn(std::convert::Infallible) -> wasmtime_wasi_http::Error>;

fn build(request: &TestRequest) -> Result<http::Request<Body>, http::Error> {
    let mut builder = http::Request::builder().method(request.method.as_str()).uri(request.path.as_str());
    if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        builder = builder.header("host", "module.test");
    }
    for (name, value) in &request.headers {
        builder = builder.header(name.as_str(), value.as_str());
    }
    let body = Full::new(Bytes::from(request.body.clone()));
    builder.body(body.map_err((|never| match never {}) as fn(std::convert::Infallible) -> wasmtime_wasi_http::Error))
}
