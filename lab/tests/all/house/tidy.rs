// SPDX-License-Identifier: Apache-2.0
//! Holds the tree to what ARCHITECTURE.md and the house style say of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use netserv_lab::bench::goals::Goal;
use netserv_lab::node::projects;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::file_imports;

/// The crates from the bottom up; an arrow may only point to an earlier one.
const ORDER: [&str; 31] = [
    "netserv-model",
    "netserv-authority",
    "netserv-ledger",
    "netserv-audit",
    "netserv-project",
    "netserv-wire",
    "netserv-gist",
    "netserv-nslp",
    "netserv-controller",
    "netserv-node",
    "netserv-placement",
    "netserv-netlink",
    "netserv-plane",
    "netserv-plane-nfqueue",
    "netserv-plane-afxdp",
    "netserv-signal",
    "netserv-dataplane",
    "netserv-container",
    "netserv-worker-base",
    "netserv-worker-wasm",
    "netserv-worker-packet",
    "netserv-worker-server",
    "netserv-worker-jvm",
    "netserv-worker",
    "netserv-repository",
    "netserv-rpki",
    "netserv-packet-loop",
    "netserv-api",
    "netservd",
    "netserv",
    "netserv-agent",
];
/// The engines that only `netserv-node` puts together.
const ENGINES: [&str; 3] = ["netserv-gist", "netserv-nslp", "netserv-controller"];
/// The crates with system calls, beside those of the worker and of the planes.
const IO: [&str; 3] = ["netserv-container", "netserv-repository", "netserv-rpki"];
/// The crates of forwarding planes, with all that each imports of the others outside its tests: who has the contract need not link
/// a plane, and no plane knows of signaling's sockets or of the choice.
const PLANES: [(&str, &[&str]); 5] = [
    ("netserv-plane", &[]),
    ("netserv-plane-nfqueue", &["netserv-plane"]),
    ("netserv-plane-afxdp", &["netserv-plane", "netserv-plane-nfqueue"]),
    ("netserv-signal", &["netserv-plane", "netserv-plane-nfqueue"]),
    ("netserv-dataplane", &["netserv-plane", "netserv-plane-afxdp", "netserv-plane-nfqueue"]),
];
/// The crates of the worker, with all that each imports of the others: what runs Wasm and what runs Java know nothing of each other.
const WORKER: [(&str, &[&str]); 6] = [
    ("netserv-worker-base", &[]),
    ("netserv-worker-wasm", &["netserv-worker-base"]),
    ("netserv-worker-packet", &["netserv-worker-base", "netserv-worker-wasm"]),
    ("netserv-worker-server", &["netserv-worker-base", "netserv-worker-wasm"]),
    ("netserv-worker-jvm", &["netserv-worker-base"]),
    (
        "netserv-worker",
        &[
            "netserv-worker-base",
            "netserv-worker-jvm",
            "netserv-worker-packet",
            "netserv-worker-server",
            "netserv-worker-wasm",
        ],
    ),
];
/// The crates that link Wasmtime.
const WITH_WASMTIME: [&str; 4] =
    ["netserv-worker-wasm", "netserv-worker-packet", "netserv-worker-server", "netserv-worker"];
