// SPDX-License-Identifier: Apache-2.0
//! `netserv setup`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::Args;
use netserv_model::api::PathSpec;
use netserv_model::request::{Dependency, StateSource};
use netserv_model::{Digest, Filter, ModuleRef, RefusalKind, WantedFilter};
use netserv_wire::nslp::RequestBuilder;

use crate::exit::{Exit, Failure, OrFail};
use crate::output::Output;
use crate::properties::parse_property;
use crate::report;
use crate::request::{Identity, Route, now, widen};
use crate::units::parse_duration;
use netserv_api::Client;

/// Install, refresh or replace a module on every node toward a destination
#[derive(Args)]
pub struct Setup {
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    route: Route,
    /// Ownership epoch, starting at 1. Nodes reject an epoch older than the newest they have seen. `now` is
    /// the time in milliseconds since 1970, later than every epoch of netserv-agent [default: now, with
    /// --floating]
    #[arg(long, value_name = "N|now", value_parser = epoch)]
    epoch: Option<u64>,
    /// URL of the state that the module starts with, as `netserv state export` wrote it. Nodes fetch it
    /// once in each epoch
    #[arg(long, value_name = "URL", requires_all = ["state_digest", "epoch"])]
    state: Option<String>,
    /// The state's digest
    #[arg(long, value_name = "DIGEST", requires = "state")]
    state_digest: Option<Digest>,
    /// Your addresses that follow the module from node to node, separated by commas. The node named by --node adds
    /// them to the module's container, with a route that its routing daemon can announce
    ///
    /// A node that had these addresses gives them up when it sees a SETUP of a later epoch for another node.
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', requires = "nodes")]
    floating: Vec<IpAddr>,
    #[command(flatten)]
    identity: Identity,
    /// Only ask the nodes what they would do
    #[arg(long)]
    dry_run: bool,
}

/// A module as it is to be on a node.
#[derive(Args)]
pub struct Wanted {
    /// Package file, or the module's name and version; a name needs --url and --digest
    #[arg(value_name = "MODULE@VERSION|FILE.nsm")]
    module: Subject,
    /// URL from which nodes fetch the package [default: the file's own path, for nodes on this machine]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Digest of the package [default: that of the file]
    #[arg(long, value_name = "DIGEST")]
    digest: Option<Digest>,
    /// Packets that the module sees, such as "udp dst 10.2.0.0/24 port 5060" [default: the manifest's filters]
    ///
    /// `self` stands for the addresses of the module's container on each node: "udp dst self port 5060". A filter
    /// with addresses only, such as "dst 10.2.0.0/24", narrows those filters of the manifest that have no address.
    #[arg(long, value_name = "FILTER")]
    filter: Vec<WantedFilter>,
    /// TCP connections in transit that the module takes over, such as "tcp dst 203.0.113.0/24 port 80" [default:
    /// the manifest's]
    #[arg(long, value_name = "FILTER")]
    intercept: Vec<Filter>,
    /// Property that the module reads at run time
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_property)]
    property: Vec<(String, String)>,
    /// Building block that the nodes must have, such as kv>=1 [default: the manifest's]
    #[arg(long = "depends-on", value_name = "BLOCK")]
    dependency: Vec<Dependency>,
    /// Duration of the lease
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    ttl: Duration,
}

/// How long nodes are asked again that fetch or compile.
const INSTALL_TIME_MAX: Duration = Duration::from_secs(300);
/// How long each further answer may take at least: nodes say within a minute what came of it.
const INSTALL_ANSWER_TIME: Duration = Duration::from_secs(65);
/// How long nobody is asked in between.
const INSTALL_PAUSE: Duration = Duration::from_secs(1);

/// What is to be installed.
#[derive(Clone, Debug)]
enum Subject {
    Module(ModuleRef),
    File(PathBuf),
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Subject, String> {
        if Path::new(text).extension().is_some_and(|extension| extension == "nsm") {
            return Ok(Subject::File(text.into()));
        }
        text.parse().map(Subject::Module).map_err(|_| {
            format!(
                "`{text}` is neither a module reference such as example.org/net-monitor@1.2.0 \
                 nor a file that ends in .nsm"
            )
        })
    }
}

/// What a SETUP says of the package.
pub struct Target {
    /// The module.
    pub module: ModuleRef,
    url: String,
    digest: Digest,
    dependencies: Vec<Dependency>,
}

