// SPDX-License-Identifier: Apache-2.0
//! Our rules in the kernel's packet filter: one chain per instance and purpose in `mangle`, jumped to from PREROUTING.
//!
//! There packets have not been routed yet, so that a changed destination is routed afresh, and packets for the node
//! itself are seen too. Everything goes through `iptables-restore --noflush`, which takes all lines or none. The two
//! IP versions have tables of their own and are changed at the same time, by two processes.

mod counted;
pub(crate) mod foreign;
mod netlink_tables;
mod text;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_wire::ip::IpVersion;

pub(crate) use counted::Counted;
pub(crate) use text::{Purpose, QueueRow, instance_text};

use crate::{Change, DriverError, FilterTable, filters};

/// A chain of ours, from its making until [`Chain::close`].
#[derive(Debug)]
pub(crate) struct Chain {
    purpose: Purpose,
    instance: String,
    queue: u16,
    mark: u32,
    versions: Vec<IpVersion>,
}

impl Chain {
    /// Makes the chain, in place of one that an earlier run left; its rules leave packets with the mark alone.
    pub fn open(purpose: Purpose, instance: &str, queue: u16, mark: u32) -> Result<Chain, DriverError> {
        let instance = instance_text(instance);
        remove(purpose, &instance)?;
        let versions = versions_here();
        let lines = text::opening(purpose, &instance);
        let chain = Chain { purpose, instance, queue, mark, versions };
        chain.run_or_undo(|_| lines.clone(), |chain| chain.close())?;
        Ok(chain)
    }

    /// Takes the chain away, and what leads to it.
    pub fn close(&self) {
        if let Err(error) = remove(self.purpose, &self.instance) {
            tracing::warn!(%error, chain = text::chain(self.purpose, &self.instance), "rules are left behind");
        }
    }

    /// Runs the lines of each version; if one of them fails, runs `undo` and returns the first error.
    fn run_or_undo(
        &self,
        lines: impl Fn(IpVersion) -> Vec<String>,
        undo: impl FnOnce(&Chain),
    ) -> Result<(), DriverError> {
        let scripts: Vec<_> = self.versions.iter().map(|version| (*version, text::script(&lines(*version)))).collect();
        let scripts: Vec<_> = scripts.into_iter().filter(|(_, script)| !script.is_empty()).collect();
        let outcomes = tool::restore(&scripts);
        if outcomes.iter().any(Result::is_err) && outcomes.iter().any(Result::is_ok) {
            undo(self);
        }
        outcomes.into_iter().collect()
    }

    /// Appends the rules that lead signaling messages to the queue, but those that come in by one device.
    pub fn intercept(&self, port: u16, magic: u32, except: Option<&str>) -> Result<(), DriverError> {
        let to = (self.queue, self.mark);
        let rules = |with_magic| {
            move |version| {
                let rule = text::intercepting(self.purpose, &self.instance, to, version, port, with_magic);
                let except = except.map(|device| format!(" ! -i {device}"));
                vec![rule + &except.unwrap_or_default()]
            }
        };
        // Not every kernel has the u32 match; without it the messages are told apart later.
        self.run_or_undo(rules(Some(magic)), Chain::empty).or_else(|error| {
            tracing::debug!(%error, "packets on the signaling port are looked at one by one");
            self.empty();
            self.run_or_undo(rules(None), Chain::empty)
        })
    }

    fn empty(&self) {
        // Nothing to undo it with: what could not be emptied is removed at the end.
        let emptied = self.run_or_undo(|_| vec![format!("-F {}", text::chain(self.purpose, &self.instance))], |_| ());
        if let Err(error) = emptied {
            tracing::debug!(%error, "a chain could not be emptied");
        }
    }
}

/// The queues that filters lead to.
#[derive(Clone, Debug)]
pub(crate) struct QueueNumbers {
    /// Those of modules that fail open.
    pub open: QueueRow,
    /// Those of modules that fail closed.
    pub closed: QueueRow,
    /// Whether there ever was a rule that leads there.
    pub is_closed_used: Arc<AtomicBool>,
}

/// The filters that lead packets to a queue.
#[derive(Debug)]
pub(crate) struct Rules {
    chain: Chain,
    queues: QueueNumbers,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    filters: BTreeMap<FilterId, Filter>,
    /// Those of modules that fail closed.
    failing_closed: BTreeSet<FilterId>,
    closed: bool,
}

impl Rules {
    /// Makes the chain, without filters.
    pub fn open(instance: &str, queues: QueueNumbers, mark: u32) -> Result<Rules, DriverError> {
        let chain = Chain::open(Purpose::Packets, instance, queues.open.first, mark)?;
        Ok(Rules { chain, queues, state: Mutex::default() })
    }

