// SPDX-License-Identifier: Apache-2.0
//! A network of three namespaces with one node, which goes with this process, however that ends.

use std::fmt::Write as _;
use std::fs::File;
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use netserv_api::NodeInfo;
use netserv_model::manifest::{Manifest, ModuleLimits};
use netserv_model::{Filter, PublicKey, WantedFilter};
use netserv_project::Project;

use crate::cmd::module::code_dir;
use crate::cmd::module::source::Source;
use crate::exit::{Failure, OrFail, one_line};
use netserv_api::Client;

/// The user of the lab.
pub(super) const USER: &str = "developer";
/// How long the node may take until it answers.
const START_TIME_MAX: Duration = Duration::from_secs(20);
/// Lines of the node's log that are shown when it ends.
const LINES_SHOWN: usize = 8;
/// Bytes of memory that the container has beside what its modules may use.
const CONTAINER_BYTES: u64 = 192 * 1024 * 1024;

/// Waits until whoever started it is gone, then ends what is in the namespaces, and removes them and what the node left.
const JANITOR: &str = r#"
cat >/dev/null
# The node alone first: it takes its containers down, and nobody else knows where their control groups are.
for pid in $(ip netns pids "$1-node"); do
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = netservd ] && kill -s TERM "$pid"
done
left=50
while [ "$left" -gt 0 ] && [ -n "$(ip netns pids "$1-node")" ]; do sleep 0.1; left=$((left - 1)); done
for machine in node client server; do
  name="$1-$machine"
  [ -e "/run/netns/$name" ] || continue
  for signal in TERM KILL; do
    pids=$(ip netns pids "$name"); [ -n "$pids" ] || break
    kill -s "$signal" $pids 2>/dev/null
    left=50
    while [ "$left" -gt 0 ] && [ -n "$(ip netns pids "$name")" ]; do sleep 0.1; left=$((left - 1)); done
  done
  # A node that was killed left control groups, which only its configuration tells. Its containers die a moment later.
  left=50
  while [ "$machine" = node ] && [ "$left" -gt 0 ]; do
    nsenter --net="/run/netns/$name" "$3" cleanup --config "$2/netservd.toml" 2>/dev/null && break
    sleep 0.1; left=$((left - 1))
  done
  ip netns delete "$name"
done
rm -rf "$2"
"#;

/// Makes the network: client – node – server.
const NETWORK: &str = r#"
set -e
for machine in client node server; do
  ip netns add "$1-$machine"
  ip -n "$1-$machine" link set lo up
  nsenter --net="/run/netns/$1-$machine" sh -c 'echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad'
done
nsenter --net="/run/netns/$1-node" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward
  echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
link() { # machine interface address; the node's end: interface address
  ip link add "$2" netns "$1" type veth peer name "$5" netns "$4"
  ip -n "$1" address add "10.$3/24" dev "$2"; ip -n "$1" -6 address add "$7/64" dev "$2" nodad
  ip -n "$4" address add "10.$6/24" dev "$5"; ip -n "$4" -6 address add "$8/64" dev "$5" nodad
  ip -n "$1" link set "$2" up; ip -n "$4" link set "$5" up
  ip -n "$1" route add default via "10.$6"; ip -n "$1" -6 route add default via "$8"
}
link "$1-client" eth0 1.0.1 "$1-node" client 1.0.2 fd00:1::1 fd00:1::2
link "$1-server" eth0 2.0.2 "$1-node" server 2.0.1 fd00:2::2 fd00:2::1
"#;

/// The network with its node.
pub(super) struct Lab {
    id: String,
    dir: PathBuf,
    node: Child,
    janitor: Option<Child>,
}

impl Lab {
    /// Makes the network and starts the node, which knows one user with this key.
    pub(super) fn up(key: PublicKey, project: &Project) -> Result<Lab, Failure> {
        let netservd = beside("netservd")?;
        let id = format!("nsrun{}", std::process::id());
        let dir = std::env::temp_dir().join(&id);
        let fix = "see that iproute2 and util-linux are installed, and that no container keeps you from namespaces";
        std::fs::create_dir(&dir).or_fail(format!("cannot make {}", dir.display()), "remove it, or set TMPDIR")?;
        // First of all, so that from here on nothing is left behind.
        let mut janitor = Command::new("setsid");
        janitor
            .args(["sh", "-c", JANITOR, "janitor", &id])
            .arg(&dir)
            .arg(&netservd)
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        let mut janitor = janitor.stderr(Stdio::null()).spawn().or_fail("cannot run setsid", fix)?;
        let made = Lab::make(&netservd, &id, &dir, key, project, fix);
        let node = match made {
            Ok(node) => node,
            Err(failure) => {
                drop(janitor.stdin.take());
                let _ = janitor.wait();
                return Err(failure);
            }
        };
        Ok(Lab { id, dir, node, janitor: Some(janitor) })
    }

