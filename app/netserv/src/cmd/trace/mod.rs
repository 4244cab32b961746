// SPDX-License-Identifier: Apache-2.0
//! `netserv trace`.

mod text;

use std::time::Duration;

use clap::Args;
use netserv_model::trace::{TraceEnd, TraceEndReason, TraceLine, TraceRequest, TraceStart, parse_filters};
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{Exit, Failure, OrFail, one_line};
use crate::output::Output;
use crate::report::count;
use crate::units::{format_seconds, parse_duration};
use netserv_api::Client;

/// Packets after which a trace of every packet ends by itself.
const COUNT_OF_EVERYTHING: u64 = 100;
/// Bytes of each packet that are shown unless told otherwise.
const BYTES_USUAL: u32 = 128;

/// What `--help` shows at the end.
const EXAMPLE: &str = "\
FILTER is `[PROTO] [src NET] [dst NET] [sport PORTS] [dport PORTS]` with PROTO ip, ip4, ip6, tcp, udp, icmp or icmp6,
NET an address or a prefix, PORTS a port or a range; `port` is the destination port, `host NET` source or destination.
Only packets that this node forwards are seen, those to and from itself are not. A container tells only the last module
that dropped or changed a packet. Of more than 1,000 packets in a second some are skipped, and the summary says so.

Example:
  $ netserv trace udp dport 5060 --count 1
  tracing `udp port 5060` in afxdp, ends after 1 packet or 1h or with Ctrl-C
  2026-11-21T07:24:45.087447Z  10.4.0.2:46459 > 10.1.0.1:5060 udp 32 bytes, in eth1
    filter     udp dst 10.1.0.1/32 port 5060, of example.org/net-monitor@1.0.0 (janedoe, fails open)
    filter     udp dst 10.1.0.1/32 port 5060, of example.org/keep-alive@1.0.0 (janedoe, fails open)
    container  janedoe (wasm)
    module     example.org/net-monitor@1.0.0: let it go on, changed or not
    module     example.org/keep-alive@1.0.0: modified
    verdict    modified: 10.1.0.1:5060 > 10.4.0.2:46459 udp 30 bytes
    egress     eth1, next hop 10.4.0.2 (be:9a:f9:e9:ea:4a)
  1 packet traced";

/// Follow single packets through the node of this machine
///
/// Prints for each packet which modules selected it, the verdict of each container and module, the node's decision
/// with its reason, and where the packet goes. Packets that no module selects are shown, too. Ends at Ctrl-C, or at
/// the limit of --count or --timeout.
#[derive(Args)]
#[command(after_long_help = EXAMPLE)]
pub struct Trace {
    /// Packets to follow, such as `udp dport 5060`, `host 10.1.0.2` or `icmp6` [default: every packet]
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// End after this many packets [default: 100 without FILTER, otherwise any number]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time [default: an hour]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Show the packets' bytes too
    #[arg(long)]
    hex: bool,
    /// Number of bytes to show of each packet [default: 128 with --hex]
    #[arg(long, value_name = "NUMBER")]
    bytes: Option<u32>,
}

impl Trace {
    /// Shows packets until the trace ends.
    ///
    /// # Errors
    /// The filter is wrong, or the node cannot be reached or refuses.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        let request = self.request()?;
        // From before the first line on.
        let mut interrupts =
            signal(SignalKind::interrupt()).or_fail("cannot wait for signals", "report this as a bug")?;
        let mut lines = client.post_lines("/v1/trace", &request).await?;
        let mut end = TraceEnd { reason: TraceEndReason::Stopped, traced: 0, lost: 0, skipped: 0 };
        loop {
            let line = tokio::select! {
                line = lines.next() => line?,
                _ = interrupts.recv() => break,
            };
            let Some(line) = line else { return Err(broken_off()) };
            let line: TraceLine = serde_json::from_str(&line)
                .or_fail("a line of the trace is not understood", "use a netserv and a netservd of one version")?;
            write(&line, self.count(), output)?;
            match line {
                TraceLine::Started(_) => {}
                TraceLine::Packet(packet) => {
                    (end.traced, end.lost, end.skipped) = (end.traced + 1, packet.lost, packet.skipped);
                }
                TraceLine::Ended(told) => {
                    end = told;
                    break;
                }
            }
            if output.is_closed() {
                return Ok(Exit::Done);
            }
        }
        output.note(summary(&end));
        Ok(Exit::Done)
    }

    fn request(&self) -> Result<TraceRequest, Failure> {
        let text = self.filter.join(" ");
        let filters = if text.trim().is_empty() { Ok(Vec::new()) } else { parse_filters(&text) };
        let filters = filters.map_err(|error| Failure::new(error.to_string(), &error.fix).with_exit(Exit::Usage))?;
        let timeout = self.timeout.unwrap_or_default();
        Ok(TraceRequest {
            filters,
            count: self.count(),
            // Zero would mean the longest time.
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).max(u64::from(self.timeout.is_some())),
            bytes: self.bytes.unwrap_or(if self.hex { BYTES_USUAL } else { 0 }),
        })
    }

    fn count(&self) -> u64 {
        self.count.unwrap_or(if self.filter.is_empty() { COUNT_OF_EVERYTHING } else { 0 })
    }
}

