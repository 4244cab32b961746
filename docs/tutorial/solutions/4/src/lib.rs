// SPDX-License-Identifier: Apache-2.0
//! Keeps notes: `PUT /notes/NAME`, `GET /notes/NAME`, `DELETE /notes/NAME`, and `GET /notes` for the list.

use netserv_server_sdk::http::{HttpModule, Request, Response};
use netserv_server_sdk::{http_module, kv};

/// Bytes of a note.
const NOTE_BYTES_MAX: usize = 1000;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 64;

struct Notes;

impl HttpModule for Notes {
    fn handle(request: Request) -> Response {
        if request.path == "/notes" {
            return if request.method == "GET" { list() } else { not_allowed("GET") };
        }
        let Some(name) = request.path.strip_prefix("/notes/") else { return Response::text(404, "nothing here\n") };
        if !is_name(name) {
            return Response::text(400, "a name is 1 to 64 letters, digits and dashes\n");
        }
        let key = format!("note/{name}").into_bytes();
        match request.method.as_str() {
            "GET" => match kv::get(&key) {
                Ok(Some(note)) => Response::new(200, note).with("content-type", "text/plain; charset=utf-8"),
                Ok(None) => Response::text(404, "no such note\n"),
                Err(error) => failed(&error),
            },
            "PUT" => put(&request, &key),
            "DELETE" => match kv::delete(&key) {
                Ok(true) => Response::new(204, ""),
                Ok(false) => Response::text(404, "no such note\n"),
                Err(error) => failed(&error),
            },
            _ => not_allowed("GET, PUT, DELETE"),
        }
    }
}

fn put(request: &Request, key: &[u8]) -> Response {
    let Ok(note) = request.body(NOTE_BYTES_MAX) else {
        return Response::text(413, "a note has at most 1000 bytes\n");
    };
    match kv::set(key, &note) {
        Ok(()) => Response::new(201, ""),
        Err(kv::Error::Quota) => Response::text(507, "there is no room for more notes\n"),
        Err(error) => failed(&error),
    }
}

fn list() -> Response {
    let (mut text, mut after) = (String::new(), None);
    loop {
        let keys = match kv::keys(after.as_deref(), 100) {
            Ok(keys) => keys,
            Err(error) => return failed(&error),
        };
        let Some(last) = keys.last() else { return Response::text(200, text) };
        after = Some(last.clone());
        for name in keys.iter().filter_map(|key| std::str::from_utf8(key).ok()?.strip_prefix("note/")) {
            text.push_str(name);
            text.push('\n');
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn not_allowed(methods: &str) -> Response {
    Response::text(405, "not with this method\n").with("allow", methods)
}

fn failed(error: &kv::Error) -> Response {
    Response::text(500, format!("the node's kv state failed: {error:?}\n"))
}

http_module!(Notes);
