// SPDX-License-Identifier: Apache-2.0
//! What the figures were measured on, and what its cores did meanwhile.

use anyhow::{Context, Result};
use serde::Serialize;

use crate::patience::Load;

/// The machine, as far as it matters to figures.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Its cores.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// Whether it is a virtual machine, if that can be seen.
    pub is_virtual: bool,
    /// Processes that wanted a core over the last minute when the bench began.
    pub load_average: f64,
    /// The commit that was measured, with a mark if files differ from it.
    pub commit: String,
}

impl Machine {
    /// Looks at the machine.
    ///
    /// # Errors
    /// `/proc` is not what it is on Linux.
    pub fn look() -> Result<Machine> {
        let cpuinfo = read("/proc/cpuinfo")?;
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
        };
        let memory_kib = read("/proc/meminfo")?.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
        let uname = rustix::system::uname();
        Ok(Machine {
            cpu: field("model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: memory_kib.context("/proc/meminfo shows no memory")? / 1024,
            kernel: format!("{} {}", uname.release().to_string_lossy(), uname.machine().to_string_lossy()),
            is_virtual: field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            load_average: Load::read().context("cannot read /proc/loadavg")?.average,
            commit: commit(),
        })
    }

    /// Returns the machine in one line.
    pub fn line(&self) -> String {
        format!(
            "{} × {}{}, {} MiB, Linux {}, load average {:.2}, commit {}",
            self.cores,
            self.cpu,
            if self.is_virtual { " (virtual machine)" } else { "" },
            self.memory_mib,
            self.kernel,
            self.load_average,
            self.commit
        )
    }
}

/// What the cores have done so far, in ticks.
#[derive(Clone, Debug)]
pub struct Cores(Vec<Ticks>);

#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    user: u64,
    system: u64,
    interrupts: u64,
    idle: u64,
    stolen: u64,
}

impl Cores {
    /// Reads the counts.
    ///
    /// # Errors
    /// `/proc/stat` is not what it is on Linux.
    pub fn now() -> Result<Cores> {
        Ok(Cores::of(&read("/proc/stat")?))
    }

    /// Returns the counts that `/proc/stat` has.
    pub fn of(stat: &str) -> Cores {
        let is_core = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
        Cores(stat.lines().filter(is_core).map(ticks).collect())
    }

    /// Returns for how many ticks since an earlier look the hypervisor ran others although programs of this machine wanted to
    /// run, on all cores together.
    pub fn stolen_since(&self, earlier: &Cores) -> u64 {
        self.since(earlier).into_iter().map(|ticks| ticks.stolen).sum()
    }

    /// Returns what one core did since an earlier look, in words.
    pub fn words_since(&self, earlier: &Cores, core: usize) -> String {
        let ticks = self.since(earlier).get(core).copied().unwrap_or_default();
        let percent = |part| 100.0 * share(part, ticks.all());
        let stolen = if ticks.stolen > 0 { format!(", {:.0} % stolen", percent(ticks.stolen)) } else { String::new() };
        format!(
            "core {core}: {:.0} % program, {:.0} % kernel, {:.0} % interrupts, {:.0} % idle{stolen}",
            percent(ticks.user),
            percent(ticks.system),
            percent(ticks.interrupts),
            percent(ticks.idle)
        )
    }

    fn since(&self, earlier: &Cores) -> Vec<Ticks> {
        let pairs = self.0.iter().zip(&earlier.0);
        pairs
            .map(|(now, then)| Ticks {
                user: now.user.saturating_sub(then.user),
                system: now.system.saturating_sub(then.system),
                interrupts: now.interrupts.saturating_sub(then.interrupts),
                idle: now.idle.saturating_sub(then.idle),
                stolen: now.stolen.saturating_sub(then.stolen),
            })
            .collect()
    }
}

impl Ticks {
    fn all(self) -> u64 {
        self.user + self.system + self.interrupts + self.idle + self.stolen
    }
}

fn ticks(line: &str) -> Ticks {
    let counts: Vec<u64> = line.split_whitespace().skip(1).filter_map(|count| count.parse().ok()).collect();
    let at = |index: usize| counts.get(index).copied().unwrap_or(0);
    // user nice system idle iowait irq softirq steal
    Ticks { user: at(0) + at(1), system: at(2), interrupts: at(5) + at(6), idle: at(3) + at(4), stolen: at(7) }
}

#[allow(clippy::cast_precision_loss, reason = "a share is shown with two digits")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn commit() -> String {
    let git = |args: &[&str]| {
        let output =
            std::process::Command::new("git").args(args).current_dir(crate::node::workspace()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".to_owned() };
    let differs = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|changes| !changes.is_empty());
    commit + if differs { " with changes" } else { "" }
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_described() {
        let machine = Machine::look().unwrap();
        assert!(machine.cores > 0 && machine.memory_mib > 0 && !machine.kernel.is_empty());
        assert!(Cores::now().unwrap().0.len() >= machine.cores);
    }

    #[test]
    fn what_the_hypervisor_gave_to_others_is_of_all_cores() {
        let stolen = |stat| Cores::of(stat).stolen_since(&Cores::of("cpu0 0\ncpu1 0\n"));
        assert_eq!(stolen("cpu  1 2 3 4 5 6 7 42 0 0\ncpu0 1 2 3 4 5 6 7 40 0 0\ncpu1 0 0 0 0 0 0 0 2 0 0\n"), 42);
        assert_eq!(stolen("cpu  1 2 3\ncpu0 1 2 3\nintr 7"), 0, "kernels before it was counted");
    }

    #[test]
    fn shares_are_of_what_went_by() {
        let line = |idle: u64| format!("cpu0 10 0 10 {idle} 0 0 20 5 0 0");
        let (then, now) = (Cores(vec![ticks("cpu0 0 0 0 0 0 0 0 5 0 0")]), Cores(vec![ticks(&line(60))]));
        assert_eq!(now.words_since(&then, 0), "core 0: 10 % program, 10 % kernel, 20 % interrupts, 60 % idle");
    }
}
