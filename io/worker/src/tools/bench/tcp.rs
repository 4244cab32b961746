// SPDX-License-Identifier: Apache-2.0
//! `netserv-worker bench`: how many bytes a module that handles TCP connections takes in a second.
//!
//! Chunks go to the module one after the other, without sockets: what is measured is the module, and the way of the bytes
//! into its memory and out of it.

use std::time::{Duration, Instant};

use netserv_model::{Refusal, RefusalKind};
use netserv_project::{TcpOutcome, TcpSide};
use netserv_worker_server::component::ComponentKind;
use netserv_worker_server::testing::code::{HostSettings, TestCode};
use netserv_worker_server::testing::tcp::{TcpTester, TestConnection, TestFlow};
use serde::Serialize;

use super::packet::Spread;

/// Bytes that are shown at once.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// Rounds that are measured.
const ROUNDS: usize = 7;
/// Connections that are opened and closed for a time.
const CONNECTIONS: usize = 200;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Bytes per second that the module was shown: the median round, the slowest and the fastest.
    pub bytes_per_second: Spread,
    /// Bytes that were shown at once.
    pub chunk_bytes: usize,
    /// Microseconds that opening and closing a connection takes.
    pub connection_us: Spread,
    /// Chunks that were shown.
    pub chunks: u64,
    /// Connections that they needed; a module that closes or splices one needs another.
    pub connections: u64,
    /// Bytes of memory that the instance took.
    pub memory_bytes: u64,
    /// Milliseconds that compiling took, which a node does once when it downloads the module.
    pub compile_ms: u64,
    /// Bytes of the component.
    pub wasm_bytes: usize,
}

/// What a module is measured with.
#[derive(Clone, Debug)]
pub struct TcpTraffic {
    /// Between whom the connections are.
    pub flow: TestFlow,
    /// Who sends.
    pub from: TcpSide,
    /// What is sent, again and again until a chunk is full.
    pub bytes: Vec<u8>,
}

/// Measures a component; nothing if it is one of another kind.
///
/// # Errors
/// It cannot be compiled, fails, or is shown no bytes.
pub fn run(
    component: &[u8],
    settings: HostSettings,
    load: &TcpTraffic,
    time: Duration,
) -> Result<Option<Report>, Refusal> {
    let began = Instant::now();
    let code = TestCode::compile(component)?;
    let compile_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    if code.kind() != ComponentKind::Tcp {
        return Ok(None);
    }
    let tester = TcpTester::new(&code, settings)?;
    let mut bench = Bench {
        tester: &tester,
        load,
        chunk: load.bytes.iter().copied().cycle().take(CHUNK_BYTES).collect(),
        open: None,
        chunks: 0,
        connections: 0,
    };
    let each = time / u32::try_from(ROUNDS + 1).unwrap_or(u32::MAX);
    // The first round warms caches up and does not count.
    bench.round(each)?;
    let rounds = (0..ROUNDS).map(|_| bench.round(each)).collect::<Result<Vec<f64>, Refusal>>()?;
    let connections = (0..CONNECTIONS).map(|_| bench.connection()).collect::<Result<Vec<f64>, Refusal>>()?;
    Ok(Some(Report {
        bytes_per_second: Spread::of(rounds),
        chunk_bytes: CHUNK_BYTES,
        connection_us: Spread::of(connections),
        chunks: bench.chunks,
        connections: bench.connections,
        memory_bytes: tester.memory_bytes(),
        compile_ms,
        wasm_bytes: component.len(),
    }))
}

struct Bench<'a> {
    tester: &'a TcpTester,
    load: &'a TcpTraffic,
    chunk: Vec<u8>,
    open: Option<TestConnection<'a>>,
    chunks: u64,
    connections: u64,
}

impl Bench<'_> {
    /// Shows chunks for a while, and returns the bytes per second.
    fn round(&mut self, time: Duration) -> Result<f64, Refusal> {
        let (began, mut shown) = (Instant::now(), 0_u32);
        while shown == 0 || began.elapsed() < time {
            self.chunk()?;
            shown += 1;
        }
        self.chunks += u64::from(shown);
        let bytes = u32::try_from(CHUNK_BYTES).unwrap_or(u32::MAX);
        Ok(f64::from(shown) * f64::from(bytes) / began.elapsed().as_secs_f64())
    }

    /// Shows one chunk, in a connection that goes on with the module.
    fn chunk(&mut self) -> Result<(), Refusal> {
        let mut connection = match self.open.take() {
            Some(connection) => connection,
            None => {
                self.connections += 1;
                self.tester.connect(&self.load.flow)?
            }
        };
        let outcome = connection.outcome();
        if outcome != TcpOutcome::Open {
            let detail = format!("there are no bytes to measure with: the module has each connection {outcome}");
            return Err(Refusal::new(RefusalKind::BadRequest, detail));
        }
        connection.send(self.load.from, &self.chunk);
        for to in [TcpSide::Client, TcpSide::Server] {
            drop(connection.take(to));
        }
        if connection.outcome() == TcpOutcome::Open {
            self.open = Some(connection);
        } else {
            connection.close();
        }
        self.tester.failure().map_or(Ok(()), Err)
    }

    /// Opens and closes a connection, and returns the microseconds.
    fn connection(&self) -> Result<f64, Refusal> {
        let began = Instant::now();
        self.tester.connect(&self.load.flow)?.close();
        Ok(began.elapsed().as_secs_f64() * 1e6)
    }
}
