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

/// End what a session has of a module on every node toward a destination: the module goes with the last session that holds it
#[derive(Args)]
pub struct Remove {
    /// The module's name, without a version
    #[arg(value_name = "NAME")]
    module: ModuleName,
    /// Only from nodes that have it in an earlier epoch than this one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    epoch: Option<u64>,
    #[command(flatten)]
    request: SignedRequest,
    /// End every session of the user's that holds the module, not only the one of this path
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
