// SPDX-License-Identifier: Apache-2.0
//! A lab: namespaces and links of a topology, the processes in them, and their end.
//!
//! Whatever ends the lab's owner, even `kill -9`, a janitor process sees its pipe close and clears up.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::patience::{grown, pause_after, wait_for};
use crate::topology::{Impairment, Interface, Kind, Topology};

/// How long a program may take until it is ready, on a machine that is not busy.
pub const START_WAIT: Duration = Duration::from_secs(20);
/// How long a process may take to end when asked, before it is killed. A node gives requests that are under way five
/// seconds.
const END_WAIT: Duration = Duration::from_secs(8);
/// How long a NAT remembers a flow in which nothing comes. At homes it is 30 s and more of UDP, and minutes to days of TCP.
pub const NAT_MEMORY: Duration = Duration::from_secs(5);

/// A running lab. Dropping it ends its processes and removes its namespaces and files.
pub struct Lab {
    id: String,
    topology: Topology,
    dir: PathBuf,
    processes: BTreeMap<String, Process>,
    janitor: Option<Child>,
    driver: Option<String>,
    lanes: Option<usize>,
    wrapper: Vec<String>,
    own_code: bool,
}

/// A process inside a lab.
struct Process {
    child: Child,
    log: PathBuf,
}

static LABS: AtomicU32 = AtomicU32::new(0);