/// What is around the node may import all of it, but for the worker.
const LAB: [&str; 7] = [
    "netserv-lab",
    "netserv-guards",
    "netserv-manual",
    "netserv-patience",
    "netserv-rpki-tree",
    "netserv-skips",
    "netserv-fuzz",
];
/// The rooms of a crate, its folders and the files beside them, from the bottom up, with all that each imports.
type Rooms = &'static [(&'static str, &'static str)];
/// The crates whose rooms are known. In netservd only `run` imports the control loop; what sends it events knows `event`.
const ROOMS: [(&str, Rooms); 6] = [
    (
        "core/gist/src",
        &[
            ("limits", ""),
            ("api", "limits"),
            ("cx", "api limits"),
            ("associations", "api cx limits"),
            ("routing", "api associations cx limits"),
            ("messages", "api associations cx limits routing"),
            ("querying", "api associations cx limits messages routing"),
            ("responding", "api associations cx limits messages routing"),
            ("lib", "api associations cx limits messages querying responding routing"),
        ],
    ),
    (
        "core/nslp/src",
        &[
            ("counters", ""),
            ("limits", ""),
            ("assembly", "limits"),
            ("cx", "counters limits"),
            ("exchanges", "cx limits"),
            ("off_path", "cx exchanges limits"),
            ("round_trip", "cx exchanges limits"),
            ("sessions", "cx exchanges limits"),
            ("notify", "cx exchanges limits sessions"),
            ("verbs", "cx exchanges limits notify off_path sessions"),
            ("requests", "cx exchanges limits off_path round_trip sessions verbs"),
            ("lib", "assembly counters cx notify requests sessions"),
        ],
    ),
    (
        "core/controller/src",
        &[
            ("counters", ""),
            ("limits", ""),
            ("cx", "counters limits"),
            ("policy", "limits"),
            ("tenants", "cx limits policy"),
            ("usage", "cx limits"),
            ("control", "cx limits tenants"),
            ("report", "cx tenants"),
            ("rules", "cx limits tenants"),
            ("moves", "cx limits rules tenants"),
            ("workers", "cx limits policy rules tenants"),
            ("users", "cx limits tenants workers"),
            ("services", "cx moves tenants"),
            ("modules", "control cx limits moves policy rules services tenants usage users workers"),
            ("lib", "control counters cx modules moves report tenants usage users workers"),
        ],
    ),
    (
        "app/packet-loop/src",
        &[
            ("counters", ""),
            ("event", ""),
            ("limits", ""),
            ("meters", ""),
            ("module_filter", ""),
            ("budget", "limits"),
            ("real_time", "limits"),
            ("traces", "limits module_filter"),
            ("cx", "counters event traces"),
            ("workers", "budget event limits meters module_filter real_time"),
            ("eventfds", "limits workers"),
            ("in_flight", "limits module_filter traces workers"),
            ("lanes", "budget limits workers"),
            ("wakeups", "limits workers"),
            ("watchdog", "event limits workers"),
            ("command", "budget lanes meters module_filter traces workers"),
            ("filters", "in_flight module_filter workers"),
            ("pacing", "cx eventfds in_flight limits real_time wakeups workers"),
            ("path", "cx filters in_flight limits module_filter traces workers"),
            (
                "lib",
                "command counters cx event eventfds filters in_flight lanes limits pacing path real_time wakeups watchdog workers",
            ),
            ("thread", "command counters event lanes lib limits real_time"),
        ],
    ),
    (
        "app/netservd/src",
        &[
            ("arguments", ""),
            ("caller", ""),
            ("limits", ""),
            ("logs", ""),
            ("readable", ""),
            ("record", ""),
            ("unix_socket", ""),
            ("config", "limits"),
            ("clock", "logs"),
            ("inbox", "limits"),
            ("tls", "config limits"),
            ("audit", "caller clock config limits"),
            ("newsfeed", "limits logs"),
            ("operator", "config logs"),
            ("metered", ""),
            ("event", "caller config metered tls"),
            ("metrics", "audit tls"),
            ("machine", "config"),
            ("signal", "config event inbox limits metered readable tls"),
            ("api", "audit caller config event limits logs newsfeed"),
            ("applications", "event limits metrics"),
            ("effects", "config event limits logs machine metrics readable"),
            ("conditions", "caller config effects event limits operator"),
            (
                "control_loop",
                "audit caller clock config effects event inbox machine metrics newsfeed operator record signal",
            ),
            (
                "run",
                "api applications audit clock conditions config control_loop effects event inbox limits logs machine metrics newsfeed operator record signal tls unix_socket",
            ),
            ("main", "arguments config machine run"),
        ],
    ),
    (
        "io/worker/base/src",
        &[
            ("clock", ""),
            ("error", ""),
            ("lib", ""),
            ("limits", ""),
            ("sys", ""),
            ("failure", "limits"),
            ("media", "limits"),
            ("wakeup", "error"),
            ("compute", "error limits"),
            ("storage", "compute limits"),
            ("shared", "clock compute error failure limits storage wakeup"),
            ("link", "clock error limits shared sys wakeup"),
        ],
    ),
];
/// Rooms that lie above each other.
const FLOORS_MAX: usize = 8;
/// What the files of a folder (or a file) import none of: other folders and files of the same crate, or paths of others.
const WALLS: [(&str, &[&str]); 6] = [
    // What users may do comes from the controller, by effects.
    ("app/netservd/src/effects", &["app/netservd/src/config/mod.rs", "app/netservd/src/config/users.rs"]),
    ("io/container/src/host", &["io/container/src/launcher"]),
    ("io/container/src/launcher", &["io/container/src/host", "io/container/src/network"]),
    ("io/container/src/protocol", &["io/container/src/host", "io/container/src/launcher", "io/container/src/sandbox"]),
    ("io/container/src/sandbox", &["io/container/src/host", "io/container/src/launcher", "io/container/src/network"]),
    ("io/container/src/network", &["io/container/src/host", "io/container/src/launcher", "io/container/src/protocol"]),
];
/// Crates, or folders of them, whose files are in no circle of imports.
const WITHOUT_CIRCLES: [&str; 36] = [
    "core/audit/src",
    "core/authority/src",
    "core/controller/src",
    "core/gist/src",
    "core/model/src",
    "core/node/src",
    "core/nslp/src",
    "io/container/src",
    "io/worker/base/src",
    "io/worker/jvm/src",
    "io/worker/packet/src",
    "io/worker/server/src",
    "io/worker/src",
    "app/netservd/src/effects/filters",
    "app/packet-loop/src",
    "app/api/src",
    "app/netserv/src",
    "app/agent/src",
    "io/plane/src",
    "io/plane-nfqueue/src",
    "io/plane-afxdp/src",
    "io/signal/src",
    "io/netlink/src",
    "io/repository/src",
    "io/rpki/src",
    "core/placement/src",
    "modules/apps/active-cdn/src",
    "modules/sdk/http-caching/src",
    "modules/apps/media-relay/src",
    "modules/apps/net-monitor-live/src",
    "modules/sdk/packet/src",
    "modules/sdk/server/src",
    "modules/sdk/sip/src",
    "modules/apps/sip-edge/src",
    "modules/apps/stream-reflector/src",
    "modules/apps/video-transcoder/src",
];
/// Engines whose parts own their fields, each with the only file that has an `impl` of it.
const ENGINE_IMPLS: [(&str, &str, &str); 4] = [
    ("core/controller/src", "Controller", "lib.rs"),
    ("core/gist/src", "Engine", "lib.rs"),
    ("core/nslp/src", "Nslp", "lib.rs"),
    ("app/packet-loop/src", "PacketLoop", "lib.rs"),
];
/// Bytes of a file that is not worth a question.
const BLOB_BYTES_MAX: u64 = 300 * 1024;

