// SPDX-License-Identifier: Apache-2.0
//! What a second lane brings: packet threads and workers over packets from memory, so that no other part of the machine is
//! what is measured.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netserv_model::effect::{FilterId, ModuleSlot};
use netserv_model::verdict::FailureMode;
use netserv_model::{Flavour, WorkerId};
use netserv_packet_loop::thread::{PacketThread, PacketThreadConfig};
use netserv_packet_loop::{ModuleFilter, PacketCommand};
use netserv_plane::Driver;
use netserv_plane::dummy::{Replay, lane_of};
use netserv_wire::ip::{IpView, build};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::Plan;
use super::container::{Guest, Host};
use super::goals::Goal;
use super::others::Others;
use super::pin::{NODE_CORE, OUTSIDE_CORE};
use super::summary::{Figure, Row};

/// Lanes, each with a core, a user and that user's worker.
const CORES: [usize; 2] = [OUTSIDE_CORE, NODE_CORE];
/// Packets that a lane has in flight: so many come as fast as they go, and none is lost.
const IN_FLIGHT: u64 = 512;
/// Flows of each lane.
const FLOWS: usize = 64;
/// Bytes of each packet.
const PACKET_BYTES: usize = 64;
/// How often a trial is run again in which other programs took processor time.
const TRIALS_MAX: usize = 60;
const WARM_UP: Duration = Duration::from_millis(300);
const USERS: [&str; 2] = ["jane", "john"];

/// Measures one lane on each of two cores, and two lanes on both, in turn.
///
/// # Errors
/// A container cannot be started, or a packet was not seen by its module.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let host = Host::start()?;
    let code = host.compile("net-monitor")?;
    let (mut alone, mut both, mut ratio) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.lane_rounds {
        let one = rate(&host, &code, &CORES[..1], plan.lane_seconds)?;
        let two = rate(&host, &code, &CORES, plan.lane_seconds)?;
        let other = rate(&host, &code, &CORES[1..], plan.lane_seconds)?;
        let one_lane = (one + other) / 2.0;
        alone.push(one_lane / 1000.0);
        both.push(two / 1000.0);
        ratio.push(two / one_lane);
    }
    let how = format!(
        "Packet threads of this process over a driver that replays packets of {PACKET_BYTES} bytes from memory, {IN_FLIGHT} in \
         flight in each lane, and real workers with net-monitor: a user, a filter and a worker for each lane, all of them on \
         the lane's core. {} s each in which no other program takes processor time, one lane on each of the two cores and two lanes on both in turn; each packet is seen by \
         its module.",
        plan.lane_seconds
    );
    let rows = vec![
        Row::new("one lane, one core", "kpps", &alone),
        Row::new("two lanes, two cores", "kpps", &both),
        Row::new("two lanes / one", "ratio", &ratio).goal(Goal::TwoLanes),
    ];
    Ok(vec![Figure { name: "Lanes", how, rows }])
}

/// Returns the packets a second that a lane on each of the cores passes together.
fn rate(host: &Host, code: &Path, cores: &[usize], seconds: f64) -> Result<f64> {
    let (lanes, _plane) = Replay::lanes(&packets(cores.len())?, cores.len(), IN_FLIGHT);
    let lanes = lanes.into_iter().map(|lane| Box::new(lane) as Box<dyn Driver>).collect();
    let config = PacketThreadConfig { cores: cores.to_vec(), ..PacketThreadConfig::default() };
    let mut guests = Vec::new();
    for (user, core) in USERS.iter().zip(cores) {
        let guest = host.launch_for(user, cores.len())?;
        guest.expect_ready()?;
        guest.load(code)?;
        keep(&guest, *core)?;
        guests.push(guest);
    }
    let mut threads = PacketThread::start(lanes, &config, Arc::new(|_| true))?;
    let sender = threads.sender();
    for (number, (user, guest)) in (0..).zip(USERS.iter().zip(&mut guests)) {
        let (worker, slot) = (WorkerId::new(user.parse()?, Flavour::Wasm), ModuleSlot(0));
        let rings = std::mem::take(&mut guest.rings).into();
        sender.send(PacketCommand::AddWorker { worker: worker.clone(), generation: 1, rings, prefixes: Vec::new() });
        sender.send(PacketCommand::SetLoaded { worker: worker.clone(), slot, loaded: true });
        let (filter, on_failure) = (format!("udp dst 10.{number}.0.0/16").parse()?, FailureMode::Open);
        let filter = ModuleFilter { worker, slot, module: None, filter, on_failure, buffers: None };
        sender.send(PacketCommand::ChangeFilters {
            add: vec![(FilterId(number), filter)],
            remove: Vec::new(),
            known: None,
        });
    }
    std::thread::sleep(WARM_UP);
    let ours: Vec<u32> = guests.iter().map(Guest::pid).collect();
    let mut rate = None;
    for _ in 0..TRIALS_MAX {
        let others = Others::now(&ours)?;
        let (before, begun) = (sender.totals(), Instant::now());
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let (after, took) = (sender.totals(), begun.elapsed());
        ensure!(after.sums().unseen == before.sums().unseen, "modules did not see all packets: {after:?}");
        ensure!(after.unmatched == before.unmatched, "the filters do not match: {after:?}");
        #[allow(clippy::cast_precision_loss, reason = "a count of some seconds")]
        let passed = (after.passed - before.passed) as f64;
        if Others::now(&ours)?.were_quiet_since(&others) {
            rate = Some(passed / took.as_secs_f64());
            break;
        }
    }
    threads.stop();
    rate.with_context(|| format!("other programs took processor time in each of {TRIALS_MAX} trials"))
}

/// Returns packets of which each lane has those of one user.
fn packets(lanes: usize) -> Result<Vec<Vec<u8>>> {
    let mut packets = Vec::new();
    for user in 0..lanes {
        let mut found = 0;
        for port in 1000_u16.. {
            let (source, destination) = ("192.0.2.1:9".parse()?, format!("10.{user}.0.2:{port}").parse()?);
            let packet = build::udp(source, destination, 64, &[0; PACKET_BYTES - 28]).context("a packet")?;
            if lane_of(&IpView::parse(&packet).context("a packet")?.flow(), lanes) == user {
                packets.push(packet);
                found += 1;
            }
            if found == FLOWS {
                break;
            }
        }
    }
    Ok(packets)
}

/// Keeps all threads of a worker on a core.
fn keep(guest: &Guest, core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    for task in std::fs::read_dir(format!("/proc/{}/task", guest.pid()))? {
        let thread = task?.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        sched_setaffinity(thread, &set).with_context(|| format!("cannot keep a worker on core {core}"))?;
    }
    Ok(())
}
