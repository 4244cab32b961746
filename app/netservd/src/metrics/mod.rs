// SPDX-License-Identifier: Apache-2.0
//! Which metrics a node has, and where each comes from.

pub mod gauges;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use netserv_model::api::RevocationInfo;
use netserv_model::application::ApplicationInfo;
use netserv_model::exposition::{Exposition, Kind};
use netserv_model::request::{ModuleState, ModuleStatus};
use netserv_model::usage::Usage;
use netserv_model::{UnixTime, UserId, WorkerId};
use netserv_node::controller::{Controller, Counters};
use netserv_node::gist;
use netserv_node::nslp::Nslp;
use netserv_node::{ApplicationCounters, NodeCounters};
use netserv_packet_loop::counters::PacketTotals;
use netserv_signal::{InterceptorCounters, SendCounters, SignalKind};
use netserv_wire::container::frames::StorageFailures;

use gauges::{ApplicationCounts, Histogram, MediaCounts, WorkerGauges};

use crate::audit::AuditCounts;
use crate::tls::HandshakeEnd;

/// Everything that is counted.
pub struct Sources<'a> {
    /// Whether the node runs no modules.
    pub host_only: bool,
    /// When it started.
    pub started: UnixTime,
    /// The GIST engine.
    pub gist: &'a gist::Engine,
    /// Datagrams of the node at UDP port 270.
    pub sent: BTreeMap<SignalKind, SendCounters>,
    /// Datagrams for others there.
    pub intercepted: InterceptorCounters,
    /// Datagrams for the node there that were lost unread.
    pub unread: u64,
    /// What became of TLS handshakes with signaling peers; nothing without TLS.
    pub handshakes: Vec<(HandshakeEnd, u64)>,
    /// The NSLP.
    pub nslp: &'a Nslp,
    /// The controller.
    pub controller: &'a Controller,
    /// The packet path.
    pub packets: PacketTotals,
    /// What is installed.
    pub modules: Vec<ModuleStatus>,
    /// What is known of revocation lists.
    pub revocations: Vec<RevocationInfo>,
    /// What workers say of themselves.
    pub workers: &'a WorkerGauges,
    /// What the node counted by itself.
    pub node: NodeCounters,
    /// Programs that are NSLPs.
    pub applications: Vec<ApplicationInfo>,
    /// What the node counted of those.
    pub application_counters: ApplicationCounters,
    /// What was counted on their socket.
    pub application_counts: &'a ApplicationCounts,
    /// How long single turns held the control loop, without what they waited for a processor.
    pub turns: &'a Histogram,
    /// How long single turns waited for something else than a processor.
    pub waits: &'a Histogram,
    /// How late the control loop came to what was due.
    pub lateness: &'a Histogram,
    /// What became of lines of the audit log.
    pub audit: &'a AuditCounts,
}

/// Writes every family but [`container_drops`].
pub fn write(out: &mut Exposition, from: &Sources<'_>) {
    let role = if from.host_only { "host" } else { "node" };
    out.family("info", Kind::Gauge, "What runs here")
        .sample(&[("version", env!("CARGO_PKG_VERSION")), ("role", role)], 1);
    out.family("start_time_seconds", Kind::Gauge, "When the node started").sample(&[], from.started.0 / 1000);
    signaling(out, from);
    applications(out, from);
    requests(out, from);
    checklists(out, from.controller.counters());
    revocations(out, &from.revocations);
    packets(out, &from.packets);
    modules(out, &from.modules);
    usage(out, from.controller);
    media(out, &from.workers.media);
    storage_failures(out, &from.workers.storage_failures);
    control_loop(out, from);
    audit(out, from.audit);
}

fn audit(out: &mut Exposition, counts: &AuditCounts) {
    let mut family = out.family("audit_lines_total", Kind::Counter, "Lines of the audit log, by what became of them");
    for (fate, count) in [("written", &counts.written), ("lost", &counts.lost), ("left-out", &counts.left_out)] {
        family.sample(&[("fate", fate)], count.load(Ordering::Relaxed));
    }
}

fn control_loop(out: &mut Exposition, from: &Sources<'_>) {
    let help = "How long single turns held the control loop, without what they waited for a processor";
    histogram(out, "control_loop_turn_seconds", help, from.turns);
    let help = "How long single turns of the control loop waited for something else than a processor";
    histogram(out, "control_loop_wait_seconds", help, from.waits);
    histogram(out, "timer_lateness_seconds", "How late the control loop came to what was due", from.lateness);
    let mut family = out.family("effects", Kind::Gauge, "Changes of the machine under way, and waiting for those");
    family.sample(&[("state", "open")], from.node.effects_open);
    family.sample(&[("state", "waiting")], from.node.effects_waiting);
    let mut family = out.family("node_events_total", Kind::Counter, "What the node counted by itself");
    family.sample(&[("event", "stray-outcome")], from.node.stray_outcomes);
    family.sample(&[("event", "call-refused")], from.node.calls_refused);
    family.sample(&[("event", "drain-cut")], from.node.drains_cut);
}

