// SPDX-License-Identifier: Apache-2.0
//! What forwarding in XDP would lead packets past, and therefore keeps it off, and what of it packets for modules have to meet.
//!
//! A thread of its own looks, since that takes programs and time. News of a change withhold forwarding at once, before
//! anything is looked at; so do news of what turns out to be in nobody's way.

mod links;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use links::Links;
use netserv_model::container_link::is_container_link;
use netserv_netlink::routes;
use netserv_netlink::{Family, Socket};
use netserv_plane::{DriverError, XdpForward};
use netserv_plane_nfqueue::rules;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::kernel::{Interface, Kernel};
use super::program::Program;
use crate::limits;

/// What is in the way of forwarding in XDP, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Obstacles {
    /// Of all packets.
    pub everywhere: Option<String>,
    /// Of those that come in or leave by a device.
    pub devices: BTreeMap<u32, String>,
    /// Rules of others that packets for modules are to meet, too, so that they go on by the kernel.
    pub rules: Option<String>,
}

impl Obstacles {
    /// Returns what holds after a look that failed: nothing is forwarded in XDP, and rules that were there are there.
    fn unknown(&self, why: String) -> Obstacles {
        Obstacles { everywhere: Some(why), devices: BTreeMap::new(), rules: self.rules.clone() }
    }
}

/// Looks for obstacles as long as it lives.
pub(super) struct Watcher {
    shared: Arc<Shared>,
    stop: Arc<OwnedFd>,
}

struct Shared {
    program: Arc<Program>,
    state: Mutex<State>,
}

struct State {
    /// How often there were news, and how many of them the obstacles answer to.
    news: u64,
    answered: u64,
    found: Arc<Obstacles>,
    /// The driver has not asked for what was found.
    is_new: bool,
}