    /// Takes all rules away; filters cannot be changed after that.
    pub fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut state.closed, true) {
            self.chain.close();
        }
    }

    /// Returns one line per change; `backwards` gives the lines that undo them.
    ///
    /// Rules of modules that fail closed go to the front: a packet that others want too comes by their queue.
    fn lines(&self, version: IpVersion, changes: &[Change<'_>], known: &State, backwards: bool) -> Vec<String> {
        let chain = &self.chain;
        let line = |change: &Change<'_>| {
            let (install, id) = match *change {
                Change::Install(id, _) | Change::InstallClosed(id, _) => (true, id),
                Change::Remove(id) => (false, id),
            };
            let (queues, adding) = match known.failing_closed.contains(&id) {
                true => (self.queues.closed, "-I"),
                false => (self.queues.open, "-A"),
            };
            let filter = known.filters.get(&id)?;
            let rule = text::filter(chain.purpose, &chain.instance, (queues, chain.mark), version, filter)?;
            Some(format!("{} {rule}", if install == backwards { "-D" } else { adding }))
        };
        let mut lines: Vec<String> = changes.iter().filter_map(line).collect();
        if backwards {
            lines.reverse();
        }
        lines
    }
}

impl FilterTable for Rules {
    fn change(&self, changes: &[Change<'_>]) -> Result<(), DriverError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return Err(DriverError::Closed);
        }
        // A filter may be installed and removed by the same changes, so lines are made from both.
        let mut known =
            State { closed: false, filters: state.filters.clone(), failing_closed: state.failing_closed.clone() };
        for change in changes {
            match *change {
                Change::Install(id, filter) => drop(known.filters.insert(id, filter.clone())),
                Change::InstallClosed(id, filter) => {
                    known.filters.insert(id, filter.clone());
                    known.failing_closed.insert(id);
                    self.queues.is_closed_used.store(true, Ordering::Relaxed);
                }
                Change::Remove(_) => {}
            }
        }
        let mut filters = state.filters.clone();
        filters::apply(&mut filters, changes)?;
        refuse_missing_version(changes, &self.chain.versions)?;
        let undo = |chain: &Chain| {
            for version in &chain.versions {
                let lines = text::script(&self.lines(*version, changes, &known, true));
                // One of the two was never done, so undoing it fails.
                tool::restore(&[(*version, lines)]);
            }
        };
        self.chain.run_or_undo(|version| self.lines(version, changes, &known, false), undo)?;
        state.failing_closed = known.failing_closed;
        state.failing_closed.retain(|id| filters.contains_key(id));
        state.filters = filters;
        Ok(())
    }
}

/// Removes the chains that an instance left when it was killed; returns how many there were.
///
/// # Errors
/// If the packet filter does not let go of them. A machine without `iptables` has no leftovers.
pub(crate) fn remove_leftovers(instance: &str) -> Result<usize, DriverError> {
    counted::remove_leftovers(instance)?;
    let instance = instance_text(instance);
    Ok(remove(Purpose::Packets, &instance)? + remove(Purpose::Signaling, &instance)?)
}

/// Finds out whether our rules can be had, by making some in a chain that nothing leads to and removing it.
pub(crate) fn probe() -> Result<(), DriverError> {
    let instance = instance_text(&format!("probe-{}", std::process::id()));
    let chain = text::chain(Purpose::Packets, &instance);
    let filter: Filter = "udp dst 192.0.2.1 port 270".parse().expect("the filter is a constant");
    let rule = text::filter(Purpose::Packets, &instance, (QueueRow::one(0), 1), IpVersion::V4, &filter);
    let made = [format!(":{chain} - [0:0]"), format!("-A {}", rule.expect("the filter is one for IPv4"))];
    let removed = [format!("-F {chain}"), format!("-X {chain}")];
    let script = text::script(&made) + &text::script(&removed);
    tool::restore(&[(IpVersion::V4, script)]).into_iter().collect()
}

/// Removes what an earlier interceptor of an instance left.
pub(crate) fn remove_signaling(instance: &str) -> Result<(), DriverError> {
    remove(Purpose::Signaling, &instance_text(instance)).map(drop)
}

fn remove(purpose: Purpose, instance: &str) -> Result<usize, DriverError> {
    let chain = text::chain(purpose, instance);
    let versions = versions_here();
    let mut scripts = Vec::new();
    for (version, saved) in tool::save(&versions)? {
        let lines = text::removal(&chain, &saved);
        if !lines.is_empty() {
            scripts.push((version, text::script(&lines)));
        }
    }
    tool::restore(&scripts).into_iter().collect::<Result<(), _>>()?;
    Ok(scripts.len())
}

fn refuse_missing_version(changes: &[Change<'_>], versions: &[IpVersion]) -> Result<(), DriverError> {
    let wants_v6 = |change: &Change<'_>| match change {
        Change::Install(_, filter) | Change::InstallClosed(_, filter) => filter.version() == Some(6),
        Change::Remove(_) => false,
    };
    if versions.contains(&IpVersion::V6) || !changes.iter().any(wants_v6) {
        return Ok(());
    }
    Err(DriverError::Unsupported { what: "a filter for IPv6", why: "this kernel has no IPv6".to_owned() })
}

fn versions_here() -> Vec<IpVersion> {
    let v6 = std::path::Path::new("/proc/thread-self/net/if_inet6").exists();
    if v6 { vec![IpVersion::V4, IpVersion::V6] } else { vec![IpVersion::V4] }
}
