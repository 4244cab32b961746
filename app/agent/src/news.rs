// SPDX-License-Identifier: Apache-2.0
//! What nodes tell by themselves of the user's modules there (NOTIFY), as this machine's `netservd` has it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use netserv_api::EventLine;
use netserv_model::UserId;
use netserv_model::notify::NotifyEvent;
use tokio::sync::mpsc::Sender;

use crate::event::Event;
use crate::node::{netservd, said};

/// How long it is until `netservd` is asked again that went away.
const AGAIN: Duration = Duration::from_secs(2);

/// Tells of nodes that are drained, for as long as somebody listens. What comes while `netservd` is away is found when nodes are asked.
pub async fn follow(socket: PathBuf, user: UserId, events: Sender<Event>) {
    while !events.is_closed() {
        if let Err(error) = listen(&socket, &user, &events).await {
            tracing::debug!("news of nodes: {error:#}");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn listen(socket: &std::path::Path, user: &UserId, events: &Sender<Event>) -> Result<()> {
    let event = NotifyEvent::NodeMaintenance.as_str();
    let path = format!("/v1/events?follow=true&user={user}&event={event}");
    let mut lines = netservd(socket).lines(&path).await.map_err(said)?;
    while let Some(line) = lines.next().await.map_err(said)? {
        if let Ok(EventLine::News(record)) = serde_json::from_str(&line) {
            let (module, node) = (record.notify.module, record.notify.node);
            events.send(Event::Drained(module, node)).await?;
        }
    }
    Ok(())
}
