// SPDX-License-Identifier: Apache-2.0
//! The agent's HTTP API: observations, the nearest node, and what is deployed.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use netserv_api::{AgentCheck, AgentFinding, AgentNearest, ApiError};
use netserv_placement::Node;
use serde::Deserialize;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot, watch};

use crate::checks;
use crate::config::{Config, Deploy};
use crate::event::{Event, Observation, Observations};
use crate::limits::{BATCH_MAX, CALL_BYTES_MAX, GONE_LOOK_EVERY, GONE_WAIT_MAX};
use crate::metrics;
use crate::socket::make_way;

/// What calls need.
#[derive(Clone)]
pub struct Api {
    /// The rules, as they are at present.
    pub config: watch::Receiver<Arc<Config>>,
    /// The way to the loop for questions.
    pub events: mpsc::Sender<Event>,
    /// The way to the loop for observations.
    pub observations: Observations,
    /// What was found when it was looked last at what the agent reaches.
    pub reached: watch::Receiver<Vec<AgentFinding>>,
    /// When the agent began.
    pub begun: Instant,
}

/// `POST /v1/observations`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PostObservations {
    /// At most [`BATCH_MAX`].
    observations: Vec<Observed>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Observed {
    /// The name of a rule.
    rule: String,
    client: IpAddr,
    #[serde(default = "one")]
    count: u32,
}

#[derive(Debug, Deserialize)]
struct Wanted {
    /// The name of a rule, or of its module.
    module: String,
    client: IpAddr,
}

/// Returns everything that is answered at the agent's own socket.
pub fn router(api: Api) -> Router {
    let body = DefaultBodyLimit::max(CALL_BYTES_MAX);
    let observations = post(observe).layer(body);
    nearest_only(api.clone())
        .route("/v1/status", get(status).with_state(api.clone()))
        .route("/metrics", get(metrics).with_state(api.clone()))
        .route("/v1/check", get(check).with_state(api.clone()))
        .route("/v1/reload", post(reload).with_state(api.clone()))
        .route("/v1/rules/{rule}/{switch}", post(switch).with_state(api.clone()))
        .merge(Router::new().route("/v1/observations", observations).with_state(api))
}

/// Returns what is answered to servers of this machine.
pub fn nearest_only(api: Api) -> Router {
    Router::new().route("/v1/nearest", get(nearest)).with_state(api)
}