#[test]
fn crates_import_only_what_lies_below_them() {
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let of_worker = |name: &str| WORKER.iter().find(|(known, _)| *known == name);
    let of_planes = |name: &str| PLANES.iter().find(|(known, _)| *known == name);
    let is_io = |name: &str| IO.contains(&name) || of_worker(name).is_some() || of_planes(name).is_some();
    let mut seen = 0;
    for package in packages().iter().filter(|package| !LAB.contains(&text(&package["name"]))) {
        let name = text(&package["name"]);
        let own = place(name).unwrap_or_else(|| panic!("{name} is not in the order of crates"));
        seen += 1;
        for dependency in package["dependencies"].as_array().unwrap() {
            let import = text(&dependency["name"]);
            if import == "wasmtime" {
                assert!(WITH_WASMTIME.contains(&name), "{name} links Wasmtime");
            }
            if LAB.contains(&import) {
                assert_eq!(dependency["kind"], "dev", "{name} imports {import}");
            } else if let Some(other) = place(import) {
                assert!(other < own, "{name} imports {import}, which lies above it");
                let in_worker = of_worker(name).is_some_and(|(_, imports)| imports.contains(&import));
                assert!(in_worker || of_worker(import).is_none(), "{name} imports {import}, a crate of the worker");
                let in_planes = of_planes(name).is_some_and(|(_, imports)| imports.contains(&import));
                let in_tests = name == "netserv-dataplane"
                    && dependency["kind"] == "dev"
                    && (import == "netserv-signal" || of_planes(import).is_some());
                let known = in_worker || in_planes || in_tests;
                assert!(
                    known || !is_io(name) || !is_io(import),
                    "{name} imports {import}: io crates never import each other"
                );
            }
            if name == "netserv-packet-loop" {
                let is_plane = of_planes(import).is_some() && import != "netserv-plane";
                assert!(!is_plane, "the packet path runs on the contract of planes, and not on {import}");
            }
            if name == "netserv-controller" && import.starts_with("netserv-") {
                let known = ["netserv-model", "netserv-authority", "netserv-ledger"].contains(&import);
                assert!(known, "the controller imports the model, the authority and the ledger, and not {import}");
            }
        }
    }
    assert_eq!(seen, ORDER.len());
}

