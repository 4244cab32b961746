// SPDX-License-Identifier: Apache-2.0
//! The agent's page: where modules are, and what they count there. It asks nobody but the agent.

use std::net::IpAddr;

use axum::Json;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::sync::oneshot;

use crate::api::{self, Api};
use crate::event::Event;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const OWN_STYLE: &str = include_str!("page.css");
/// What pages of modules look like, too.
const STYLE: &str = include_str!("../../../../modules/sdk/server/src/page/live.css");

/// Returns the page with its files and data.
pub fn router(api: Api) -> Router {
    let file = |media_type: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, media_type)], text) })
    };
    Router::new()
        .route("/", file("text/html; charset=utf-8", PAGE))
        .route("/page.js", file("text/javascript; charset=utf-8", SCRIPT))
        .route("/page.css", file("text/css; charset=utf-8", OWN_STYLE))
        .route("/live.css", file("text/css; charset=utf-8", STYLE))
        .route("/metrics", get(api::metrics).with_state(api.clone()))
        .route("/v1/sites", get(sites).with_state(api))
        .layer(middleware::from_fn(secured))
}

async fn sites(State(api): State<Api>) -> Response {
    let (reply, answer) = oneshot::channel();
    let asked = api.events.send(Event::Sites(reply)).await;
    match (asked, answer.await) {
        (Ok(()), Ok(sites)) => Json(&*sites).into_response(),
        (Err(_), _) | (_, Err(_)) => (StatusCode::SERVICE_UNAVAILABLE, "the agent ends\n").into_response(),
    }
}

/// Lets only what is asked for as this machine through, so that no page of others reads it by a name of theirs that leads here (DNS
/// rebinding), and adds what keeps an answer from being used for anything but this page.
async fn secured(request: Request, next: Next) -> Response {
    if !is_asked_here(request.headers()) {
        let why = "ask by a loopback address or as localhost; a proxy before this page sends that as `Host`\n";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    let mut response = next.run(request).await;
    for (name, value) in SECURITY {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

fn is_asked_here(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

const SECURITY: [(&str, &str); 4] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_that_lead_here_are_no_way_in() {
        let check = |host: &str, expected| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            assert_eq!(is_asked_here(&headers), expected, "{host}");
        };
        for host in ["127.0.0.1:8271", "127.9.9.9", "[::1]:8271", "localhost", "LocalHost:8271"] {
            check(host, true);
        }
        for host in ["evil.example:8271", "192.0.2.1", "[2001:db8::1]:80", "localhost.evil.example", "", "[", ":"] {
            check(host, false);
        }
        assert!(!is_asked_here(&HeaderMap::new()));
    }
}
