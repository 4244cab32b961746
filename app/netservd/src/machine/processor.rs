// SPDX-License-Identifier: Apache-2.0
//! How long a thread waited for a processor, which is the machine's doing and not the thread's.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

/// What the kernel says of one thread.
#[derive(Debug)]
pub struct ProcessorWait {
    /// Nothing if this kernel does not say it.
    schedstat: Option<File>,
}

impl ProcessorWait {
    /// Returns that of the calling thread.
    pub fn of_this_thread() -> ProcessorWait {
        ProcessorWait { schedstat: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// Returns how long the thread could have run and had no processor since it began; zero if the kernel does not say it.
    pub fn so_far(&self) -> Duration {
        let mut text = [0; 96];
        let read = self.schedstat.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        waited(&text[..read]).unwrap_or_default()
    }
}

/// Reads nanoseconds on a processor, nanoseconds of waiting for one, and a count.
fn waited(schedstat: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(schedstat).ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_kernels_text_is_understood() {
        assert_eq!(waited(b"80 64616 1\n"), Some(Duration::from_nanos(64_616)));
        for other in [&b""[..], b"80", b"80 x 1", b"\xff \xff"] {
            assert_eq!(waited(other), None);
        }
        assert_eq!(ProcessorWait { schedstat: None }.so_far(), Duration::ZERO);
    }

    #[test]
    fn a_thread_that_sleeps_does_not_wait_for_a_processor() {
        let wait = ProcessorWait::of_this_thread();
        let (begun, before) = (Instant::now(), wait.so_far());
        std::thread::sleep(Duration::from_millis(300));
        let waited = wait.so_far() - before;
        assert!(waited < begun.elapsed() - Duration::from_millis(299), "{waited:?} of {:?}", begun.elapsed());
    }
}