fn write(line: &TraceLine, wanted: u64, output: &mut Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json_line(line);
    }
    match line {
        TraceLine::Started(start) => output.note(announcement(start, wanted)),
        TraceLine::Packet(packet) => text::write(packet, output),
        TraceLine::Ended(_) => {}
    }
    Ok(())
}

fn announcement(start: &TraceStart, wanted: u64) -> String {
    let filters: Vec<String> = start.filters.iter().map(|filter| format!("`{filter}`")).collect();
    let packets = if wanted > 0 { format!("{} or ", count(wanted, "packet")) } else { String::new() };
    let time = format_seconds(start.timeout_ms.div_ceil(1000));
    let driver = one_line(start.driver.split(':').next().unwrap_or_default());
    format!("tracing {} in {driver}, ends after {packets}{time} or with Ctrl-C", filters.join(" and "))
}

fn summary(end: &TraceEnd) -> String {
    let mut text = format!("{} traced", count(end.traced, "packet"));
    if end.lost > 0 {
        text.push_str(&format!(", {} lost because they were not read fast enough", end.lost));
    }
    if end.skipped > 0 {
        text.push_str(&format!(", {} skipped because there were too many in a second", end.skipped));
    }
    if end.traced == 0 && end.lost == 0 && end.skipped == 0 {
        text.push_str("; does the traffic pass this node, and does the filter fit it?");
    }
    text
}

fn broken_off() -> Failure {
    Failure::new("the node broke the trace off", "see whether netservd still runs: `netserv node status`")
        .with_exit(Exit::Unreachable)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn request(arguments: &str) -> Result<TraceRequest, Failure> {
        let cli = Cli::try_parse_from(arguments.split(' ')).ok().unwrap();
        let Command::Trace(trace) = cli.command else { panic!("{arguments} is no trace") };
        trace.request()
    }

    #[test]
    fn arguments_become_a_request() {
        let plain = request("netserv trace udp dport 5060").unwrap();
        assert_eq!(plain.filters, ["udp port 5060".parse().unwrap()]);
        assert_eq!((plain.count, plain.timeout_ms, plain.bytes), (0, 0, 0));
        let all = request("netserv trace --hex --timeout 90s").unwrap();
        assert_eq!((all.filters.len(), all.count, all.timeout_ms, all.bytes), (0, 100, 90_000, 128));
        let some = request("netserv trace --count 3 host 10.0.0.1 --bytes 40 --timeout 0s").unwrap();
        assert_eq!((some.filters.len(), some.count, some.timeout_ms, some.bytes), (2, 3, 1, 40));
    }

    #[test]
    fn a_wrong_filter_is_a_wrong_command_line() {
        let failure = request("netserv trace udp dprt 5060").unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.cause, "`dprt` is no word of a filter (character 5 of `udp dprt 5060`)");
        assert!(failure.fix.contains("[dport PORTS]"), "{}", failure.fix);
    }

    #[test]
    fn what_was_left_out_is_said() {
        let mut end = TraceEnd { reason: TraceEndReason::Count, traced: 1, lost: 0, skipped: 0 };
        assert_eq!(summary(&end), "1 packet traced");
        (end.lost, end.skipped) = (2, 3);
        assert_eq!(
            summary(&end),
            "1 packet traced, 2 lost because they were not read fast enough, \
             3 skipped because there were too many in a second"
        );
    }
}