fn histogram(out: &mut Exposition, name: &'static str, help: &str, from: &Histogram) {
    let mut family = out.family(name, Kind::Histogram, help);
    for (us, count) in from.cumulative() {
        family.part("_bucket", &[("le", &seconds(Duration::from_micros(us)))], count);
    }
    let (count, sum) = from.total();
    family.part("_bucket", &[("le", "+Inf")], count);
    family.part("_sum", &[], seconds(sum));
    family.part("_count", &[], count);
}

fn seconds(time: Duration) -> String {
    format!("{}", time.as_secs_f64())
}

fn signaling(out: &mut Exposition, from: &Sources<'_>) {
    let mut family = out.family("gist_events_total", Kind::Counter, "What the GIST engine counted");
    for (name, value) in from.gist.counters().iter() {
        family.sample(&[("event", name)], value);
    }
    let help = "Datagrams of the node at the signaling port, by what they are for and their fate";
    let mut family = out.family("signaling_sent_total", Kind::Counter, help);
    for kind in SignalKind::ALL {
        let sent = from.sent.get(&kind).copied().unwrap_or_default();
        for (fate, value) in sent.all() {
            family.sample(&[("for", kind.as_str()), ("fate", fate)], value);
        }
    }
    let mut family =
        out.family("intercepted_total", Kind::Counter, "Datagrams for others at the signaling port, by their fate");
    for (fate, value) in from.intercepted.all() {
        family.sample(&[("fate", fate)], value);
    }
    let help = "Datagrams for the node at the signaling port that were lost, since more came than were read";
    out.family("signaling_unread_total", Kind::Counter, help).sample(&[("reason", "crowded")], from.unread);
    let help = "TLS handshakes with signaling peers, by how they ended";
    let mut family = out.family("signaling_tls_handshakes_total", Kind::Counter, help);
    for (end, value) in &from.handshakes {
        family.sample(&[("outcome", end.as_str())], *value);
    }
    let states = from.gist.state_counts();
    let mut family = out.family("gist_routes", Kind::Gauge, "Rows in the message routing table");
    family.sample(&[("role", "querying")], states.querying);
    family.sample(&[("role", "responding")], states.responding);
    out.family("gist_associations", Kind::Gauge, "Messaging associations").sample(&[], states.associations);
    let mut family = out.family("nslp_events_total", Kind::Counter, "What the NSLP counted");
    for (name, value) in from.nslp.counters().all() {
        family.sample(&[("event", name)], value);
    }
    let exchanges = from.nslp.state_counts();
    let mut family = out.family("nslp_exchanges", Kind::Gauge, "Requests on their way, and answered ones kept a while");
    family.sample(&[("state", "pending")], exchanges.pending);
    family.sample(&[("state", "finished")], exchanges.finished);
}

fn applications(out: &mut Exposition, from: &Sources<'_>) {
    let counts = from.application_counts;
    out.family("application_connections", Kind::Gauge, "Programs that are NSLPs, or want to be")
        .sample(&[], counts.open.load(Ordering::Relaxed));
    let help = "Messages without a status, of each program that is an NSLP";
    let mut family = out.family("application_messages_waiting", Kind::Gauge, help);
    for ApplicationInfo { nslp_id, waiting, .. } in &from.applications {
        family.sample(&[("nslp", &nslp_id.to_string())], waiting);
    }
    let mut family = out.family("application_events_total", Kind::Counter, "What programs that are NSLPs did");
    for (event, value) in from.application_counters.all().into_iter().chain(counts.totals()) {
        family.sample(&[("event", event)], value);
    }
}

fn requests(out: &mut Exposition, from: &Sources<'_>) {
    let mut family = out.family("requests_total", Kind::Counter, "Requests by method and outcome");
    let counters = from.controller.counters();
    for ((method, outcome), value) in &counters.requests {
        family.sample(&[("method", method), ("outcome", outcome)], value);
    }
    let mut family = out.family("controller_events_total", Kind::Counter, "What happened to modules and containers");
    for (event, value) in counters.all() {
        family.sample(&[("event", event)], value);
    }
}