impl Lab {
    /// Builds the namespaces, links, addresses and routes of a topology.
    ///
    /// # Errors
    /// Says which command failed, with its own words.
    pub fn up(topology: Topology) -> Result<Lab> {
        topology.check()?;
        ensure!(is_root(), "not root: namespaces cannot be made; run it as root");
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let id = format!("nslab{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(&id);
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let janitor = Some(start_janitor(&id, &dir)?);
        let mut lab = Lab {
            id,
            topology,
            dir,
            processes: BTreeMap::new(),
            janitor,
            driver: None,
            lanes: None,
            wrapper: Vec::new(),
            own_code: false,
        };
        lab.build()?;
        Ok(lab)
    }

    /// Returns what the lab was built from.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Has nodes that are started from here on compile all code by themselves. Others take it from `NETSERV_LAB_CODE_DIR`.
    pub fn keep_code_apart(&mut self) {
        self.own_code = true;
    }

    /// Returns whether nodes take code that others have compiled.
    pub fn shares_code(&self) -> bool {
        !self.own_code
    }

    /// Has nodes that are started from here on take their packets by this driver, instead of by the one that they choose.
    pub fn use_driver(&mut self, driver: &str) {
        self.driver = Some(driver.to_owned());
    }

    /// Has nodes that are started from here on take their packets in so many lanes, where the driver can have them.
    pub fn use_lanes(&mut self, lanes: usize) {
        self.lanes = Some(lanes);
    }

    /// Returns the lanes that nodes are told to have.
    pub fn lanes(&self) -> Option<usize> {
        self.lanes
    }

    /// Returns the driver that nodes are told to use.
    pub fn driver(&self) -> Option<&str> {
        self.driver.as_deref()
    }

    /// Has daemons that are started from here on run by a program with arguments, which their own command line follows; none
    /// starts them by themselves. It has to become the daemon, as `env` and the `exec` of a shell do.
    pub fn use_wrapper(&mut self, words: &[&str]) {
        self.wrapper = words.iter().map(ToString::to_string).collect();
    }

    /// Returns the program that runs daemons, with its arguments.
    pub fn wrapper(&self) -> &[String] {
        &self.wrapper
    }

    /// Returns the lab's own directory, gone with the lab.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the name of a machine's namespace.
    pub fn namespace(&self, machine: &str) -> String {
        format!("{}-{machine}", self.id)
    }

    /// Returns a machine's first IPv4 address.
    ///
    /// # Panics
    /// If there is no such machine.
    pub fn v4(&self, machine: &str) -> Ipv4Addr {
        self.topology.interfaces_of(machine).first().expect("the machine has a link").v4
    }

    /// Returns a machine's first IPv6 address.
    ///
    /// # Panics
    /// If there is no such machine.
    pub fn v6(&self, machine: &str) -> Ipv6Addr {
        self.topology.interfaces_of(machine).first().expect("the machine has a link").v6
    }

    /// Returns a command that runs in a machine's namespace.
    pub fn command(&self, machine: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
        // Not `ip netns exec`: that mounts a new /sys, without the cgroups that netservd needs.
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace(machine))).arg("--").arg(program);
        command
    }

    /// Runs a program in a machine to its end.
    ///
    /// # Errors
    /// It cannot be started, or ends with another code than 0; its output is in the error.
    pub fn run(&self, machine: &str, program: &str, args: &[&str]) -> Result<Output> {
        let output = self.command(machine, program).args(args).stdin(Stdio::null()).output();
        succeeded(
            output.with_context(|| format!("cannot run {program}"))?,
            &format!("{machine}: {program} {}", args.join(" ")),
        )
    }

    /// Moves this thread into a machine's namespace, for good.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub(crate) fn enter(&self, machine: &str) -> Result<()> {
        let namespace = File::open(format!("/run/netns/{}", self.namespace(machine)))?;
        Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// Does something in a machine's namespace, on a thread of its own.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    ///
    /// # Panics
    /// If that panics.
    pub fn within<T: Send>(&self, machine: &str, act: impl FnOnce() -> T + Send) -> Result<T> {
        std::thread::scope(|scope| {
            let acting = scope.spawn(|| -> Result<T> {
                self.enter(machine)?;
                Ok(act())
            });
            acting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Returns how many sockets of a machine wait for connections (`tcp`) or datagrams (`udp`) at a port.
    pub fn sockets_at(&self, machine: &str, protocol: &str, port: u16) -> usize {
        let kind = if protocol == "tcp" { "-Hltn" } else { "-Huln" };
        let sockets = self.run(machine, "ss", &[kind, "sport", "=", &port.to_string()]);
        sockets.map_or(0, |output| String::from_utf8_lossy(&output.stdout).lines().count())
    }

    /// Starts a process that runs until it is stopped or the lab ends. Its output goes to a file.
    ///
    /// # Errors
    /// It cannot be started, or one of this name runs.
    pub fn start(&mut self, machine: &str, name: &str, command: &mut Command) -> Result<u32> {
        let key = format!("{machine}/{name}");
        ensure!(!self.processes.contains_key(&key), "{key} runs already");
        let log = self.log_path(machine, name);
        let out = File::options().create(true).append(true).open(&log)?;
        let err = out.try_clone()?;
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let child = child.with_context(|| format!("cannot start {key}"))?;
        let pid = child.id();
        self.processes.insert(key, Process { child, log });
        Ok(pid)
    }

    /// Returns the file that a process's output goes to.
    pub fn log_path(&self, machine: &str, name: &str) -> PathBuf {
        self.dir.join(format!("{machine}-{name}.log"))
    }

    /// Returns what a process has written so far.
    pub fn log(&self, machine: &str, name: &str) -> String {
        std::fs::read_to_string(self.log_path(machine, name)).unwrap_or_default()
    }

    /// Returns the process's id, if it runs.
    pub fn pid(&self, machine: &str, name: &str) -> Option<u32> {
        self.processes.get(&format!("{machine}/{name}")).map(|process| process.child.id())
    }

    /// Waits until a process does what it was started for, for instance `answer`, or has ended.
    ///
    /// # Errors
    /// It has ended, or does not do it in time; its log is in the error.
    pub fn wait_for_start(
        &mut self,
        (machine, name): (&str, &str),
        does: &str,
        mut is_ready: impl FnMut(&Lab) -> bool,
    ) -> Result<()> {
        let mut has_ended = false;
        let waited = wait_for(&format!("{name} on {machine} to {does}"), START_WAIT, || {
            has_ended = self.has_ended(machine, name);
            let lab = &*self;
            has_ended || is_ready(lab)
        });
        waited.map_err(|gave_up| gave_up.seeing(self.log(machine, name)))?;
        ensure!(!has_ended, "{name} on {machine} has ended, and was to {does}:\n{}", self.log(machine, name));
        Ok(())
    }

    /// Returns whether a process has ended by itself.
    pub fn has_ended(&mut self, machine: &str, name: &str) -> bool {
        let process = self.processes.get_mut(&format!("{machine}/{name}"));
        process.is_none_or(|process| !matches!(process.child.try_wait(), Ok(None)))
    }

    /// Ends a process as an operator would, with SIGTERM, and waits for it.
    ///
    /// # Errors
    /// There is no such process, or it had to be killed.
    pub fn stop(&mut self, machine: &str, name: &str) -> Result<()> {
        let key = format!("{machine}/{name}");
        let mut process = self.processes.remove(&key).ok_or_else(|| anyhow!("{key} does not run"))?;
        ensure!(end(&key, &mut process.child), "{key} did not end when asked; its log is {}", process.log.display());
        Ok(())
    }

    /// Kills a process with SIGKILL, as a power cut would.
    ///
    /// # Errors
    /// There is no such process.
    pub fn kill(&mut self, machine: &str, name: &str) -> Result<()> {
        let key = format!("{machine}/{name}");
        let mut process = self.processes.remove(&key).ok_or_else(|| anyhow!("{key} does not run"))?;
        process.child.kill()?;
        process.child.wait()?;
        Ok(())
    }

    fn build(&mut self) -> Result<()> {
        let names: Vec<(String, Kind)> = self.topology.machines.iter().map(|m| (m.name.clone(), m.kind)).collect();
        for (machine, kind) in &names {
            run("ip", &["netns", "add", &self.namespace(machine)])?;
            self.run(machine, "ip", &["link", "set", "lo", "up"])?;
            let forward = if *kind == Kind::Host { "0" } else { "1" };
            self.sysctl(machine, "ipv4/ip_forward", forward)?;
            self.sysctl(machine, "ipv6/conf/all/forwarding", forward)?;
            // Addresses are to be usable at once; the lab gives none twice.
            self.sysctl(machine, "ipv6/conf/default/accept_dad", "0")?;
            // A test sends more ICMP errors than the kernel's default rate allows.
            self.sysctl(machine, "ipv4/icmp_ratelimit", "0")?;
            self.sysctl(machine, "ipv6/icmp/ratelimit", "0")?;
        }
        for index in 0..self.topology.links.len() {
            self.link(index)?;
        }
        for (machine, kind) in &names {
            for route in self.topology.routes_of(machine) {
                self.run(machine, "ip", &["route", "add", &route.prefix, "via", &route.via.to_string()])?;
            }
            if *kind == Kind::Nat {
                self.hide_hosts(machine)?;
            }
        }
        Ok(())
    }

    /// Has a machine translate what its hosts send, as a home's router does.
    fn hide_hosts(&self, nat: &str) -> Result<()> {
        for outside in self.topology.outside_of(nat) {
            for tables in ["iptables", "ip6tables"] {
                self.run(nat, tables, &["-t", "nat", "-A", "POSTROUTING", "-o", &outside.name, "-j", "MASQUERADE"])?;
            }
        }
        for which in ["udp_timeout", "udp_timeout_stream", "tcp_timeout_established"] {
            self.sysctl(nat, &format!("netfilter/nf_conntrack_{which}"), &NAT_MEMORY.as_secs().to_string())?;
        }
        Ok(())
    }

    fn link(&mut self, index: usize) -> Result<()> {
        let (a, b) = self.topology.interfaces(index);
        let impairment = self.topology.links[index].impairment;
        if impairment.is_some() {
            self.impaired_link(index, &a, &b, impairment)?;
        } else {
            let (near, far) = (self.namespace(&a.machine), self.namespace(&b.machine));
            run(
                "ip",
                &["link", "add", &a.name, "netns", &near, "type", "veth", "peer", "name", &b.name, "netns", &far],
            )?;
        }
        for end in [&a, &b] {
            self.run(&end.machine, "ip", &["address", "add", &format!("{}/24", end.v4), "dev", &end.name])?;
            self.run(
                &end.machine,
                "ip",
                &["-6", "address", "add", &format!("{}/64", end.v6), "dev", &end.name, "nodad"],
            )?;
            self.run(&end.machine, "ip", &["link", "set", "dev", &end.name, "up"])?;
        }
        Ok(())
    }

    /// Puts a namespace with a relay process between two machines: a link that delays, loses, or carries less than it could.
    fn impaired_link(&mut self, index: usize, a: &Interface, b: &Interface, impairment: Impairment) -> Result<()> {
        let wire = format!("wire{index}");
        let wire_namespace = self.namespace(&wire);
        run("ip", &["netns", "add", &wire_namespace])?;
        for (end, inner) in [(a, "a"), (b, "b")] {
            let outer_namespace = self.namespace(&end.machine);
            run(
                "ip",
                &[
                    "link",
                    "add",
                    &end.name,
                    "netns",
                    &outer_namespace,
                    "type",
                    "veth",
                    "peer",
                    "name",
                    inner,
                    "netns",
                    &wire_namespace,
                ],
            )?;
            self.sysctl(&wire, &format!("ipv6/conf/{inner}/disable_ipv6"), "1")?;
            // The relay sees what the sender's kernel hands over: it must be whole frames with their checksums.
            let offloads = ["-K", &end.name, "tx", "off", "tso", "off", "gso", "off", "gro", "off"];
            self.run(&end.machine, "ethtool", &offloads)?;
            self.run(&wire, "ip", &["link", "set", "dev", inner, "up"])?;
        }
        let mut relay = self.command(&wire, program("netserv-lab")?);
        relay.args(["relay", "--spec", &serde_json::to_string(&impairment)?]);
        self.start(&wire, "relay", &mut relay)?;
        Ok(())
    }

    fn sysctl(&self, machine: &str, key: &str, value: &str) -> Result<()> {
        let script = format!("echo {value} > /proc/sys/net/{key}");
        self.run(machine, "sh", &["-c", &script]).map(|_| ())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // netservd first and politely, so that what it leaves behind is its own doing; then everything else.
        let (nodes, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.processes).into_iter().partition(|(key, _)| key.ends_with("/netservd"));
        for (key, mut process) in nodes.into_iter().chain(others) {
            if !end(&key, &mut process.child) {
                eprintln!("lab: {key} did not end when asked and was killed");
            }
        }
        if std::thread::panicking() {
            self.show_logs();
        }
        if let Some(mut janitor) = self.janitor.take() {
            drop(janitor.stdin.take());
            // The janitor does the clearing up; its failure shows in what it prints.
            let _ = janitor.wait();
        }
    }
}

impl Lab {
    /// Prints the ends of all logs, for a test that fails.
    fn show_logs(&self) {
        let Ok(entries) = std::fs::read_dir(&self.dir) else { return };
        for path in
            entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "log"))
        {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            eprintln!("--- {}", path.display());
            lines[lines.len().saturating_sub(60)..].iter().for_each(|line| eprintln!("{line}"));
        }
    }
}

