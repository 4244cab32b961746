// SPDX-License-Identifier: Apache-2.0
//! A network with a node whose users have servers.

use std::net::IpAddr;

use anyhow::Result;

use crate::netns::Lab;
use crate::node::FILES_ALLOWED;
use crate::node::LabUser;
use crate::topology::{Kind, Topology};

/// Builds `sender – node – receiver`, whose node gives containers addresses of `prefixes`, with a daemon and a web server on
/// the sender. The users own the sender's addresses; beside its name stand further lines of each one's table. Both hosts
/// find the prefixes by way of the node.
///
/// # Errors
/// Something does not start.
pub fn network<const N: usize>(
    driver: Option<&str>,
    prefixes: &[&str],
    users: [(&str, &str); N],
) -> Result<(Lab, [LabUser; N])> {
    network_with("", driver, prefixes, users)
}

/// The same with a node that has further settings: lines such as `dataplane.cores = [1]`.
///
/// # Errors
/// Something does not start.
pub fn network_with<const N: usize>(
    settings: &str,
    driver: Option<&str>,
    prefixes: &[&str],
    users: [(&str, &str); N],
) -> Result<(Lab, [LabUser; N])> {
    let chain = [("sender", Kind::Host), ("node", Kind::Node), ("receiver", Kind::Host)];
    let mut lab = Lab::up(Topology::chain(&chain))?;
    if let Some(driver) = driver {
        lab.use_driver(driver);
    }
    let own = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
    let mut all = Vec::new();
    for (name, extra) in users {
        all.push(LabUser { extra: extra.to_owned(), ..lab.user(name, &[&own[0], &own[1]])? });
    }
    let extra = format!("{settings}\n{FILES_ALLOWED}\n[network]\nprefixes = {prefixes:?}\n");
    lab.start_netservd("node", "node", &all, &extra)?;
    lab.start_netservd("sender", "host", &[], "")?;
    lab.serve_http("sender")?;
    // The operator's part: the prefixes are routed to the node.
    let (left, right) = (lab.topology().interfaces(0).1, lab.topology().interfaces(1).0);
    for (machine, node) in [("sender", left), ("receiver", right)] {
        for via in [IpAddr::from(node.v4), node.v6.into()] {
            lab.run(machine, "ip", &["route", "add", "default", "via", &via.to_string()])?;
        }
    }
    let all: [LabUser; N] = all.try_into().map_err(|_| anyhow::anyhow!("as many users as were named"))?;
    Ok((lab, all))
}
