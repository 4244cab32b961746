// SPDX-License-Identifier: Apache-2.0
//! A traced packet as people read it: a line for the packet, one for each step, one for its end.

use std::net::{IpAddr, SocketAddr};

use netserv_model::trace::{TraceEgress, TraceFlow, TraceOrigin, TracePacket, TraceStep, TraceVerdict, reason_text};
use netserv_model::verdict::FailureMode;
use netserv_model::{DropReason, ModuleRef, UnixTime, UserId, Verdict};

use crate::exit::one_line;
use crate::output::{Output, Style};
use crate::report::count;

/// Bytes in one line of a dump.
const DUMP_BYTES: usize = 16;

/// Writes a packet and its way.
pub fn write(packet: &TracePacket, output: &mut Output) {
    let time = output.paint(Style::Dim, &time(packet.time_us));
    let flow = output.paint(Style::Bold, &what(packet.flow.as_ref(), packet.length));
    output.line(format!("{time}  {flow}, {}", origin(&packet.origin)));
    dump("bytes", &packet.bytes, output);
    for step in &packet.steps {
        write_step(step, output);
    }
    if packet.steps_left_out > 0 {
        line("", Style::Dim, &format!("and {} more", count(packet.steps_left_out, "step")), output);
    }
    let (style, verdict) = verdict(packet);
    line("verdict", style, &verdict, output);
    if let Some(changed) = &packet.changed {
        dump("changed", &changed.bytes, output);
    }
    if let Some(egress) = &packet.egress {
        let (style, text) = self::egress(egress);
        line("egress", style, &text, output);
    }
}

fn write_step(step: &TraceStep, output: &mut Output) {
    match step {
        TraceStep::Filter { user, module, filter, on_failure } => {
            let module = named(module.as_ref(), user);
            line("filter", Style::Plain, &format!("{filter}, of {module} ({user}, {})", fails(*on_failure)), output);
        }
        TraceStep::NoFilter => line("filter", Style::Dim, "no module wants it", output),
        TraceStep::Container { user, flavour } => {
            line("container", Style::Plain, &format!("{user} ({flavour})"), output);
        }
        TraceStep::Module { user, module, verdict } => {
            let (style, said) = said(*verdict);
            line("module", style, &format!("{}: {said}", named(module.as_ref(), user)), output);
        }
        TraceStep::Failure { user, reason, on_failure } => {
            let then = match on_failure {
                FailureMode::Open => "so it goes on",
                FailureMode::Closed => "so it is dropped",
            };
            let text = format!("{user}: {}; {}, {then}", reason_text(*reason), fails(*on_failure));
            line("failure", Style::Bad, &text, output);
        }
    }
}

fn line(name: &str, style: Style, text: &str, output: &mut Output) {
    let text = output.paint(style, &one_line(text));
    output.line(format!("  {name:9}  {text}"));
}

fn said(verdict: TraceVerdict) -> (Style, &'static str) {
    match verdict {
        TraceVerdict::Passed => (Style::Good, "passed"),
        TraceVerdict::Dropped => (Style::Bad, "dropped"),
        TraceVerdict::Modified => (Style::Warn, "modified"),
        TraceVerdict::Failed => (Style::Bad, "failed"),
        TraceVerdict::WentOn => (Style::Plain, "let it go on, changed or not"),
        TraceVerdict::NotAsked => (Style::Dim, "not asked, it was dropped before"),
        TraceVerdict::NotLoaded => (Style::Warn, "not loaded"),
        TraceVerdict::Unanswered => (Style::Warn, "did not answer"),
    }
}

fn verdict(packet: &TracePacket) -> (Style, String) {
    let made = matches!(packet.origin, TraceOrigin::Module { .. });
    let changed = packet.changed.as_ref().map(|changed| what(changed.flow.as_ref(), changed.length));
    match packet.verdict {
        Verdict::Pass if made => (Style::Good, "sent".to_owned()),
        Verdict::Pass => (Style::Good, "passed".to_owned()),
        Verdict::Modified => (Style::Warn, format!("modified: {}", changed.unwrap_or_default())),
        Verdict::Drop => {
            let word = if made { "not sent" } else { "dropped" };
            let reason = packet
                .reason
                .map_or_else(String::new, |reason| format!(" ({}): {}", reason.as_str(), why(reason, &packet.steps)));
            (Style::Bad, format!("{word}{reason}"))
        }
    }
}

/// Says why a packet was dropped, and names the module that said so.
fn why(reason: DropReason, steps: &[TraceStep]) -> String {
    let dropper = steps.iter().rev().find_map(|step| match step {
        TraceStep::Module { module: Some(module), verdict: TraceVerdict::Dropped, .. } => Some(module),
        TraceStep::Module { .. }
        | TraceStep::Filter { .. }
        | TraceStep::NoFilter
        | TraceStep::Container { .. }
        | TraceStep::Failure { .. } => None,
    });
    match dropper {
        Some(module) if reason == DropReason::Module => format!("{module} said so"),
        Some(_) | None => reason_text(reason).to_owned(),
    }
}

