// SPDX-License-Identifier: Apache-2.0
//! The node's forwarding plane: which one, with which settings, and its packet threads.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use netserv_api::PlaneInfo;
use netserv_dataplane::choose::{self, Choice, DriverKind, Fitness};
use netserv_model::api::DeviceInfo;
use netserv_packet_loop::Report;
use netserv_packet_loop::thread::{PacketThread, PacketThreadConfig};
use netserv_plane::wrap::Pcap;
use netserv_plane::{DestinationCounters, Driver, DriverConfig, FilterTable, Passage, XdpForward};

use crate::config::{Config, DriverChoice, Role, XdpForwardChoice};

/// Bytes of a capture; it ends there.
const PCAP_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// A forwarding plane at work.
pub struct Plane {
    /// Its driver, and why that one.
    pub why: String,
    /// The devices that it serves.
    pub devices: Vec<DeviceInfo>,
    /// What could be taken here.
    pub planes: Vec<PlaneInfo>,
    /// Its packet threads.
    pub packets: PacketThread,
    /// Its filters.
    pub filters: Arc<dyn FilterTable>,
    /// Its counters of packets by destination.
    pub counters: Arc<dyn DestinationCounters>,
    /// The way of signaling messages for others, if the plane takes them off itself.
    pub signaling: Option<Passage>,
}

impl Plane {
    /// Opens the driver that the configuration wants, or the best that fits, and starts its packet threads.
    ///
    /// # Errors
    /// The driver does not work here, or none does.
    pub fn start(config: &Config, report: Report) -> Result<Plane> {
        let survey = match config.role {
            Role::Host => Vec::new(),
            Role::Node => choose::survey(),
        };
        let Choice { kind, why } = choose(config, &survey)?;
        let driver_config = driver_config(config, config.dataplane.queue);
        let lanes = kind.open_lanes(&driver_config, lanes(config)).with_context(|| format!("driver {kind}"))?;
        let mut lanes = if kind == DriverKind::Dummy { lanes } else { captured(config, lanes)? };
        let first = lanes.first_mut().context("a driver has a lane")?;
        let (filters, counters, devices) = (first.filters(), first.destination_counters(), first.devices());
        let signaling = if config.intercepts() { first.intercept()? } else { None };
        let (cores, real_time) = (config.dataplane.cores.clone(), config.dataplane.real_time);
        let gather = Duration::from_micros(config.dataplane.gather_us);
        let thread = PacketThreadConfig { cores, busy_poll: busy_poll(config), gather, real_time };
        let packets = PacketThread::start(lanes, &thread, report)?;
        if let Some(why) = packets.why_usual() {
            tracing::warn!(why, "a packet thread stays in the usual scheduling class");
        }
        Ok(Plane {
            why: format!("{kind}: {why}"),
            devices,
            planes: survey.into_iter().map(describe).collect(),
            packets,
            filters,
            counters,
            signaling,
        })
    }
}

/// Returns the settings of a driver that uses this netfilter queue.
pub fn driver_config(config: &Config, queue: u16) -> DriverConfig {
    let mut driver = DriverConfig::new(&config.instance());
    driver.queue = queue;
    driver.queue_packets = config.dataplane.queue_packets_max;
    driver.interfaces.clone_from(&config.dataplane.interfaces);
    driver.xdp_forward = match config.dataplane.xdp_forward {
        XdpForwardChoice::Auto => XdpForward::Auto,
        XdpForwardChoice::On => XdpForward::On,
        XdpForwardChoice::Off => XdpForward::Off,
    };
    driver.busy_poll = Some(busy_poll(config)).filter(|time| !time.is_zero());
    driver
}

fn choose(config: &Config, survey: &[Fitness]) -> Result<Choice> {
    let name = match (config.role, config.dataplane.driver) {
        (Role::Host, _) => {
            return Ok(Choice { kind: DriverKind::Dummy, why: "a host has no packets for modules".to_owned() });
        }
        (Role::Node, DriverChoice::Auto) => "auto",
        (Role::Node, DriverChoice::Afxdp) => "afxdp",
        (Role::Node, DriverChoice::Nfqueue) => "nfqueue",
        (Role::Node, DriverChoice::Dummy) => "dummy",
    };
    Ok(choose::choose(name, survey)?)
}

/// Returns how many lanes the driver is to have. A capture has one writer.
fn lanes(config: &Config) -> usize {
    let captures = !config.dataplane.pcap.as_os_str().is_empty();
    if config.role == Role::Host || captures { 1 } else { config.dataplane.lanes_wanted() }
}

fn captured(config: &Config, lanes: Vec<Box<dyn Driver>>) -> Result<Vec<Box<dyn Driver>>> {
    let path = &config.dataplane.pcap;
    if path.as_os_str().is_empty() {
        return Ok(lanes);
    }
    let file = std::fs::File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    let file = std::io::BufWriter::new(file);
    let first = lanes.into_iter().next().context("a driver has a lane")?;
    Ok(vec![Box::new(Pcap::new(first, file, PCAP_BYTES_MAX))])
}

fn busy_poll(config: &Config) -> Duration {
    Duration::from_micros(config.dataplane.busy_poll_us)
}

fn describe(plane: Fitness) -> PlaneInfo {
    PlaneInfo { name: plane.kind.to_string(), missing: plane.fits.err() }
}
