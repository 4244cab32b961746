// SPDX-License-Identifier: Apache-2.0
//! How often things are looked after, and how long busy ones are tried.

use std::time::{Duration, Instant};

use netserv_plane::DriverError;

/// How often queues, neighbours and devices that could not be served are looked after.
pub(super) const TEND_INTERVAL: Duration = Duration::from_secs(1);

/// How long a start waits for devices that are busy: the kernel closes the AF_XDP sockets of a killed process in the
/// background, after its end.
pub(super) const BUSY_MAX: Duration = Duration::from_secs(2);
/// How often they are tried meanwhile.
const BUSY_STEP: Duration = Duration::from_millis(10);

/// Tries something once, and as long as it is busy again and again until a moment.
pub(super) fn once_free<T>(
    until: Instant,
    mut attempt: impl FnMut() -> Result<T, DriverError>,
) -> Result<T, DriverError> {
    loop {
        let result = attempt();
        let busy = matches!(&result, Err(DriverError::System { source, .. }) if is_busy(source));
        if !busy || Instant::now() >= until {
            return result;
        }
        std::thread::sleep(BUSY_STEP);
    }
}

fn is_busy(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBUSY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_busy_is_tried_until_it_is_free_or_the_time_is_over() {
        let failure = |number| DriverError::system("trying", std::io::Error::from_raw_os_error(number));
        let attempts = |until: Instant, free_after: usize, number: i32| {
            let mut attempts = 0;
            let result = once_free(until, || {
                attempts += 1;
                if attempts > free_after { Ok(()) } else { Err(failure(number)) }
            });
            (attempts, result.is_ok())
        };
        let later = Instant::now() + BUSY_MAX;
        assert_eq!(attempts(later, 3, libc::EBUSY), (4, true));
        assert_eq!(attempts(later, 3, libc::EINVAL), (1, false));
        assert_eq!(attempts(Instant::now(), 3, libc::EBUSY), (1, false));
        let (tried, done) = attempts(Instant::now() + 5 * BUSY_STEP, usize::MAX, libc::EBUSY);
        assert!(!done && (2..=6).contains(&tried), "{tried}");
    }
}