fn egress(egress: &TraceEgress) -> (Style, String) {
    match egress {
        TraceEgress::Device { interface, next_hop, station, vlan, mtu: _ } => {
            let vlan = vlan.map_or_else(String::new, |vlan| format!(", VLAN {vlan}"));
            (Style::Plain, format!("{interface}{vlan}, next hop {next_hop} ({station})"))
        }
        TraceEgress::Kernel { why } => (Style::Plain, format!("the kernel forwards it, because {why}")),
        TraceEgress::Refused { why } => (Style::Bad, format!("refused, because {why}")),
        TraceEgress::Destination => (Style::Plain, "by the driver, to where its destination leads".to_owned()),
    }
}

fn origin(origin: &TraceOrigin) -> String {
    match origin {
        TraceOrigin::Network { name: Some(name), .. } => format!("in {}", one_line(name)),
        TraceOrigin::Network { interface: 0, name: None } => "in by an unknown interface".to_owned(),
        TraceOrigin::Network { interface, name: None } => format!("in by interface {interface}"),
        TraceOrigin::Module { user, module: Some(module) } => format!("made by {module} of {user}"),
        TraceOrigin::Module { user, module: None } => format!("made by a module of {user}"),
    }
}

fn named(module: Option<&ModuleRef>, user: &UserId) -> String {
    module.map_or_else(|| format!("a module of {user} that its container does not name"), ToString::to_string)
}

fn fails(mode: FailureMode) -> &'static str {
    match mode {
        FailureMode::Open => "fails open",
        FailureMode::Closed => "fails closed",
    }
}

fn what(flow: Option<&TraceFlow>, length: usize) -> String {
    let Some(flow) = flow else { return format!("no IP packet the node understands, {length} bytes") };
    let (source, destination) = (end(flow.source, flow.source_port), end(flow.destination, flow.destination_port));
    format!("{source} > {destination} {} {length} bytes", protocol(flow.protocol))
}

fn end(address: IpAddr, port: Option<u16>) -> String {
    port.map_or_else(|| address.to_string(), |port| SocketAddr::new(address, port).to_string())
}

fn protocol(number: u8) -> String {
    match number {
        1 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        58 => "icmp6".to_owned(),
        other => format!("protocol {other}"),
    }
}

fn time(time_us: u64) -> String {
    let seconds = UnixTime(time_us / 1000).to_string();
    format!("{}.{:06}Z", seconds.trim_end_matches('Z'), time_us % 1_000_000)
}

/// Writes digits as lines of bytes with their characters.
fn dump(name: &str, digits: &str, output: &mut Output) {
    let pair = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Vec<u8> = digits.as_bytes().chunks(2).map_while(pair).collect();
    for (number, part) in bytes.chunks(DUMP_BYTES).enumerate() {
        let digits: Vec<String> = part.iter().map(|byte| format!("{byte:02x}")).collect();
        let text: String =
            part.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' }).collect();
        let name = if number == 0 { name } else { "" };
        let (at, width) = (number * DUMP_BYTES, 3 * DUMP_BYTES - 1);
        let line = output.paint(Style::Dim, &format!("{at:04x}  {:width$}  {text}", digits.join(" ")));
        output.line(format!("  {name:9}  {line}"));
    }
}

#[cfg(test)]
mod tests {
    use netserv_model::Flavour;
    use netserv_model::trace::TraceChange;

    use super::*;
    use crate::output::test_support::captured;

    #[test]
    fn a_changed_packet_is_shown_with_each_step() {
        let mut packet = packet();
        packet.steps = vec![
            filter("example.org/net-monitor@1.2.0", FailureMode::Open),
            filter("example.org/keep-alive@0.1.0", FailureMode::Closed),
            TraceStep::Container { user: user(), flavour: Flavour::Wasm },
            said("example.org/net-monitor@1.2.0", TraceVerdict::WentOn),
            said("example.org/keep-alive@0.1.0", TraceVerdict::Modified),
        ];
        packet.verdict = Verdict::Modified;
        packet.changed =
            Some(TraceChange { flow: Some(flow("10.2.0.9", "10.1.0.2")), length: 287, bytes: String::new() });
        let (interface, station) = ("eth0".to_owned(), "02:00:00:00:00:01".to_owned());
        let next_hop = "10.1.0.2".parse().unwrap();
        packet.egress = Some(TraceEgress::Device { interface, next_hop, station, vlan: Some(7), mtu: 1500 });
        check(
            &packet,
            "\
2026-11-21T02:00:01.204518Z  10.1.0.2:5060 > 10.2.0.9:5060 udp 412 bytes, in eth0
  filter     udp port 5060, of example.org/net-monitor@1.2.0 (janedoe, fails open)
  filter     udp port 5060, of example.org/keep-alive@0.1.0 (janedoe, fails closed)
  container  janedoe (wasm)
  module     example.org/net-monitor@1.2.0: let it go on, changed or not
  module     example.org/keep-alive@0.1.0: modified
  verdict    modified: 10.2.0.9:5060 > 10.1.0.2:5060 udp 287 bytes
  egress     eth0, VLAN 7, next hop 10.1.0.2 (02:00:00:00:00:01)
",
        );
    }