/// Goal: there is one place where requests, signals and effects meet, and the daemon, the lab and the fuzzer run it.
#[test]
fn only_the_node_imports_all_three_engines() {
    let packages = packages();
    let imports = |package: &Value, engine: &str| {
        let dependencies = package["dependencies"].as_array().unwrap();
        dependencies.iter().any(|dependency| text(&dependency["name"]) == engine)
    };
    let with_all = packages.iter().filter(|package| ENGINES.iter().all(|engine| imports(package, engine)));
    assert_eq!(with_all.map(|package| text(&package["name"])).collect::<Vec<_>>(), ["netserv-node"]);
    let lab = packages.iter().find(|package| text(&package["name"]) == "netserv-lab").unwrap();
    for engine in ["netserv-nslp", "netserv-controller"] {
        assert!(!imports(lab, engine), "the lab imports {engine}; its world runs the node");
    }
}

/// Returns the packages of the workspace as `cargo metadata` has them.
fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo is there");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn rooms_import_what_is_said_of_them_and_lies_below() {
    for (src, rooms) in ROOMS {
        let imports = file_imports::imports(&root().join(src));
        let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (file, imports) in &imports {
            let room = room_of(file);
            let others = imports.files.iter().map(|file| room_of(file)).filter(|other| *other != room);
            used.entry(room.clone()).or_default().extend(others);
        }
        let mut floors: BTreeMap<&str, usize> = BTreeMap::new();
        for (room, imports) in rooms {
            let below = imports.split_whitespace();
            let below = below.map(|import| floors.get(import).unwrap_or_else(|| panic!("{import} is above {room}")));
            floors.insert(room, 1 + below.max().copied().unwrap_or_default());
        }
        assert!(floors.values().all(|floor| *floor <= FLOORS_MAX), "{src} has more floors: {floors:?}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let said = rooms.iter().map(|(room, imports)| ((*room).to_owned(), words(imports))).collect();
        assert_eq!(used, said, "what the rooms of {src} import");
    }
}

/// Returns the folder of a crate that a file is in, or its own name.
fn room_of(file: &Path) -> String {
    file.with_extension("").iter().next().unwrap().to_string_lossy().into_owned()
}

#[test]
fn folders_import_only_what_they_may() {
    let mut wrong = Vec::new();
    for (place, forbidden) in WALLS {
        assert!(root().join(place).exists(), "there is no {place}");
        let src = place.split_inclusive("/src").next().unwrap();
        for (file, imports) in file_imports::imports(&root().join(src)) {
            let file = Path::new(src).join(file);
            if !file.starts_with(place) {
                continue;
            }
            let files = imports.files.iter().map(|import| Path::new(src).join(import));
            let outside = imports.outside.iter().map(|path| PathBuf::from(path.replace("::", "/")));
            for import in files.chain(outside) {
                let is_forbidden = |one: &&&str| import.starts_with(one.replace("::", "/"));
                wrong.extend(forbidden.iter().find(is_forbidden).map(|_| (file.clone(), import)));
            }
        }
    }
    assert!(wrong.is_empty(), "these import what they may not: {wrong:#?}");
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for place in WITHOUT_CIRCLES {
        let src = place.split_inclusive("/src").next().unwrap();
        let imports = file_imports::imports(&root().join(src));
        let is_here = |file: &PathBuf| Path::new(src).join(file).starts_with(place);
        assert!(imports.iter().any(|(file, one)| is_here(file) && !one.files.is_empty()), "{place} has no imports");
        let mut circles = file_imports::circles(&imports);
        circles.retain(|circle| circle.iter().any(is_here));
        assert!(circles.is_empty(), "in {place}: {circles:#?}");
    }
}

/// Goal: an engine hands inputs to its parts; a method in another file could touch the fields of all of them.
#[test]
fn engines_have_their_impl_in_one_file() {
    for (src, engine, own) in ENGINE_IMPLS {
        let head = format!("impl {engine} {{");
        let sources = tracked().into_iter().filter(|path| path.starts_with(src) && extension(path) == "rs");
        let has = |path: &PathBuf| {
            let text = std::fs::read_to_string(root().join(path)).unwrap_or_default();
            text.lines().any(|line| line == head)
        };
        assert_eq!(sources.filter(has).collect::<Vec<_>>(), [Path::new(src).join(own)]);
    }
}

