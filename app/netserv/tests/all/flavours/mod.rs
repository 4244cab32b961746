// SPDX-License-Identifier: Apache-2.0
//! Modules that come in two flavours do the same in both: for the recorded tests of their manifests, and for thousands of
//! damaged packets. Every packet that comes out, every verdict, counter and log line is compared.
//!
//! `NETSERV_SEED` is another seed for the damaged packets; `NETSERV_KEEP` names a folder where they are kept.

mod mutate;
mod packets;

use std::path::{Path, PathBuf};
use std::process::Command;

use mutate::Random;
use netserv_skips::skipped;
use serde_json::Value;

#[test]
fn the_recorded_tests_pass_in_both_flavours() {
    for name in ["net-monitor", "keep-alive"] {
        let Some(pair) = Pair::find(name) else { return };
        let [wasm, osgi] = pair.run(&project(name), false);
        assert!(wasm.len() >= 2, "{name} has tests");
        for report in &wasm {
            assert_eq!(report["passed"], true, "{name} as Wasm: {report:#}");
        }
        assert_eq!(wasm, osgi, "{name}");
    }
}

#[test]
fn net_monitor_counts_damaged_packets_alike() {
    let packets = packets::of_net_monitor(&mut Random::seeded());
    // Limits that are reached, so that also what is left out is the same.
    let few = "kv-entries = 300\nkv-bytes = 9000\ncounters = 100\n";
    let all = Damaged { properties: "", limits: "", packets: packets.clone() };
    let sampled = Damaged { properties: "sample = \"3\"\n", limits: few, packets };
    compare("net-monitor", &[all, sampled]);
}

#[test]
fn keep_alive_answers_damaged_packets_alike() {
    let packets = packets::of_keep_alive(&mut Random::seeded());
    let (some, others): (Vec<_>, Vec<_>) =
        packets.chunks(2).map(|pair| (pair[0].clone(), pair[pair.len() - 1].clone())).unzip();
    let plain = Damaged { properties: "", limits: "", packets: some.clone() };
    let forced = Damaged { properties: "force-rport = \"on\"\n", limits: "", packets: others };
    let without = Damaged { properties: "options = \"off\"\n", limits: "", packets: some };
    compare("keep-alive", &[plain, forced, without]);
}

#[test]
fn properties_and_limits_that_will_not_do_are_refused_alike() {
    let monitor = ["sample = \"0\"\n", "sample = \"x\"\n", "sample = \"\"\n", "sample = \"18446744073709551616\"\n"];
    let keep_alive = ["options = \"maybe\"\n", "force-rport = \"\"\n"];
    for (name, properties) in [("net-monitor", &monitor[..]), ("keep-alive", &keep_alive)] {
        let wrong = |properties: &&'static str| Damaged { properties, limits: "", packets: Vec::new() };
        let mut tests: Vec<Damaged> = properties.iter().map(wrong).collect();
        tests.push(Damaged { properties: "", limits: "counters = 1\n", packets: Vec::new() });
        let Some([wasm, osgi]) = run_damaged(name, &tests) else { return };
        for (wasm, osgi) in wasm.reports.iter().zip(&osgi.reports) {
            assert_eq!(wasm["passed"], false, "{wasm:#}");
            assert_eq!(osgi["failure"]["kind"], wasm["failure"]["kind"], "{wasm:#} {osgi:#}");
            assert_eq!(osgi["log"], wasm["log"]);
        }
    }
}

/// A module in both flavours, and the programs that test them.
struct Pair {
    wasm: (PathBuf, PathBuf),
    osgi: (PathBuf, PathBuf),
}

/// A test: properties and limits that differ from the module's, and packets.
struct Damaged {
    properties: &'static str,
    limits: &'static str,
    packets: Vec<Vec<u8>>,
}

/// What one flavour made of several tests.
#[derive(Default)]
struct Run {
    reports: Vec<Value>,
    outputs: Vec<Vec<u8>>,
}

/// Runs both flavours on damaged packets. Fails at the first thing that differs, and says which packet it was.
fn compare(name: &str, tests: &[Damaged]) {
    let count: usize = tests.iter().map(|test| test.packets.len()).sum();
    assert!(count > 5000, "only {count} packets");
    let Some([wasm, osgi]) = run_damaged(name, tests) else { return };
    for (at, test) in tests.iter().enumerate() {
        assert!(wasm.reports[at]["failure"].is_null(), "{name}: {:#}", wasm.reports[at]);
        if wasm.outputs[at] != osgi.outputs[at] {
            panic!("{name}: {}", first_difference(&test.packets, &wasm.outputs[at], &osgi.outputs[at]));
        }
        assert_eq!(wasm.reports[at], osgi.reports[at], "{name}");
    }
    let packets: Vec<&Value> = wasm.reports.iter().map(|report| &report["packets"]).collect();
    eprintln!("{name}: {count} packets, no difference: {packets:?}");
}