    #[test]
    fn a_packet_that_nobody_wants_is_the_kernels() {
        let mut packet = packet();
        packet.steps = vec![TraceStep::NoFilter];
        packet.egress = Some(TraceEgress::Kernel { why: "its\nroute\u{1b}[2J leads into a tunnel".to_owned() });
        packet.bytes = "4500004142ff0a".to_owned() + &"00".repeat(10);
        check(
            &packet,
            "\
2026-11-21T02:00:01.204518Z  10.1.0.2:5060 > 10.2.0.9:5060 udp 412 bytes, in eth0
  bytes      0000  45 00 00 41 42 ff 0a 00 00 00 00 00 00 00 00 00  E..AB...........
             0010  00                                               .
  filter     no module wants it
  verdict    passed
  egress     the kernel forwards it, because its route\\u{1b}[2J leads into a tunnel
",
        );
    }

    #[test]
    fn a_drop_says_who_and_why() {
        let mut packet = packet();
        packet.origin = TraceOrigin::Network { interface: 3, name: None };
        packet.steps = vec![
            TraceStep::Failure { user: user(), reason: DropReason::RingFull, on_failure: FailureMode::Open },
            said("example.org/a@1.0.0", TraceVerdict::Dropped),
            said("example.org/b@1.0.0", TraceVerdict::NotAsked),
        ];
        packet.steps_left_out = 2;
        (packet.verdict, packet.reason) = (Verdict::Drop, Some(DropReason::Module));
        check(
            &packet,
            "\
2026-11-21T02:00:01.204518Z  10.1.0.2:5060 > 10.2.0.9:5060 udp 412 bytes, in by interface 3
  failure    janedoe: the container's ring was full; fails open, so it goes on
  module     example.org/a@1.0.0: dropped
  module     example.org/b@1.0.0: not asked, it was dropped before
             and 2 steps more
  verdict    dropped (module): example.org/a@1.0.0 said so
",
        );
    }

    #[test]
    fn made_packets_and_ones_that_are_no_packets() {
        let mut packet = packet();
        packet.origin = TraceOrigin::Module { user: user(), module: Some("example.org/echo@0.1.0".parse().unwrap()) };
        packet.flow = Some(TraceFlow {
            source: "2001:db8::1".parse().unwrap(),
            destination: "2001:db8::2".parse().unwrap(),
            protocol: 58,
            source_port: None,
            destination_port: None,
        });
        packet.egress = Some(TraceEgress::Destination);
        check(
            &packet,
            "\
2026-11-21T02:00:01.204518Z  2001:db8::1 > 2001:db8::2 icmp6 412 bytes, made by example.org/echo@0.1.0 of janedoe
  verdict    sent
  egress     by the driver, to where its destination leads
",
        );
        packet.flow = None;
        (packet.verdict, packet.reason, packet.egress) = (Verdict::Drop, Some(DropReason::BadVerdict), None);
        check(
            &packet,
            "\
2026-11-21T02:00:01.204518Z  no IP packet the node understands, 412 bytes, made by example.org/echo@0.1.0 of janedoe
  verdict    not sent (bad-verdict): what came back is no whole IP packet
",
        );
    }

    #[test]
    fn colours_are_there_where_they_are_on() {
        let (mut output, text) = captured(false, true);
        write(&packet(), &mut output);
        assert!(text.text().contains("\x1b[32mpassed\x1b[0m"), "{}", text.text());
    }

    #[track_caller]
    fn check(packet: &TracePacket, expected: &str) {
        let (mut output, text) = captured(false, false);
        write(packet, &mut output);
        assert_eq!(text.text(), expected);
    }

    fn packet() -> TracePacket {
        let origin = TraceOrigin::Network { interface: 2, name: Some("eth0".to_owned()) };
        TracePacket::new(1_795_226_401_204_518, origin, Some(flow("10.1.0.2", "10.2.0.9")), 412)
    }

    fn flow(source: &str, destination: &str) -> TraceFlow {
        TraceFlow {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            protocol: 17,
            source_port: Some(5060),
            destination_port: Some(5060),
        }
    }

    fn filter(module: &str, on_failure: FailureMode) -> TraceStep {
        let (module, filter) = (Some(module.parse().unwrap()), "udp port 5060".parse().unwrap());
        TraceStep::Filter { user: user(), module, filter, on_failure }
    }

    fn said(module: &str, verdict: TraceVerdict) -> TraceStep {
        TraceStep::Module { user: user(), module: Some(module.parse().unwrap()), verdict }
    }

    fn user() -> UserId {
        "janedoe".parse().unwrap()
    }
}
