// SPDX-License-Identifier: Apache-2.0
//! Prefixes as texts that more than one party reads.

use std::net::IpAddr;

use ipnet::IpNet;

/// Returns the prefix that `ADDRESS/LENGTH` names. No number has a zero before it: some programs read `010.2.0.0` as 8.2.0.0
/// (RFC 6943 §3.1.1), and the crate `ipnet` as 10.2.0.0.
pub fn parse(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let is_plain = length.bytes().all(|digit| digit.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    IpNet::new(address, length.parse().ok().filter(|_| is_plain)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_have_one_meaning() {
        for good in ["10.2.0.0/16", "0.0.0.0/0", "10.2.3.4/8", "2001:db8::/32", "::/0", "2001:DB8:0::/128"] {
            assert_eq!(parse(good), good.parse().ok(), "{good}");
            assert!(parse(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "/",
            "10.2.0.0",
            "10.2.0.0/",
            "/16",
            "010.2.0.0/16",
            "10.02.0.0/16",
            "10.2.0.0/016",
            "10.2.0.0/+8",
            "10.2.0.0/33",
            "10.2.0.0/256",
            "10.2.0.0/-1",
            "10.2/16",
            "10.2.0.0/16/8",
            " 10.2.0.0/16",
            "::/129",
            "::ffff:010.2.0.0/112",
            "fe80::%1/64",
            "\u{661}0.2.0.0/16",
            "::/00",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
