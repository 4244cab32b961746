// SPDX-License-Identifier: Apache-2.0
//! `netserv-lab`: labs, the demo and the bench from the command line.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::topology::{Impairment, Kind, Topology};
use netserv_lab::{bench, callers, demo, exercises, listeners, nat, netns, phones, replay, rtp, scale, world};
use netserv_model::Flavour;

/// Builds networks of NetServ nodes from namespaces on one machine.
#[derive(Parser)]
#[command(name = "netserv-lab", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows a small network: a signed SETUP, the PROBE table, keep-alives answered by a router.
    Demo {
        /// Shows this application instead, which a provider's agent deploys.
        #[arg(long, conflicts_with_all = ["flavour", "keep"])]
        app: Option<demo::App>,
        /// Runs the modules in this flavour.
        #[arg(long, default_value_t = Flavour::Wasm)]
        flavour: Flavour,
        /// Leaves the network up until Enter is pressed.
        #[arg(long)]
        keep: bool,
    },
    /// Checks the solution of an exercise of docs/tutorial.
    Check {
        /// The exercise's number.
        #[arg(value_parser = clap::value_parser!(u8).range(1..=6))]
        exercise: u8,
        /// The module's folder.
        dir: PathBuf,
    },
    /// Measures the figures of docs/figures.md on a running system.
    Bench(bench::Options),
    /// Passes every packet that a filter matches by a driver alone (used by the bench).
    #[command(hide = true)]
    NullDriver(bench::null_driver::NullDriver),
    /// Builds a network with a host at each end, and keeps it until Enter is pressed.
    ///
    /// Between the hosts are the given machines: `n` (a node), `r` (a plain router), and as the first or last one `t` (a NAT),
    /// for instance `n r n t`.
    Up {
        /// The machines between the two hosts, in order.
        #[arg(required = true, value_parser = ["n", "r", "t"])]
        middle: Vec<String>,
    },
    /// Removes labs whose owner has ended.
    Down,
    /// Replays a recording of a node (`netservd run --record FILE`), and compares the outputs.
    ///
    /// Prints the numbers of inputs and outputs, or shows the first difference and fails.
    Replay(replay::Options),
    /// Runs simulated networks in which everything goes wrong; fails if an incomplete response stack is reported as complete.
    World(world::truth::Options),
    /// Runs a simulated network of many nodes and sessions, and prints messages, memory and times to repair.
    Scale(scale::Options),
    /// Copies frames between the interfaces a and b of this namespace (used by labs).
    #[command(hide = true)]
    Relay {
        /// The impairment as JSON.
        #[arg(long)]
        spec: String,
    },
    /// Translates what Queries say, as a NAT that knows GIST does; the kernel's own NAT translates the packets (used by labs).
    #[command(hide = true)]
    GistNat {
        /// An address inside and the one that it has outside: `10.1.0.1=10.2.0.1`.
        #[arg(required = true, value_parser = nat::binding)]
        bindings: Vec<(IpAddr, IpAddr)>,
    },
    /// Runs many SIP phones, and prints what became of them as JSON (used by labs).
    #[command(hide = true)]
    Phones(phones::Options),
    /// Runs SIP callers that do not slow down, and prints what became of their calls as JSON (used by labs).
    #[command(hide = true)]
    Callers(callers::Options),
    /// Listens to a radio many times, and prints what was heard as JSON (used by labs).
    #[command(hide = true)]
    Listeners(listeners::Options),
    /// Talks through a relay of rtpengine's ng protocol, and prints what was lost and how long it took as JSON (used by labs).
    #[command(hide = true)]
    Rtp(rtp::Options),
    /// Sends datagrams back to where they came from (used by labs).
    #[command(hide = true)]
    RtpEcho {
        /// Where it listens.
        local: std::net::SocketAddr,
    },
    /// Writes the manual pages of this program (used by packages).
    #[command(hide = true)]
    Man {
        /// The folder for the pages.
        dir: PathBuf,
    },
    /// Clears up a lab when its owner is gone (used by labs).
    #[command(hide = true)]
    Janitor {
        /// The lab's name.
        id: String,
        /// The lab's directory.
        dir: PathBuf,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("netserv-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Demo { app: Some(app), .. } => demo::run_app(app),
        Command::Demo { app: None, flavour, keep } => demo::run(flavour, keep),
        Command::Check { exercise, dir } => exercises::check(exercise, &dir),
        Command::Bench(options) => bench::run(&options),
        Command::NullDriver(options) => bench::null_driver::run(&options),
        Command::Up { middle } => up(&middle),
        Command::Down => {
            let cleared = netns::clear_leftovers()?;
            println!("cleared {} lab(s): {}", cleared.len(), cleared.join(" "));
            Ok(())
        }
        Command::Replay(options) => replay::run(&options, &mut std::io::stdout(), &mut std::io::stderr()),
        Command::World(options) => world::truth::run_all(&options).map(drop),
        Command::Scale(options) => scale::print(&options),
        Command::Relay { spec } => {
            let impairment: Impairment = serde_json::from_str(&spec).context("--spec")?;
            netserv_lab::relay::relay(impairment)
        }
        Command::GistNat { bindings } => nat::translate(&bindings.into_iter().collect()),
        Command::Phones(options) => phones::run(&options),
        Command::Callers(options) => callers::run(&options),
        Command::Listeners(options) => listeners::run(&options),
        Command::Rtp(options) => rtp::run(&options),
        Command::RtpEcho { local } => rtp::echo(local),
        Command::Man { dir } => {
            std::fs::create_dir_all(&dir)?;
            clap_mangen::generate_to(Arguments::command(), dir).context("cannot write manual pages")
        }
        Command::Janitor { id, dir } => netns::janitor(&id, &dir),
    }
}

fn up(middle: &[String]) -> Result<()> {
    let mut names = vec![("h1".to_owned(), Kind::Host)];
    for (number, kind) in middle.iter().enumerate() {
        let kind_of = match kind.as_str() {
            "n" => Kind::Node,
            "t" => Kind::Nat,
            _ => Kind::Router,
        };
        names.push((format!("{kind}{}", number + 1), kind_of));
    }
    names.push(("h2".to_owned(), Kind::Host));
    let machines: Vec<(&str, Kind)> = names.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
    let mut lab = netns::Lab::up(Topology::chain(&machines))?;
    let user = lab.user("janedoe", &["10.0.0.0/8", "fd00::/16"])?;
    for (name, kind) in &machines {
        match kind {
            Kind::Node => lab.start_netservd(name, "node", std::slice::from_ref(&user), FILES_ALLOWED)?,
            Kind::Host => lab.start_netservd(name, "host", &[], "")?,
            Kind::Router | Kind::Nat => {}
        }
        println!("{name}: nsenter --net=/run/netns/{} sh    {}    {}", lab.namespace(name), lab.v4(name), lab.v6(name));
    }
    println!("key of user janedoe: {}", user.key.display());
    println!("for instance: netserv --socket {} path {}", lab.socket("h1").display(), lab.v4("h2"));
    println!("press Enter to take it all down");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
