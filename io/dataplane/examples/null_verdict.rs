// SPDX-License-Identifier: Apache-2.0
//! The null verdict through a driver: passes every packet that a filter matches. The twin of `nfqueue` in C is
//! `lab/bench-c/nfq_null.c`.
//!
//! `null_verdict DRIVER SECONDS FILTER…`, for instance `null_verdict afxdp 10 udp port 9000`, in the router's network
//! namespace. With `XDP_FORWARD=1` in the environment, `afxdp` forwards in XDP what the filter does not match.

use std::time::{Duration, Instant};

use netserv_dataplane::DriverKind;
use netserv_model::effect::FilterId;
use netserv_plane::{Batch, Counters, Driver, DriverConfig, DriverError, Final, XdpForward};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let usage = "usage: null_verdict DRIVER SECONDS FILTER…";
    let kind: DriverKind = words.next().ok_or(usage)?.parse()?;
    let seconds: u64 = words.next().ok_or(usage)?.parse()?;
    let filter = words.collect::<Vec<_>>().join(" ").parse()?;
    let xdp_forward = if std::env::var_os("XDP_FORWARD").is_some() { XdpForward::On } else { XdpForward::Off };
    let mut driver = kind.open(&DriverConfig { xdp_forward, ..DriverConfig::new("null-verdict") })?;
    driver.install(FilterId(1), &filter)?;
    let batches = pass_all(&mut *driver, Instant::now() + Duration::from_secs(seconds))?;
    let Counters { passed, bypassed, lost, forwarded, .. } = driver.counters();
    println!(
        "{{\"packets\":{passed},\"batches\":{batches},\"bypassed\":{bypassed},\"lost\":{lost},\"forwarded\":{forwarded}}}"
    );
    Ok(())
}

fn pass_all(driver: &mut dyn Driver, end: Instant) -> Result<u64, DriverError> {
    let (mut batch, mut batches) = (Batch::new(), 0);
    while Instant::now() < end {
        if driver.receive(&mut batch, Some(Duration::from_millis(100)))? > 0 {
            for packet in batch.iter() {
                driver.finish(packet.id, Final::Pass);
            }
            driver.flush()?;
            batches += 1;
        }
    }
    Ok(batches)
}