/// Runs both flavours on the tests; nothing if one of them is not built.
fn run_damaged(name: &str, tests: &[Damaged]) -> Option<[Run; 2]> {
    let pair = Pair::find(name)?;
    let dir = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("NETSERV_KEEP").map(|kept| Path::new(&kept).join(name));
    let dir = kept.unwrap_or_else(|| dir.path().to_owned());
    let mut runs = [Run::default(), Run::default()];
    // A folder for each, since limits belong to the whole manifest.
    for (at, test) in tests.iter().enumerate() {
        let folder = dir.join(at.to_string());
        write_test(&folder, name, test);
        for (run, program) in runs.iter_mut().zip([&pair.wasm, &pair.osgi]) {
            let output = folder.join("out.pcap");
            let _ = std::fs::remove_file(&output);
            run.reports.extend(run_tests(program, &folder, true));
            run.outputs.push(std::fs::read(output).unwrap_or_default());
        }
    }
    Some(runs)
}

/// Returns the folder of a module.
fn project(name: &str) -> PathBuf {
    let folders = ["apps", "samples"].map(|kind| root().join("modules").join(kind).join(name));
    folders.into_iter().find(|folder| folder.exists()).unwrap()
}

fn write_test(folder: &Path, name: &str, test: &Damaged) {
    std::fs::create_dir_all(folder).unwrap();
    let manifest = std::fs::read_to_string(project(name).join("netserv.toml")).unwrap();
    let mut manifest: toml::Table = toml::from_str(&manifest).unwrap();
    let recorded = "name = \"damaged\"\ninput = \"in.pcap\"\noutput = \"out.pcap\"\n";
    manifest.insert("test".to_owned(), vec![toml::from_str::<toml::Table>(recorded).unwrap()].into());
    for (table, changes) in [("properties", test.properties), ("limits", test.limits)] {
        let changes: toml::Table = toml::from_str(changes).unwrap();
        manifest[table].as_table_mut().unwrap().extend(changes);
    }
    std::fs::write(folder.join("netserv.toml"), manifest.to_string()).unwrap();
    // One every two milliseconds, so that timers come due in between.
    let timed: Vec<(u64, Vec<u8>)> = (0..).step_by(2).zip(test.packets.iter().cloned()).collect();
    std::fs::write(folder.join("in.pcap"), packets::capture(&timed)).unwrap();
}

/// Says which packet it was, and what became of it.
fn first_difference(input: &[Vec<u8>], wasm: &[u8], osgi: &[u8]) -> String {
    let (wasm, osgi) = (packets::by_time(wasm), packets::by_time(osgi));
    let differs = |at: &usize| wasm.get(&(*at as u64 * 2)) != osgi.get(&(*at as u64 * 2));
    let at = (0..input.len()).find(differs).unwrap_or(0);
    let shown = |packets: Option<&Vec<Vec<u8>>>| -> Vec<String> {
        packets.into_iter().flatten().map(|packet| packet.escape_ascii().to_string()).collect()
    };
    let (wasm, osgi) = (shown(wasm.get(&(at as u64 * 2))), shown(osgi.get(&(at as u64 * 2))));
    let packet = input[at].escape_ascii();
    format!("the flavours differ at packet {at}:\n  in    \"{packet}\"\n  wasm  {wasm:?}\n  osgi  {osgi:?}")
}

impl Pair {
    /// Returns the module if everything is built that its flavours need.
    fn find(name: &str) -> Option<Pair> {
        let tools = Path::new(env!("CARGO_BIN_EXE_netserv")).parent().unwrap();
        let wasm = format!("modules/target/wasm32-unknown-unknown/release/{}.wasm", name.replace('-', "_"));
        let bundle = format!("java/samples/{name}/target/{name}.jar");
        let pair = Pair {
            wasm: (tools.join("netserv-worker"), root().join(wasm)),
            osgi: (
                std::env::var_os("NETSERV_JVM").map_or_else(|| tools.join("netserv-jvm"), PathBuf::from),
                root().join(bundle),
            ),
        };
        let needed = [&pair.wasm.0, &pair.wasm.1, &pair.osgi.0, &pair.osgi.1];
        if let Some(missing) = needed.iter().find(|path| !path.exists()) {
            skipped(&format!("{name} in two flavours"), &format!("{} is not built (./dev build)", missing.display()));
            return None;
        }
        Some(pair)
    }

    /// Runs the tests of a folder in both flavours.
    fn run(&self, folder: &Path, accept: bool) -> [Vec<Value>; 2] {
        [run_tests(&self.wasm, folder, accept), run_tests(&self.osgi, folder, accept)]
    }
}

/// Returns what a program says of each test of a folder.
fn run_tests((program, code): &(PathBuf, PathBuf), folder: &Path, accept: bool) -> Vec<Value> {
    let flag = if program.ends_with("netserv-jvm") { "--bundle" } else { "--wasm" };
    let mut command = Command::new(program);
    command.args(["test", "--package-dir"]).arg(folder).arg(flag).arg(code).args(accept.then_some("--accept"));
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{command:?}: {output:?}");
    let lines = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(!lines.is_empty(), "{command:?}: {output:?}");
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
