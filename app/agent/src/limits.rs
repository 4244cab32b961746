// SPDX-License-Identifier: Apache-2.0
//! Bounds of the agent.

use std::time::Duration;

/// Bytes of one log line; the rest of a longer one is not read.
pub const LINE_BYTES_MAX: usize = 8 * 1024;
/// Batches of observations that wait for the agent; further ones are lost, and counted.
pub const BATCHES_MAX: usize = 256;
/// Observations of one batch.
pub const BATCH_MAX: usize = 1024;
/// Bytes of one call of the API.
pub const CALL_BYTES_MAX: usize = 1024 * 1024;
/// Calls of the API that wait for the agent.
pub const CALLS_MAX: usize = 256;
/// Requests to the node at a time.
pub const REQUESTS_MAX: usize = 16;
/// How long a request may take.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(15);
/// Deployments whose nodes are asked at a time, for the page, what modules count there.
pub const LOOKS_MAX: usize = 4;
/// They are asked again after this time, if somebody looks.
pub const LOOK_EVERY: Duration = Duration::from_secs(2);
/// What the page shows is looked up as often; all regions are looked at for it.
pub const SITES_EVERY: Duration = Duration::from_millis(500);
/// Deployments on the page.
pub const SITES_MAX: usize = 200;
/// Regions that the page names of each.
pub const SITE_REGIONS_MAX: usize = 4;
/// Log sources.
pub const LOGS_MAX: usize = 16;
/// Flows that are looked at, by their port.
pub const FLOWS_MAX: usize = 16;
/// Flows of one of these that are known; further ones are not looked at.
pub const FLOWS_KNOWN_MAX: usize = 65_536;
/// A flow that goes on counts again after this time,
pub const FLOW_COUNTS_AGAIN: Duration = Duration::from_secs(60);
/// and its client counts as seen so often.
pub const FLOW_SEEN_EVERY: Duration = Duration::from_secs(5);
/// Bytes of a key file.
pub const KEY_FILE_BYTES_MAX: u64 = 16 * 1024;
/// Bytes of a file with grants, a proof or a checklist.
pub const GRANT_FILE_BYTES_MAX: u64 = 16 * 1024;
/// Metrics.
pub const METRICS_MAX: usize = 64;
/// Regions of relays that Kamailio is told of; its module permissions takes so many unless it is told otherwise.
pub const RELAY_REGIONS_MAX: usize = 512;
/// How long the source of a metric has to answer.
pub const METRIC_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of its answer.
pub const METRIC_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a file with authorities.
pub const AUTHORITIES_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Bytes of a file with a certificate chain; the rest of a longer one is not read.
pub const CHAIN_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of a file with a token or a password.
pub const SECRET_BYTES_MAX: u64 = 16 * 1024;
/// So many readings in a row that fail shut what is open by a metric.
pub const METRIC_MISSES_MAX: u32 = 3;
/// Sockets of one metric.
pub const QUEUES_MAX: usize = 16;
/// What modules are told of a server's load is valid for four readings, and at least so long: longer than a node waits for a hop that does
/// not answer.
pub const FEEDBACK_VALID_MIN_MS: u64 = 3000;
/// How often a module is told that its server has begun anew, until it takes that,
pub const RESTART_TELLS_MAX: u32 = 30;
/// how often behind a last node that hears nothing from the next hop, which may be a node that is late,
pub const RESTART_TELLS_UNHEARD: u32 = 3;
/// and what is between.
pub const RESTART_TELL_AGAIN: Duration = Duration::from_secs(1);
/// How long a node is asked again that still fetches or compiles a module.
pub const SETUP_TIME_MAX: Duration = Duration::from_secs(120);
/// How long after its start the agent looks first at what it does not reach,
pub const CHECK_FIRST: Duration = Duration::from_secs(3);
/// and how often it does from then on.
pub const CHECK_EVERY: Duration = Duration::from_secs(30);
/// Lines of a log, none of which has its pattern, that show that the pattern is wrong.
pub const UNMATCHED_LINES_MIN: u64 = 100;
/// How long an agent that starts waits for one to be gone that was killed,
pub const GONE_WAIT_MAX: Duration = Duration::from_secs(3);
/// and how often it looks.
pub const GONE_LOOK_EVERY: Duration = Duration::from_millis(20);