#[test]
fn sources_have_a_licence_line_and_no_trailing_blanks() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for path in tracked() {
        let source = ["rs", "c", "h", "java", "js", "css", "html"].contains(&extension(&path));
        if !source || path.starts_with("fuzz/corpus") || is_of_others(&path) {
            continue;
        }
        checked += 1;
        let text = std::fs::read_to_string(root().join(&path)).unwrap_or_default();
        let head: String = text.lines().take(5).collect();
        if !head.contains("SPDX-License-Identifier: Apache-2.0") {
            wrong.push(format!("{}: no licence line", path.display()));
        }
        for (number, line) in text.lines().enumerate().filter(|(_, line)| line.ends_with([' ', '\t'])) {
            wrong.push(format!("{}:{}: blanks at the end of `{}`", path.display(), number + 1, line.trim()));
        }
    }
    assert!(checked > 50, "only {checked} sources found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What others made lies in folders of its own, as it came, with its licence.
#[test]
fn files_of_others_are_as_they_came() {
    let mut folders: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for path in tracked().into_iter().filter(|path| is_of_others(path)) {
        folders.entry(path.parent().unwrap().to_owned()).or_default().push(path);
    }
    assert!(!folders.is_empty());
    for (folder, files) in folders {
        assert!(files.contains(&folder.join("LICENSE")), "{} has no licence", folder.display());
        let said = std::fs::read_to_string(root().join(&folder).join("README.md")).unwrap();
        for file in files.iter().filter(|file| !file.ends_with("README.md")) {
            let digest = Sha256::digest(std::fs::read(root().join(file)).unwrap());
            let name = file.file_name().unwrap().to_string_lossy();
            assert!(said.contains(&format!("| {name} | {digest:x} |")), "{} is another file", file.display());
        }
    }
}

fn is_of_others(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "third-party")
}

/// Goal: the Rust bindings of server modules are those of `wit/`.
///
/// They are checked in, so that no build of a module builds their generator.
#[test]
fn bindings_are_made_from_the_interfaces_that_are_there() {
    let is_input = |path: &PathBuf| {
        let generator = ["Cargo.toml", "src/main.rs"].map(|file| Path::new("modules/sdk/bindings").join(file));
        generator.contains(path) || (path.starts_with("wit") && extension(path) == "wit")
    };
    let is_output = |path: &PathBuf| {
        let text = || std::fs::read_to_string(root().join(path)).unwrap_or_default();
        path.starts_with("modules") && extension(path) == "rs" && text().lines().nth(1) == Some(MADE_FROM_WIT)
    };
    // As modules/sdk/bindings/src/main.rs writes it.
    let digest = |files: BTreeSet<PathBuf>| {
        let bytes = |file: &PathBuf| Sha256::digest(std::fs::read(root().join(file)).unwrap());
        let list: String = files.iter().map(|file| format!("{:x} {}\n", bytes(file), file.display())).collect();
        format!("{:x}", Sha256::digest(list))
    };
    let inputs = digest(tracked().into_iter().filter(is_input).collect());
    let outputs = digest(tracked().into_iter().filter(is_output).collect());
    let made = std::fs::read_to_string(root().join("modules/sdk/bindings/digests.txt")).unwrap();
    let fix = "run ./dev bindings: wit/ or the generator changed, or bindings were changed by hand";
    assert_eq!(made, format!("inputs {inputs}\noutputs {outputs}\n"), "{fix}");
}

const MADE_FROM_WIT: &str = "// Made from wit/ by `./dev bindings`.";

