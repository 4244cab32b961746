// SPDX-License-Identifier: Apache-2.0
//! A driver alone: one process that passes every packet. What the rest of a node costs is measured against it.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, Result};
use netserv_dataplane::{Batch, Change, DriverConfig, DriverKind, Final, XdpForward};
use netserv_model::Filter;
use netserv_model::effect::FilterId;

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

/// How long it waits for packets before it looks again.
const TURN: Duration = Duration::from_secs(1);

/// Passes what the filters match until it is killed. Prints `ready` when the filters are there.
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
    loop {
        if driver.receive(&mut batch, Some(TURN))? > 0 {
            for packet in batch.iter() {
                driver.finish(packet.id, Final::Pass);
            }
            driver.flush()?;
        }
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
    fn ports_count_up() {
        assert_eq!(later_port("udp port 9000", 10).unwrap(), "udp port 9010");
        assert!(later_port("udp", 1).is_err());
        assert!(later_port("udp port 65535", 1).is_err());
        assert!(later_port("udp dst 10.0.0.0/8", 1).is_err());
    }
}
