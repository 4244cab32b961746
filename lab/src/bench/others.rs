// SPDX-License-Identifier: Apache-2.0
//! What other programs of the machine do meanwhile, and other virtual machines beside it: on a shared machine a trial counts
//! only when they do next to nothing.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::pin::family;

/// Ticks (hundredths of a second) of processor time that other programs may take during a trial.
const TICKS_MAX: u64 = 2;
/// The same of other virtual machines, whose pauses no trial on such a machine is free of.
const STOLEN_MAX: u64 = 6;

/// The number of no process, for what other virtual machines took.
const STOLEN: u32 = 0;

/// Processor time of all programs but ours and the kernel's own threads, by process, and that which was stolen.
pub struct Others(BTreeMap<u32, u64>);

impl Others {
    /// Looks at all programs but the given ones, their descendants, and this one.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn now(ours: &[u32]) -> Result<Others> {
        let mut known = BTreeSet::from([std::process::id()]);
        for pid in ours {
            known.extend(family(*pid)?);
        }
        let mut times = BTreeMap::from([(STOLEN, stolen(&std::fs::read_to_string("/proc/stat")?))]);
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            if known.contains(&pid) {
                continue;
            }
            // It may have ended.
            let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
            if let Some(ticks) = ticks(&stat) {
                times.insert(pid, ticks);
            }
        }
        Ok(Others(times))
    }

    /// Returns whether they have done little since an earlier look.
    pub fn were_quiet_since(&self, earlier: &Others) -> bool {
        let spent = |(pid, now): (&u32, &u64)| now.saturating_sub(earlier.0.get(pid).copied().unwrap_or(0));
        let (stolen, others): (Vec<_>, Vec<_>) = self.0.iter().partition(|(pid, _)| **pid == STOLEN);
        stolen.into_iter().map(spent).sum::<u64>() <= STOLEN_MAX
            && others.into_iter().map(spent).sum::<u64>() <= TICKS_MAX
    }
}

/// Returns the processor time of a program; `None` for the kernel's own threads, which work for the network, too.
fn ticks(stat: &str) -> Option<u64> {
    // The name, in parentheses, can hold anything; after it come the state, the parent, …
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if fields.get(1) == Some(&"2") {
        return None;
    }
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

/// Returns the ticks for which the hypervisor ran others although programs of this machine wanted to run.
fn stolen(stat: &str) -> u64 {
    let steal = |line: &str| line.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok();
    stat.lines().find_map(steal).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_programs_only() {
        let stat = |parent| format!("7 (a) b) R {parent} 7 7 0 -1 4194560 1 0 0 0 30 12 0 0 20 0 1 0 1 1 1");
        assert_eq!(ticks(&stat(1)), Some(42));
        assert_eq!(ticks(&stat(2)), None);
        assert_eq!(ticks("7 (x"), None);
    }

    #[test]
    fn what_the_hypervisor_gave_to_others_is_of_all_cores() {
        assert_eq!(stolen("cpu  1 2 3 4 5 6 7 42 0 0\ncpu0 1 2 3 4 5 6 7 40 0 0\n"), 42);
        assert_eq!(stolen("cpu  1 2 3\nintr 7"), 0, "kernels before it was counted");
    }

    #[test]
    fn what_is_new_counts_whole() {
        let before = Others(BTreeMap::from([(1, 100), (2, 5)]));
        assert!(Others(BTreeMap::from([(1, 101), (2, 5)])).were_quiet_since(&before));
        assert!(!Others(BTreeMap::from([(1, 150)])).were_quiet_since(&before));
        assert!(!Others(BTreeMap::from([(1, 100), (3, 9)])).were_quiet_since(&before));
        assert!(Others(BTreeMap::from([(STOLEN, STOLEN_MAX)])).were_quiet_since(&before));
        assert!(!Others(BTreeMap::from([(STOLEN, STOLEN_MAX + 1)])).were_quiet_since(&before));
    }
}
