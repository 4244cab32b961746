// SPDX-License-Identifier: Apache-2.0
//! `netserv-worker bench`: how long an HTTP module takes for a request.
//!
//! Requests go to the module one after the other, without sockets: what is measured is a fresh instance, the module and
//! the way of the bodies, as a node has them for each request of one client.

use std::time::{Duration, Instant};

use netserv_model::{Refusal, RefusalKind};
use netserv_worker_server::testing::code::HostSettings;
use netserv_worker_server::testing::http::{HttpTester, TestRequest};
use serde::Serialize;

use super::packet::Spread;

/// Rounds that are measured.
const ROUNDS: usize = 7;
/// Instances that are made without a request.
const INSTANCES: usize = 200;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Requests per second, one at a time: the median round, the slowest and the fastest.
    pub requests_per_second: Spread,
    /// Microseconds per request, with its fresh instance.
    pub request_us: Spread,
    /// Microseconds that a fresh instance alone takes.
    pub instantiate_us: Spread,
    /// Requests that were sent.
    pub requests: u64,
    /// Of these, how many were not answered with the status that the test expects.
    pub failed: u64,
    /// Milliseconds that compiling took, which a node does once when it downloads the module.
    pub compile_ms: u64,
    /// Bytes of the component.
    pub wasm_bytes: usize,
}

/// Measures a component by requests, each with the status that it is to be answered with.
///
/// # Errors
/// It cannot be compiled, or does not answer.
pub fn run(
    component: &[u8],
    settings: HostSettings,
    requests: &[(TestRequest, u16)],
    time: Duration,
) -> Result<Report, Refusal> {
    if requests.is_empty() {
        return Err(Refusal::new(RefusalKind::BadRequest, "there is no request to measure with"));
    }
    let began = Instant::now();
    let tester = HttpTester::new(component, settings)?;
    let compile_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let each = time / u32::try_from(ROUNDS + 1).unwrap_or(u32::MAX);
    let mut counts = (0, 0);
    // The first round warms caches up and does not count.
    round(&tester, requests, each, &mut counts)?;
    let rounds = (0..ROUNDS).map(|_| round(&tester, requests, each, &mut counts)).collect::<Result<Vec<_>, _>>()?;
    let instance = |_| Ok(tester.instantiate()?.as_secs_f64() * 1e6);
    let instances = (0..INSTANCES).map(instance).collect::<Result<Vec<f64>, Refusal>>()?;
    Ok(Report {
        requests_per_second: Spread::of(rounds.iter().map(|seconds| 1.0 / seconds).collect()),
        request_us: Spread::of(rounds.iter().map(|seconds| seconds * 1e6).collect()),
        instantiate_us: Spread::of(instances),
        requests: counts.0,
        failed: counts.1,
        compile_ms,
        wasm_bytes: component.len(),
    })
}

/// Sends requests for a while, and returns the seconds per request.
fn round(
    tester: &HttpTester,
    requests: &[(TestRequest, u16)],
    time: Duration,
    (sent, failed): &mut (u64, u64),
) -> Result<f64, Refusal> {
    let (began, mut shown) = (Instant::now(), 0_u32);
    for (request, status) in requests.iter().cycle() {
        *failed += u64::from(tester.respond(request)?.status != *status);
        shown += 1;
        if began.elapsed() >= time {
            break;
        }
    }
    *sent += u64::from(shown);
    Ok(began.elapsed().as_secs_f64() / f64::from(shown))
}
