// SPDX-License-Identifier: Apache-2.0
//! The node that the module runs on: its name, what its operator says of it, and the addresses of the module's container.
//!
//! ```
//! use netserv_sdk::{log, node};
//!
//! /// Samples less where the operator says that the line is fast.
//! fn one_in() -> u64 {
//!     let address = node::addresses().first().map_or_else(String::new, ToString::to_string);
//!     log::info(&format!("on {} in {}, as {address}", node::id(), node::place()));
//!     match node::fact("uplink").as_deref() {
//!         Some("100G") => 1000,
//!         _ => 10,
//!     }
//! }
//! # netserv_sdk::fake::reset(&[]);
//! # assert_eq!(one_in(), 10);
//! ```

use crate::host;

/// Returns the node's name.
pub fn id() -> String {
    text("id")
}

/// Returns where the node is; empty if its operator does not say.
pub fn place() -> String {
    text("place")
}

/// Returns what else the operator says by a name.
pub fn fact(name: &str) -> Option<String> {
    String::from_utf8(host::node_info(&format!("fact.{name}"))?).ok()
}

/// Returns the addresses of the module's container; none if containers have no network.
pub fn addresses() -> Vec<std::net::IpAddr> {
    text("addresses").split(' ').filter_map(|address| address.parse().ok()).collect()
}

fn text(key: &str) -> String {
    host::node_info(key).and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn the_operators_words_are_read() {
        fake::reset(&[]);
        assert_eq!((id(), place(), fact("uplink"), addresses()), (String::new(), String::new(), None, Vec::new()));
        fake::with(|node| {
            for (key, value) in
                [("id", "n1"), ("place", "berlin"), ("fact.uplink", "10G"), ("addresses", "192.0.2.1 2001:db8::1")]
            {
                node.info.insert(key.to_owned(), value.to_owned());
            }
        });
        assert_eq!((id(), place(), fact("uplink")), ("n1".to_owned(), "berlin".to_owned(), Some("10G".to_owned())));
        assert_eq!(
            addresses(),
            ["192.0.2.1", "2001:db8::1"].map(|address| address.parse::<std::net::IpAddr>().unwrap())
        );
    }
}