fn checklists(out: &mut Exposition, counters: &Counters) {
    let help = "Checklists looked at again: their holder still vouches, does not any more, or was not found out";
    let mut family = out.family("checklist_checks_total", Kind::Counter, help);
    for (outcome, count) in [
        ("confirmed", counters.checklists_confirmed),
        ("denied", counters.checklists_denied),
        ("unknown", counters.checklists_unknown),
    ] {
        family.sample(&[("outcome", outcome)], count);
    }
    let help = "How long looking at checklists again took in all";
    out.family("checklist_check_seconds_total", Kind::Counter, help)
        .sample(&[], seconds(Duration::from_millis(counters.checklists_ms)));
}

fn revocations(out: &mut Exposition, all: &[RevocationInfo]) {
    let lists = || all.iter().filter_map(|info| Some((info.issuer.as_str(), info.list.as_ref()?)));
    let mut family = out.family("revocation_list_number", Kind::Gauge, "Number of the issuer's newest revocation list");
    lists().for_each(|(issuer, list)| family.sample(&[("issuer", issuer)], list.number));
    let help = "When the issuer's newest revocation list was made";
    let mut family = out.family("revocation_list_made_seconds", Kind::Gauge, help);
    lists().for_each(|(issuer, list)| family.sample(&[("issuer", issuer)], list.made.0 / 1000));
    let help = "Until when the issuer's newest revocation list is good here";
    let mut family = out.family("revocation_list_until_seconds", Kind::Gauge, help);
    lists().for_each(|(issuer, list)| family.sample(&[("issuer", issuer)], list.until.0 / 1000));
    let help = "Times that the issuer's revocation list could not be had, or not be taken";
    let mut family = out.family("revocation_list_failures_total", Kind::Counter, help);
    all.iter().for_each(|info| family.sample(&[("issuer", info.issuer.as_str())], info.failures));
}

fn packets(out: &mut Exposition, totals: &PacketTotals) {
    let mut family = out.family("packets_total", Kind::Counter, "Packets by what became of them");
    for (fate, value) in [
        ("received", totals.received),
        ("unparsed", totals.unparsed),
        ("unmatched", totals.unmatched),
        ("shown", totals.shown),
        ("buffered", totals.buffered),
        ("passed", totals.passed),
        ("modified", totals.modified),
        ("injected", totals.injected),
    ] {
        family.sample(&[("fate", fate)], value);
    }
    let mut family = out.family("dropped_packets_total", Kind::Counter, "Received packets dropped, by reason");
    for (reason, value) in &totals.dropped {
        family.sample(&[("reason", reason.as_str())], value);
    }
    let mut family = out.family("unseen_packets_total", Kind::Counter, "Packets a module should have seen, by reason");
    for (reason, value) in &totals.unseen {
        family.sample(&[("reason", reason.as_str())], value);
    }
    let mut family =
        out.family("refused_packets_total", Kind::Counter, "Packets that modules made and that were not sent");
    for (reason, value) in &totals.refused {
        family.sample(&[("reason", reason.as_str())], value);
    }
    let mut family =
        out.family("driver_packets_total", Kind::Counter, "Packets by what the forwarding plane did with them");
    for (fate, value) in totals.driver.all() {
        family.sample(&[("fate", fate)], value);
    }
}

fn media(out: &mut Exposition, counts: &MediaCounts) {
    let mut family = out.family("media_jobs", Kind::Gauge, "Media jobs that run, and that wait for their turn");
    family.sample(&[("state", "running")], counts.running);
    family.sample(&[("state", "waiting")], counts.waiting);
    let mut family = out.family("media_jobs_total", Kind::Counter, "Media jobs by how they ended");
    for ((user, outcome), value) in &counts.ended {
        family.sample(&[("user", user.as_str()), ("outcome", outcome.as_str())], value);
    }
    let mut family = out.family("media_milliseconds_total", Kind::Counter, "How long media jobs took that ended");
    for (user, value) in &counts.ms {
        family.sample(&[("user", user.as_str())], value);
    }
}

/// Writes what the firewalls of containers dropped, by user and reason.
pub fn container_drops(out: &mut Exposition, drops: &BTreeMap<UserId, BTreeMap<String, u64>>) {
    let help = "Packets to and from containers that their firewalls and rates dropped, by reason";
    let mut family = out.family("container_dropped_packets_total", Kind::Counter, help);
    for (user, reasons) in drops {
        for (reason, value) in reasons {
            family.sample(&[("user", user.as_str()), ("reason", reason)], value);
        }
    }
}

