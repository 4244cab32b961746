// SPDX-License-Identifier: Apache-2.0
//! Modules that handle TCP connections as events.

use std::sync::Arc;

use netserv_model::{Refusal, RefusalKind};

use super::component::CheckedComponent;
use super::engine::ServerEngine;
use super::listeners::Accepted;
use super::module::Module;

/// One version of a module that handles connections as events.
pub struct TcpService {}

impl TcpService {
    /// Starts the module's one instance.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn start(
        _engine: &Arc<ServerEngine>,
        _component: CheckedComponent,
        _module: &Arc<Module>,
    ) -> Result<Arc<TcpService>, Refusal> {
        Err(Refusal::new(RefusalKind::AbiMismatch, "components that export netserv:tcp/handler are not run"))
    }

    /// Takes a connection.
    pub fn accept(&self, accepted: Accepted) {
        drop(accepted);
    }

    /// Ends all connections, after [`STOP_TIME_MAX`](crate::limits::STOP_TIME_MAX) at the latest.
    pub async fn stop(&self) {}
}
