// SPDX-License-Identifier: Apache-2.0
//! What nodes tell by themselves of the user's modules there (NOTIFY), as this machine's `netservd` has it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use netserv_model::UserId;
use netserv_model::api::EventLine;
use netserv_model::notify::NotifyEvent;
use tokio::net::UnixStream;
use tokio::sync::mpsc::Sender;

use crate::event::Event;
use crate::limits::NEWS_LINE_BYTES_MAX;
use crate::task::Task;

/// Tells of nodes that are drained, for as long as somebody listens. What comes while `netservd` is away is found when nodes are asked.
pub async fn follow(socket: std::path::PathBuf, user: UserId, events: Sender<Event>) {
    while !events.is_closed() {
        if let Err(error) = listen(&socket, &user, &events).await {
            tracing::debug!("news of nodes: {error:#}");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn listen(socket: &std::path::Path, user: &UserId, events: &Sender<Event>) -> Result<()> {
    let stream = UnixStream::connect(socket).await.context("netservd")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let _connection = Task(tokio::spawn(connection));
    let event = NotifyEvent::NodeMaintenance.as_str();
    let path = format!("/v1/events?follow=true&user={user}&event={event}");
    let request = Request::get(path).header("host", "netserv").body(Empty::<Bytes>::new())?;
    let mut body = {
        let response = sender.send_request(request).await?;
        ensure!(response.status().is_success(), "the node answers {}", response.status());
        response.into_body()
    };
    let mut lines = Lines::default();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        for line in lines.take(&data)? {
            if let Ok(EventLine::News(record)) = serde_json::from_slice(&line) {
                let (module, node) = (record.notify.module, record.notify.node);
                events.send(Event::Drained(module, node)).await?;
            }
        }
    }
    Ok(())
}

/// Lines out of pieces.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn take(&mut self, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.0.extend_from_slice(data);
        let end = self.0.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole: Vec<u8> = self.0.drain(..end).collect();
        ensure!(self.0.len() <= NEWS_LINE_BYTES_MAX, "a line of more than {NEWS_LINE_BYTES_MAX} bytes");
        Ok(whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
    }
}

/// How long it is until `netservd` is asked again that went away.
const AGAIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_and_are_bounded() {
        let mut lines = Lines::default();
        assert!(lines.take(b"on").unwrap().is_empty());
        assert_eq!(lines.take(b"e\ntwo\n\nthr").unwrap(), [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!(lines.take(b"ee\n").unwrap(), [b"three".to_vec()]);
        assert!(lines.take(&vec![b'x'; NEWS_LINE_BYTES_MAX]).unwrap().is_empty());
        assert!(lines.take(b"x").is_err());
    }
}
