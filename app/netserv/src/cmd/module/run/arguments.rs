// SPDX-License-Identifier: Apache-2.0
//! The arguments of `netserv module run`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::properties::parse_property;

/// Run a module on this machine, and replace it whenever its source changes
///
/// As root: creates a small network of namespaces (client, node, server) and starts netservd in it with a key of
/// its own. Builds and signs the module, sends the SETUP, and shows what to try and what the module logs. When a
/// source file changes, builds and replaces the running module without losing a packet or a request. Removes
/// everything at Ctrl-C, and also if this program is killed.
///
/// Without root, or with --direct: serves an HTTP component with netserv-worker alone, without a node and without a
/// sandbox.
#[derive(Args)]
pub struct Run {
    /// The module's folder, with netserv.toml in it
    #[arg(value_name = "DIR", default_value = ".")]
    pub(super) dir: PathBuf,
    /// Property that the module reads at run time
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_property)]
    pub(super) property: Vec<(String, String)>,
    /// Serve HTTP without a node, even as root
    #[arg(long)]
    pub(super) direct: bool,
    /// Address and port for HTTP without a node [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) listen: Option<SocketAddr>,
    /// Do not replace the module when its source changes
    #[arg(long)]
    pub(super) no_watch: bool,
}