impl Watcher {
    /// Withholds forwarding, and starts to look.
    pub fn start(program: Arc<Program>, wish: XdpForward) -> Result<Watcher, DriverError> {
        let failed = |error| DriverError::system("watching for what is in the way of forwarding in XDP", error);
        let everywhere = Some(NOT_LOOKED.to_owned());
        let found = Arc::new(Obstacles { everywhere, ..Obstacles::default() });
        let state = Mutex::new(State { news: 1, answered: 0, found, is_new: true });
        let shared = Arc::new(Shared { program, state });
        shared.withhold();
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| failed(error.into()))?;
        let stop = Arc::new(stop);
        let kernel = Kernel::open_silent()?;
        let looker = Looker {
            news: News::open(wish)?,
            links: (wish != XdpForward::On).then(|| Links::open(&kernel)).transpose()?,
            kernel,
            shared: Arc::clone(&shared),
            stop: Arc::clone(&stop),
            wish,
        };
        let thread = std::thread::Builder::new().name("xdp-obstacles".to_owned());
        thread.spawn(move || looker.run()).map_err(failed)?;
        Ok(Watcher { shared, stop })
    }

    /// Returns what was found, if that is new since the last call. Then see to the devices, and call [`Watcher::allow`].
    pub fn changed(&self) -> Option<Arc<Obstacles>> {
        let mut state = self.shared.lock();
        std::mem::take(&mut state.is_new).then(|| Arc::clone(&state.found))
    }

    /// Lets the program forward if nothing is in the way, and nothing was heard of since that was found out.
    pub fn allow(&self) {
        let state = self.shared.lock();
        if state.answered == state.news && !state.is_new && state.found.everywhere.is_none() {
            self.shared.program.withhold(false);
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // The thread ends by itself.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the program forward nothing until the next look.
    fn withhold(&self) {
        let mut state = self.lock();
        state.news += 1;
        self.program.withhold(true);
    }

    fn answer(&self, news: u64, found: Obstacles) {
        let mut state = self.lock();
        if *state.found != found {
            tracing::info!(everywhere = found.everywhere, devices = ?found.devices, "what is in the way of forwarding in XDP");
            if state.found.rules.is_some() != found.rules.is_some() {
                match &found.rules {
                    Some(rules) => {
                        tracing::info!(rules, "packets for modules go on by the kernel, since it has rules for them");
                    }
                    None => tracing::info!("packets for modules go on by the driver: the kernel has no rules for them"),
                }
            }
        }
        state.answered = news;
        state.found = Arc::new(found);
        state.is_new = true;
        if state.found.everywhere.is_some() {
            self.program.withhold(true);
        }
    }
}

/// What tells that something may have changed.
struct News(Vec<Socket>);

impl News {
    fn open(wish: XdpForward) -> Result<News, DriverError> {
        if wish == XdpForward::On {
            return Ok(News(vec![routes::listen(Family::Route, RULE_GROUPS)?]));
        }
        let packet_filter = routes::listen_if_there(Family::Netfilter, PACKET_FILTER_GROUPS)?;
        let ipsec = routes::listen_if_there(Family::Xfrm, IPSEC_GROUPS)?;
        let routing = routes::listen(Family::Route, RULE_GROUPS | QUEUEING_GROUPS)?;
        Ok(News([packet_filter, ipsec, Some(routing)].into_iter().flatten().collect()))
    }

    fn drain(&self) -> bool {
        // Each of them, also after one that had some.
        self.0.iter().filter(|socket| socket.drain()).count() > 0
    }
}

/// The thread's own.
struct Looker {
    kernel: Kernel,
    news: News,
    links: Option<Links>,
    shared: Arc<Shared>,
    stop: Arc<OwnedFd>,
    wish: XdpForward,
}

impl Looker {
    fn run(mut self) {
        loop {
            let looked = Instant::now();
            self.heard();
            let news = self.shared.lock().news;
            self.shared.answer(news, self.look());
            let mut next = looked + limits::OBSTACLES_LOOK_MAX;
            loop {
                let now = Instant::now();
                if now >= next {
                    break;
                }
                if self.wait(next - now) {
                    return;
                }
                if self.heard() {
                    self.shared.withhold();
                    next = next.min(looked + limits::OBSTACLES_LOOK_MIN);
                }
            }
        }
    }

    /// Returns whether there were news since the last call.
    fn heard(&mut self) -> bool {
        let links = self.links.as_mut().is_some_and(|links| links.changed(&self.kernel));
        self.news.drain() || links
    }

    /// Waits for news; returns whether it is time to end.
    fn wait(&self, at_most: Duration) -> bool {
        let timeout = Timespec::try_from(at_most).expect("a time to wait is short");
        let mut ready = vec![PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN)];
        let links = self.links.iter().map(Links::notices);
        ready.extend(
            self.news.0.iter().chain(links).map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)),
        );
        if let Err(error) = poll(&mut ready, Some(&timeout))
            && error != rustix::io::Errno::INTR
        {
            tracing::warn!(%error, "changes of what is in the way of forwarding in XDP are heard of late");
            std::thread::sleep(limits::OBSTACLES_LOOK_MIN.min(at_most));
        }
        !ready[0].revents().is_empty()
    }

    fn look(&self) -> Obstacles {
        let found = match self.wish {
            XdpForward::Auto => self.everything(),
            XdpForward::On => self.interception().map(|everywhere| Obstacles { everywhere, ..Obstacles::default() }),
            XdpForward::Off => self.everything().map(|found| Obstacles { rules: found.rules, ..Obstacles::default() }),
        };
        found.unwrap_or_else(|error| self.shared.lock().found.unknown(error.to_string()))
    }

    fn everything(&self) -> Result<Obstacles, DriverError> {
        let foreign = rules::foreign::find()?;
        let of_a_device = |(device, chain): (&String, &String)| (!is_container_link(device)).then(|| chain.clone());
        let mut rules = foreign.everywhere.clone().or_else(|| foreign.devices.iter().find_map(of_a_device));
        let mut everywhere = match self.interception()? {
            Some(why) => Some(why),
            None if self.kernel.rules()?.by_choice => Some("rules of policy routing".to_owned()),
            None => match in_use(Path::new("/proc/thread-self/net"), Path::new("/proc/sys/net")) {
                Some(why) => Some(why.to_owned()),
                None => foreign.everywhere,
            },
        };
        let mut devices = self.kernel.queueing()?;
        let interfaces = self.kernel.interfaces()?;
        let is_ours = |index: &u32| interfaces.get(index).is_some_and(|one| is_container_link(&one.name));
        rules = rules.or_else(|| devices.iter().find(|(index, _)| !is_ours(index)).map(|(_, kind)| kind.clone()));
        if !foreign.devices.is_empty() {
            let index_of =
                |name: &String| interfaces.iter().find(|(_, one)| one.name == *name).map(|(index, _)| *index);
            for (name, chain) in foreign.devices {
                match index_of(&name) {
                    Some(index) => drop(devices.insert(index, chain)),
                    // Nobody knows whose packets go through it.
                    None => everywhere = everywhere.or(Some(chain)),
                }
            }
        }
        let of_ports = of_ports(&devices, &interfaces);
        devices.extend(of_ports);
        Ok(Obstacles { everywhere, devices, rules })
    }

    /// The kernel leads flows to containers that take them over.
    fn interception(&self) -> Result<Option<String>, DriverError> {
        Ok(self.kernel.rules()?.intercepts.then(|| "modules that take over connections".to_owned()))
    }
}

