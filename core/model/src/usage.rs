// SPDX-License-Identifier: Apache-2.0
//! What users and their modules used up, and the meters that it is read from.
//!
//! A meter counts up for the time of one run: one load of a module, one worker, one network. What users used up is the
//! sum of the differences between readings, over all runs. All sums stop at their type's end.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::EffectId;
use crate::{ModuleName, UnixTime, UserId, WorkerId};

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Traffic {
    /// Packets in.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Packets out.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
}

impl Traffic {
    /// Adds other traffic.
    pub fn add(&mut self, other: Traffic) {
        for (sum, more) in self.fields_mut().into_iter().zip(other.fields()) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Returns what came since an earlier count of the same meter. One that is behind began anew.
    pub fn since(self, before: Traffic) -> Traffic {
        let went_back = self.fields().into_iter().zip(before.fields()).any(|(now, before)| now < before);
        let mut since = self;
        if !went_back {
            for (now, before) in since.fields_mut().into_iter().zip(before.fields()) {
                *now -= before;
            }
        }
        since
    }

    fn fields(self) -> [u64; 4] {
        [self.packets_in, self.bytes_in, self.packets_out, self.bytes_out]
    }

    fn fields_mut(&mut self) -> [&mut u64; 4] {
        [&mut self.packets_in, &mut self.bytes_in, &mut self.packets_out, &mut self.bytes_out]
    }
}

/// What a user, or one module, used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Packets that modules were shown (in), and that they made and the node sent (out); bytes from the IP header on.
    pub packets: Traffic,
    /// Time on a processor, in nanoseconds. A user's is that of all processes of the container.
    pub cpu_ns: u64,
    /// Memory of the container over time: bytes times seconds. Nothing for one module.
    pub memory_byte_seconds: u64,
    /// What is kept on the node's disk over time: bytes times seconds. Nothing for one module.
    pub disk_byte_seconds: u64,
    /// What the container received (in) and sent (out) by its network, with link headers. Nothing for one module.
    pub network: Traffic,
}

impl Usage {
    /// Adds other usage.
    pub fn add(&mut self, other: &Usage) {
        self.packets.add(other.packets);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.memory_byte_seconds = self.memory_byte_seconds.saturating_add(other.memory_byte_seconds);
        self.disk_byte_seconds = self.disk_byte_seconds.saturating_add(other.disk_byte_seconds);
        self.network.add(other.network);
    }
}

/// Whose usage it is: a module's, a user's with all modules, or that of users who are not told apart any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UsageKey {
    /// The user; nothing for those who are not told apart.
    pub user: Option<UserId>,
    /// The user's module; nothing for all that the user used.
    pub module: Option<ModuleName>,
}

impl UsageKey {
    /// Returns the key of all that a user used.
    pub fn of_user(user: &UserId) -> UsageKey {
        UsageKey { user: Some(user.clone()), module: None }
    }

    /// Returns the key of a user's module.
    pub fn of_module(user: &UserId, module: &ModuleName) -> UsageKey {
        UsageKey { user: Some(user.clone()), module: Some(module.clone()) }
    }
}

/// Usage over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// From when.
    pub since: UnixTime,
    /// When it was last measured.
    pub until: UnixTime,
    /// What was used.
    pub usage: Usage,
}

/// What changed of the sums that outlive the node's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageChange {
    /// Sums, in place of earlier ones of the same key.
    pub put: BTreeMap<UsageKey, Used>,
    /// Sums to forget, since another one contains them.
    pub forget: Vec<UsageKey>,
}

/// A reading of all meters. It has every run of which no reading said that it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meters {
    /// Those of loaded modules.
    pub modules: Vec<ModuleMeter>,
    /// Those of workers.
    pub workers: Vec<WorkerMeter>,
    /// Those of containers' networks.
    pub networks: Vec<NetworkMeter>,
    /// What each user holds at this moment.
    pub held: BTreeMap<UserId, Held>,
}

impl Meters {
    /// Forgets what ended.
    pub fn end(&mut self) {
        self.modules.retain(|meter| !meter.ended);
        self.workers.retain(|meter| !meter.ended);
        self.networks.retain(|meter| !meter.ended);
    }

    /// Forgets what is a user's.
    pub fn leave_out(&mut self, user: &UserId) {
        self.modules.retain(|meter| meter.worker.user != *user);
        self.workers.retain(|meter| meter.worker.user != *user);
        self.networks.retain(|meter| meter.user != *user);
        self.held.remove(user);
    }

    /// Returns whether something goes on of which there will be more to read.
    pub fn go_on(&self) -> bool {
        self.modules.iter().any(|meter| !meter.ended)
            || self.workers.iter().any(|meter| !meter.ended)
            || self.networks.iter().any(|meter| !meter.ended)
            || !self.held.is_empty()
    }
}

/// What one load of a module did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleMeter {
    /// The effect that loaded it, which tells it from other loads.
    pub load: EffectId,
    /// Its worker.
    pub worker: WorkerId,
    /// The module.
    pub module: ModuleName,
    /// Its packets.
    pub packets: Traffic,
    /// How often it was found at work, of looks at even distances of time.
    #[serde(default)]
    pub busy: u64,
    /// It counts no more, and no later reading has it.
    pub ended: bool,
}

/// What one worker did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerMeter {
    /// The worker.
    pub worker: WorkerId,
    /// The effect that started it, which tells it from earlier ones.
    pub generation: EffectId,
    /// Its time on a processor, in nanoseconds.
    pub cpu_ns: u64,
    /// It counts no more, and no later reading has it.
    pub ended: bool,
}

/// What went through one network of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkMeter {
    /// The container's user.
    pub user: UserId,
    /// Tells it from the user's earlier ones.
    pub made: u64,
    /// What the container received and sent.
    pub traffic: Traffic,
    /// It counts no more, and no later reading has it.
    pub ended: bool,
}

/// What a user holds at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Memory of the container.
    pub memory_bytes: u64,
    /// What is on the node's disk.
    pub disk_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_that_went_back_began_anew() {
        let count = |packets_in, bytes_in| Traffic { packets_in, bytes_in, ..Traffic::default() };
        assert_eq!(count(7, 700).since(count(5, 500)), count(2, 200));
        assert_eq!(count(7, 700).since(count(7, 700)), Traffic::default());
        assert_eq!(count(1, 900).since(count(5, 500)), count(1, 900));
    }

    #[test]
    fn sums_stop_at_their_end() {
        let most = Traffic { packets_in: u64::MAX, bytes_in: 1, packets_out: 2, bytes_out: 3 };
        let mut usage = Usage { packets: most, cpu_ns: u64::MAX, ..Usage::default() };
        usage.add(&usage.clone());
        assert_eq!(usage.packets, Traffic { packets_in: u64::MAX, bytes_in: 2, packets_out: 4, bytes_out: 6 });
        assert_eq!(usage.cpu_ns, u64::MAX);
    }
}
