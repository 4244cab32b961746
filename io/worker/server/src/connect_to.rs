// SPDX-License-Identifier: Apache-2.0
//! The property `connect-to`: where connections to a server go instead of where its name is. Requests and certificates are of the name all
//! the same.

use std::collections::BTreeMap;

use http::uri::Authority;
use netserv_model::{Refusal, RefusalKind};

/// Where connections of one module go.
#[derive(Debug, Default)]
pub struct ConnectTo(Vec<Pair>);

/// A server's name, in small letters, and port; where its connections go.
type Pair = ((String, u16), (String, u16));

impl ConnectTo {
    /// Returns what the properties of a module say. What cannot be read there counts for nothing: see [`ConnectTo::check`].
    pub fn new(properties: &BTreeMap<String, String>) -> ConnectTo {
        ConnectTo(pairs(properties).flatten().collect())
    }

    /// Reads what the properties of a module say.
    ///
    /// # Errors
    /// [`RefusalKind::BadRequest`] if a part of it cannot be read.
    pub fn check(properties: &BTreeMap<String, String>) -> Result<(), Refusal> {
        let detail = || format!("`{PROPERTY}` has pairs host:port=host:port, with blanks between them");
        let is_readable = pairs(properties).all(|pair| pair.is_some());
        is_readable.then_some(()).ok_or_else(|| Refusal::new(RefusalKind::BadRequest, detail()))
    }

    /// Returns the host, without brackets, and the port that connections to `host` and `port` go to.
    pub fn of<'a>(&'a self, host: &'a str, port: u16) -> (&'a str, u16) {
        let pair = self.0.iter().find(|((from, at), _)| from.eq_ignore_ascii_case(host) && *at == port);
        pair.map_or((host, port), |(_, (to, at))| (to, *at))
    }
}

/// Returns the host of an authority without the brackets of an IPv6 address.
pub fn host(authority: &Authority) -> &str {
    let host = authority.host();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Returns the pairs, `www.example.org:80=192.0.2.1:8080` each, with blanks between them; nothing in the place of what is none.
fn pairs(properties: &BTreeMap<String, String>) -> impl Iterator<Item = Option<Pair>> {
    let text = properties.get(PROPERTY).map_or("", String::as_str);
    text.split_whitespace().map(|pair| {
        let (from, to) = pair.split_once('=')?;
        Some((end(from)?, end(to)?))
    })
}

fn end(text: &str) -> Option<(String, u16)> {
    let authority: Authority = text.parse().ok()?;
    let is_plain = !text.contains('@') && !authority.host().is_empty();
    is_plain.then(|| Some((host(&authority).to_ascii_lowercase(), authority.port_u16()?)))?
}

const PROPERTY: &str = "connect-to";

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(text: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(PROPERTY.to_owned(), text.to_owned())])
    }

    #[test]
    fn connections_go_where_the_property_says() {
        let said = properties("WWW.example.org:80=192.0.2.1:8080  a:443=[2001:db8::1]:443\n[::1]:80=b:81");
        assert_eq!(ConnectTo::check(&said), Ok(()));
        let to = ConnectTo::new(&said);
        assert_eq!(to.of("www.Example.org", 80), ("192.0.2.1", 8080));
        assert_eq!(to.of("a", 443), ("2001:db8::1", 443));
        assert_eq!(to.of("::1", 80), ("b", 81));
        assert_eq!(to.of("www.example.org", 443), ("www.example.org", 443));
        assert_eq!(ConnectTo::new(&BTreeMap::new()).of("a", 80), ("a", 80));
    }

    #[test]
    fn what_cannot_be_read_is_known() {
        for text in ["a", "a:80", "a=b:80", "a:80=b", "a:80=b:99999", "=b:80", "u@a:80=b:80", "a:80=b:80 x"] {
            assert!(ConnectTo::check(&properties(text)).is_err(), "{text}");
        }
        assert!(ConnectTo::check(&properties(" ")).is_ok() && ConnectTo::check(&BTreeMap::new()).is_ok());
        assert_eq!(ConnectTo::new(&properties("x a:80=b:81")).of("a", 80), ("b", 81));
    }
}
