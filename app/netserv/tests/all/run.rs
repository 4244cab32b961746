// SPDX-License-Identifier: Apache-2.0
//! `module run`: a real node in a small network, replaced modules, and nothing left behind.

use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::{Home, eventually};
use netserv_skips::skipped;
use serde_json::Value;

#[test]
fn a_changed_module_replaces_the_one_that_runs_and_nothing_is_left() {
    let netserv = Path::new(env!("CARGO_BIN_EXE_netserv"));
    let missing = ["netservd", "netserv-worker"].into_iter().find(|name| !netserv.with_file_name(name).is_file());
    if let Some(missing) = missing {
        return skipped("module run", &format!("there is no {missing} beside netserv"));
    }
    if std::fs::metadata("/proc/self").unwrap().uid() != 0
        || Command::new("clang-14").arg("--version").output().is_err()
    {
        return skipped("module run", "it needs root and clang-14");
    }
    let home = Home::with_key();
    let made = home.netserv(&["module", "new", "m", "--lang", "c"]);
    assert!(made.status.success(), "{made:?}");
    let mut running = Running::start(&home);
    assert_eq!(running.event("installed")["event"], "installed");
    let ready = running.event("ready");
    let namespaces = ready["namespaces"].clone();
    let socket = ready["socket"].as_str().unwrap().to_owned();
    let client = namespaces["client"].as_str().unwrap().to_owned();

    // Packets go through the node and its module.
    let net = format!("--net=/run/netns/{client}");
    let send = || Command::new("nsenter").args([&net, "ping", "-c", "1", "-W", "2", "10.2.0.2"]).output().unwrap();
    assert!(send().status.success());
    let udp = ["sh", "-c", "echo x | nc -u -w 0 10.2.0.2 9"];
    let dropped = eventually(|| {
        Command::new("nsenter").arg(&net).args(udp).status().unwrap();
        let list = home.netserv(&["-j", "--socket", &socket, "node", "list"]);
        let list: Value = serde_json::from_slice(&list.stdout).ok()?;
        list["modules"][0]["counters"]["dropped"].as_u64().filter(|dropped| *dropped > 2)
    });
    assert!(dropped > 2);

    // What does not compile is said, and what runs goes on; what does, replaces it.
    let source = home.path().join("m/module.c");
    let code = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, format!("{code}\nnonsense\n")).unwrap();
    assert!(running.event("failed")["cause"].as_str().unwrap().contains("the build command ended"));
    assert!(send().status.success());
    std::fs::write(&source, code.replace("blocked_port = 9", "blocked_port = 10")).unwrap();
    assert!(running.event("replaced")["took_us"].as_u64().is_some());

    // However it ends, the network goes.
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    eventually(|| {
        let left = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let own = |name: &str| namespaces.as_object().unwrap().values().any(|one| one == name);
        (!left.map(|entry| entry.file_name()).any(|name| own(&name.to_string_lossy()))).then_some(())
    });
    eventually(|| (!Path::new(&socket).parent().unwrap().exists()).then_some(()));
}

/// Goal (case 23): modules that take connections over, and those that look at what a server answers, are installed for the server's side
/// of the network, as they come.
#[test]
fn modules_of_others_connections_and_answers_are_narrowed_to_the_server() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skipped("module run", "it needs root");
    }
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules");
    let built = modules.join("target/wasm32-wasip2/release");
    let cases: [(&str, &[&str], &[&str]); 2] = [
        ("http-compressor", &[], &["tcp dst 10.2.0.0/24 port 80", "tcp dst fd00:2::/64 port 80"]),
        (
            "sip-edge",
            &["--property", "server=10.2.0.2"],
            &["udp dst 10.2.0.0/24 port 5060", "udp src 10.2.0.0/24 sport 5060", "tcp dst 10.2.0.0/24 port 5060"],
        ),
    ];
    for (module, args, expected) in cases {
        let component = built.join(format!("{}.wasm", module.replace('-', "_")));
        if !component.exists() {
            return skipped("module run", &format!("{} is not built", component.display()));
        }
        let home = Home::with_key();
        let folder = home.path().join("m");
        std::fs::create_dir(&folder).unwrap();
        let manifest = std::fs::read_to_string(modules.join("apps").join(module).join("netserv.toml")).unwrap();
        let (manifest, _) = manifest.split_once("[build]").unwrap();
        // What it is built from is there already, of whichever parts it has.
        let packet = modules.join("target/wasm32-unknown-unknown/release").join(component.file_name().unwrap());
        let part = |name: &str, path: &Path| {
            if path.exists() { format!("{name} = {path:?}\n") } else { String::new() }
        };
        let is_packet = manifest.contains("[packet]");
        let wasm = if is_packet { part("wasm", &packet) } else { String::new() };
        let build = format!("[build]\ncommand = \"true\"\n{wasm}{}", part("component", &component));
        std::fs::write(folder.join("netserv.toml"), format!("{manifest}{build}")).unwrap();
        let mut running = Running::with(&home, args);
        let socket = running.event("ready")["socket"].as_str().unwrap().to_owned();
        let list = home.netserv(&["-j", "--socket", &socket, "node", "list"]);
        let list: Value = serde_json::from_slice(&list.stdout).unwrap();
        let status = &list["modules"][0];
        let of = |key: &str| status[key].as_array().cloned().unwrap_or_default();
        let filters: Vec<String> = of("filters")
            .iter()
            .chain(&of("intercept"))
            .filter_map(|filter| filter.as_str().map(str::to_owned))
            .collect();
        assert!(expected.iter().all(|filter| filters.iter().any(|own| own == filter)), "{module}: {filters:?}");
    }
}

struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Where its standard error is.
    errors: PathBuf,
}

impl Running {
    fn start(home: &Home) -> Running {
        Running::with(home, &[])
    }

    fn with(home: &Home, args: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netserv"));
        command.args(["-j", "module", "run", "m"]).args(args);
        home.like_a_user(&mut command, &[]);
        let errors = home.path().join("stderr");
        let log = std::fs::File::create(&errors).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines, errors }
    }

    /// Waits for an event; what comes before it is passed over.
    fn event(&mut self, name: &str) -> Value {
        for line in self.lines.by_ref() {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if event["event"] == name {
                return event;
            }
        }
        panic!("`module run` ended before `{name}`:\n{}", std::fs::read_to_string(&self.errors).unwrap_or_default())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
