// SPDX-License-Identifier: Apache-2.0
//! `netserv remove`.

use clap::Args;
use netserv_model::ModuleName;
use netserv_wire::nslp::RequestBuilder;

use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::report;
use crate::request::{Identity, Route, widen};

/// Remove a module from every node toward a destination
#[derive(Args)]
pub struct Remove {
    /// The module's name, without a version
    #[arg(value_name = "NAME")]
    module: ModuleName,
    #[command(flatten)]
    route: Route,
    #[command(flatten)]
    identity: Identity,
    /// Only ask what would happen
    #[arg(long)]
    dry_run: bool,
}

impl Remove {
    /// Sends the REMOVE and shows the response stack.
    ///
    /// # Errors
    /// The request cannot be made or sent.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        let builder = RequestBuilder::remove(&self.module).target(&self.route.target());
        let builder = self.route.travel.shape(builder);
        let builder = if self.dry_run { builder.dry_run() } else { builder };
        let message = self.identity.account()?.sign(widen(builder, self.route.off_path))?;
        let path = self.route.path()?;
        output.note(format!("remove {} {}", self.module, self.route.shown()));
        let result = self.route.travel.send(client, output, message, path).await?;
        report::write(&result, output)
    }
}
