// SPDX-License-Identifier: Apache-2.0
//! Fair shares of something that all users of a node have together.

use std::net::IpAddr;

use ipnet::IpNet;

/// Which part of what is left one user may hold.
pub const SHARE_PART: u64 = 4;

/// Returns whether a user may hold `own` of `all`, where `held` is what all users hold then, this one included: at most a quarter
/// of what is left. However many users take what they can, the next one still gets something.
pub fn is_fair(own: u64, held: u64, all: u64) -> bool {
    own <= all.saturating_sub(held) / SHARE_PART
}

/// Returns whether what users hold leaves something for those who hold little: together at most `all`, and at most half of that beyond the first
/// `each` of each user. It does not depend on who came first, so what is fair before a restart is so after it.
pub fn leaves_room(held: impl Iterator<Item = usize>, each: usize, all: usize) -> bool {
    let (sum, beyond) = held.fold((0, 0), |(sum, beyond), own| (sum + own, beyond + own.saturating_sub(each)));
    sum <= all && beyond <= all / 2
}

/// Returns who holds the most of something that is full, and how much, if one who holds `own` would still hold less with one more.
pub fn greediest<K>(held: impl Iterator<Item = (K, usize)>, own: usize) -> Option<(K, usize)> {
    held.max_by_key(|(_, count)| *count).filter(|(_, most)| own + 1 < *most)
}

/// Returns the first address of the network that an address is in, of so many bits by version of IP: whoever has one address of a
/// network may have all of it.
pub fn network(address: IpAddr, v4_bits: u8, v6_bits: u8) -> IpAddr {
    let bits = if address.is_ipv4() { v4_bits } else { v6_bits };
    IpNet::new(address, bits).map_or(address, |network| network.network())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_most_gives_way_to_who_has_less_even_with_one_more() {
        let held = || [("a", 3), ("b", 5), ("c", 1)].into_iter();
        assert_eq!(greediest(held(), 3), Some(("b", 5)));
        assert_eq!(greediest(held(), 4), None);
        assert_eq!(greediest(std::iter::empty::<(&str, usize)>(), 0), None);
    }

    #[test]
    fn who_holds_much_leaves_room_for_who_holds_little() {
        let leaves_room = |held: &[usize]| leaves_room(held.iter().copied(), 4, 64);
        assert!(leaves_room(&[36]) && !leaves_room(&[37]) && !leaves_room(&[20, 21]));
        assert!(leaves_room(&[36, 4, 4, 4, 4, 4, 4, 4]) && !leaves_room(&[36, 4, 4, 4, 4, 4, 4, 4, 1]));
        assert!(leaves_room(&[4; 16]) && !leaves_room(&[4; 17]));
    }

    #[test]
    fn an_address_is_of_its_network() {
        for (address, first) in [("192.0.2.77", "192.0.2.0"), ("2001:db8:1:2ff::7", "2001:db8:1:200::")] {
            assert_eq!(network(address.parse().unwrap(), 24, 56), first.parse::<IpAddr>().unwrap());
            assert_eq!(network(address.parse().unwrap(), 32, 128), address.parse::<IpAddr>().unwrap());
        }
    }

    /// Goal: eight users who take all that they get leave a ninth a thirtieth, and one alone has a fifth.
    #[test]
    fn greedy_users_leave_something_for_the_next() {
        let all = 1_000_000;
        let mut held = 0;
        let mut take = || {
            let own = (0..all).rev().find(|own| is_fair(*own, held + own, all)).unwrap();
            held += own;
            own
        };
        assert_eq!(take(), all / 5);
        for _ in 0..7 {
            assert!(take() > 0);
        }
        assert!(take() > all / 30);
    }
}
