// SPDX-License-Identifier: Apache-2.0
//! The server part: `GET /` is the page, `GET /events` its events, `POST /say` publishes a line. With the property `token`, who says
//! something needs `authorization: Bearer TOKEN`. Beside the requests, a program publishes a tick each `tick-ms`, if there is that
//! property.

use std::time::Duration;

use netserv_server_sdk::http::{HttpModule, Request, Response};
use netserv_server_sdk::{channel, http_module, properties, resident};

struct Page;

impl HttpModule for Page {
    fn handle(request: Request) -> Response {
        match (&*request.method, &*request.path) {
            ("GET", "/") => Response::html(200, PAGE),
            ("GET", "/events") => channel::events(&request, "page"),
            ("POST", "/say") => say(&request),
            ("GET" | "POST", _) => Response::text(404, "nothing here\n"),
            _ => Response::text(405, "GET /, GET /events or POST /say\n").with("allow", "GET, POST"),
        }
    }
}

fn say(request: &Request) -> Response {
    let token = properties::get("token").unwrap_or_default();
    let given = request.header("authorization").unwrap_or_default();
    if !token.is_empty() && given != format!("Bearer {token}").as_bytes() {
        return Response::text(401, "a token is needed\n").with("www-authenticate", "Bearer");
    }
    let Ok(body) = request.body(TEXT_BYTES_MAX) else { return Response::text(413, "too long\n") };
    // An event's lines are its own: whoever says several says one.
    let text = String::from_utf8_lossy(&body).replace(['\r', '\n'], " ");
    match channel::publish("page", format!("data: {}\n\n", text.trim()).as_bytes(), None) {
        Ok(number) => Response::text(202, format!("{number}\n")),
        Err(error) => Response::text(503, format!("it was not published: {error:?}\n")),
    }
}

fn tick() {
    let Some(period) = properties::get("tick-ms").filter(|period| !period.is_empty()) else { return };
    let period = Duration::from_millis(period.parse().expect("`tick-ms` is a number"));
    for number in 1_u64.. {
        std::thread::sleep(period);
        // Without room, the next one may have some.
        let _ = channel::publish("page", format!("event: tick\ndata: {number}\n\n").as_bytes(), Some(b"tick"));
    }
}

http_module!(Page);
resident!(tick);

const TEXT_BYTES_MAX: usize = 16 * 1024;
const PAGE: &str = "<!doctype html><meta charset=utf-8><title>live</title><h1>Live</h1>\
    <p><b id=packets>0</b> packets, <b id=ticks>0</b> ticks<form id=say><input id=text maxlength=200><button>say</button></form><ul id=said></ul>\
    <script>
    const events = new EventSource('/events');
    events.addEventListener('packets', event => { packets.textContent = event.data; });
    events.addEventListener('tick', event => { ticks.textContent = event.data; });
    events.onmessage = event => {
        const line = document.createElement('li');
        line.textContent = event.data;
        said.prepend(line);
    };
    say.onsubmit = event => {
        event.preventDefault();
        fetch('/say', { method: 'POST', body: text.value });
        text.value = '';
    };
    </script>";