/// Waits on standard input until the lab's owner is gone, then clears up what the lab was.
///
/// # Errors
/// The lab's name is not one of ours.
pub fn janitor(id: &str, dir: &Path) -> Result<()> {
    ensure!(id.starts_with("nslab"), "`{id}` is no lab of ours");
    rustix::process::setsid().ok();
    let mut rest = Vec::new();
    // Either way the owner is gone.
    let _ = std::io::stdin().read_to_end(&mut rest);
    clear(id, dir)
}

/// Ends every process in the namespaces of a lab and removes them, its directory, and what the kernel keeps of its nodes.
fn clear(id: &str, dir: &Path) -> Result<()> {
    // The lab's own janitor and those who look for leftovers, one after the other: what is left of a node is found by its files.
    let locked = File::open(dir);
    if let Ok(folder) = &locked {
        folder.lock()?;
    }
    let prefix = format!("{id}-");
    let listed = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    for name in listed.filter_map(|entry| entry.file_name().into_string().ok()) {
        let Some(machine) = name.strip_prefix(&prefix) else { continue };
        let cleared = clear_namespace(&name, machine, dir);
        // Its folder may have gone before it, and with that the lock.
        if Path::new("/run/netns").join(&name).exists() {
            cleared?;
        }
    }
    if dir.starts_with(std::env::temp_dir()) && dir.file_name().is_some_and(|name| name == id) {
        let removed = std::fs::remove_dir_all(dir);
        if dir.exists() {
            removed.with_context(|| format!("cannot remove {}", dir.display()))?;
        }
    }
    Ok(())
}

