// SPDX-License-Identifier: Apache-2.0
//! The JVM's options: what it may use of a container's memory, and what keeps it small and quiet.

use std::path::Path;

const MIB: u64 = 1 << 20;

/// The bounds of a JVM's parts. Their sum is what its container may use, less what the JVM takes beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of the Java heap.
    pub heap_bytes: u64,
    /// Bytes of the metadata of classes.
    pub metaspace_bytes: u64,
    /// Bytes of compiled code.
    pub code_bytes: u64,
    /// Bytes of buffers outside of the heap, and of large stacks.
    pub direct_bytes: u64,
    /// Bytes of kv state, which the native side keeps.
    pub kv_bytes: u64,
    /// Bytes of compressed streams and of sets of patterns, which the native side has.
    pub compute_bytes: u64,
}

/// Bytes that the JVM takes beside the parts that can be bounded: its own tables, compilers at work, stacks, and the
/// copies of the container's jar files.
const BESIDE_BYTES: u64 = 20 * MIB;
/// Bytes of the smallest heap that starts the framework.
const HEAP_BYTES_MIN: u64 = 8 * MIB;
/// Bytes of kv state in the largest container.
const KV_BYTES_MAX: u64 = 256 * MIB;
/// Bytes of streams and sets of patterns in the largest container.
const COMPUTE_BYTES_MAX: u64 = 64 * MIB;
/// Bytes of streams and sets of patterns that even a small container may have, though they may be more than its share:
/// those of one stream, which most of the time takes less.
const COMPUTE_BYTES_MIN: u64 = 10 * MIB;

impl Memory {
    /// Returns how many bytes streams and sets of patterns may take before further ones are refused.
    pub fn compute_bytes_allowed(&self) -> usize {
        usize::try_from(self.compute_bytes.max(COMPUTE_BYTES_MIN)).unwrap_or(usize::MAX)
    }

    /// Shares out the memory that a container has. Under 56 MiB the shares stay, and the kernel ends a JVM that uses
    /// them.
    pub fn of(container_bytes: u64) -> Memory {
        let share =
            |part: u64, least: u64, most: u64| (container_bytes / part).clamp(least * MIB, most * MIB) / MIB * MIB;
        let metaspace_bytes = share(4, 14, 96);
        let code_bytes = share(8, 8, 48);
        let direct_bytes = share(16, 2, 32);
        let rest = container_bytes.saturating_sub(BESIDE_BYTES + metaspace_bytes + code_bytes + direct_bytes);
        let spare = rest.saturating_sub(HEAP_BYTES_MIN);
        let kv_bytes = (spare / 4).clamp(MIB, KV_BYTES_MAX) / MIB * MIB;
        let compute_bytes = (spare / 8).clamp(MIB, COMPUTE_BYTES_MAX) / MIB * MIB;
        let heap_bytes = rest.saturating_sub(kv_bytes + compute_bytes).max(HEAP_BYTES_MIN) / MIB * MIB;
        Memory { heap_bytes, metaspace_bytes, code_bytes, direct_bytes, kv_bytes, compute_bytes }
    }
}

/// What a JVM is to be started with.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The Java release.
    pub version: u32,
    /// The jar files of the host, separated by colons.
    pub class_path: &'a str,
    /// A directory to write to.
    pub data: &'a Path,
    /// Bytes of memory that the container has.
    pub memory_bytes: u64,
    /// What is done about archived classes.
    pub archive: Archive<'a>,
    /// Whether recorded tests are run, with their own clock.
    pub test: bool,
}

