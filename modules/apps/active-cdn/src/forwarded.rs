// SPDX-License-Identifier: Apache-2.0
//! What the origin is told of a viewer that asked the module itself (RFC 7239), and what the provider adds to each request. On connections that
//! are taken over, the origin sees the viewer's own address.

use netserv_server_sdk::connection::{self, Address};
use netserv_server_sdk::properties;

type Headers = Vec<(String, Vec<u8>)>;

/// Has a request to the origin say who asks, in the place of what the viewer wrote there.
pub fn tell(headers: &mut Headers) {
    let Some(ends) = connection::request().filter(|ends| !ends.intercepted) else { return };
    let mode = properties::get("forwarded").unwrap_or_default();
    change(headers, &mode, &ends.client, ends.tls);
    let own: Headers = added(&properties::get("origin-headers").unwrap_or_default()).collect();
    headers.retain(|(name, _)| !own.iter().any(|(added, _)| name.eq_ignore_ascii_case(added)));
    headers.extend(own);
}

fn change(headers: &mut Headers, mode: &str, client: &Address, tls: bool) {
    let is_appended = mode == "append";
    let came = |headers: &Headers, name: &str| {
        let lines = headers.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        let lines: Vec<&[u8]> = lines.map(|(_, value)| &value[..]).filter(|value| !value.is_empty()).collect();
        if is_appended { lines.join(&b", "[..]) } else { Vec::new() }
    };
    let (all, addresses) = (came(headers, "forwarded"), came(headers, "x-forwarded-for"));
    headers.retain(|(name, _)| !TOLD.iter().any(|told| name.eq_ignore_ascii_case(told)));
    if mode == "off" {
        return;
    }
    let node = if client.ip.contains(':') { format!("\"[{}]\"", client.ip) } else { client.ip.clone() };
    let scheme = if tls { "https" } else { "http" };
    let behind = |came: Vec<u8>, own: String| match came.is_empty() {
        true => own.into_bytes(),
        false => [&came[..], b", ", own.as_bytes()].concat(),
    };
    headers.push(("forwarded".to_owned(), behind(all, format!("for={node};proto={scheme}"))));
    headers.push(("x-forwarded-for".to_owned(), behind(addresses, client.ip.clone())));
    headers.push(("x-forwarded-proto".to_owned(), scheme.into()));
}

/// Returns the lines of a property, `name: value` each.
fn added(text: &str) -> impl Iterator<Item = (String, Vec<u8>)> {
    let line = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_ascii_lowercase(), value.trim().as_bytes().to_vec()))
    };
    text.split(['\n', '|']).filter_map(line)
}

/// What servers take for the viewer's address, and for how it asked.
const TOLD: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-real-ip", "x-client-ip", "true-client-ip", "x-forwarded-proto"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_is_told_and_what_it_forged_is_not() {
        let check = |mode: &str, ip: &str, expected: &[(&str, &str)]| {
            let lines =
                [("X-Forwarded-For", "1.1.1.1"), ("x-real-ip", "2.2.2.2"), ("Forwarded", "for=3.3.3.3"), ("a", "b")];
            let mut headers = lines.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())).to_vec();
            change(&mut headers, mode, &Address { ip: ip.to_owned(), port: 7 }, false);
            let got: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (&**name, std::str::from_utf8(value).unwrap())).collect();
            assert_eq!(got, expected, "{mode}");
        };
        let (own, proto) = (("a", "b"), ("x-forwarded-proto", "http"));
        let new = [own, ("forwarded", "for=10.0.0.1;proto=http"), ("x-forwarded-for", "10.0.0.1"), proto];
        check("", "10.0.0.1", &new);
        let six = [own, ("forwarded", "for=\"[2001:db8::1]\";proto=http"), ("x-forwarded-for", "2001:db8::1"), proto];
        check("", "2001:db8::1", &six);
        let all = ("forwarded", "for=3.3.3.3, for=10.0.0.1;proto=http");
        check("append", "10.0.0.1", &[own, all, ("x-forwarded-for", "1.1.1.1, 10.0.0.1"), proto]);
        check("off", "10.0.0.1", &[own]);
    }

    #[test]
    fn lines_of_the_provider_are_read() {
        let lines: Vec<_> = added("X-Key: a:b | x-two:c\nnothing").collect();
        assert_eq!(lines, [("x-key".to_owned(), b"a:b".to_vec()), ("x-two".to_owned(), b"c".to_vec())]);
    }
}
