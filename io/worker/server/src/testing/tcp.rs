// SPDX-License-Identifier: Apache-2.0
//! Modules that handle TCP connections, without sockets: for `netserv module test` and `bench`.
//!
//! What the node's sockets do otherwise is done call by call, so that a test is the same each time.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use netserv_model::Refusal;
use netserv_project::{TcpOutcome, TcpSide};
use netserv_worker_base::shared::log::Line;
use tokio::runtime::Runtime;

use super::code::{HostSettings, TestCode, node_failed};
use crate::component::ComponentKind;
use crate::limits;
use crate::tcp::connection::{self, address, shown};
use crate::tcp::service::{TcpService, Times};
use crate::tcp::table::{Connection, Sides, Stage};
use crate::tcp::wit::{Decision, Flow, Side};
use crate::thread;

/// A module under test: one instance for all connections.
pub struct TcpTester {
    runtime: Runtime,
    service: Arc<TcpService>,
    failure: Arc<Mutex<Option<Refusal>>>,
}

/// Between whom a connection is.
#[derive(Clone, Copy, Debug)]
pub struct TestFlow {
    /// Who opens it.
    pub client: SocketAddr,
    /// Whom it is opened to.
    pub server: SocketAddr,
    /// Whether the module takes it over; else there is no server.
    pub intercepted: bool,
}

/// A connection under test.
pub struct TestConnection<'a> {
    tester: &'a TcpTester,
    id: u64,
    connection: Arc<Connection>,
    refused: bool,
    ended: [bool; 2],
}

impl TcpTester {
    /// Makes the instance of a module.
    ///
    /// # Errors
    /// Those of a node, and `abi-mismatch` if the component handles no connections.
    pub fn new(code: &TestCode, settings: HostSettings) -> Result<TcpTester, Refusal> {
        let component = code.component(ComponentKind::Tcp)?;
        let runtime = thread::runtime().map_err(|error| node_failed(&error))?;
        let module = settings.into_module()?;
        let failure = Arc::new(Mutex::new(None));
        let told = Arc::clone(&failure);
        let ended = move |refusal| *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
        let service = runtime.block_on(TcpService::start(&code.engine, component, &module, Times::default(), ended))?;
        connection::bind(&service);
        Ok(TcpTester { runtime, service, failure })
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// The module failed.
    pub fn connect(&self, flow: &TestFlow) -> Result<TestConnection<'_>, Refusal> {
        let sides = if flow.intercepted { Sides::Both } else { Sides::Client };
        let entered = self.service.connections.enter(sides, usize::MAX);
        let (id, connection) = entered.expect("there is room for every one");
        let TestFlow { client, server, intercepted } = *flow;
        let flow = Flow { client: address(client), server: address(server), intercepted };
        let decision = self.runtime.block_on(self.service.connect(&connection, id, flow));
        if decision == Some(Decision::Splice) && intercepted {
            connection.advance(Stage::Spliced);
        }
        if decision == Some(Decision::Serve) {
            connection.serve();
        }
        let refused = match decision {
            Some(Decision::Accept | Decision::Serve) => false,
            Some(Decision::Splice) => !intercepted,
            Some(Decision::Refuse) | None => true,
        };
        let opened = TestConnection { tester: self, id, connection, refused, ended: [false; 2] };
        self.failure().map_or(Ok(opened), Err)
    }

    /// Returns why the module is of no more use, if it failed.
    pub fn failure(&self) -> Option<Refusal> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns what the module wrote to its log since it was asked last.
    pub fn take_log(&self) -> Vec<Line> {
        self.service.module().take_last_log()
    }

    /// Returns how much memory the instance has taken.
    pub fn memory_bytes(&self) -> u64 {
        self.runtime.block_on(self.service.memory_bytes())
    }
}

impl TestConnection<'_> {
    /// Has a side send bytes. Returns false if it cannot: it said that no more comes, or the connection is over.
    pub fn send(&mut self, from: TcpSide, bytes: &[u8]) -> bool {
        for chunk in bytes.chunks(limits::TCP_CHUNK_BYTES_MAX) {
            if self.is_deaf_to(from) {
                return false;
            }
            let (service, source) = (&self.tester.service, side(from));
            let seen = shown(service, self.id, &self.connection, source, chunk.to_vec());
            let onward = self.tester.runtime.block_on(seen);
            if let (Some(bytes), Some(other)) = (onward, self.connection.other(source)) {
                self.connection.queue(other).push(bytes);
            }
        }
        true
    }

    /// Has a side say that no more comes. Returns false if it cannot.
    pub fn end(&mut self, from: TcpSide) -> bool {
        if self.is_deaf_to(from) {
            return false;
        }
        self.ended[place(from)] = true;
        let unseen = self.connection.stage() >= Stage::Spliced;
        if !unseen
            && self.tester.runtime.block_on(self.tester.service.end(&self.connection, self.id, side(from))).is_none()
        {
            self.connection.advance(Stage::Aborted);
        }
        if let Some(other) = self.connection.other(side(from)) {
            self.connection.queue(other).shut();
        }
        true
    }

    /// Lets time pass.
    pub fn wait(&self, time: Duration) {
        self.tester.runtime.block_on(async { tokio::time::sleep(time).await });
    }

    /// Takes what was sent to a side.
    pub fn take(&self, to: TcpSide) -> Vec<u8> {
        let mut taken = Vec::new();
        if self.connection.stage() < Stage::Aborted {
            let all = self.connection.queue(side(to)).write(|bytes| {
                taken.extend_from_slice(bytes);
                Ok(bytes.len())
            });
            debug_assert!(all.is_ok_and(|all| all), "memory takes everything");
        }
        taken
    }

    /// Returns what has become of it.
    pub fn outcome(&self) -> TcpOutcome {
        if self.refused {
            return TcpOutcome::Refused;
        }
        match self.connection.stage() {
            Stage::Aborted => TcpOutcome::Reset,
            Stage::Closing => TcpOutcome::Closed,
            Stage::Open | Stage::Spliced if self.is_over() => TcpOutcome::Closed,
            Stage::Spliced => TcpOutcome::Spliced,
            Stage::Open => TcpOutcome::Open,
        }
    }

    /// Ends it as a node does: the module learns that its number means nothing any more, if it ever knew it.
    pub fn close(self) {
        if !self.refused {
            // A module that fails by it says so by itself.
            let _ = self.tester.runtime.block_on(self.tester.service.closed(&self.connection, self.id));
        }
        self.tester.service.connections.leave(self.id);
    }

    fn is_deaf_to(&self, from: TcpSide) -> bool {
        self.refused || self.ended[place(from)] || self.connection.stage() >= Stage::Closing
    }

    /// Returns whether no side sends any more.
    fn is_over(&self) -> bool {
        let over = |one: TcpSide| self.ended[place(one)] && self.connection.queue(side(one)).is_shut();
        over(TcpSide::Client) && (self.connection.other(Side::Client).is_none() || over(TcpSide::Server))
    }
}

fn side(of: TcpSide) -> Side {
    match of {
        TcpSide::Client => Side::Client,
        TcpSide::Server => Side::Server,
    }
}

fn place(of: TcpSide) -> usize {
    match of {
        TcpSide::Client => 0,
        TcpSide::Server => 1,
    }
}