impl Setup {
    /// Sends the SETUP, again while a node still fetches or compiles, and shows the response stack.
    ///
    /// # Errors
    /// The request cannot be made or sent.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        let target = self.wanted.target(output)?;
        let account = self.identity.account()?;
        let path = self.route.path()?;
        let epoch = self.epoch.or((!self.floating.is_empty()).then(|| now().0));
        output.note(format!("setup {} {}", target.module, self.route.shown()));
        let begun = Instant::now();
        let mut travel = self.route.travel.clone();
        loop {
            let message = account.sign(widen(self.builder(&target, epoch, path), self.route.off_path))?;
            let result = travel.send(client, output, message, path).await?;
            let slow = result.nodes.iter().find(|report| report.outcome.is_refused_for(RefusalKind::InProgress));
            let Some(slow) = slow.filter(|_| begun.elapsed() < INSTALL_TIME_MAX) else {
                return report::write(&result, output);
            };
            output.note(format!("{} has accepted it and still fetches or compiles: asked again", slow.node));
            travel.session = Some(result.session);
            // Long enough for what comes of it.
            travel.timeout = travel.timeout.max(INSTALL_ANSWER_TIME);
            tokio::time::sleep(INSTALL_PAUSE).await;
        }
    }

    fn builder(&self, target: &Target, epoch: Option<u64>, path: Option<PathSpec>) -> RequestBuilder {
        let mut builder = self.wanted.builder(target);
        if let Some(epoch) = epoch {
            builder = builder.epoch(epoch);
        }
        if let (Some(url), Some(digest)) = (&self.state, self.state_digest) {
            builder = builder.state(&StateSource { url: url.clone(), digest });
        }
        builder = builder.floating(&self.floating);
        let travel = &self.route.travel;
        let builder = travel.bind(travel.shape(builder.target(&self.route.target())), path);
        if self.dry_run { builder.dry_run() } else { builder }
    }
}

/// Reads an epoch, or takes the time for one.
fn epoch(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number @ 1..) => Ok(number),
        Ok(0) => Err("epochs begin at 1".to_owned()),
        Err(_) if text == "now" => Ok(now().0),
        Err(_) => Err("neither a number nor `now`".to_owned()),
    }
}

impl Wanted {
    /// Returns what requests say of the package.
    ///
    /// # Errors
    /// It is not known, or the file is none.
    pub fn target(&self, output: &Output) -> Result<Target, Failure> {
        match &self.module {
            Subject::Module(module) => {
                let missing = |what: &str| {
                    let cause = format!("no {what} for {module}");
                    Failure::new(cause, format!("give {what}, or a .nsm file in place of the name"))
                        .with_exit(Exit::Usage)
                };
                Ok(Target {
                    module: module.clone(),
                    url: self.url.clone().ok_or_else(|| missing("--url"))?,
                    digest: self.digest.ok_or_else(|| missing("--digest"))?,
                    dependencies: self.dependency.clone(),
                })
            }
            Subject::File(file) => self.target_of_file(file, output),
        }
    }

    fn target_of_file(&self, file: &Path, output: &Output) -> Result<Target, Failure> {
        let package = super::module::read_package(file)?;
        if let Some(digest) = self.digest.filter(|digest| *digest != package.digest()) {
            let cause = format!("{} has the package digest {}, not {digest}", file.display(), package.digest());
            return Err(Failure::new(cause, "leave out --digest, or name the right file"));
        }
        let url = match &self.url {
            Some(url) => url.clone(),
            None => {
                let url = file_url(file)?;
                output.note(format!("no --url: nodes read {url} from their own disks"));
                url
            }
        };
        let dependencies =
            if self.dependency.is_empty() { package.manifest().dependencies.clone() } else { self.dependency.clone() };
        Ok(Target { module: package.manifest().module(), url, digest: package.digest(), dependencies })
    }

    /// Begins a SETUP.
    pub fn builder(&self, target: &Target) -> RequestBuilder {
        let mut builder = RequestBuilder::setup(&target.module, &target.url, target.digest, self.ttl);
        for filter in &self.filter {
            builder = builder.filter(filter);
        }
        for filter in &self.intercept {
            builder = builder.intercept(filter);
        }
        for (key, value) in &self.property {
            builder = builder.property(key, value);
        }
        for dependency in &target.dependencies {
            builder = builder.dependency(dependency);
        }
        builder
    }
}

fn file_url(file: &Path) -> Result<String, Failure> {
    let absolute = std::fs::canonicalize(file).or_fail(format!("cannot find {}", file.display()), "name the file")?;
    let named = absolute.to_str().filter(|text| !text.contains(char::is_whitespace));
    named.map(|text| format!("file://{text}")).ok_or_else(|| {
        let cause = format!("{} has a path that is no URL", absolute.display());
        Failure::new(cause, "give --url, or move the file to a path without spaces")
    })
}
