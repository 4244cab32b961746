// SPDX-License-Identifier: Apache-2.0
//! `netserv probe` and `netserv path`.

use clap::{Args, ValueEnum};
use netserv_model::api::PathSpec;
use netserv_model::off_path::OffPath;
use netserv_model::request::Ask;
use netserv_model::target::Target;
use netserv_wire::nslp::RequestBuilder;

use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::report;
use crate::request::{Identity, Route, Travel, anonymous, widen};
use netserv_api::Client;

/// Ask every node toward a destination about itself
///
/// The request is signed if you ask for modules or policy, which concern one user, or ask nodes off the path. Other
/// requests are signed only if you have a key.
#[derive(Args)]
pub struct Probe {
    #[command(flatten)]
    route: Route,
    /// Questions, separated by commas
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "nodes")]
    ask: Vec<Question>,
    #[command(flatten)]
    identity: Identity,
}

/// Show the nodes on the path to a destination, the hops between them and what they offer
///
/// Each line shows a node and the hop to it, as measured by the node before it. `-` means not measured.
///
/// RTT is the time from that node's last GIST Query to the Response, including the work of the node itself. IP HOPS
/// is 1 if no router lies between the two nodes, 2 across one router.
///
/// PROVEN BY is `cookie` if the node returned the Query's cookie, `association` if it also answered over a
/// connection, and `TLS` with the name in the certificate that it presented there. This node itself checks only the
/// next node; for each later hop it relies on the report of the node before.
///
/// FLAVOURS, and the line `blocks` below each node, list what modules may use on that node.
#[derive(Args)]
pub struct Path {
    /// The destination: an address or a name
    #[arg(value_name = "DEST")]
    destination: String,
    #[command(flatten)]
    travel: Travel,
    #[command(flatten)]
    identity: Identity,
}

/// What to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Question {
    /// The nodes
    Nodes,
    /// The user's running modules
    Modules,
    /// Building blocks and flavours
    Blocks,
    /// The nodes' load
    Load,
    /// The user's policy on the nodes
    Policy,
}

impl Question {
    fn ask(self) -> Ask {
        match self {
            Question::Nodes => Ask::Nodes,
            Question::Modules => Ask::Modules,
            Question::Blocks => Ask::Blocks,
            Question::Load => Ask::Load,
            Question::Policy => Ask::Policy,
        }
    }

    fn is_personal(self) -> bool {
        match self {
            Question::Modules | Question::Policy => true,
            Question::Nodes | Question::Blocks | Question::Load => false,
        }
    }
}

impl Probe {
    /// Sends the PROBE and shows the response stack.
    ///
    /// # Errors
    /// The request cannot be made or sent.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        let Probe { route, ask, identity } = &self;
        let path = route.path()?;
        let message = build(ask, &route.target(), (&route.travel, path), route.off_path, identity)?;
        let result = route.travel.send(client, output, message, path).await?;
        report::write(&result, output)
    }
}

impl Path {
    /// Sends a PROBE for nodes and what they offer, and shows the path.
    ///
    /// # Errors
    /// The request cannot be made or sent.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        let Path { destination, travel, identity } = &self;
        let path = Some(travel.path_to(destination)?);
        let asked = [Question::Nodes, Question::Blocks];
        let message = build(&asked, &Target::default(), (travel, path), None, identity)?;
        let result = travel.send(client, output, message, path).await?;
        report::write_path(&result, &self.destination, output)
    }
}

fn build(
    questions: &[Question],
    target: &Target,
    (travel, path): (&Travel, Option<PathSpec>),
    off_path: Option<OffPath>,
    identity: &Identity,
) -> Result<String, Failure> {
    let asks: Vec<Ask> = questions.iter().map(|question| question.ask()).collect();
    let builder = widen(travel.shape(RequestBuilder::probe(&asks).target(target)), off_path);
    // Nodes send nothing beside the path that nobody signed.
    let personal = off_path.is_some() || questions.iter().any(|question| question.is_personal());
    let account = if personal { Some(identity.account()?) } else { identity.account_if_any()? };
    match account {
        Some(account) => account.sign(travel.bind(builder, path)),
        None => anonymous(builder),
    }
}
