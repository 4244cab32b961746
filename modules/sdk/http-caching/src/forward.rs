// SPDX-License-Identifier: Apache-2.0
//! Headers on their way to the origin and back.

use std::time::Duration;

use crate::date;
use crate::fields::{Fields, Request, has, is_of_connection, is_one_of, members};
use crate::policy::Policy;
use crate::vary;

/// Returns the headers of a request whose response is not stored.
#[must_use]
pub fn request(request: &Request<'_>, policy: &Policy) -> Vec<(String, Vec<u8>)> {
    let is_own = |name: &str| policy.surrogate.is_some() && name.eq_ignore_ascii_case(CAPABILITY);
    let on =
        |name: &str| !is_of_connection(name, request.headers) && !name.eq_ignore_ascii_case("host") && !is_own(name);
    let mut headers: Vec<_> = request.headers.iter().filter(|(name, _)| on(name)).cloned().collect();
    headers.push(via(policy));
    headers.extend(policy.surrogate.as_ref().map(|name| capability(request, name)));
    headers
}

/// Returns what tells the origin that a surrogate asks, and which. Some servers read one such line only, so those before it are in this one.
fn capability(request: &Request<'_>, name: &str) -> (String, Vec<u8>) {
    let mut value = format!("{name}=\"Surrogate/1.0\"").into_bytes();
    for member in members(request.headers, CAPABILITY) {
        value.extend_from_slice(b", ");
        value.extend_from_slice(member);
    }
    (CAPABILITY.to_owned(), value)
}

/// Returns whether a request went through this cache twice before (RFC 9110 §7.6.3).
///
/// Once may be on its way to another part of the node.
#[must_use]
pub fn is_loop(request: &Request<'_>, policy: &Policy) -> bool {
    let received_by = |member: &[u8]| member.split(|byte| *byte == b' ').nth(1) == Some(policy.name.as_bytes());
    members(request.headers, "via").filter(|member| received_by(member)).count() > 1
}

/// Returns the headers of a request whose response is to be stored for others.
///
/// Conditions and ranges are left out, and fields that make some servers answer for another place than the key says. Codings are those that
/// select a variant.
#[must_use]
pub fn fill(request: &Request<'_>, policy: &Policy) -> Vec<(String, Vec<u8>)> {
    let mut headers = self::request(request, policy);
    let codings = vary::codings(request.headers);
    let is_replaced = |name: &str| codings.is_some() && name.eq_ignore_ascii_case(vary::ACCEPT_ENCODING);
    headers.retain(|(name, _)| !is_of_one_client(name) && !is_replaced(name));
    headers.extend(codings.map(|codings| (vary::ACCEPT_ENCODING.to_owned(), codings.into_bytes())));
    headers
}

/// Returns whether a field of a request is left out if its response is to be stored for others.
#[must_use]
pub fn is_of_one_client(name: &str) -> bool {
    is_one_of(name, &OF_ONE_CLIENT)
}

/// Returns the headers of a response that is passed on.
#[must_use]
pub fn response(headers: &Fields, policy: &Policy, received: Duration) -> Vec<(String, Vec<u8>)> {
    let kept = headers.iter().filter(|(name, _)| !is_of_connection(name, headers));
    with_own(kept.cloned().collect(), headers, policy, received)
}

/// Adds what a proxy has to add to a response, and takes out what was said to it.
pub(crate) fn with_own(
    mut kept: Vec<(String, Vec<u8>)>,
    all: &Fields,
    policy: &Policy,
    received: Duration,
) -> Vec<(String, Vec<u8>)> {
    if policy.surrogate.is_some() {
        kept.retain(|(name, _)| !name.eq_ignore_ascii_case("surrogate-control"));
    }
    if !has(all, "date") {
        kept.push(("date".to_owned(), date::format(received).into_bytes()));
    }
    kept.push(via(policy));
    kept
}

/// Returns what the cache adds to each message.
pub(crate) fn via(policy: &Policy) -> (String, Vec<u8>) {
    ("via".to_owned(), format!("1.1 {}", policy.name).into_bytes())
}

/// The field by which surrogates name themselves (Edge Architecture Specification 1.0, §2.1).
const CAPABILITY: &str = "surrogate-capability";
/// What one client wants, and what is not in the key although some servers read it.
const OF_ONE_CLIENT: [&str; 33] = [
    "if-none-match",
    "if-modified-since",
    "if-range",
    "range",
    "x-forwarded-host",
    "x-forwarded-scheme",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-protocol",
    "x-forwarded-ssl",
    "x-forwarded-path",
    "x-forwarded-uri",
    "x-forwarded-for",
    "x-forwarded-by",
    "x-real-ip",
    "x-scheme",
    "x-url-scheme",
    "front-end-https",
    "x-original-uri",
    "x-original-proto",
    "x-host",
    "x-original-url",
    "x-rewrite-url",
    "x-forwarded-server",
    "x-original-host",
    "x-http-host-override",
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "base-url",
    "proxy",
    "forwarded",
];