/// Returns what is in the way of packets of bonds and the like, since it is of packets of one of their ports.
fn of_ports(devices: &BTreeMap<u32, String>, interfaces: &BTreeMap<u32, Interface>) -> BTreeMap<u32, String> {
    let port = |(index, why): (&u32, &String)| {
        let one = interfaces.get(index)?;
        Some((one.master?, format!("{why} on its port {}", one.name)))
    };
    let of_ports = devices.iter().filter_map(port);
    of_ports.filter(|(master, _)| !devices.contains_key(master)).collect()
}

/// Returns what the kernel does with packets that it forwards, by what it counts.
fn in_use(net: &Path, sysctl: &Path) -> Option<&'static str> {
    let tracked = std::fs::read_to_string(sysctl.join("netfilter/nf_conntrack_count")).unwrap_or_default();
    if tracked.trim().parse::<u64>().is_ok_and(|count| count > 0) {
        return Some("connections are tracked");
    }
    // Three lines of head.
    let virtual_servers = std::fs::read_to_string(net.join("ip_vs")).unwrap_or_default();
    (virtual_servers.lines().count() > 3).then_some("virtual servers (IPVS)")
}

const NOT_LOOKED: &str = "what is not known yet";
/// `NFNLGRP_NFTABLES`
const PACKET_FILTER_GROUPS: u32 = 1 << 6;
/// `XFRMNLGRP_POLICY`
const IPSEC_GROUPS: u32 = 1 << 3;
/// `RTNLGRP_IPV4_RULE` and `RTNLGRP_IPV6_RULE`.
const RULE_GROUPS: u32 = 1 << 7 | 1 << 18;
/// `RTNLGRP_TC`
const QUEUEING_GROUPS: u32 = 1 << 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: packets for modules go on meeting rules of others when it cannot be told whether these are there.
    #[test]
    fn a_look_that_fails_takes_no_rules_away() {
        let known = Obstacles { rules: Some("a rule".to_owned()), ..Obstacles::default() };
        let after = known.unknown("no answer".to_owned());
        assert_eq!((after.everywhere.as_deref(), after.rules), (Some("no answer"), known.rules));
    }

    #[test]
    fn what_is_in_the_way_of_a_port_is_in_that_of_its_bond() {
        let one = |name: &str, master: Option<u32>| Interface { name: name.to_owned(), master, ..Interface::example() };
        let interfaces = BTreeMap::from([(1, one("eth0", Some(3))), (2, one("eth1", None)), (3, one("bond0", None))]);
        let why = |devices: &[u32]| devices.iter().map(|device| (*device, "a chain".to_owned())).collect();
        let expected = BTreeMap::from([(3, "a chain on its port eth0".to_owned())]);
        assert_eq!(of_ports(&why(&[1, 2]), &interfaces), expected);
        // Its own stays, and what is not known any more is nobody's port.
        assert_eq!(of_ports(&why(&[1, 3, 9]), &interfaces), BTreeMap::new());
    }

    #[test]
    fn what_the_kernel_counts_is_seen() {
        let dir = std::env::temp_dir().join(format!("netserv-obstacles-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("netfilter")).unwrap();
        let check = |expected: Option<&str>| assert_eq!(in_use(&dir, &dir), expected);
        check(None);
        std::fs::write(dir.join("netfilter/nf_conntrack_count"), "0\n").unwrap();
        std::fs::write(dir.join("ip_vs"), "1\n2\n3\n").unwrap();
        check(None);
        std::fs::write(dir.join("ip_vs"), "1\n2\n3\n4\n").unwrap();
        check(Some("virtual servers (IPVS)"));
        std::fs::write(dir.join("netfilter/nf_conntrack_count"), "1\n").unwrap();
        check(Some("connections are tracked"));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