    fn make(
        netservd: &Path,
        id: &str,
        dir: &Path,
        key: PublicKey,
        project: &Project,
        fix: &str,
    ) -> Result<Child, Failure> {
        let network = Command::new("sh").args(["-c", NETWORK, "network", id]).stdin(Stdio::null()).output();
        let network = network.or_fail("cannot run sh", fix)?;
        if !network.status.success() {
            let said = one_line(&String::from_utf8_lossy(&network.stderr));
            return Err(Failure::new(format!("the network cannot be made: {said}"), fix));
        }
        let path = dir.join("netservd.toml");
        let fix_dir = "set TMPDIR to a folder with room";
        std::fs::write(&path, config(dir, key, project)).or_fail("cannot write the configuration", fix_dir)?;
        let log = File::create(dir.join("netservd.log")).or_fail("cannot write the log", fix_dir)?;
        let errors = log.try_clone().or_fail("cannot write the log", fix_dir)?;
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{id}-node")).arg("--").arg(netservd).arg("run").arg("--config").arg(path);
        // Ctrl-C is for this program, which then ends the node in good order.
        command.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
        command.spawn().or_fail("cannot run nsenter", fix)
    }

    /// Waits until the node answers.
    pub(super) async fn wait_for_node(&mut self, client: &Client) -> Result<(), Failure> {
        let answers = async {
            loop {
                if client.get::<NodeInfo>("/v1/node").await.is_ok() {
                    return true;
                }
                if !matches!(self.node.try_wait(), Ok(None)) {
                    return false;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(START_TIME_MAX, answers).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(self.ended()),
        }
    }

    /// Says that the node ended or does not answer.
    pub(super) fn ended(&self) -> Failure {
        let log = std::fs::read_to_string(self.dir.join("netservd.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LINES_SHOWN)..].join(" | ");
        let fix = "run `netservd doctor`; it says what a node needs on this machine";
        Failure::new(format!("netservd does not run: {}", one_line(&last)), fix)
    }

    /// Returns the lab's own folder.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the node's socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.dir.join("netservd.sock")
    }

    /// Returns the name of a machine's namespace.
    pub(super) fn namespace(&self, machine: &str) -> String {
        format!("{}-{machine}", self.id)
    }

    /// Returns the beginning of a command line that runs in a machine.
    pub(super) fn enter(&self, machine: &str) -> String {
        format!("nsenter --net=/run/netns/{}", self.namespace(machine))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(mut janitor) = self.janitor.take() {
            drop(janitor.stdin.take());
            // It ends the node and removes everything; there is nothing to be done if it cannot.
            let _ = janitor.wait();
        }
        let _ = self.node.wait();
    }
}

/// Returns the filters for a SETUP: the manifest's, narrowed to the server's side of the lab where they name no address.
pub(super) fn filters(manifest: &Manifest) -> Vec<String> {
    manifest.filters().iter().flat_map(in_lab).map(|filter| filter.to_string()).collect()
}

/// Returns the connections for a SETUP that the module takes over, likewise.
pub(super) fn intercepts(manifest: &Manifest) -> Vec<Filter> {
    let narrowed = manifest.intercept().iter().cloned().map(WantedFilter::from).flat_map(|filter| in_lab(&filter));
    narrowed.filter_map(|filter| filter.everywhere().cloned()).collect()
}

fn in_lab(filter: &WantedFilter) -> Vec<WantedFilter> {
    if filter.has_ends() {
        return vec![filter.clone()];
    }
    // What names the port that packets come from looks at a server's answers.
    let is_of_answers = filter.open().source_ports().is_some() && filter.open().destination_ports().is_none();
    let end = if is_of_answers { "src" } else { "dst" };
    let ends = ["10.2.0.0/24", "fd00:2::/64"].into_iter().filter_map(|net| format!("{end} {net}").parse().ok());
    ends.map(|ends| filter.with_ends_of(&ends)).collect()
}

/// Returns command lines that show the module at work; `@CLIENT@` is for the way into the client.
pub(super) fn to_try(source: &Source, addresses: &[IpAddr]) -> Vec<String> {
    let mut lines = Vec::new();
    for filter in source.project.manifest.listen() {
        let Some(port) = filter.destination_ports().map(|ports| ports.to_string()) else { continue };
        let port = port.split('-').next().unwrap_or_default();
        for address in addresses {
            let tcp = filter.to_string().starts_with("tcp");
            let host = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
            lines.push(match (tcp, port) {
                (true, "80") => format!("@CLIENT@ curl http://{host}/"),
                (true, "443") => format!("@CLIENT@ curl --insecure https://{host}/"),
                (true, "8080" | "8000") => format!("@CLIENT@ curl http://{host}:{port}/"),
                (true, _) => format!("@CLIENT@ nc {address} {port}"),
                (false, _) => format!("@CLIENT@ nc -u {address} {port}"),
            });
        }
    }
    if !source.project.manifest.filters().is_empty() {
        lines.push("@CLIENT@ ping -c 3 10.2.0.2".to_owned());
        lines.push("@CLIENT@ sh -c 'echo hello | nc -u -w 1 10.2.0.2 9'".to_owned());
    }
    if !source.project.manifest.intercept().is_empty() {
        lines.push("@CLIENT@ nc 10.2.0.2 PORT     # with a server of yours at that port of `server`".to_owned());
    }
    lines
}

fn config(dir: &Path, key: PublicKey, project: &Project) -> String {
    let path = |name: &str| dir.join(name).display().to_string();
    let mut text = format!("node = \"node\"\nstate-dir = {:?}\nsocket = {:?}\n", path("state"), path("netservd.sock"));
    if let Some(code_dir) = code_dir::path() {
        let _ = writeln!(text, "code-dir = {:?}", code_dir.display().to_string());
    }
    let roots = dir.display().to_string();
    let _ = writeln!(text, "[fetch]\nschemes = [\"file\"]\nfile-roots = [{roots:?}]");
    let _ = writeln!(text, "[network]\nprefixes = [\"10.99.1.0/29\", \"fd00:99::/64\"]");
    let (manifest, bundles) = (&project.manifest, project.build.bundle.is_some());
    let _ = writeln!(text, "[osgi]\nenabled = {bundles}");
    let listen: Vec<String> = manifest.listen().iter().map(ToString::to_string).collect();
    let _ = writeln!(
        text,
        "[[user]]\nname = {USER:?}\nkeys = [{:?}]\nprefixes = [\"0.0.0.0/0\", \"::/0\"]\nlisten = {listen:?}\n\
         connect = [\"tcp\", \"udp\"]",
        key.to_string()
    );
    let limits = &manifest.limits;
    let _ = writeln!(text, "[user.module-limits]\n{}", toml::to_string(&ceiling(limits)).unwrap_or_default());
    let instances = limits.memory_bytes.saturating_mul(u64::from(limits.requests.min(8)));
    let memory = CONTAINER_BYTES.saturating_add(instances).min(2 * 1024 * 1024 * 1024);
    let _ = writeln!(text, "[user.container]\nmemory-bytes = {memory}");
    text
}

/// Returns limits that leave the module what its manifest asks for.
fn ceiling(wanted: &ModuleLimits) -> ModuleLimits {
    ModuleLimits::default().raised_to(&wanted.amounts())
}

/// Returns a program that is installed beside this one.
fn beside(name: &str) -> Result<PathBuf, Failure> {
    let fix = format!("install {name} beside netserv, or use --direct for HTTP without a node");
    let own = std::env::current_exe().or_fail("cannot find this program's own file", &fix)?;
    let path = own.with_file_name(name);
    path.is_file().then(|| path.clone()).ok_or_else(|| Failure::new(format!("there is no {}", path.display()), fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_without_addresses_are_about_the_server() {
        for (filter, expected) in [
            ("udp", vec!["udp dst 10.2.0.0/24", "udp dst fd00:2::/64"]),
            ("tcp port 80", vec!["tcp dst 10.2.0.0/24 port 80", "tcp dst fd00:2::/64 port 80"]),
            ("icmp", vec!["icmp dst 10.2.0.0/24", "icmp dst fd00:2::/64"]),
            ("udp sport 5060", vec!["udp src 10.2.0.0/24 sport 5060", "udp src fd00:2::/64 sport 5060"]),
            ("udp src 10.1.0.0/24", vec!["udp src 10.1.0.0/24"]),
        ] {
            let filter: WantedFilter = filter.parse().unwrap();
            let narrowed = in_lab(&filter);
            assert_eq!(narrowed.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn the_configuration_leaves_a_module_what_it_asks_for() {
        let project = "manifest = 1\nname = \"example.org/a\"\nversion = \"1.0.0\"\n[server]\nlisten = [\"tcp port 80\"]\n\
                       [limits]\nmemory-bytes = 67108864\nrequests = 2\n";
        let project = Project::parse(project).unwrap();
        let config: toml::Table = config(Path::new("/tmp/x"), PublicKey([1; 32]), &project).parse().unwrap();
        let user = &config["user"][0];
        assert_eq!(user["listen"][0].as_str(), Some("tcp port 80"));
        assert_eq!(user["module-limits"]["memory-bytes"].as_integer(), Some(67_108_864));
        assert_eq!(user["module-limits"]["requests"].as_integer(), Some(64));
        assert!(user["container"]["memory-bytes"].as_integer().unwrap() > 2 * 67_108_864);
    }
}
