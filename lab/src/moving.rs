// SPDX-License-Identifier: Apache-2.0
//! A network in which a path moves from one node to another.

use anyhow::{Context, Result};

use crate::netns::Lab;
use crate::node::FILES_ALLOWED;
use crate::node::LabUser;
use crate::topology::{Impairment, Kind, Link, Machine, Topology};

/// Returns the network below with its daemons over a driver, and the user `janedoe`, who owns the sender's addresses.
///
/// # Errors
/// A daemon does not start.
pub fn up(driver: &str) -> Result<(Lab, LabUser)> {
    let mut lab = Lab::up(two_ways())?;
    lab.use_driver(driver);
    let own = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
    let user = lab.user("janedoe", &[&own[0], &own[1]])?;
    for node in ["n1", "na", "nb"] {
        lab.start_netservd(node, "node", std::slice::from_ref(&user), FILES_ALLOWED)?;
    }
    lab.start_netservd("sender", "host", &[], "")?;
    lab.serve_http("sender")?;
    lab.run("receiver", "sysctl", &["-qw", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0"])?;
    Ok((lab, user))
}

/// Returns an address of a machine of one version of IP.
pub fn address(lab: &Lab, machine: &str, six: bool) -> String {
    if six { lab.v6(machine).to_string() } else { lab.v4(machine).to_string() }
}

/// Has `n1` send through one of two nodes what is for the receiver.
///
/// # Errors
/// There is no such link, or `ip` refuses.
pub fn lead_through(lab: &Lab, node: &str, six: bool) -> Result<()> {
    let topology = lab.topology();
    let link = topology.links.iter().position(|link| link.a == "n1" && link.b == node);
    let via = topology.interfaces(link.with_context(|| format!("n1 has no link to {node}"))?).1;
    let last = topology.links.len();
    let args = match six {
        false => ["-4".to_owned(), format!("10.{last}.0.0/24"), via.v4.to_string()],
        true => ["-6".to_owned(), format!("fd00:{last:x}::/64"), via.v6.to_string()],
    };
    lab.run("n1", "ip", &[&args[0], "route", "replace", &args[1], "via", &args[2]]).map(drop)
}

/// Has `r` send back through one of them what is for the sender.
///
/// # Errors
/// As [`lead_through`].
pub fn lead_back_through(lab: &Lab, node: &str) -> Result<()> {
    let topology = lab.topology();
    let link = topology.links.iter().position(|link| link.a == node && link.b == "r");
    let via = topology.interfaces(link.with_context(|| format!("r has no link to {node}"))?).0.v4;
    lab.run("r", "ip", &["-4", "route", "replace", "10.1.0.0/24", "via", &via.to_string()]).map(drop)
}

/// Returns `sender – n1 – na – r – receiver`, and `n1 – nb – r`.
pub fn two_ways() -> Topology {
    let machine = |(name, kind): (&str, Kind)| Machine { name: name.to_owned(), kind };
    let machines = [
        ("sender", Kind::Host),
        ("n1", Kind::Node),
        ("na", Kind::Node),
        ("nb", Kind::Node),
        ("r", Kind::Router),
        ("receiver", Kind::Host),
    ];
    let ends = [("sender", "n1"), ("n1", "na"), ("n1", "nb"), ("na", "r"), ("nb", "r"), ("r", "receiver")];
    let link = |(a, b): (&str, &str)| Link { a: a.to_owned(), b: b.to_owned(), impairment: Impairment::default() };
    Topology { machines: machines.map(machine).into(), links: ends.map(link).into() }
}
