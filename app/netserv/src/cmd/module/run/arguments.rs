// SPDX-License-Identifier: Apache-2.0
//! The arguments of `netserv module run`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::properties::parse_property;

/// Run a module on this machine, and replace it whenever its source changes
///
/// As root: makes a small network of namespaces (client, node, server), starts netservd in it with a key of its own,
/// builds and signs the module, and sends the SETUP. Shows what to try, and what the module logs. Changed sources are
/// built and installed in place of what runs, which loses no packet and no request. All of it goes with Ctrl-C, and also
/// if this program is killed.
///
/// Otherwise, or with --direct: serves a component for HTTP with netserv-worker alone, without a node and without a
/// sandbox.
#[derive(Args)]
pub struct Run {
    /// The module's folder, with netserv.toml in it
    #[arg(value_name = "DIR", default_value = ".")]
    pub(super) dir: PathBuf,
    /// A property that the module reads at run time
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_property)]
    pub(super) property: Vec<(String, String)>,
    /// Serve HTTP without a node, also as root
    #[arg(long)]
    pub(super) direct: bool,
    /// Where HTTP is served without a node [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) listen: Option<SocketAddr>,
    /// Leave the module as it is when its source changes
    #[arg(long)]
    pub(super) no_watch: bool,
}
