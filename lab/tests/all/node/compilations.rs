// SPDX-License-Identifier: Apache-2.0
//! Code that is slow to compile holds up its own user's slow code only.

use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::{LabPackage, LabUser};
use netserv_lab::topology::{Kind, Topology};
use netserv_model::RefusalKind;
use netserv_model::api::RequestResult;
use netserv_model::request::Outcome;
use netserv_skips::skipped;

/// Users whose modules are slow to compile,
const BOMBERS: u32 = 8;
/// and how many each of them asks for at once.
const BOMBS: usize = 2;
/// How long the SETUP of a module of 32 kB may take beside them.
const QUICK_TIME_MAX: Duration = Duration::from_secs(2);
/// When such modules are installed, after the slow ones are asked for: while these have their first turns, and once each of them
/// is known to be slow.
const MOMENTS: [Duration; 3] = [Duration::from_millis(100), Duration::from_millis(2500), Duration::from_millis(5000)];
/// Functions, branches and values of a slow module. Optimised as for a release, it is compiled in two seconds or more.
const SLOW_SIZE: (usize, usize, usize) = (1, 8000, 400);
/// Those of a module of some 32 kB.
const QUICK_SIZE: (usize, usize, usize) = (130, 12, 8);

/// Goal: while eight users install modules that each take longer to compile than a SETUP may take, the SETUP of a module of
/// 32 kB of another user takes two seconds at most, compilation included (on a busy machine, nine times what it takes alone), and one of the
/// eight has such a module installed before its slow ones.
/// Method: two SETUPs at once of each of the eight; then, at three moments, one with a package that the node has not seen: two
/// of other users, and the last of the first of the eight. Most of the slow ones wait or are compiled until then.
#[test]
fn eight_users_with_slow_code_hold_up_no_module_of_32_kb_over_two_seconds() {
    let Some(node) = Node::start("eight_users_with_slow_code_hold_up_no_module_of_32_kb_over_two_seconds") else {
        return;
    };
    let numbered = || node.bombers.iter().cycle().take(BOMBERS as usize * BOMBS).enumerate();
    let slow: Vec<_> = numbered().map(|(number, user)| (user, node.package("slow", number, user, SLOW_SIZE))).collect();
    let users = node.others.iter().chain(node.bombers.first());
    let quick: Vec<_> =
        users.enumerate().map(|(number, user)| (user, node.package("quick", number, user, QUICK_SIZE))).collect();
    let first = node.package("alone", 0, &node.others[0], QUICK_SIZE);
    let alone = Duration::from_micros(node.setup(&node.others[0], &first).unwrap().took_us);
    // Nine users share a processor, which other programs may keep busy.
    let most = QUICK_TIME_MAX.max(alone * (1 + BOMBERS));
    std::thread::scope(|scope| {
        // Nobody waits for the slow ones to the end.
        let _kill = Kill(node.lab.pid("n1", "netservd").unwrap());
        let begun = Instant::now();
        let slow: Vec<_> = slow.iter().map(|(user, package)| scope.spawn(|| node.setup(user, package))).collect();
        for ((user, package), moment) in quick.iter().zip(MOMENTS) {
            std::thread::sleep(moment.saturating_sub(begun.elapsed()));
            let result = node.setup(user, package).unwrap();
            let took = Duration::from_micros(result.took_us);
            let compiled = slow.iter().filter(|setup| setup.is_finished()).count();
            eprintln!("{} after {moment:?}: {took:?}; {compiled} slow ones are installed", user.name);
            assert!(matches!(result.nodes[0].outcome, Outcome::Installed { .. }), "{result:?}");
            // A user's own slow code has its quick turns before.
            let is_own = node.bombers.iter().any(|bomber| bomber.name == user.name);
            assert!(took <= most || is_own, "a module of 32 kB took {took:?}, alone {alone:?}");
            assert!(compiled < slow.len() / 2, "the slow modules are compiled, so they were not slow");
        }
    });
}

/// Goal: code that takes the compiler longer than the operator lets it is refused by that name, and kept out for a while.
#[test]
fn code_over_the_compilers_limit_is_refused_by_that_name() {
    let test = "code_over_the_compilers_limit_is_refused_by_that_name";
    let Some(node) = Node::start_with(test, "compile-cpu-s = 1\n") else { return };
    let package = node.package("slow", 0, &node.bombers[0], SLOW_SIZE);
    for expected in [RefusalKind::CompileLimit, RefusalKind::Quarantined] {
        let result = node.setup(&node.bombers[0], &package).unwrap();
        let outcome = &result.nodes[0].outcome;
        assert!(outcome.is_refused_for(expected), "{outcome:?}");
    }
}

