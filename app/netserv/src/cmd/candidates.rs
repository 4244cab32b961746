// SPDX-License-Identifier: Apache-2.0
//! `netserv candidates`.

use std::path::PathBuf;

use clap::Args;
use netserv_model::ModuleRef;
use netserv_model::off_path::OffPath;
use netserv_placement::candidates::{ASKED, Candidate, Needs, Place, rank};
use netserv_wire::nslp::RequestBuilder;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::{Output, Style};
use crate::report::count;
use crate::request::{Identity, Travel};
use crate::table::{Table, plain};
use netserv_api::Client;

/// Rank the nodes on and off the path to a destination by how well they suit a module
///
/// The command asks the nodes (PROBE) for their building blocks, load and policy, and compares these with the
/// package's manifest. For each node that cannot have the module it shows the reason. Only nodes on the path can
/// have modules that see packets or intercept connections.
///
/// Each suitable node starts with 1,000 points. It loses up to 400 points for its load per processor, up to 200 for
/// little free memory, 5 for each millisecond to the last node of the path (300 at most), and 100 for each hop off
/// the path. If operators publish prices, a node at twice the cheapest price loses 100 points, at three times 200,
/// and 300 at most.
#[derive(Args)]
pub struct Candidates {
    /// The module's package
    #[arg(value_name = "FILE.nsm")]
    file: PathBuf,
    /// The destination of the path: an address or a name
    #[arg(long, value_name = "DEST")]
    to: String,
    #[command(flatten)]
    travel: Travel,
    /// Nodes off the path to ask, too: SHAPE:HOPS, as in `netserv probe`
    #[arg(long, value_name = "SHAPE", default_value = "hose:1", conflicts_with = "on_path")]
    off_path: OffPath,
    /// Ask only nodes on the path
    #[arg(long)]
    on_path: bool,
    #[command(flatten)]
    identity: Identity,
}

/// What `-j` shows.
#[derive(Serialize)]
struct Shown<'a> {
    module: &'a ModuleRef,
    /// The best first.
    candidates: &'a [Candidate],
    /// Nodes beside the path of which nothing is known.
    missing: u32,
    /// Why nodes further on are not among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<String>,
}

impl Candidates {
    /// Asks the nodes, and shows them with their points.
    ///
    /// # Errors
    /// The package cannot be read, or the request not be sent.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        let package = super::module::read_package(&self.file)?;
        let needs = Needs::of(package.manifest(), &package.flavours());
        let mut builder = RequestBuilder::probe(&ASKED);
        if !self.on_path {
            builder = builder.off_path(self.off_path);
        }
        let path = self.travel.path_to(&self.to)?;
        let builder = self.travel.bind(self.travel.shape(builder), Some(path));
        let message = self.identity.account()?.sign(builder)?;
        let result = self.travel.send(client, output, message, Some(path)).await?;
        let candidates = rank(&needs, &result);
        let incomplete = result.incomplete.as_ref().map(ToString::to_string);
        let is_any = candidates.iter().any(|candidate| candidate.score.is_some());
        if output.is_json() {
            let (module, missing) = (&package.manifest().module(), result.beside.missing);
            output.json(&Shown { module, candidates: &candidates, missing, incomplete })?;
        } else {
            table(&candidates).write(output);
            if result.beside.missing > 0 {
                output.note(format!("{} beside the path did not say", count(result.beside.missing.into(), "node")));
            }
            if let Some(why) = incomplete {
                output.note(format!("nodes further on are not among them: {why}"));
            }
        }
        Ok(if is_any { Exit::Done } else { Exit::Incomplete })
    }
}

fn table(candidates: &[Candidate]) -> Table {
    let mut table = Table::new(&["NODE", "POINTS", "WHERE"]);
    for Candidate { node, place, score, reasons, against, .. } in candidates {
        let place = match place {
            Place::Path { hop, .. } => format!("hop {hop} of the path"),
            Place::Beside { hops } => format!("beside the path, {}", count((*hops).into(), "hop")),
        };
        let points = score.map_or((Style::Warn, "no".to_owned()), plain);
        table.row([plain(node), points, plain(place)]);
        reasons.iter().for_each(|reason| table.note(format!("-{}: {}", reason.points, reason.why)));
        against.iter().for_each(|why| table.note(why));
    }
    table
}