fn clear_namespace(name: &str, machine: &str, dir: &Path) -> Result<()> {
    // A node that ends in good order takes it along.
    let mut is_left = dir.join(format!("{machine}.sock")).exists();
    for signal in ["-TERM", "-KILL"] {
        let pids = String::from_utf8(run("ip", &["netns", "pids", name])?.stdout)?;
        let pids: Vec<&str> = pids.split_whitespace().collect();
        if pids.is_empty() {
            break;
        }
        is_left = true;
        // A process may end between the listing and the signal.
        let _ = Command::new("kill").arg(signal).args(&pids).stderr(Stdio::null()).status();
        wait_until(END_WAIT, || run("ip", &["netns", "pids", name]).is_ok_and(|output| output.stdout.is_empty()));
    }
    let config = dir.join(format!("{machine}.toml"));
    if is_left
        && config.exists()
        && let Err(error) = clean_up_node(name, &config)
    {
        eprintln!("lab: {error:#}");
    }
    run("ip", &["netns", "delete", name]).map(drop)
}

/// Removes what a killed node leaves outside of its namespace, such as control groups, which have no name of the lab's.
fn clean_up_node(namespace: &str, config: &Path) -> Result<()> {
    let (netservd, config) = (program("netservd")?, config.to_string_lossy());
    let namespace = format!("--net=/run/netns/{namespace}");
    let clean_up = || run("nsenter", &[&namespace, "--", &netservd.to_string_lossy(), "cleanup", "--config", &config]);
    let mut cleaned = clean_up();
    // Its containers, which hold its lock, die a moment after it.
    wait_until(END_WAIT, || {
        if cleaned.is_err() {
            cleaned = clean_up();
        }
        cleaned.is_ok()
    });
    cleaned.map(drop)
}

