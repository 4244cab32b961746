// SPDX-License-Identifier: Apache-2.0
//! Names of methods and headers.

macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $(#[$other_meta:meta])* $other:ident; $($variant:ident = $number:literal $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum $name {
            $(#[$other_meta])*
            $other = 0,
            $(
                #[doc = concat!("`", $text, "`.")]
                $variant = $number,
            )*
        }

        impl $name {
            /// All that have a number of their own.
            pub const KNOWN: &[$name] = &[$($name::$variant),*];

            /// Returns the number, which is part of the packet ABI; 0 for all others.
            pub fn number(self) -> u16 {
                self as u16
            }

            /// Returns the name as the RFC writes it; nothing for all others.
            pub fn text(self) -> Option<&'static str> {
                match self {
                    $name::$other => None,
                    $($name::$variant => Some($text),)*
                }
            }
        }
    };
}

numbered! {
    /// A request's method.
    Method {
        /// One that has no number.
        Other;
        Invite = 1 "INVITE",
        Ack = 2 "ACK",
        Bye = 3 "BYE",
        Cancel = 4 "CANCEL",
        Register = 5 "REGISTER",
        Options = 6 "OPTIONS",
        Prack = 7 "PRACK",
        Subscribe = 8 "SUBSCRIBE",
        Notify = 9 "NOTIFY",
        Publish = 10 "PUBLISH",
        Info = 11 "INFO",
        Refer = 12 "REFER",
        Message = 13 "MESSAGE",
        Update = 14 "UPDATE",
    }
}

numbered! {
    /// What a header is, whichever form its name has.
    HeaderName {
        /// One that has no number.
        Other;
        Via = 1 "Via",
        From = 2 "From",
        To = 3 "To",
        CallId = 4 "Call-ID",
        CSeq = 5 "CSeq",
        Contact = 6 "Contact",
        MaxForwards = 7 "Max-Forwards",
        Route = 8 "Route",
        RecordRoute = 9 "Record-Route",
        ContentLength = 10 "Content-Length",
        ContentType = 11 "Content-Type",
        ContentEncoding = 12 "Content-Encoding",
        Expires = 13 "Expires",
        Event = 14 "Event",
        UserAgent = 15 "User-Agent",
        Server = 16 "Server",
        Authorization = 17 "Authorization",
        ProxyAuthorization = 18 "Proxy-Authorization",
        WwwAuthenticate = 19 "WWW-Authenticate",
        ProxyAuthenticate = 20 "Proxy-Authenticate",
        Require = 21 "Require",
        ProxyRequire = 22 "Proxy-Require",
        Supported = 23 "Supported",
        Allow = 24 "Allow",
        Subject = 25 "Subject",
        ReferTo = 26 "Refer-To",
        ReferredBy = 27 "Referred-By",
        SessionExpires = 28 "Session-Expires",
        AllowEvents = 29 "Allow-Events",
        PAssertedIdentity = 30 "P-Asserted-Identity",
        SubscriptionState = 31 "Subscription-State",
        Identity = 32 "Identity",
        AcceptContact = 33 "Accept-Contact",
        RejectContact = 34 "Reject-Contact",
        RequestDisposition = 35 "Request-Disposition",
    }
}

impl Method {
    /// Returns the method of this name, which is case-sensitive.
    pub fn of(name: &[u8]) -> Method {
        let is = |method: &&Method| method.text().is_some_and(|text| text.as_bytes() == name);
        Method::KNOWN.iter().find(is).copied().unwrap_or(Method::Other)
    }
}

impl HeaderName {
    /// Returns the header of this name in any case, long or compact.
    pub fn of(name: &[u8]) -> HeaderName {
        if let [letter] = name {
            return compact(letter.to_ascii_lowercase());
        }
        let is = |known: &&HeaderName| known.text().is_some_and(|text| text.as_bytes().eq_ignore_ascii_case(name));
        of_length(name.len()).iter().find(is).copied().unwrap_or(HeaderName::Other)
    }
}

/// RFC 3261 §7.3.3, and the registry that RFC 3968 opened.
fn compact(letter: u8) -> HeaderName {
    match letter {
        b'a' => HeaderName::AcceptContact,
        b'b' => HeaderName::ReferredBy,
        b'c' => HeaderName::ContentType,
        b'd' => HeaderName::RequestDisposition,
        b'e' => HeaderName::ContentEncoding,
        b'f' => HeaderName::From,
        b'i' => HeaderName::CallId,
        b'j' => HeaderName::RejectContact,
        b'k' => HeaderName::Supported,
        b'l' => HeaderName::ContentLength,
        b'm' => HeaderName::Contact,
        b'o' => HeaderName::Event,
        b'r' => HeaderName::ReferTo,
        b's' => HeaderName::Subject,
        b't' => HeaderName::To,
        b'u' => HeaderName::AllowEvents,
        b'v' => HeaderName::Via,
        b'x' => HeaderName::SessionExpires,
        b'y' => HeaderName::Identity,
        _ => HeaderName::Other,
    }
}

/// Returns the names of one length: few, so that a header is compared with few.
fn of_length(length: usize) -> &'static [HeaderName] {
    use HeaderName::*;
    match length {
        2 => &[To],
        3 => &[Via],
        4 => &[From, CSeq],
        5 => &[Route, Allow, Event],
        6 => &[Server],
        7 => &[CallId, Contact, Expires, Require, Subject],
        8 => &[ReferTo, Identity],
        9 => &[Supported],
        10 => &[UserAgent],
        11 => &[ReferredBy],
        12 => &[MaxForwards, RecordRoute, ContentType, AllowEvents],
        13 => &[Authorization, ProxyRequire],
        14 => &[ContentLength, AcceptContact, RejectContact],
        15 => &[SessionExpires],
        16 => &[ContentEncoding, WwwAuthenticate],
        18 => &[ProxyAuthenticate, SubscriptionState],
        19 => &[ProxyAuthorization, PAssertedIdentity, RequestDisposition],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_any_case() {
        for known in HeaderName::KNOWN {
            let text = known.text().unwrap();
            assert_eq!(HeaderName::of(text.as_bytes()), *known, "{text}");
            assert_eq!(HeaderName::of(text.to_uppercase().as_bytes()), *known, "{text}");
        }
        for method in Method::KNOWN {
            assert_eq!(Method::of(method.text().unwrap().as_bytes()), *method);
        }
        assert_eq!(Method::of(b"invite"), Method::Other);
        assert_eq!(HeaderName::of(b"X-Header"), HeaderName::Other);
        assert_eq!(HeaderName::of(b""), HeaderName::Other);
    }

    #[test]
    fn compact_names_mean_the_same() {
        let table = [("i", "Call-ID"), ("M", "Contact"), ("l", "Content-Length"), ("v", "VIA"), ("o", "Event")];
        for (short, long) in table {
            assert_eq!(HeaderName::of(short.as_bytes()), HeaderName::of(long.as_bytes()));
        }
        assert_eq!(HeaderName::of(b"q"), HeaderName::Other);
    }

    #[test]
    fn numbers_are_in_order() {
        for (known, number) in HeaderName::KNOWN.iter().zip(1..) {
            assert_eq!(known.number(), number);
        }
        for (known, number) in Method::KNOWN.iter().zip(1..) {
            assert_eq!(known.number(), number);
        }
    }
}
