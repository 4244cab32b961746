// SPDX-License-Identifier: Apache-2.0
//! Lets requests through to the next module of its service if they carry the property `token`, as
//! `authorization: Bearer TOKEN`.

use netserv_server_sdk::http::{HttpMiddleware, Request, Response};
use netserv_server_sdk::{crypto, http_middleware, properties};

struct Token;

impl HttpMiddleware for Token {
    fn handle(request: &Request) -> Option<Response> {
        let wanted = format!("Bearer {}", properties::get("token").filter(|token| !token.is_empty())?);
        let given = request.header("authorization").unwrap_or_default();
        if crypto::equal(given, wanted.as_bytes()) {
            return None;
        }
        Some(Response::text(401, "a token is needed\n").with("www-authenticate", "Bearer"))
    }
}

http_middleware!(Token);