/// Makes the agent's socket, for its owner and group, in place of one that nobody serves any more.
///
/// # Errors
/// Another process serves it, or it cannot be made.
pub fn bind(path: &FilePath) -> Result<UnixListener> {
    make_way(path, || {
        // One that was killed may take a moment to be gone.
        let until = Instant::now() + GONE_WAIT_MAX;
        let is_served = || std::os::unix::net::UnixStream::connect(path).is_ok();
        while is_served() && Instant::now() < until {
            std::thread::sleep(GONE_LOOK_EVERY);
        }
        ensure!(!is_served(), "another agent serves {}; stop it, or set `socket` to another path", path.display());
        Ok(())
    })?;
    let listener = UnixListener::bind(path).with_context(|| format!("cannot bind {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}

async fn observe(State(api): State<Api>, Json(posted): Json<PostObservations>) -> Response {
    if posted.observations.len() > BATCH_MAX {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, &format!("more than {BATCH_MAX} observations in a call"));
    }
    let config = Arc::clone(&api.config.borrow());
    let mut batch = Vec::new();
    for Observed { rule, client, count } in posted.observations {
        let Some(rule) = config.rule(&rule) else {
            return refuse(StatusCode::NOT_FOUND, &format!("there is no rule `{rule}`"));
        };
        batch.push(Observation { rule, client, count });
    }
    match api.observations.send(batch) {
        true => StatusCode::NO_CONTENT.into_response(),
        false => refuse(StatusCode::SERVICE_UNAVAILABLE, "more is told than the agent can count"),
    }
}

/// Answers 200 in any case, since nginx takes a 404 of `auth_request` for an error: without a node the header is empty.
async fn nearest(State(api): State<Api>, Query(wanted): Query<Wanted>) -> Response {
    let names = |rule: &&Deploy| rule.name == wanted.module || rule.module.name.as_str() == wanted.module;
    let rule = api.config.borrow().rules.iter().find(names).map(|rule| rule.id);
    let Some(rule) = rule else {
        return refuse(StatusCode::NOT_FOUND, "no rule has this name or module");
    };
    let (reply, answer) = oneshot::channel();
    if api.events.send(Event::Nearest(rule, wanted.client, reply)).await.is_err() {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the agent ends");
    }
    let node: Option<Node> = answer.await.unwrap_or_default();
    let mut headers = HeaderMap::new();
    let (name, address) = node.as_ref().map_or((String::new(), String::new()), |node| {
        (node.name.to_string(), reachable(&node.addresses, wanted.client).map(|ip| ip.to_string()).unwrap_or_default())
    });
    for (header, value) in [("netserv-node", &name), ("netserv-address", &address)] {
        // Names and addresses have no byte that a header may not have.
        if let Ok(value) = value.parse() {
            headers.insert(header, value);
        }
    }
    let addresses = node.map(|node| node.addresses).unwrap_or_default();
    (headers, Json(AgentNearest { node: name, addresses })).into_response()
}

/// Returns the first address that a client of one version of IP can reach.
fn reachable(addresses: &[IpAddr], client: IpAddr) -> Option<IpAddr> {
    let is_v4 = client.to_canonical().is_ipv4();
    addresses.iter().copied().find(|address| address.is_ipv4() == is_v4)
}

async fn status(State(api): State<Api>) -> Response {
    let (reply, answer) = oneshot::channel();
    let asked = api.events.send(Event::Status(reply)).await;
    match (asked, answer.await) {
        (Ok(()), Ok(status)) => Json(status).into_response(),
        (Err(_), _) | (_, Err(_)) => refuse(StatusCode::SERVICE_UNAVAILABLE, "the agent ends"),
    }
}

/// `GET /metrics` answers in the text form of Prometheus.
pub async fn metrics(State(api): State<Api>) -> Response {
    let (reply, answer) = oneshot::channel();
    let asked = api.events.send(Event::Status(reply)).await;
    let (Ok(()), Ok(status)) = (asked, answer.await) else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the agent ends");
    };
    let text = metrics::text(&status, &api.reached.borrow(), api.begun.elapsed());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

/// `GET /v1/check` looks at everything that the configuration names.
async fn check(State(api): State<Api>) -> Response {
    let (reply, answer) = oneshot::channel();
    let asked = api.events.send(Event::Status(reply)).await;
    let (Ok(()), Ok(status)) = (asked, answer.await) else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the agent ends");
    };
    let config = Arc::clone(&api.config.borrow());
    Json(AgentCheck { checks: checks::findings(&config, &status).await }).into_response()
}

/// `POST /v1/rules/RULE/off` removes what a rule has deployed, and nothing more is by it until `on`.
async fn switch(State(api): State<Api>, Path((rule, switch)): Path<(String, String)>) -> Response {
    if api.config.borrow().rule(&rule).is_none() {
        return refuse(StatusCode::NOT_FOUND, &format!("there is no rule `{rule}`"));
    }
    let on = match switch.as_str() {
        "on" => true,
        "off" => false,
        _ => return refuse(StatusCode::NOT_FOUND, "a rule is switched `on` or `off`"),
    };
    let (reply, answer) = oneshot::channel();
    let asked = api.events.send(Event::Switch(rule, on, reply)).await;
    match (asked, answer.await) {
        (Ok(()), Ok(state)) => Json(state).into_response(),
        (Err(_), _) | (_, Err(_)) => refuse(StatusCode::SERVICE_UNAVAILABLE, "the agent ends"),
    }
}

/// `POST /v1/reload` has the configuration file read again. If it cannot be taken, all stays as it was, and the answer says why.
async fn reload(State(api): State<Api>) -> Response {
    let (reply, answer) = oneshot::channel();
    let asked = api.events.send(Event::Reload(Some(reply))).await;
    match (asked, answer.await) {
        (Ok(()), Ok(Ok(reloaded))) => Json(reloaded).into_response(),
        (Ok(()), Ok(Err(why))) => refuse(StatusCode::UNPROCESSABLE_ENTITY, &why),
        (Err(_), _) | (_, Err(_)) => refuse(StatusCode::SERVICE_UNAVAILABLE, "the agent ends"),
    }
}

fn refuse(status: StatusCode, cause: &str) -> Response {
    let error = ApiError { error: cause.to_owned(), fix: "look at the agent's configuration file".to_owned() };
    (status, Json(error)).into_response()
}

fn one() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: who starts while an agent that was killed is not gone yet waits for it, and who starts beside one that runs is told so.
    #[tokio::test]
    async fn the_socket_of_one_that_is_going_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        let first = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let begun = Instant::now();
        let ends = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            drop(first);
        });
        let _second = bind(&path).unwrap();
        assert!(begun.elapsed() >= std::time::Duration::from_millis(200));
        ends.join().unwrap();
        assert!(bind(&path).unwrap_err().to_string().contains("another agent serves"));
    }

    #[test]
    fn a_client_gets_an_address_of_its_own_version_of_ip() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let both = [ip("2001:db8::1"), ip("192.0.2.1"), ip("192.0.2.2")];
        for (client, expected) in [("198.51.100.7", 1), ("::ffff:198.51.100.7", 1), ("2001:db8:1::7", 0)] {
            assert_eq!(reachable(&both, ip(client)), Some(both[expected]), "{client}");
        }
        assert_eq!(reachable(&both[..1], ip("198.51.100.7")), None);
    }
}
