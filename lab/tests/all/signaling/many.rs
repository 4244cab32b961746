// SPDX-License-Identifier: Apache-2.0
//! Many users at once on one node.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use netserv_lab::netns::{Lab, is_root, wait_until};
use netserv_lab::node::{LabPackage, LabUser};
use netserv_lab::patience::grown;
use netserv_lab::topology::{Kind, Topology};
use netserv_model::request::{ModuleState, Outcome};
use netserv_skips::skipped;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const USERS: usize = 100;
/// How long the API may take while containers start. An answer takes about a millisecond, a start of all containers one
/// after the other some hundred times as long; the machine may be busy with other tests.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(250);

/// Goal: users who want the same package share one compilation, and the node answers while containers start, all of
/// them at once too, whatever limit of open files it was started with.
/// Method: twenty SETUPs at once of a package that the node has not seen; eighty more; then the launcher is killed, so
/// that a hundred containers start again, while the API is asked all the time.
#[test]
fn a_hundred_users_share_a_package_and_start_again_together() {
    let Some(node) = Node::start("a_hundred_users_share_a_package_and_start_again_together") else { return };
    node.setup_all(&node.users[..20]);
    assert_eq!(node.lab.log("n1", "netservd").matches("a package is compiled").count(), 1);
    node.setup_all(&node.users[20..]);
    assert_eq!(node.lab.modules("n1").unwrap().modules.len(), USERS);

    let before = node.open_files();
    kill_launcher(node.lab.pid("n1", "netservd").unwrap());
    let killed = Instant::now();
    let mut answers = Vec::new();
    let up = wait_until(Duration::from_secs(20), || {
        answers.push(node.ask());
        let modules = node.lab.modules("n1").unwrap().modules;
        modules.iter().all(|status| status.state == ModuleState::Running && status.restarts > 0)
    });
    assert!(up, "{:?}", node.lab.modules("n1").unwrap());
    answers.sort();
    let (median, worst) = (answers[answers.len() / 2], answers[answers.len() - 1]);
    eprintln!("{USERS} containers after {:?}; GET /v1/node: {median:?}, at most {worst:?}", killed.elapsed());
    assert!(worst < grown(ANSWER_TIME_MAX), "the node did not answer for {worst:?}");
    let after = node.open_files();
    eprintln!("open files: {before} before, {after} after");
    assert!(after <= before + 10, "{after} files are open, {before} were before");
}

struct Node {
    lab: Lab,
    users: Vec<LabUser>,
    package: LabPackage,
}

impl Node {
    /// Starts one node with a hundred users who share a key.
    fn start(test: &str) -> Option<Node> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        // A hundred containers take more than the daemon is started with.
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(512), maximum }).unwrap();
        let mut lab = Lab::up(Topology::chain(&[("n1", Kind::Node), ("h", Kind::Host)])).unwrap();
        lab.keep_code_apart();
        let user = lab.user("user0", &[&format!("{}/32", lab.v4("h"))]).unwrap();
        let users: Vec<LabUser> =
            (0..USERS).map(|number| LabUser { name: format!("user{number}"), ..user.clone() }).collect();
        let files = format!("[fetch]\nschemes = [\"file\"]\nfile-roots = [{:?}]\n", lab.dir().display().to_string());
        lab.start_netservd("n1", "node", &users, &files).unwrap();
        let package = lab.package("echo", &user).unwrap();
        Some(Node { lab, users, package })
    }

    /// Sends a SETUP of each user, all at once.
    fn setup_all(&self, users: &[LabUser]) {
        std::thread::scope(|scope| users.iter().for_each(|user| drop(scope.spawn(|| self.setup(user)))));
    }

    fn setup(&self, user: &LabUser) {
        let (file, key) = (self.package.path.to_string_lossy(), user.key.to_string_lossy());
        let (url, filter) = (format!("file://{file}"), format!("udp dst {}/32 port 44444", self.lab.v4("h")));
        let args = ["setup", &file, "--local", "--url", &url, "--filter", &filter, "--user", &user.name, "--key", &key];
        let result = self.lab.request("n1", &args).unwrap();
        let installed = |outcome: &Outcome| matches!(outcome, Outcome::Installed { .. });
        assert!(result.nodes.iter().all(|node| installed(&node.outcome)), "{}: {result:?}", user.name);
        assert_eq!(result.nodes.len(), 1, "{}: {result:?}", user.name);
    }

    /// Asks the node about itself, and returns how long that took.
    fn ask(&self) -> Duration {
        let started = Instant::now();
        let mut stream = UnixStream::connect(self.lab.socket("n1")).unwrap();
        stream.write_all(b"GET /v1/node HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        started.elapsed()
    }

    fn open_files(&self) -> usize {
        let pid = self.lab.pid("n1", "netservd").unwrap();
        std::fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd")).unwrap().count()
    }
}

fn kill_launcher(netservd: u32) {
    let children = std::fs::read_to_string(format!("/proc/{netservd}/task/{netservd}/children")).unwrap();
    let [launcher] = children.split_whitespace().collect::<Vec<_>>()[..] else { panic!("children: {children}") };
    assert!(Command::new("kill").args(["-9", launcher]).status().unwrap().success());
}
