// SPDX-License-Identifier: Apache-2.0
//! How many in a second may pass.

/// So many in a second, and as many at once. It begins full.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket {
    /// Thousandths of packets that have passed and are not made up for by time yet.
    used: u64,
    since_ms: u32,
}

/// What one packet takes.
const PACKET: u64 = 1000;

impl Bucket {
    /// Returns whether one more may pass, which then has.
    pub fn take(&mut self, per_second: u32, now_ms: u32) -> bool {
        let elapsed_ms = now_ms.wrapping_sub(self.since_ms);
        self.since_ms = now_ms;
        self.used = self.used.saturating_sub(u64::from(elapsed_ms) * u64::from(per_second));
        let has_room = self.used + PACKET <= u64::from(per_second) * PACKET;
        if has_room {
            self.used += PACKET;
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_pass_in_a_second() {
        let mut bucket = Bucket::default();
        let passed = |bucket: &mut Bucket, ms: std::ops::Range<u32>| ms.filter(|now| bucket.take(100, *now)).count();
        assert_eq!(passed(&mut bucket, 0..1000), 199, "at once, and then as time goes on");
        assert_eq!(passed(&mut bucket, 1000..11_000), 1000);
        assert!(!bucket.take(0, 20_000));
        // The clock begins anew.
        assert!(bucket.take(1, u32::MAX) && !bucket.take(1, 10) && bucket.take(1, 1100));
    }
}
