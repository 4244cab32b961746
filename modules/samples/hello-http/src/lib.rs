// SPDX-License-Identifier: Apache-2.0
//! Answers `GET /` with a greeting, `POST /echo` with the request's body, and everything else with 404.

#![cfg(target_os = "wasi")]

use wasi::exports::http::incoming_handler::Guest;
use wasi::http::types::{Fields, IncomingRequest, Method, OutgoingBody, OutgoingResponse, ResponseOutparam};
use wasi::io::streams::StreamError;

struct Hello;

impl Guest for Hello {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        match (request.method(), &*path) {
            (Method::Get, "/") => answer(out, 200, b"Hello from a NetServ node\n"),
            (Method::Post, "/echo") => echo(&request, out),
            _ => answer(out, 404, b"nothing here\n"),
        }
    }
}

fn answer(out: ResponseOutparam, status: u16, text: &[u8]) {
    let headers = Fields::from_list(&[("content-type".to_owned(), b"text/plain".to_vec())]).expect("a valid header");
    let response = OutgoingResponse::new(headers);
    response.set_status_code(status).expect("a valid status");
    let body = response.body().expect("the body is asked for once");
    ResponseOutparam::set(out, Ok(response));
    let stream = body.write().expect("the stream is asked for once");
    let written = stream.blocking_write_and_flush(text);
    drop(stream);
    if written.is_ok() {
        let _ = OutgoingBody::finish(body, None);
    }
}

fn echo(request: &IncomingRequest, out: ResponseOutparam) {
    let incoming = request.consume().expect("the body is asked for once");
    let from = incoming.stream().expect("the stream is asked for once");
    let response = OutgoingResponse::new(Fields::new());
    let body = response.body().expect("the body is asked for once");
    ResponseOutparam::set(out, Ok(response));
    let into = body.write().expect("the stream is asked for once");
    loop {
        match into.blocking_splice(&from, 65_536) {
            Ok(_) => {}
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(_)) => return,
        }
    }
    drop(into);
    let _ = OutgoingBody::finish(body, None);
}

wasi::http::proxy::export!(Hello);