fn storage_failures(out: &mut Exposition, failures: &[(WorkerId, StorageFailures)]) {
    let help = "Times that the files of a user's modules could not be read or written, or were damaged";
    let mut family = out.family("storage_failures_total", Kind::Counter, help);
    for (worker, StorageFailures { kv, cache }) in failures {
        for (what, value) in [("kv", kv), ("cache", cache)] {
            let labels = [("user", worker.user.as_str()), ("flavour", worker.flavour.as_str()), ("what", what)];
            family.sample(&labels, value);
        }
    }
}

fn servers(out: &mut Exposition, modules: &[&ModuleStatus]) {
    let help = "Connections and HTTP requests of each module, and what became of them";
    let mut family = out.family("module_connections_total", Kind::Counter, help);
    for (status, counts) in modules.iter().filter_map(|status| Some((status, status.server?))) {
        let module = status.module.to_string();
        for (what, value) in counts.all() {
            family.sample(&[("user", status.user.as_str()), ("module", &module), ("what", what)], value);
        }
    }
    let mut family = out.family("module_bytes_total", Kind::Counter, "Bytes that modules took and gave as servers");
    for (status, counts) in modules.iter().filter_map(|status| Some((status, status.server?))) {
        let module = status.module.to_string();
        for (direction, value) in [("in", counts.bytes_in), ("out", counts.bytes_out)] {
            family.sample(&[("user", status.user.as_str()), ("module", &module), ("direction", direction)], value);
        }
    }
}

fn usage(out: &mut Exposition, controller: &Controller) {
    let users: Vec<(&UserId, &Usage)> = controller.usage_by_user().collect();
    let mut each = |name, help, of: &dyn Fn(&Usage) -> String| {
        let mut family = out.family(name, Kind::Counter, help);
        for (user, usage) in &users {
            family.sample(&[("user", user.as_str())], of(usage));
        }
    };
    let help = "Time that users' containers were on a processor, over restarts";
    each("user_cpu_seconds_total", help, &|usage| seconds(Duration::from_nanos(usage.cpu_ns)));
    let help = "Memory of users' containers, in bytes times seconds, over restarts";
    each("user_memory_byte_seconds_total", help, &|usage| usage.memory_byte_seconds.to_string());
    let help = "What users keep on disk, in bytes times seconds, over restarts";
    each("user_disk_byte_seconds_total", help, &|usage| usage.disk_byte_seconds.to_string());
    let mut directed = |name, help, of: fn(&Usage) -> [u64; 2]| {
        let mut family = out.family(name, Kind::Counter, help);
        for (user, usage) in &users {
            for (direction, value) in ["in", "out"].into_iter().zip(of(usage)) {
                family.sample(&[("user", user.as_str()), ("direction", direction)], value);
            }
        }
    };
    let help = "Packets that users' modules were shown, and that they made, over restarts";
    directed("user_packets_total", help, |usage| [usage.packets.packets_in, usage.packets.packets_out]);
    let help = "Bytes of packets that users' modules were shown, and that they made, over restarts";
    directed("user_bytes_total", help, |usage| [usage.packets.bytes_in, usage.packets.bytes_out]);
    let help = "Packets that users' containers received and sent by their networks, over restarts";
    directed("user_network_packets_total", help, |usage| [usage.network.packets_in, usage.network.packets_out]);
    let help = "Bytes that users' containers received and sent by their networks, over restarts";
    directed("user_network_bytes_total", help, |usage| [usage.network.bytes_in, usage.network.bytes_out]);
}

fn modules(out: &mut Exposition, all: &[ModuleStatus]) {
    // What is gone but for its connections may have the name and version of what is there.
    let modules: Vec<&ModuleStatus> = all.iter().filter(|status| status.state != ModuleState::Draining).collect();
    let mut family = out.family("module_packets_total", Kind::Counter, "Packets of each module, by what it did");
    for status in &modules {
        let module = status.module.to_string();
        for (fate, value) in status.packets.all() {
            family.sample(&[("user", status.user.as_str()), ("module", &module), ("fate", fate)], value);
        }
    }
    servers(out, &modules);
    let mut family = out.family("module_counter_total", Kind::Counter, "Counters that modules keep");
    for status in &modules {
        let module = status.module.to_string();
        for (name, value) in &status.counters {
            family.sample(&[("user", status.user.as_str()), ("module", &module), ("name", name)], value);
        }
    }
    let mut family = out.family("module_restarts_total", Kind::Counter, "Restarts after failures");
    for status in &modules {
        family.sample(&[("user", status.user.as_str()), ("module", &status.module.to_string())], status.restarts);
    }
}
