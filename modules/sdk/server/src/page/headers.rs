// SPDX-License-Identifier: Apache-2.0
//! What headers of requests for pages say.

/// Returns whether `if-none-match` names an entity's tag, by weak comparison (RFC 9110 §13.1.2).
pub fn names_tag(header: &[u8], tag: &str) -> bool {
    let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    let Ok(text) = std::str::from_utf8(header) else { return false };
    text.split(',').map(str::trim).any(|one| one == "*" || opaque(one) == opaque(tag))
}

/// Returns whether `accept-encoding` takes gzip (RFC 9110 §12.5.3).
pub fn accepts_gzip(header: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(header) else { return false };
    text.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        // A weight has at most three digits behind its point; any of them but 0 is more than nothing.
        is_gzip && weight.is_none_or(|weight| weight.bytes().any(|digit| matches!(digit, b'1'..=b'9')))
    })
}

/// Returns what `authorization` shows: a bearer's token (RFC 6750), or the password of whoever (RFC 7617).
pub fn token(header: &[u8]) -> Option<Vec<u8>> {
    let (scheme, shown) = std::str::from_utf8(header).ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(shown.trim().as_bytes().to_vec());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = from_base64(shown.trim())?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

/// Compares without telling by its time how much is alike.
pub fn are_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut held, mut bits) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = (held << 6 | u32::from(value)) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits).to_le_bytes()[0]);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_weakly() {
        for header in ["W/\"a\"", "\"a\"", "*", "\"b\" , W/\"a\""] {
            assert!(names_tag(header.as_bytes(), "W/\"a\""), "{header}");
        }
        for header in ["", "a", "\"b\"", "W/\"A\""] {
            assert!(!names_tag(header.as_bytes(), "W/\"a\""), "{header}");
        }
        assert!(!names_tag(b"\xff", "W/\"a\""));
    }

    #[test]
    fn gzip_is_taken_by_who_says_so() {
        for header in ["gzip", "br, GZIP", "gzip;q=0.1", "deflate , gzip ; q=1"] {
            assert!(accepts_gzip(header.as_bytes()), "{header}");
        }
        for header in ["", "br", "gzip;q=0", "gzip; q=0.000", "xgzip", "gzip;q=x"] {
            assert!(!accepts_gzip(header.as_bytes()), "{header}");
        }
        assert!(!accepts_gzip(b"\xff"));
    }

    #[test]
    fn a_token_is_shown_in_two_ways() {
        // `me:secret` and `:a:b`.
        for (header, shown) in [
            ("Bearer secret", Some("secret")),
            ("Basic bWU6c2VjcmV0", Some("secret")),
            ("basic OmE6Yg==", Some("a:b")),
            ("Basic bWU=", None),
            ("Basic !", None),
            ("Digest secret", None),
            ("Bearer", None),
        ] {
            assert_eq!(token(header.as_bytes()).as_deref(), shown.map(str::as_bytes), "{header}");
        }
        assert_eq!(token(b"Bearer \xff"), None);
        assert!(are_equal(b"secret", b"secret") && !are_equal(b"secret", b"secreT") && !are_equal(b"", b"s"));
    }
}
