// SPDX-License-Identifier: Apache-2.0
//! Clients of the daemons of this machine, with what the command line calls their sockets.

use std::path::Path;

use netserv_api::{Client, Daemon, Error, Failed};

use crate::exit::{Exit, Failure, one_line};

/// Returns a client of the node that serves a socket.
pub fn node(socket: &Path) -> Client {
    Client::new(socket, Daemon { name: "netservd", named_by: "--socket or NETSERV_SOCKET" })
}

/// Returns a client of the agent that serves a socket.
pub fn agent(socket: &Path) -> Client {
    Client::new(socket, Daemon { name: "netserv-agent", named_by: "--agent-socket or NETSERV_AGENT_SOCKET" })
}

impl From<Error> for Failure {
    fn from(Error { kind, cause, fix }: Error) -> Failure {
        let exit = match kind {
            Failed::Reaching => Exit::Unreachable,
            Failed::Refused => Exit::ApiRefused,
        };
        Failure { exit, cause: one_line(&cause), fix: one_line(&fix) }
    }
}