/// Kills a process when it is dropped.
struct Kill(u32);

impl Drop for Kill {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = Command::new("kill").args(["-9", &self.0.to_string()]).status();
    }
}

/// One node with users whose code is slow to compile, and others.
struct Node {
    lab: Lab,
    bombers: Vec<LabUser>,
    others: Vec<LabUser>,
}

impl Node {
    fn start(test: &str) -> Option<Node> {
        Node::start_with(test, "")
    }

    /// With more about fetching.
    fn start_with(test: &str, more: &str) -> Option<Node> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        let mut lab = Lab::up(Topology::chain(&[("n1", Kind::Node), ("h", Kind::Host)])).unwrap();
        lab.keep_code_apart();
        let own = format!("{}/32", lab.v4("h"));
        let users = |name: &str, most: usize| -> Vec<LabUser> {
            (0..most).map(|number| lab.user(&format!("{name}{number}"), &[&own]).unwrap()).collect()
        };
        let (bombers, others) = (users("bomber", BOMBERS as usize), users("user", MOMENTS.len() - 1));
        let files =
            format!("[fetch]\nschemes = [\"file\"]\nfile-roots = [{:?}]\n{more}", lab.dir().display().to_string());
        let users: Vec<LabUser> = bombers.iter().chain(&others).cloned().collect();
        lab.start_netservd("n1", "node", &users, &files).unwrap();
        Some(Node { lab, bombers, others })
    }

    fn package(&self, name: &str, number: usize, user: &LabUser, size: (usize, usize, usize)) -> LabPackage {
        let file = |end: &str| self.lab.dir().join(format!("{name}{number}.{end}"));
        std::fs::write(file("wasm"), wat::parse_str(module(number, size)).unwrap()).unwrap();
        let manifest =
            format!("manifest = 1\nname = \"example.org/{name}{number}\"\nversion = \"1.0.0\"\n[packet]\nabi = 1\n");
        std::fs::write(file("toml"), manifest).unwrap();
        self.lab.package_from(&file("toml"), &file("wasm"), &file("nsm"), user).unwrap()
    }

    fn setup(&self, user: &LabUser, package: &LabPackage) -> anyhow::Result<RequestResult> {
        let (file, key) = (package.path.to_string_lossy(), user.key.to_string_lossy());
        let (url, filter) = (format!("file://{file}"), format!("udp dst {}/32", self.lab.v4("h")));
        let setup = ["setup", &file, "--local", "--url", &url, "--filter", &filter, "--timeout", "120s"];
        self.lab.request("n1", &[&setup[..], &["--user", &user.name, "--key", &key]].concat())
    }
}

/// A packet module with further functions of many branches and many values, all of which are in use to its end. The time
/// that it takes to find registers for them grows faster than either.
fn module(number: usize, (functions, branches, values): (usize, usize, usize)) -> String {
    let mut text = "(module (memory (export \"memory\") 5)
        (func (export \"netserv_abi\") (result i32) (i32.const 1))
        (func (export \"netserv_area\") (param i32 i32) (result i32) (i32.const 65536))
        (func (export \"netserv_start\") (result i32) (i32.const 0))
        (func (export \"netserv_process\") (param i32))\n"
        .to_owned();
    (0..functions).for_each(|function| add_function(&mut text, number + function, (branches, values)));
    text + ")"
}

fn add_function(text: &mut String, number: usize, (branches, values): (usize, usize)) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "(func (result i32) (local {})", "i32 ".repeat(values));
    for value in 0..values {
        let _ = writeln!(text, "(local.set {value} (i32.load (i32.const {})))", 64 * value);
    }
    for branch in 0..branches {
        let (condition, from, to) = ((branch * 7 + 1) % values, (branch * 13 + 5) % values, branch % values);
        let set = format!("(local.set {to} (i32.add (local.get {from}) (i32.const {number})))");
        let _ = writeln!(text, "(if (local.get {condition}) (then {set}))");
    }
    let all = (1..values).map(|value| format!("(local.get {value}) i32.xor\n")).collect::<String>();
    let _ = writeln!(text, "local.get 0\n{all})");
}
