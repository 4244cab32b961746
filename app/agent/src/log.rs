// SPDX-License-Identifier: Apache-2.0
//! Log lines that servers send as datagrams, as nginx does by `access_log syslog:server=unix:PATH`, and Kamailio by its module
//! `log_custom`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use netserv_placement::RuleId;
use tokio::net::{UdpSocket, UnixDatagram};

use crate::config::{Config, Log};
use crate::event::{Observation, Observations};
use crate::ids::give;
use crate::limits::{BATCH_MAX, LINE_BYTES_MAX};
use crate::pattern::{CLIENT, Pattern, address};
use crate::socket::make_way;

/// One log, with the rules that its lines count for.
pub struct LogReader {
    socket: Arc<LogSocket>,
    matcher: Matcher,
    counts: Arc<LogCounts>,
}

/// What came to a log since it was opened.
#[derive(Debug, Default)]
pub struct LogCounts {
    /// Lines.
    pub lines: AtomicU64,
    /// Those that have the pattern, with a client.
    pub matched: AtomicU64,
}

/// A socket that lines come to.
pub enum LogSocket {
    /// One with a file.
    Unix(UnixDatagram),
    /// One of a loopback address.
    Udp(UdpSocket),
}

impl LogSocket {
    /// Makes a log's socket, in place of one that is there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(log: &Log) -> Result<LogSocket> {
        match (&log.socket, log.udp) {
            (Some(path), _) => {
                make_way(path, || Ok(()))?;
                let socket = UnixDatagram::bind(path).with_context(|| format!("cannot bind {}", path.display()))?;
                permit(log).inspect_err(|_| _ = std::fs::remove_file(path))?;
                Ok(LogSocket::Unix(socket))
            }
            (None, Some(address)) => Ok(LogSocket::Udp(bind_udp(address)?)),
            (None, None) => bail!("log `{}` has no socket", log.name),
        }
    }

    async fn recv(&self, line: &mut [u8]) -> std::io::Result<usize> {
        match self {
            LogSocket::Unix(socket) => socket.recv(line).await,
            LogSocket::Udp(socket) => socket.recv(line).await,
        }
    }

    fn try_recv(&self, line: &mut [u8]) -> std::io::Result<usize> {
        match self {
            LogSocket::Unix(socket) => socket.try_recv(line),
            LogSocket::Udp(socket) => socket.try_recv(line),
        }
    }
}

/// What lines mean.
struct Matcher {
    pattern: Pattern,
    rules: Vec<(RuleId, BTreeMap<String, String>)>,
}

impl LogReader {
    /// Returns one for the rules of a configuration.
    pub fn new(config: &Config, log: &Log, socket: Arc<LogSocket>, counts: Arc<LogCounts>) -> LogReader {
        let own = config.rules.iter().filter(|rule| rule.log.as_ref() == Some(&log.name));
        let rules = own.map(|rule| (rule.id, rule.only.clone())).collect();
        LogReader { socket, matcher: Matcher { pattern: log.pattern.clone(), rules }, counts }
    }

    /// Reads lines for ever, and tells of what they say in batches.
    pub async fn run(self, observations: Observations) {
        let mut line = vec![0; LINE_BYTES_MAX];
        loop {
            let Ok(length) = self.socket.recv(&mut line).await else { return };
            let mut batch = Vec::new();
            self.observe(&line[..length], &mut batch);
            // What has come meanwhile goes along; of lines that say nothing there may be any number.
            for _ in 0..BATCH_MAX {
                let Ok(length) = self.socket.try_recv(&mut line) else { break };
                self.observe(&line[..length], &mut batch);
                if batch.len() >= BATCH_MAX {
                    break;
                }
            }
            observations.send(batch);
            // Whoever waits for the agent goes first, however many lines come.
            tokio::task::yield_now().await;
        }
    }

    fn observe(&self, line: &[u8], batch: &mut Vec<Observation>) {
        let is_matched = self.matcher.observe(line, batch);
        self.counts.lines.fetch_add(1, Ordering::Relaxed);
        self.counts.matched.fetch_add(u64::from(is_matched), Ordering::Relaxed);
    }
}

impl Matcher {
    /// Returns whether a line has the pattern; the rules that want it observe its client.
    fn observe(&self, line: &[u8], batch: &mut Vec<Observation>) -> bool {
        let line = String::from_utf8_lossy(line);
        let Some(fields) = self.pattern.fields(&line) else { return false };
        let Some(client) = fields.get(CLIENT).and_then(|text| address(text)) else { return false };
        for (rule, only) in &self.rules {
            if only.iter().all(|(field, value)| fields.get(field.as_str()) == Some(&value.as_str())) {
                batch.push(Observation { rule: *rule, client, count: 1 });
            }
        }
        true
    }
}

fn bind_udp(address: SocketAddr) -> Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(address).with_context(|| format!("cannot bind {address}"))?;
    socket.set_nonblocking(true)?;
    Ok(UdpSocket::from_std(socket)?)
}

/// Lets those write to a log's socket who may.
///
/// # Errors
/// There is no such group.
pub fn permit(log: &Log) -> Result<()> {
    let Some(path) = &log.socket else { return Ok(()) };
    // Servers write their logs as users of their own.
    let mode = match &log.group {
        Some(group) => {
            give(path, group).with_context(|| format!("log `{}`", log.name))?;
            0o620
        }
        None => 0o600,
    };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_for_the_rules_that_want_them() {
        let only = |value: &str| BTreeMap::from([("status".to_owned(), value.to_owned())]);
        let rules = vec![(RuleId(0), BTreeMap::new()), (RuleId(1), only("200")), (RuleId(2), only("404"))];
        let matcher = Matcher { pattern: "{client} {status} ".parse().unwrap(), rules };
        let observed = |line: &[u8]| {
            let mut batch = Vec::new();
            matcher.observe(line, &mut batch);
            batch.iter().map(|one| one.rule.0).collect::<Vec<_>>()
        };
        assert_eq!(observed(b"192.0.2.1 200 /"), [0, 1]);
        assert_eq!(observed(b"2001:db8::1 404 /"), [0, 2]);
        for garbage in [&b""[..], b"\xff\xfe\0", b"nobody 200 /", b"192.0.2.1", b"999.0.2.1 200 /", &[b'{'; 8192]] {
            assert!(observed(garbage).is_empty());
        }
    }

    /// Goal: a server that writes to a path is heard by the next agent, too, though this one was killed (haproxy/haproxy 1821).
    #[tokio::test]
    async fn a_server_is_heard_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let pattern = "{client} ".parse().unwrap();
        let log = Log { name: "log".to_owned(), socket: Some(path.clone()), udp: None, group: None, pattern };
        let server = UnixDatagram::unbound().unwrap();
        for _ in 0..3 {
            let socket = LogSocket::open(&log).unwrap();
            server.send_to(b"line", &path).await.unwrap();
            let mut line = [0; 8];
            assert_eq!(socket.recv(&mut line).await.unwrap(), 4);
            // Its file stays, as of one that was killed.
            drop(socket);
            assert!(server.send_to(b"lost", &path).await.is_err());
        }
    }
}
