// SPDX-License-Identifier: Apache-2.0
//! `netserv remove`.

use clap::Args;
use netserv_model::ModuleName;
use netserv_wire::nslp::RequestBuilder;

use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::report;
use crate::request::SignedRequest;
use netserv_api::Client;

/// End a session's hold on a module, on every node toward a destination
///
/// A node removes the module when no session holds it any more.
#[derive(Args)]
pub struct Remove {
    /// The module's name, without a version
    #[arg(value_name = "NAME")]
    module: ModuleName,
    /// Remove the module only from nodes that have it in an epoch before this one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    epoch: Option<u64>,
    #[command(flatten)]
    request: SignedRequest,
    /// End all of the user's sessions that hold the module, not only the session of this path
    #[arg(long, conflicts_with = "session")]
    all: bool,
    /// Also close intercepted connections that are draining (`server.drain`) or have outlived the module
    #[arg(long)]
    force: bool,
}

impl Remove {
    /// Sends the REMOVE and shows the response stack.
    ///
    /// # Errors
    /// The request cannot be made or sent.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        let builder = RequestBuilder::remove(&self.module);
        let builder = if self.force { builder.force() } else { builder };
        let builder = if self.all { builder.all() } else { builder };
        let builder = self.epoch.into_iter().fold(builder, RequestBuilder::epoch);
        let result = self.request.send(client, output, builder, &format!("remove {}", self.module)).await?;
        report::write(&result, output)
    }
}
