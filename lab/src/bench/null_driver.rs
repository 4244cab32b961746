// SPDX-License-Identifier: Apache-2.0
//! A driver alone: one process that passes every packet. What the rest of a node costs is measured against it.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, Result};
use netserv_dataplane::DriverKind;
use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_plane::{Batch, Change, Counters, DriverConfig, Final, XdpForward};
use serde::{Deserialize, Serialize};

/// What the null driver is to do.
#[derive(Clone, Debug, clap::Args)]
pub struct NullDriver {
    /// The driver.
    driver: String,
    /// The first filter, for instance `udp dst 10.2.0.0/24 port 9000`.
    filter: String,
    /// How many filters, each with a port more than the one before; only for a filter that ends in a port.
    #[arg(long, default_value_t = 1)]
    filters: u16,
    /// Forwards in XDP what no filter wants.
    #[arg(long)]
    xdp_forward: bool,
}

/// How long it waits for packets before it looks again: drivers want to be asked four times a second at least.
const TURN: Duration = Duration::from_millis(200);
/// How long no packet may have come before it tells what it did.
const IDLE: Duration = Duration::from_millis(20);

/// Passes what the filters match until it is killed. Prints `ready` when the filters are there, and a line of JSON each time
/// that packets came and no more follow: how many it passed so far, and what its driver lost.
///
/// # Errors
/// The driver does not open here, or a filter is refused.
pub fn run(options: &NullDriver) -> Result<()> {
    let kind: DriverKind = options.driver.parse()?;
    let mut config = DriverConfig::new(&format!("null{}", std::process::id()));
    config.xdp_forward = if options.xdp_forward { XdpForward::On } else { XdpForward::Off };
    let mut driver = kind.open(&config)?;
    let filters =
        (0..options.filters).map(|number| filter(&options.filter, number)).collect::<Result<Vec<Filter>>>()?;
    let changes: Vec<Change> = (1..).zip(&filters).map(|(id, filter)| Change::Install(FilterId(id), filter)).collect();
    // All at once, since each change waits for the kernel.
    driver.filters().change(&changes)?;
    println!("ready");
    std::io::stdout().flush()?;
    let mut batch = Batch::new();
    let (mut passed, mut told) = (0_u64, 0);
    loop {
        let wait = if passed > told { IDLE } else { TURN };
        if driver.receive(&mut batch, Some(wait))? > 0 {
            for packet in batch.iter() {
                driver.finish(packet.id, Final::Pass);
                passed += 1;
            }
            driver.flush()?;
        } else if passed > told {
            let Counters { bypassed, lost, unseen, send_failed, .. } = driver.counters();
            println!("{}", serde_json::to_string(&Passed { passed, bypassed, lost, unseen, send_failed })?);
            std::io::stdout().flush()?;
            told = passed;
        }
    }
}

/// What a driver alone did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Packets that it passed.
    pub passed: u64,
    /// Packets that the plane let pass it for lack of room.
    pub bypassed: u64,
    /// Packets that the plane lost for lack of room.
    pub lost: u64,
    /// Packets that went by.
    pub unseen: u64,
    /// Packets that could not be sent.
    pub send_failed: u64,
}

impl Passed {
    /// Reads the last line of what the program printed; nothing, before the first packets.
    pub fn last_of(log: &str) -> Passed {
        log.lines().rev().find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default()
    }
}

fn filter(first: &str, number: u16) -> Result<Filter> {
    let text = if number == 0 { first.to_owned() } else { later_port(first, number)? };
    text.parse().with_context(|| format!("filter `{text}`"))
}

/// Returns a filter with its port so much higher.
fn later_port(filter: &str, number: u16) -> Result<String> {
    let (before, port) = filter.rsplit_once(' ').context("a filter has more than one word")?;
    let port: u16 = port.parse().with_context(|| format!("`{filter}` does not end in a port"))?;
    Ok(format!("{before} {}", port.checked_add(number).context("no such port")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_line_counts() {
        let line = |passed| serde_json::to_string(&Passed { passed, ..Passed::default() }).unwrap();
        let log = format!("ready\n{}\n{}\n{}", line(7), line(9), &line(11)[..5]);
        assert_eq!(Passed::last_of(&log).passed, 9);
        assert_eq!(Passed::last_of("ready\n"), Passed::default());
    }

    #[test]
    fn ports_count_up() {
        assert_eq!(later_port("udp port 9000", 10).unwrap(), "udp port 9010");
        assert!(later_port("udp", 1).is_err());
        assert!(later_port("udp port 65535", 1).is_err());
        assert!(later_port("udp dst 10.0.0.0/8", 1).is_err());
    }
}
