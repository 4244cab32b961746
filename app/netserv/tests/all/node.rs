// SPDX-License-Identifier: Apache-2.0
//! `node`, failures of the connection, and output that nobody reads.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixListener;
use std::process::Stdio;

use crate::support::{Channel, FakeNode, Home, check, text};
use axum::body::Body;
use axum::http::StatusCode;
use netserv_api::{
    ApiError, ConditionInfo, DrainReport, LogLine, ModuleList, NodeInfo, OperatorServiceInfo, PlaneInfo,
};
use netserv_model::UnixTime;
use netserv_model::api::{
    DeviceInfo, ModuleUsage, PacketSums, RevocationInfo, RevocationListInfo, UsageReport, UserUsage,
};
use netserv_model::application::ApplicationInfo;
use netserv_model::audit::{AuditEntry, AuditFault, AuditReport};
use netserv_model::request::NodeLoad;
use netserv_model::usage::{Traffic, Usage};

fn info() -> NodeInfo {
    NodeInfo {
        node: "r1".parse().unwrap(),
        role: "node".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        driver: "nfqueue: the best that works here".into(),
        lanes: 2,
        started: UnixTime::from_secs(1_795_226_400),
        load: NodeLoad::default(),
        packets: PacketSums { received: 9, unseen: 3, bypassed: 2, lost: 1 },
        missing: vec!["no nf_queue; fix: modprobe nfnetlink_queue".into()],
        devices: Vec::new(),
        planes: Vec::new(),
        applications: vec![ApplicationInfo {
            nslp_id: 32_710,
            router_alert: 65_503,
            name: "evil \u{1b}".into(),
            waiting: 2,
        }],
        services: vec![OperatorServiceInfo {
            name: "flood".into(),
            module: "example.org/a@1.0.0".parse().unwrap(),
            ready: false,
            wanted: true,
            installed: false,
            refused: Some("no \u{1b}".into()),
            conditions: vec![ConditionInfo { when: "syns/s to 192.0.2.7/32 > 1000".into(), per_second: 1001 }],
        }],
        revocations: vec![RevocationInfo {
            issuer: "house".into(),
            list: Some(RevocationListInfo {
                number: 8,
                made: UnixTime::from_secs(1_795_226_400),
                until: UnixTime::from_secs(1_795_312_800),
                grants: 2,
                keys: 1,
            }),
            asked_s: Some(40),
            failures: 3,
            failure: Some("evil \u{1b}".into()),
        }],
    }
}