/// Clears up labs whose owner is gone; returns their names.
///
/// # Errors
/// One of them could not be cleared.
pub fn clear_leftovers() -> Result<Vec<String>> {
    let mut found = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Some(rest) = name.strip_prefix("nslab") else { continue };
        let Some((pid, number)) = rest.split_once('-').and_then(|(pid, rest)| Some((pid, rest.split('-').next()?)))
        else {
            continue;
        };
        if !Path::new("/proc").join(pid).exists() {
            found.insert(format!("nslab{pid}-{number}"));
        }
    }
    for id in &found {
        clear(id, &std::env::temp_dir().join(id))?;
    }
    Ok(found.into_iter().collect())
}

/// Returns whether this process may make namespaces.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the path of one of our programs: beside the running one, or where `cargo` puts it for tests.
///
/// # Errors
/// It is not there; the error says how to build it.
pub fn program(name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let mut dir = here.parent().context("the running program lies in no directory")?;
    if dir.ends_with("deps") || dir.ends_with("examples") {
        dir = dir.parent().context("the running program lies in no build directory")?;
    }
    let path = dir.join(name);
    ensure!(
        path.exists(),
        "{} does not exist; build it (cargo build --workspace --bins) or install its package",
        path.display()
    );
    Ok(path)
}

/// Waits until something is so, at most for a time that grows with the machine's load; returns whether it came to be.
pub fn wait_until(timeout: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    let mut bound = grown(timeout);
    loop {
        let looked = Instant::now();
        if condition() {
            return true;
        }
        if begun.elapsed() >= bound {
            // What came meanwhile counts, too.
            bound = grown(timeout).max(bound);
            if begun.elapsed() >= bound {
                return false;
            }
        }
        std::thread::sleep(pause_after(looked.elapsed()));
    }
}

/// Returns an address and a port as they stand in a URL.
pub fn host_port(address: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

fn start_janitor(id: &str, dir: &Path) -> Result<Child> {
    let mut command = Command::new(program("netserv-lab")?);
    command.arg("janitor").arg(id).arg(dir).stdin(Stdio::piped()).stdout(Stdio::null());
    command.spawn().context("cannot start the janitor")
}

/// Ends a process of a name. Returns whether it did so when it was asked.
fn end(name: &str, child: &mut Child) -> bool {
    if matches!(child.try_wait(), Ok(Some(_))) {
        return true;
    }
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended in between.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let ended = wait_for(&format!("{name} to end"), END_WAIT, || !matches!(child.try_wait(), Ok(None))).is_ok();
    if !ended {
        let _ = child.kill();
        let _ = child.wait();
    }
    ended
}

fn run(program: &str, args: &[&str]) -> Result<Output> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    succeeded(output.with_context(|| format!("cannot run {program}"))?, &format!("{program} {}", args.join(" ")))
}

fn succeeded(output: Output, what: &str) -> Result<Output> {
    if output.status.success() {
        return Ok(output);
    }
    let mut text = String::new();
    text.push_str(&String::from_utf8_lossy(&output.stdout));
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    bail!("{what}: {}: {}", output.status, text.trim())
}
