// SPDX-License-Identifier: Apache-2.0
//! What other programs of the machine do meanwhile, and other virtual machines beside it: on a shared machine a trial counts
//! only when they do next to nothing.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::machine::Cores;
use super::pin::family;

/// Ticks (hundredths of a second) of processor time that other programs may take during a trial.
const TICKS_MAX: u64 = 2;
/// The same of other virtual machines, whose pauses no trial on such a machine is free of.
const STOLEN_MAX: u64 = 6;

/// Processor time of all programs but ours and the kernel's own threads, by process, and what the cores did.
pub struct Others {
    programs: BTreeMap<u32, u64>,
    cores: Cores,
}

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
        let mut programs = BTreeMap::new();
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            if known.contains(&pid) {
                continue;
            }
            // It may have ended.
            let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
            if let Some(ticks) = ticks(&stat) {
                programs.insert(pid, ticks);
            }
        }
        Ok(Others { programs, cores: Cores::now()? })
    }

    /// Returns whether they have done little since an earlier look.
    pub fn were_quiet_since(&self, earlier: &Others) -> bool {
        let spent = |(pid, now): (&u32, &u64)| now.saturating_sub(earlier.programs.get(pid).copied().unwrap_or(0));
        self.cores.stolen_since(&earlier.cores) <= STOLEN_MAX
            && self.programs.iter().map(spent).sum::<u64>() <= TICKS_MAX
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
    fn what_is_new_counts_whole() {
        let others = |programs: &[(u32, u64)], stolen: u64| Others {
            programs: programs.iter().copied().collect(),
            cores: Cores::of(&format!("cpu0 0 0 0 0 0 0 0 {stolen} 0 0")),
        };
        let before = others(&[(1, 100), (2, 5)], 7);
        assert!(others(&[(1, 101), (2, 5)], 7).were_quiet_since(&before));
        assert!(!others(&[(1, 150)], 7).were_quiet_since(&before));
        assert!(!others(&[(1, 100), (3, 9)], 7).were_quiet_since(&before));
        assert!(others(&[], 7 + STOLEN_MAX).were_quiet_since(&before));
        assert!(!others(&[], 7 + STOLEN_MAX + 1).were_quiet_since(&before));
    }
}
