// SPDX-License-Identifier: Apache-2.0
//! Runs a program under callgrind and reads what it counted.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Instructions per operation, by case.
pub(crate) type Counts = BTreeMap<String, u64>;

/// Every call of this function is counted on its own. The same pattern in two ways: of options with one and the same
/// pattern, callgrind follows the first alone.
const GUARDED: [&str; 2] = ["*netserv_guarded*", "*etserv_guarded*"];
/// What the C library chooses by the processor is to be the same on all.
const BASELINE: &str = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-ERMS,-FSRM,-AVX_Fast_Unaligned_Load";

/// Counts the instructions of each guarded call of a program.
///
/// # Errors
/// If Valgrind is missing, if the program fails, or if it does not say what it does.
pub(crate) fn count(program: &Path, arguments: &[&str]) -> Result<Counts> {
    let folder = std::env::temp_dir().join(format!("netserv-guards-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let counted = count_in(&folder, program, arguments);
    std::fs::remove_dir_all(&folder)?;
    counted
}

fn count_in(folder: &Path, program: &Path, arguments: &[&str]) -> Result<Counts> {
    // A dump before each call clears the counts, so that the dump after it has what the call took.
    let output = Command::new("valgrind")
        .args(["-q", "--tool=callgrind", "--demangle=no"])
        .arg(format!("--dump-before={}", GUARDED[0]))
        .arg(format!("--dump-after={}", GUARDED[1]))
        .arg(format!("--callgrind-out-file={}", folder.join("dump").display()))
        .arg(program)
        .args(arguments)
        .env("GLIBC_TUNABLES", BASELINE)
        .stderr(Stdio::piped())
        .output()
        .context("valgrind cannot be run; `apt-get install valgrind`")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("{} failed:\n{said}\n{}", program.display(), String::from_utf8_lossy(&output.stderr));
    }
    let mut totals = Vec::new();
    for number in 1.. {
        let Ok(dump) = std::fs::read_to_string(folder.join(format!("dump.{number}"))) else { break };
        totals.extend(guarded_total(&dump)?);
    }
    per_operation(&said, &totals)
}

/// Returns the instructions of a dump that was made after a guarded call.
fn guarded_total(dump: &str) -> Result<Option<u64>> {
    if !dump.lines().any(|line| line.starts_with("desc: Trigger: --dump-after=")) {
        return Ok(None);
    }
    let total = dump.lines().find_map(|line| line.strip_prefix("totals: ")).context("a dump without totals")?;
    Ok(Some(total.trim().parse().context("a dump whose total is no number")?))
}

/// Brings the calls together with what the program said of them, in its order.
fn per_operation(said: &str, totals: &[u64]) -> Result<Counts> {
    let announced: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("guard ")).collect();
    ensure!(
        announced.len() == totals.len() && !totals.is_empty(),
        "{} guarded calls were announced and {} counted:\n{said}",
        announced.len(),
        totals.len()
    );
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (line, total) in announced.iter().zip(totals) {
        let (name, operations) =
            line.trim().rsplit_once(' ').with_context(|| format!("`guard {line}` lacks a number"))?;
        let operations: u64 = operations.parse().with_context(|| format!("`guard {line}` lacks a number"))?;
        let (instructions, all) = sums.entry(name).or_default();
        (*instructions, *all) = (*instructions + total, *all + operations);
    }
    ensure!(sums.values().all(|(_, operations)| *operations > 0), "a case without operations:\n{said}");
    Ok(sums.into_iter().map(|(name, (total, count))| (name.to_owned(), (total + count / 2) / count)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_brought_together_with_their_names() {
        let said = "running 1 test\nguard a of x 10\nguard b 2\nguard a of x 10\nok\n";
        let counts = per_operation(said, &[100, 9, 120]).unwrap();
        assert_eq!(counts, Counts::from([("a of x".to_owned(), 11), ("b".to_owned(), 5)]));
    }

    #[test]
    fn programs_that_do_not_say_what_they_do_are_refused() {
        for (said, totals) in [("", &[][..]), ("guard a 1\n", &[]), ("guard a 1\n", &[1, 2]), ("guard a\n", &[1])] {
            assert!(per_operation(said, totals).is_err(), "{said} {totals:?}");
        }
        assert!(per_operation("guard a 0\n", &[1]).is_err());
    }

    #[test]
    fn only_dumps_after_a_call_count() {
        let dump = |trigger: &str| format!("desc: Trigger: {trigger}=name\n\nevents: Ir\nfn=(1)\n1 2\n\ntotals: 77\n");
        assert_eq!(guarded_total(&dump("--dump-after")).unwrap(), Some(77));
        assert_eq!(guarded_total(&dump("--dump-before")).unwrap(), None);
        assert!(guarded_total("desc: Trigger: --dump-after=name\n").is_err());
    }
}
