// SPDX-License-Identifier: Apache-2.0
//! How busy the machine is, from `/proc`.

use netserv_model::request::NodeLoad;

/// Returns what the machine knows: processor use and free memory; `packets` is the node's own count.
pub fn measure(packets: u64) -> NodeLoad {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    NodeLoad {
        packets,
        load_permille: load_average_permille(&read("/proc/loadavg")),
        memory_free_kib: memory_available_kib(&read("/proc/meminfo")),
        processors: std::thread::available_parallelism().map_or(0, |count| u32::try_from(count.get()).unwrap_or(0)),
        ..NodeLoad::default()
    }
}

/// The load average over one minute: processes that want a core, in thousandths.
fn load_average_permille(loadavg: &str) -> u32 {
    let average = loadavg.split(' ').next().unwrap_or_default();
    let (whole, fraction) = average.split_once('.').unwrap_or((average, "0"));
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    number(whole).saturating_mul(1000).saturating_add(number(fraction).saturating_mul(10))
}

fn memory_available_kib(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_understood() {
        assert_eq!(load_average_permille("1.07 0.50 0.20 2/300 4711\n"), 1070);
        assert_eq!(load_average_permille(""), 0);
        assert_eq!(memory_available_kib("MemTotal: 5 kB\nMemAvailable:   22000 kB\n"), 22_000);
        assert_eq!(memory_available_kib(""), 0);
    }
}
