// SPDX-License-Identifier: Apache-2.0
//! How the links between a node and its containers are called, so that forwarding planes leave them alone.

/// Links that a node can name, numbered from 0.
pub const CONTAINER_LINKS_MAX: u32 = 10_000;

/// Returns the name of the node's end of a container's link: `ns`, eight hex digits of the node's instance, `n` and a
/// number below [`CONTAINER_LINKS_MAX`].
pub fn container_link(instance: &str, number: u32) -> String {
    format!("{}{}", container_link_prefix(instance), number % CONTAINER_LINKS_MAX)
}

/// Returns what the names of all container links of an instance begin with.
///
/// An instance that is not eight hex digits stands there as a checksum.
pub fn container_link_prefix(instance: &str) -> String {
    if instance.len() == HASH_DIGITS && instance.bytes().all(is_hex) {
        return format!("ns{instance}n");
    }
    // FNV-1a: a short name, not a secret.
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    format!("ns{:08x}n", instance.as_bytes().iter().fold(0x811c_9dc5, step))
}

/// Returns the number of the group of devices that holds the links of the same instance as this one, if it is one: they
/// can be removed together.
pub fn container_link_group(name: &str) -> Option<u32> {
    let hash = name.get(2..2 + HASH_DIGITS).filter(|_| is_container_link(name))?;
    // Group 0 is that of all other devices.
    u32::from_str_radix(hash, 16).ok().map(|group| group.max(1))
}

/// Returns whether a device of this name is the node's end of a container's link, of whichever instance.
pub fn is_container_link(name: &str) -> bool {
    let rest = name.strip_prefix("ns").and_then(|rest| rest.split_at_checked(HASH_DIGITS));
    let Some((hash, number)) = rest else { return false };
    let number = number.strip_prefix('n').unwrap_or_default();
    hash.bytes().all(is_hex) && (1..=4).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

const HASH_DIGITS: usize = 8;

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_the_instance_are_short_and_known_again() {
        assert_eq!(container_link("0a1b2c3d", 7), "ns0a1b2c3dn7");
        let hashed = container_link("a node's name", CONTAINER_LINKS_MAX - 1);
        // Linux, `IFNAMSIZ`: 15 characters and a zero.
        assert!(hashed.ends_with("n9999") && hashed.len() <= 15, "{hashed}");
        assert_ne!(container_link_prefix("node-1"), container_link_prefix("node-2"));
        for name in [container_link("0a1b2c3d", 0), hashed] {
            assert!(is_container_link(&name) && name.starts_with("ns"), "{name}");
        }
        for other in
            ["", "ns", "eth0", "ns0a1b2c3d", "ns0a1b2c3dn", "ns0a1b2c3dnx", "ns0a1b2c3xn1", "ns0a1b2c3dn12345", "nsä"]
        {
            assert!(!is_container_link(other), "{other}");
        }
    }
}