fn log_line(sequence: u64) -> LogLine {
    LogLine {
        sequence,
        time: UnixTime::from_secs(1_795_226_400),
        level: "warn".into(),
        source: "janedoe/example.org/a".into(),
        text: "evil \u{1b}[2J text".into(),
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

#[test]
fn status_is_shown_in_lines_or_as_it_came() {
    let node = FakeNode::answering(200, json(&info()));
    let stdout = "\
node     r1
role     node
version  0.1.0
driver   nfqueue: the best that works here
lanes    2 packet threads
started  2026-11-21T02:00:00Z
load     0 modules in 0 containers, 0 packets seen, load 0.00, 0 B free
packets  9 received, 3 unseen by a module, 2 bypassed, 1 lost
nslp     32710 evil \\u{1b}, Router Alert 65503, 2 messages without a status
service  flood, example.org/a@1.0.0, is to run
when     syns/s to 192.0.2.7/32 > 1000: 1001
refused  no \\u{1b}
issuer   house, revocation list 8 of 2026-11-21T02:00:00Z, good until 2026-11-22T02:00:00Z, grants 2, keys 1, \
fetched 40 s ago, 3 failures
failing  evil \\u{1b}
missing  no nf_queue; fix: modprobe nfnetlink_queue
";
    check(&Home::empty().ask(&node, &["node", "status"]), 0, stdout, "");
    let output = Home::empty().ask(&node, &["node", "status", "--json"]);
    assert_eq!(serde_json::from_slice::<NodeInfo>(&output.stdout).unwrap(), info());
    assert_eq!(node.seen()[0].0, "/v1/node");
}

#[test]
fn an_empty_list_is_empty_output() {
    let node = FakeNode::answering(200, json(&ModuleList::default()));
    check(&Home::empty().ask(&node, &["node", "list"]), 0, "", "no modules are installed here\n");
    check(&Home::empty().ask(&node, &["node", "list", "-j"]), 0, "{\n  \"modules\": []\n}\n", "");
}

#[test]
fn a_drain_waits_until_nothing_is_left() {
    let left: serde_json::Value = serde_json::json!([{
        "user": "janedoe", "module": "example.org/a@1.0.0", "digest": format!("sha256:{}", "07".repeat(32)),
        "state": "running", "lease_s": 90, "filters": [], "restarts": 0
    }]);
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let answer = move |maintenance: bool| {
        let (asked, left) = (asked.clone(), left.clone());
        FakeNode::with(move || {
            let is_first = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
            let left = if is_first { left.clone() } else { serde_json::json!([]) };
            (StatusCode::OK, Body::from(serde_json::json!({ "maintenance": maintenance, "left": left }).to_string()))
        })
    };
    let node = answer(true);
    let stdout = "\
the node takes nothing new; 1 module left
WHERE  USER     MODULE               FLAVOUR  STATE    LEASE   SEEN  PASSED  DROPPED  MODIFIED  INJECTED
here   janedoe  example.org/a@1.0.0  -        running  1m 30s  0     0       0        0         0
the node takes nothing new, and has no module of a user
";
    check(&Home::empty().ask(&node, &["node", "drain", "--wait"]), 0, stdout, "");
    let calls = ["/v1/drain", "/v1/drain"];
    assert_eq!(node.seen().iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), calls);
    assert_eq!(node.seen()[0].1, r#"{"maintenance":true}"#);
    let output = Home::empty().ask(&node, &["node", "drain", "-j"]);
    let report = DrainReport { maintenance: true, left: Vec::new() };
    assert_eq!(serde_json::from_slice::<DrainReport>(&output.stdout).unwrap(), report);
    // Somebody has undone it meanwhile.
    let output = Home::empty().ask(&answer(false), &["node", "drain", "--wait"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(6), "the node takes modules\n"));
    let undone = answer(false);
    check(&Home::empty().ask(&undone, &["node", "drain", "--undo"]), 0, "the node takes modules\n", "");
    assert_eq!(undone.seen()[0].1, r#"{"maintenance":false}"#);
}

#[test]
fn usage_is_shown_as_a_table_of_all_users_or_of_one() {
    let traffic = Traffic { packets_in: 3, bytes_in: 3000, packets_out: 1, bytes_out: 60 };
    let usage = Usage {
        packets: traffic,
        cpu_ns: 1_500_000,
        memory_byte_seconds: 5 << 20,
        disk_byte_seconds: 0,
        network: traffic,
    };
    let (since, until) = (UnixTime::from_secs(1_795_226_400), UnixTime::from_secs(1_795_226_460));
    let module = "example.org/echo".parse().unwrap();
    let modules = vec![ModuleUsage { module, since, until, packets: traffic, cpu_ns: 1_000_000 }];
    let of = |name: &str, modules| UserUsage { user: name.parse().unwrap(), since, until, usage, modules };
    let users = vec![of("janedoe", modules), of("john", Vec::new())];
    let report = UsageReport { users: users.clone(), others: Some(usage) };
    let node = FakeNode::answering(200, json(&report));
    let stdout = "\
USER      MODULE            PACKETS IN  BYTES IN  PACKETS OUT  BYTES OUT  CPU     MEMORY     DISK   NETWORK IN  NETWORK OUT
janedoe   (all)             3           2.9 KiB   1            60 B       1.5 ms  5.0 MiB·s  0 B·s  2.9 KiB     60 B
          from 2026-11-21T02:00:00Z until 2026-11-21T02:01:00Z
janedoe   example.org/echo  3           2.9 KiB   1            60 B       1.0 ms  -          -      -           -
john      (all)             3           2.9 KiB   1            60 B       1.5 ms  5.0 MiB·s  0 B·s  2.9 KiB     60 B
          from 2026-11-21T02:00:00Z until 2026-11-21T02:01:00Z
(others)  (all)             3           2.9 KiB   1            60 B       1.5 ms  5.0 MiB·s  0 B·s  2.9 KiB     60 B
";
    check(&Home::empty().ask(&node, &["node", "usage"]), 0, stdout, "");
    assert_eq!(node.seen()[0].0, "/v1/usage");
    let output = Home::empty().ask(&node, &["node", "usage", "--user", "john", "-j"]);
    let one = UsageReport { users: users[1..].to_vec(), others: None };
    assert_eq!(serde_json::from_slice::<UsageReport>(&output.stdout).unwrap(), one);
    check(&Home::empty().ask(&node, &["node", "usage", "--user", "nobody"]), 0, "", "nothing was used here\n");
}

#[test]
fn log_lines_cannot_steer_the_terminal_and_round_trip_as_json() {
    let node = FakeNode::answering(200, format!("{}\n{}\n", json(&log_line(7)), json(&log_line(8))));
    let line = "2026-11-21T02:00:00Z  warn   janedoe/example.org/a  evil \\u{1b}[2J text\n";
    check(&Home::empty().ask(&node, &["node", "logs", "--since", "7"]), 0, &line.repeat(2), "");
    assert_eq!(node.seen()[0].0, "/v1/logs?follow=false&since=7");
    let output = Home::empty().ask(&node, &["node", "logs", "-j"]);
    let lines: Vec<LogLine> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, [log_line(7), log_line(8)]);
}

#[test]
fn following_shows_lines_as_they_come_and_ends_with_the_reader() {
    let node = FakeNode::with(|| {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<String>();
        tokio::spawn(async move {
            for number in 0.. {
                if sender.send(format!("{}\n", json(&log_line(number)))).is_err() {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        });
        (StatusCode::OK, Body::new(Channel(receiver)))
    });
    let mut command = Home::empty().command(&["node", "logs", "-f"]);
    let command = command.current_dir("/").env("NETSERV_SOCKET", &node.socket);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    for _ in 0..3 {
        line.clear();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains("janedoe"), "{line}");
    }
    drop(reader);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut stderr = String::new();
    child.stderr.unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(stderr, "");
}

#[test]
fn the_configuration_is_shown_as_toml() {
    let node =
        FakeNode::answering(200, r#"{"node":"r1","user":[{"name":"janedoe","ports":[]}],"fetch":{"bytes-max":5}}"#);
    let stdout = "node = \"r1\"\n\n[fetch]\nbytes-max = 5\n\n[[user]]\nname = \"janedoe\"\nports = []\n";
    check(&Home::empty().ask(&node, &["node", "config"]), 0, stdout, "");
}

#[test]
fn a_missing_dead_or_closed_socket_is_named_with_a_fix() {
    let home = Home::empty();
    let stderr = "\
error: no netservd here: there is no socket /nowhere/netservd.sock
fix: start netservd, or name its socket with --socket or NETSERV_SOCKET
";
    check(&home.netserv(&["node", "status", "--socket", "/nowhere/netservd.sock"]), 3, "", stderr);
    let dead = home.path().join("dead.sock");
    drop(UnixListener::bind(&dead).unwrap());
    let stderr = format!("error: netservd does not run: nobody serves {}\nfix: start netservd\n", dead.display());
    check(&home.netserv(&["node", "list", "--socket", dead.to_str().unwrap()]), 3, "", &stderr);
    let output = home.netserv(&["node", "list", "-j", "--socket", dead.to_str().unwrap()]);
    let error: ApiError = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((error.fix.as_str(), output.status.code()), ("start netservd", Some(3)));
}

#[test]
fn what_the_node_refuses_comes_with_its_own_words() {
    let error = ApiError { error: "the node is stopping".into(), fix: "start netservd again".into() };
    let node = FakeNode::answering(503, json(&error));
    let stderr = "error: the node is stopping\nfix: start netservd again\n";
    check(&Home::empty().ask(&node, &["node", "status"]), 4, "", stderr);
    check(&Home::empty().ask(&node, &["node", "logs"]), 4, "", stderr);
    let node = FakeNode::answering(500, "<html>");
    let output = Home::empty().ask(&node, &["node", "status"]);
    assert!(text(&output.stderr).starts_with("error: netservd answered 500"), "{output:?}");
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn answers_that_are_not_understood_or_too_long_are_failures() {
    let node = FakeNode::answering(200, "{}");
    let output = Home::empty().ask(&node, &["node", "status"]);
    assert!(text(&output.stderr).contains("is not understood: missing field"), "{output:?}");
    assert_eq!(output.status.code(), Some(3));
    let node = FakeNode::answering(200, "x".repeat(16 * 1024 * 1024 + 1));
    let output = Home::empty().ask(&node, &["node", "status"]);
    assert!(text(&output.stderr).contains("more than 16777216 bytes"), "{output:?}");
    let node = FakeNode::answering(200, "x".repeat(64 * 1024 + 1));
    let output = Home::empty().ask(&node, &["node", "logs"]);
    assert!(text(&output.stderr).contains("a line of more than 65536 bytes"), "{output:?}");
}

#[test]
fn a_reader_that_leaves_early_is_no_panic() {
    let home = Home::empty();
    let mut child = home.command(&["completions", "bash"]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    check(&output, 0, "", "");
}

#[test]
fn colours_are_never_piped() {
    let node = FakeNode::answering(200, json(&info()));
    let output = Home::empty().ask(&node, &["node", "status"]);
    assert!(!output.stdout.contains(&0x1b));
}

#[test]
fn the_doctor_names_a_fix_for_each_fault() {
    let home = Home::empty();
    let output = home.netserv(&["node", "doctor", "--socket", "/nowhere.sock"]);
    let stdout = text(&output.stdout);
    assert!(stdout.contains("netservd  fail   no netservd here: there is no socket /nowhere.sock\n"), "{stdout}");
    assert!(stdout.contains("fix: start netservd"), "{stdout}");
    assert!(stdout.contains("fix: make a key with `netserv key new`"), "{stdout}");
    assert_eq!(output.status.code(), Some(1));

    let node = FakeNode::answering(200, json(&info()));
    let output = home.ask(&node, &["node", "doctor", "-j"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let state =
        |name: &str| report["checks"].as_array().unwrap().iter().find(|c| c["name"] == name).unwrap()["state"].clone();
    assert_eq!((state("netservd"), state("version")), ("ok".into(), "ok".into()));
    assert_eq!((state("machine"), state("key")), ("warn".into(), "warn".into()));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_doctor_says_which_driver_the_node_took_and_how_it_serves_devices() {
    let devices = vec![
        DeviceInfo { name: "eth0".into(), mode: "native".into(), zero_copy: true, queues: 4, left_to_kernel: None },
        DeviceInfo {
            name: "eth1".into(),
            mode: "generic".into(),
            zero_copy: false,
            queues: 1,
            left_to_kernel: Some("no way".into()),
        },
    ];
    let plane = |name: &str, missing: Option<&str>| PlaneInfo { name: name.into(), missing: missing.map(Into::into) };
    let planes = vec![plane("afxdp", None), plane("nfqueue", Some("no iptables; fix: install iptables"))];
    let driver = "afxdp: the best that fits".to_owned();
    let node = FakeNode::answering(200, json(&NodeInfo { devices, planes, driver, ..info() }));
    let stdout = text(&Home::empty().ask(&node, &["node", "doctor"]).stdout);
    let lines = [
        "driver    ok     afxdp: the best that fits",
        "plane     warn   nfqueue cannot be used: no iptables",
        "          fix: install iptables",
        "device    ok     eth0: native mode, zero copy, 4 queues; forwards the rest in XDP",
        "device    ok     eth1: generic mode, copy, 1 queue; the kernel forwards the rest: no way",
    ];
    assert!(stdout.contains(&(lines.join("\n") + "\n")), "{stdout}");
    assert!(!stdout.contains("afxdp cannot"), "{stdout}");
}

/// Writes a log of three lines; returns its folder.
fn audit_log(home: &Home) -> std::path::PathBuf {
    let folder = home.path().join("audit");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(netserv_audit::name_of_file(1)), audit_lines()).unwrap();
    folder
}

fn audit_lines() -> String {
    let entry = |verb: &str, outcome: &str, detail: &str| {
        AuditEntry::new(UnixTime::from_secs(1_795_226_400), "r1".parse().unwrap(), verb, outcome, detail)
    };
    let from = Some("192.0.2.1".to_owned());
    let installed = AuditEntry {
        user: Some("janedoe".parse().unwrap()),
        evidence: Some("configured".into()),
        module: Some("example.org/a@1.0.0".into()),
        from: from.clone(),
        ..entry("SETUP", "installed", "")
    };
    let refused = AuditEntry { from, ..entry("SETUP", "refused", "bad-proof: no \u{1b} grant") };
    let mut chain = netserv_audit::Chain::default();
    [entry("START", "done", ""), installed, refused].map(|entry| chain.add(entry)).concat()
}

const AUDIT_TABLE: &str = "\
LINE  TIME                  VERB   USER     MODULE               FROM       OUTCOME    EVIDENCE
1     2026-11-21T02:00:00Z  START  -        -                    -          done       -
2     2026-11-21T02:00:00Z  SETUP  janedoe  example.org/a@1.0.0  192.0.2.1  installed  configured
3     2026-11-21T02:00:00Z  SETUP  -        -                    192.0.2.1  refused    -
      bad-proof: no \\u{1b} grant
";

#[test]
fn the_audit_log_is_shown_by_the_node_or_from_its_files() {
    let home = Home::empty();
    let folder = audit_log(&home).to_string_lossy().into_owned();
    let node = FakeNode::answering(200, audit_lines());
    check(&home.ask(&node, &["node", "audit"]), 0, AUDIT_TABLE, "");
    check(&home.netserv(&["node", "audit", "--folder", &folder]), 0, AUDIT_TABLE, "");
    check(&home.ask(&node, &["node", "audit", "-j"]), 0, &audit_lines(), "");
    let second = audit_lines().lines().nth(1).unwrap().to_owned() + "\n";
    check(&home.netserv(&["node", "audit", "-j", "--folder", &folder, "--user", "janedoe"]), 0, &second, "");
    let none = "nothing was decided here, or it is not kept any more\n";
    check(&home.netserv(&["node", "audit", "--folder", &folder, "--since", "2026-11-21T02:00:01Z"]), 0, "", none);
    home.ask(&node, &["node", "audit", "--user", "janedoe", "--since", "2026-11-21T02:00:01Z"]);
    assert_eq!(node.seen()[2].0, "/v1/audit?since=1795226401000&user=janedoe");
    let output = home.netserv(&["node", "audit", "--folder", "/nowhere"]);
    check(
        &output,
        1,
        "",
        "error: /nowhere: No such file or directory (os error 2)\n\
         fix: name the folder `audit` in the node's state directory, as root\n",
    );
}

/// Goal: a log that was changed has an exit code and the number of the line; one that is whole has its newest digest to be noted.
#[test]
fn the_audit_log_is_checked_by_the_node_or_from_its_files() {
    let home = Home::empty();
    let folder = audit_log(&home);
    let arguments = ["node", "audit", "--verify", "--folder", &folder.to_string_lossy()].map(str::to_owned);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = home.netserv(&arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let stdout = text(&output.stdout);
    assert!(stdout.starts_with("lines    3, from 1 to 3\nnewest   sha256:"), "{stdout}");
    std::fs::write(folder.join(netserv_audit::name_of_file(1)), audit_lines().replace("janedoe", "johndoe")).unwrap();
    let output = home.netserv(&arguments);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("broken at line 3: line 2 is not the one before it, or was changed"), "{said}");
    let report = AuditReport {
        lines: 2,
        first: Some(5),
        last: Some(6),
        newest: Some(netserv_model::Digest([1; 32])),
        lost: 4,
        broken: Some(AuditFault { line: 7, why: "evil \u{1b}".into() }),
        ..AuditReport::default()
    };
    let node = FakeNode::answering(200, json(&report));
    let digest = "01".repeat(32);
    let stderr = "older lines are not kept any more\nthe log itself tells of 4 lost lines\nerror: the chain is broken at line 7: evil \\u{1b}\n\
                  fix: compare the files with a copy; only the lines before are what the node wrote\n";
    let stdout = format!("lines    2, from 5 to 6\nnewest   sha256:{digest}\n");
    check(&home.ask(&node, &["node", "audit", "--verify"]), 1, &stdout, stderr);
    assert_eq!(node.seen()[0].0, "/v1/audit/verify");
}
