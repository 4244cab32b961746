// SPDX-License-Identifier: Apache-2.0
//! What the launcher tells the node: what it enforces, and how a process ended.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use super::kit::Kit;
use crate::limits::STDERR_BYTES_MAX;
use crate::protocol::Setup;
use crate::sandbox::cgroup::Cgroups;
use crate::sandbox::landlock;

/// Returns what is enforced on this machine, and what is not with the reason.
pub(super) fn summary(setup: &Setup, kit: &Kit, cgroups: &Cgroups, privileged: bool) -> (Vec<String>, Vec<String>) {
    let mut enforced = cgroups.enforced();
    let mut missing = cgroups.missing.clone();
    match (&setup.jvm, &kit.osgi) {
        (Some(jvm), Ok(_)) => enforced.push(format!("the same for Java workers, with {}", jvm.java_home.display())),
        (Some(_), Err(reason)) => missing.push(format!("Java workers: {reason}")),
        (None, _) => {}
    }
    match (&setup.media, &kit.media) {
        (Some(media), Ok(_)) => {
            enforced.push(format!("the same for media jobs, with {}", media.files.ffmpeg.display()));
        }
        (Some(_), Err(reason)) => missing.push(format!("media jobs: {reason}")),
        (None, _) => {}
    }
    enforced.push("mount, pid, ipc, uts and network namespaces; read-only root; seccomp allow-list".to_owned());
    let ids = format!("user ids from {}", setup.uid_base);
    if privileged {
        enforced.push(ids);
    } else {
        missing.push(format!("{ids}: the node does not run as root, so containers run as the node's own user"));
    }
    match landlock::version() {
        Ok(version) => enforced.push(version),
        Err(reason) => missing.push(reason),
    }
    (enforced, missing)
}

/// Returns the end of what a process wrote to its standard error. What is no text becomes spaces, since each of it would
/// take six bytes in a report, and the report has to fit into what its reader takes.
pub(super) fn last_words(stderr: OwnedFd) -> String {
    let mut bytes = vec![];
    let _ = File::from(stderr).read_to_end(&mut bytes);
    let from = bytes.len().saturating_sub(STDERR_BYTES_MAX);
    let text = String::from_utf8_lossy(&bytes[from..]).trim().to_owned();
    text.replace(|c: char| c.is_control() && c != '\n', " ")
}

#[cfg(test)]
mod tests {
    use rustix::fs::OFlags;

    use super::*;
    use crate::limits::EXIT_REPORT_BYTES_MAX;
    use crate::protocol::ExitReport;

    #[test]
    fn only_the_end_of_the_last_words_is_kept() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK).unwrap();
        let text = format!("{}the end\n", "x".repeat(STDERR_BYTES_MAX));
        rustix::io::write(&writer, text.as_bytes()).unwrap();
        // The writer stays open: reading must not wait for it.
        let words = last_words(reader);
        assert!(words.len() < STDERR_BYTES_MAX && words.ends_with("xthe end"));
    }

    #[test]
    fn whatever_the_last_words_are_their_report_is_read_whole() {
        for bytes in [b"\x01", b"\"", b"\xff", b"\x7f"] {
            let (reader, writer) = rustix::pipe::pipe().unwrap();
            rustix::io::write(&writer, &[b"x", &bytes.repeat(STDERR_BYTES_MAX)[..], b"x"].concat()).unwrap();
            drop(writer);
            let stderr = last_words(reader);
            let (code, signal) = (Some(i32::MIN), Some(i32::MIN));
            let report = ExitReport { code, signal, out_of_memory: false, out_of_cpu_time: false, cpu_ns: 0, stderr };
            let length = serde_json::to_vec(&report).unwrap().len();
            assert!(length < EXIT_REPORT_BYTES_MAX, "{bytes:?}: {length}");
        }
    }
}