/// What a JVM does about archived classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archive<'a> {
    /// Uses the JDK's own.
    Default,
    /// Uses this one.
    Use(&'a Path),
    /// Writes one with the classes that were loaded, when it ends.
    Write(&'a Path),
}

/// Returns the options of a JVM.
pub fn options(setup: &Setup<'_>) -> Vec<String> {
    let Memory { heap_bytes, metaspace_bytes, code_bytes, direct_bytes, .. } = Memory::of(setup.memory_bytes);
    let mut options: Vec<String> = [
        "-XX:+UseSerialGC",
        "-XX:+IgnoreUnrecognizedVMOptions",
        // No signal is handled but those that the JVM itself makes; nobody attaches to it, and it leaves no files.
        "-Xrs",
        "-XX:+DisableAttachMechanism",
        "-XX:-UsePerfData",
        "-XX:-CreateCoredumpOnCrash",
        "-XX:ErrorFile=/dev/null",
        "-XX:-UseContainerSupport",
        "-Xlog:disable",
        "-Xlog:all=error:stderr",
        "-XX:+DisplayVMOutputToStderr",
        // Archived classes are mapped where they were written to be, so that their pages are shared by all containers.
        // Elsewhere, every address in them is written anew, which takes 8 MB more of each container.
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:ArchiveRelocationMode=0",
        // Small, and given back.
        "-Xss256k",
        "-XX:MinHeapFreeRatio=10",
        "-XX:MaxHeapFreeRatio=30",
        "-XX:TrimNativeHeapInterval=2000",
        // The first thread runs no Java code: without this, each start where there is no `/proc` warns on standard error
        // that its stack is not found, and refusals show the end of that.
        "-Dsun.java.launcher=SUN_STANDARD",
        "-Djava.awt.headless=true",
        "-Djava.security.egd=file:/dev/urandom",
        "-Dfile.encoding=UTF-8",
    ]
    .map(str::to_owned)
    .to_vec();
    options.extend([
        format!("-Xms{}", heap_bytes.min(4 * MIB)),
        format!("-Xmx{heap_bytes}"),
        format!("-XX:MaxMetaspaceSize={metaspace_bytes}"),
        format!("-XX:CompressedClassSpaceSize={}", metaspace_bytes / 4 * 3),
        format!("-XX:ReservedCodeCacheSize={code_bytes}"),
        format!("-XX:MaxDirectMemorySize={direct_bytes}"),
        format!("-Djava.io.tmpdir={}", setup.data.join("tmp").display()),
        "-Duser.name=container".to_owned(),
        format!("-Duser.home={}", setup.data.display()),
        format!("-Djava.class.path={}", setup.class_path),
    ]);
    match setup.archive {
        Archive::Default => {}
        Archive::Use(file) => options.push(format!("-XX:SharedArchiveFile={}", file.display())),
        Archive::Write(file) => options.push(format!("-XX:ArchiveClassesAtExit={}", file.display())),
    }
    if setup.version >= 23 {
        // Felix asks for it, and each start would say so.
        options.push("--sun-misc-unsafe-memory-access=allow".to_owned());
    }
    if setup.test {
        options.push("-Dnetserv.test=true".to_owned());
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_fit_the_container() {
        for mib in 56..4096 {
            let memory = Memory::of(mib * MIB);
            let Memory { heap_bytes, metaspace_bytes, code_bytes, direct_bytes, kv_bytes, compute_bytes } = memory;
            let parts = heap_bytes + metaspace_bytes + code_bytes + direct_bytes + kv_bytes + compute_bytes;
            assert!(parts + BESIDE_BYTES <= mib * MIB, "{mib} MiB: {memory:?}");
            assert!(memory.heap_bytes >= HEAP_BYTES_MIN);
        }
    }

    #[test]
    fn each_bound_is_reached() {
        let of = |mib: u64| {
            let memory = Memory::of(mib * MIB);
            let Memory { heap_bytes, metaspace_bytes, code_bytes, direct_bytes, kv_bytes, compute_bytes } = memory;
            [heap_bytes, metaspace_bytes, code_bytes, direct_bytes, kv_bytes, compute_bytes].map(|part| part / MIB)
        };
        assert_eq!(of(0), [8, 14, 8, 2, 1, 1]);
        assert_eq!(of(64), [13, 16, 8, 4, 2, 1]);
        assert_eq!(of(128), [36, 32, 16, 8, 11, 5]);
        assert_eq!(of(4096), [3580, 96, 48, 32, 256, 64]);
        let allowed = |mib: u64| Memory::of(mib * MIB).compute_bytes_allowed() as u64 / MIB;
        assert_eq!((allowed(64), allowed(4096)), (10, 64));
        assert!(Memory::of(u64::MAX).heap_bytes > 0);
    }

    #[test]
    fn options_follow_the_setup() {
        let setup = Setup {
            version: 17,
            class_path: "/java/host/a.jar",
            data: Path::new("/data"),
            memory_bytes: 64 * MIB,
            archive: Archive::Use(Path::new("/java/archive/host.jsa")),
            test: false,
        };
        let check = |setup: &Setup<'_>, option: &str, expected: bool| {
            assert_eq!(options(setup).iter().any(|one| one == option), expected, "{option}");
        };
        check(&setup, "-Xmx13631488", true);
        check(&setup, "-Djava.io.tmpdir=/data/tmp", true);
        check(&setup, "-Dsun.java.launcher=SUN_STANDARD", true);
        check(&setup, "-XX:SharedArchiveFile=/java/archive/host.jsa", true);
        check(&setup, "-Dnetserv.test=true", false);
        check(&Setup { test: true, ..setup.clone() }, "-Dnetserv.test=true", true);
        check(&setup, "--sun-misc-unsafe-memory-access=allow", false);
        check(&Setup { version: 25, ..setup.clone() }, "--sun-misc-unsafe-memory-access=allow", true);
        let none = options(&Setup { archive: Archive::Default, ..setup });
        let is_archive =
            |option: &String| ["SharedArchiveFile", "ArchiveClassesAtExit"].iter().any(|one| option.contains(one));
        assert!(!none.iter().any(is_archive));
    }
}
