// SPDX-License-Identifier: Apache-2.0
//! Asks a daemon's API by its socket. No program has to start for that, so what it takes is the daemon's time.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::netns::Lab;

/// How long an answer may take.
const ANSWER_WAIT: Duration = Duration::from_secs(120);

impl Lab {
    /// Returns what a machine's daemon answers to `GET`.
    ///
    /// # Errors
    /// It does not answer, or with another status than 200.
    pub fn get(&self, machine: &str, path: &str) -> Result<String> {
        ask(&self.socket(machine), "GET", path, "")
    }

    /// Returns what a machine's daemon answers to `POST`.
    ///
    /// # Errors
    /// It does not answer, or with another status than 200.
    pub fn post(&self, machine: &str, path: &str, body: &str) -> Result<String> {
        ask(&self.socket(machine), "POST", path, body)
    }
}

fn ask(socket: &Path, method: &str, path: &str, body: &str) -> Result<String> {
    let mut stream = UnixStream::connect(socket).with_context(|| format!("cannot reach {}", socket.display()))?;
    stream.set_read_timeout(Some(ANSWER_WAIT))?;
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).with_context(|| format!("no answer to {method} {path}"))?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
        Some(_) | None => bail!("{method} {path}: {answer}"),
    }
}
