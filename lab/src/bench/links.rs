// SPDX-License-Identifier: Apache-2.0
//! Links between sender, router and sink, and the entries of the router for what arrives behind it.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::Result;

use crate::netns::Lab;

/// The last byte of an address beyond a link that is nobody's: what goes there ends when it has arrived.
pub const NOBODY: u8 = 77;
/// The sender's end of the router's second link, where packets go both ways.
pub const BACK: &str = "to-n1-back";
/// A MAC address that no interface of the lab has.
const NOBODYS_MAC: &str = "02:00:00:00:00:01";

/// How sender, router and sink hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// In a row: what comes by one link of the router leaves by the other.
    Row,
    /// Both links of the router end at the sender, which sends to both and counts at both.
    BothWays,
    /// So many links, from one on, lead from the router to the sink, each to an address of its own.
    Outputs(u8),
}

impl Links {
    /// Changes a row to this.
    ///
    /// # Errors
    /// A tool is missing.
    pub fn lay(self, lab: &Lab) -> Result<()> {
        // A card takes many frames at a time (GRO); a veth without that takes none that were not sent by a program.
        for (machine, interface) in [("sender", "to-n1"), ("n1", "to-sender")] {
            lab.run(machine, "ethtool", &["-K", interface, "gro", "on"])?;
        }
        match self {
            Links::Row => Ok(()),
            Links::BothWays => {
                let sender = lab.namespace("sender");
                lab.run("sink", "ip", &["link", "set", "to-n1", "down", "netns", &sender, "name", BACK])?;
                lab.run("sender", "ip", &["link", "set", BACK, "up"])?;
                lab.run("n1", "ethtool", &["-K", "to-sink", "gro", "on"])?;
                // Packets leave by either link as they do by the second one of a row.
                lab.run("sender", "ethtool", &["-K", "to-n1", "gro", "off"]).map(drop)
            }
            Links::Outputs(outputs) => (1..outputs).try_for_each(|number| output(lab, number)),
        }
    }

    /// Returns the interfaces of the router where packets of the generator arrive.
    pub fn entries(self) -> &'static [&'static str] {
        match self {
            Links::Row | Links::Outputs(_) => &["to-sender"],
            Links::BothWays => &["to-sender", "to-sink"],
        }
    }

    /// Returns a machine and the interfaces where packets arrive behind the router.
    pub fn sinks(self) -> (&'static str, Vec<String>) {
        match self {
            Links::Row => ("sink", vec!["to-n1".to_owned()]),
            Links::BothWays => ("sender", vec!["to-n1".to_owned(), BACK.to_owned()]),
            Links::Outputs(outputs) => ("sink", (0..outputs).map(end_of_output).collect()),
        }
    }

    /// Returns the other ends of all links of the router, with their machines. Answers arrive at the sender's.
    pub fn ends(self) -> Vec<(&'static str, String)> {
        let (machine, sinks) = self.sinks();
        let senders = (machine != "sender").then(|| ("sender", "to-n1".to_owned()));
        sinks.into_iter().map(|interface| (machine, interface)).chain(senders).collect()
    }
}

/// Gives the router a neighbour that has no station.
///
/// # Errors
/// There is no such device.
pub fn silence(lab: &Lab, address: IpAddr, device: &str) -> Result<()> {
    let address = address.to_string();
    let args = ["neigh", "replace", &address, "lladdr", NOBODYS_MAC, "nud", "permanent", "dev", device];
    lab.run("n1", "ip", &args).map(drop)
}

/// Adds a link to the sink that leads to the address which is so many after nobody's of the first one.
fn output(lab: &Lab, number: u8) -> Result<()> {
    let (near, far, sink) = (format!("to-sink-{number}"), end_of_output(number), lab.namespace("sink"));
    lab.run("n1", "ip", &["link", "add", &near, "type", "veth", "peer", "name", &far, "netns", &sink])?;
    lab.run("sink", "ip", &["link", "set", &far, "up"])?;
    lab.run("n1", "ip", &["link", "set", &near, "up"])?;
    let [a, b, c, _] = lab.v4("sink").octets();
    let address = Ipv4Addr::new(a, b, c, NOBODY + number);
    lab.run("n1", "ip", &["route", "add", &format!("{address}/32"), "dev", &near])?;
    silence(lab, address.into(), &near)
}

fn end_of_output(number: u8) -> String {
    if number == 0 { "to-n1".to_owned() } else { format!("to-n1-{number}") }
}