#[test]
fn no_large_files_and_nothing_of_one_machine() {
    let mut wrong = Vec::new();
    for path in tracked() {
        let full = root().join(&path);
        let Ok(metadata) = std::fs::metadata(&full) else { continue };
        let generated = ["lock", "json"].contains(&extension(&path));
        if metadata.len() > BLOB_BYTES_MAX && !generated {
            wrong.push(format!("{} has {} bytes", path.display(), metadata.len()));
        }
        let text = std::fs::read_to_string(&full).unwrap_or_default();
        // Put together here, so that this file does not find itself.
        for place in ["work/main", "work/shared", "root/.cargo"].map(|place| format!("/{place}")) {
            if text.contains(&place) {
                wrong.push(format!("{} names {place}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Goal: a module with files of its own is the `mod.rs` of their folder, everywhere.
#[test]
fn modules_with_a_folder_are_its_mod_rs() {
    let own = |path: &PathBuf| extension(path) == "rs" && !is_of_others(path) && !path.ends_with("src/bindings.rs");
    let beside: Vec<PathBuf> = tracked()
        .into_iter()
        .filter(|path| own(path) && !path.components().any(|part| part.as_os_str() == "bindings"))
        .filter(|path| root().join(path.with_extension("")).is_dir())
        .collect();
    assert!(beside.is_empty(), "these are beside their folders: {beside:#?}");
}

#[test]
fn every_source_file_is_reached_from_its_crate() {
    let mut dead = Vec::new();
    for path in tracked()
        .into_iter()
        .filter(|path| extension(path) == "rs" && path.components().any(|c| c.as_os_str() == "src"))
    {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let in_bin = path.parent().is_some_and(|parent| parent.ends_with("src/bin"));
        if ["lib", "main", "build"].contains(&stem.as_str()) || in_bin {
            continue;
        }
        let (name, dir) = if stem == "mod" {
            let dir = path.parent().unwrap();
            (dir.file_name().unwrap().to_string_lossy().into_owned(), dir.parent().unwrap().to_owned())
        } else {
            (stem, path.parent().unwrap().to_owned())
        };
        let parents = ["lib.rs", "main.rs", "mod.rs"].map(|file| dir.join(file));
        let sibling = dir.with_extension("rs");
        let declared = parents.iter().chain([&sibling]).any(|parent| {
            let text = std::fs::read_to_string(root().join(parent)).unwrap_or_default();
            text.lines().any(|line| {
                let line = line.trim().trim_end_matches(" {");
                line.ends_with(&format!("mod {name};")) || line.ends_with(&format!("\"{name}.rs\"]"))
            })
        });
        if !declared {
            dead.push(path.display().to_string());
        }
    }
    assert!(dead.is_empty(), "no `mod` names these: {dead:?}");
}

#[test]
fn the_architecture_names_only_what_exists() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut missing = Vec::new();
    let mut checked = 0;
    for word in text.split('`').skip(1).step_by(2) {
        let is_path = word.contains('/') && !word.contains([' ', '*', '<', '{']) && !word.starts_with(['/', '-']);
        if is_path && !word.contains("://") {
            checked += 1;
            if !root().join(word).exists() {
                missing.push(word.to_owned());
            }
        }
    }
    assert!(checked > 20, "only {checked} paths found");
    assert!(missing.is_empty(), "ARCHITECTURE.md names what is not there: {missing:?}");
}

#[test]
fn every_promise_names_its_test() {
    for page in ["SPECIFICATION.md", "docs/promises.md", "docs/shared-places.md", "docs/figures.md"] {
        every_row_names_its_test(page);
    }
}

fn every_row_names_its_test(page: &str) {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| promise") && !is_heading(line);
    let rows: Vec<&str> = text.lines().filter(is_row).collect();
    assert!(rows.len() > 10, "only {} rows in {page}", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let proof = cells[cells.len() - 2];
        let named = proof.split('`').skip(1).step_by(2).all(|test| {
            let (file, function) = test.split_once("::").map_or((test, None), |(file, name)| (file, Some(name)));
            let Ok(text) = std::fs::read_to_string(root().join(file)) else { return test.starts_with("./dev") };
            function.is_none_or(|name| text.contains(&format!("fn {name}(")))
        });
        assert!(proof.contains("[pending]") || (proof.contains('`') && named), "no test in {page} for: {row}");
    }
}

/// Returns whether a line of a table of shared places is no place.
fn is_heading(line: &str) -> bool {
    line.starts_with("| place ") || line.starts_with("| **")
}

/// Each shared place names its bound: a constant that there is, of the value that is written there, or a key of the configuration.
/// That its test exists is among what every promise is held to.
#[test]
fn every_shared_place_has_its_bound() {
    let places = std::fs::read_to_string(root().join("docs/shared-places.md")).unwrap();
    let mut constants: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in tracked().into_iter().filter(|path| extension(path) == "rs") {
        let source = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        for declared in source.split("const ").skip(1) {
            let Some((name, rest)) = declared.split_once(": ") else { continue };
            let value = rest.split(';').next().and_then(|rest| rest.split_once(" = ")).map_or("", |(_, value)| value);
            constants.entry(name.to_owned()).or_default().insert(value.replace('_', ""));
        }
    }
    let mut checked = 0;
    for line in places.lines().filter(|line| line.starts_with("| ") && !is_heading(line)) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        assert_eq!(cells.len(), 5, "{line}");
        assert!(cells[1].contains('`'), "no bound: {line}");
        let words = cells[1..4].iter().flat_map(|cell| cell.split('`').skip(1).step_by(2));
        for word in words.filter(|word| word.chars().all(|one| one.is_ascii_uppercase() || one == '_')) {
            let values = constants.get(word).unwrap_or_else(|| panic!("`{word}` is no constant: {line}"));
            checked += 1;
            let after = line.split_once(&format!("`{word}` = ")).map_or("", |(_, after)| after);
            let written: String = after.chars().take_while(char::is_ascii_digit).collect();
            assert!(written.is_empty() || values.contains(&written), "`{word}` is {values:?}, not {written}");
        }
    }
    assert!(checked > 50, "only {checked} bounds found");
}

/// Pages that name tests, as `path::name`, name some that are there.
#[test]
fn pages_name_tests_that_exist() {
    for (page, tests_min) in [("docs/gist.md", 80), ("docs/on-path.md", 25)] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let mut checked = 0;
        for (path, name) in text.split('`').skip(1).step_by(2).filter_map(|word| word.split_once("::")) {
            let source = std::fs::read_to_string(root().join(path));
            let exists = source.is_ok_and(|source| source.contains(&format!("fn {name}(")));
            assert!(exists, "{page} names {path}::{name}, which is not there");
            checked += 1;
        }
        assert!(checked >= tests_min, "only {checked} tests found in {page}");
    }
}

/// The counts above the tables of docs/gist.md are those of their rows.
#[test]
fn the_page_about_gist_counts_its_rows() {
    let text = std::fs::read_to_string(root().join("docs/gist.md")).unwrap();
    let states = ["right", "untested", "wrong", "missing", "other"];
    let of = |state: &str| text.lines().filter(|line| line.split(" | ").nth(2) == Some(state)).count();
    let counts = states.map(of);
    let words: Vec<String> = counts.iter().zip(states).map(|(count, state)| format!("{count} {state}")).collect();
    let line = format!("There are {} rows: {}.", counts.iter().sum::<usize>(), words.join(", "));
    assert!(text.contains(&line), "docs/gist.md lacks: {line}");
}

/// The figures are the goals that the bench compares with, and each names the part of the bench that measures it.
#[test]
fn every_figure_is_a_goal_of_the_bench() {
    let text = std::fs::read_to_string(root().join("docs/figures.md")).unwrap();
    let (_, figures) = text.split_once("## Figures").unwrap();
    let rows: Vec<Vec<&str>> = figures
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| promise"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let promises: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    let goals: Vec<String> = Goal::ALL.into_iter().map(Goal::text).collect();
    assert_eq!(promises, goals);
    for (row, goal) in rows.iter().zip(Goal::ALL) {
        let part = format!("{:?}", goal.part()).to_lowercase();
        let only = row[2].split_once("./dev bench --only ").map_or("", |(_, rest)| rest.split('`').next().unwrap());
        assert!(only.split(',').any(|named| named == part), "{row:?} is measured by {part}");
    }
}

/// The same blocks are known to the node, to its workers, to the command line and to what modules are written against.
#[test]
fn every_list_of_building_blocks_is_the_same() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let model = read("core/model/src/dependency.rs");
    let node = [quoted(&model, "const BLOCKS_ALWAYS:"), quoted(&model, "const BLOCKS_OPTIONAL:")].concat();
    let worker = quoted(&read("io/worker/server/src/blocks/mod.rs"), "const BLOCKS:");
    let worker: BTreeSet<(String, String)> = worker.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let netserv = read("app/netserv/src/cmd/module/code/mod.rs");
    let packages = quoted(&netserv, "const PACKAGES:");
    let packages: BTreeSet<(String, String)> = packages
        .chunks(2)
        .map(|pair| (pair[0].strip_prefix("netserv:").unwrap().to_owned(), pair[1].clone()))
        .collect();
    assert_eq!(packages, worker, "packages that components import, of netserv and of the worker");
    let folders = std::fs::read_dir(root().join("wit/deps")).unwrap().flatten();
    // A later version beside the first one is in a folder with its number: `netserv-tcp-1.1`.
    let package = |name: &str| name.strip_prefix("netserv-").map(|name| name.split('-').next().unwrap().to_owned());
    let folders = folders.filter_map(|folder| package(folder.file_name().to_str()?));
    let of_worker: BTreeSet<String> = worker.iter().map(|(package, _)| package.clone()).collect();
    assert_eq!(folders.collect::<BTreeSet<_>>(), of_worker, "packages in wit/deps and of the worker");

    let java = quoted(&read("java/host/src/main/java/org/netserv/host/ModuleServices.java"), "String CAPABILITIES");
    let functions = quoted(&netserv, "const FUNCTIONS:");
    let functions = functions.chunks(2).map(|pair| pair[1].clone());
    // What is no import: flavours and kinds of modules.
    let kinds = ["command", "http", "wasm"].map(str::to_owned);
    let all = worker.into_iter().map(|(_, name)| name).chain(functions).chain(java).chain(kinds);
    assert_eq!(all.collect::<BTreeSet<_>>(), node.iter().cloned().collect(), "blocks of all others and of core/model");
}

/// Returns the texts in quotes of the declaration that begins with `head`.
fn quoted(source: &str, head: &str) -> Vec<String> {
    let (_, rest) = source.split_once(head).unwrap_or_else(|| panic!("no `{head}`"));
    let declaration = rest.split_once(";\n").unwrap().0;
    declaration.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Those without recorded tests, which are servers of streams, must be in a test that runs them.
#[test]
fn every_sample_module_is_tested() {
    let is_test = |path: &&PathBuf| {
        let in_tests = path.components().any(|part| part.as_os_str() == "tests");
        in_tests && extension(path) == "rs" && !path.ends_with("tidy.rs")
    };
    let read = |path: &PathBuf| std::fs::read_to_string(root().join(path)).unwrap_or_default();
    let tests: String = tracked().iter().filter(is_test).map(read).collect();
    let modules = projects().unwrap();
    assert!(modules.len() >= 4, "{modules:?}");
    for (name, manifest) in modules {
        let text = std::fs::read_to_string(&manifest).unwrap();
        let is_recorded = ["[[test]]", "[[http-test]]", "[[tcp-test]]"].iter().any(|kind| text.contains(kind));
        let is_run = [&name, &name.replace('-', "_")]
            .iter()
            .any(|name| tests.contains(&format!("\"{name}\"")) || tests.contains(&format!("{name}.wasm")));
        assert!(is_recorded || is_run, "{} has no test, and none runs it", manifest.display());
    }
}

/// Prints the longest files and functions; a look at them is worth more than a limit.
#[test]
fn the_longest_files_and_functions_are_shown() {
    let (mut files, mut functions) = (Vec::new(), Vec::new());
    for path in tracked().into_iter().filter(|path| extension(path) == "rs") {
        let text = std::fs::read_to_string(root().join(&path)).unwrap_or_default();
        files.push((text.lines().count(), path.display().to_string()));
        let mut start: Option<(usize, usize, String)> = None;
        for (number, line) in text.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let head = line.trim_start();
            let begins =
                ["fn ", "pub fn ", "pub(crate) fn ", "async fn ", "pub async fn "].iter().any(|f| head.starts_with(f));
            if begins && !head.ends_with('}') {
                start = Some((number, indent, head.to_owned()));
            } else if let Some((from, at, name)) = &start
                && indent == *at
                && head == "}"
            {
                functions.push((number - from, format!("{}:{} {name}", path.display(), from + 1)));
                start = None;
            }
        }
    }
    files.sort_unstable();
    functions.sort_unstable();
    assert!(!files.is_empty() && !functions.is_empty());
    for (lines, what) in files.iter().rev().take(10).chain(functions.iter().rev().take(10)) {
        println!("{lines:5} lines: {what}");
    }
}

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

pub(super) fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// The files that are in git, or would be.
pub(super) fn tracked() -> BTreeSet<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git is there");
    let files: BTreeSet<PathBuf> = String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect();
    assert!(!files.is_empty(), "git lists no files");
    files
}
