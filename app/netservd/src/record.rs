// SPDX-License-Identifier: Apache-2.0
//! Records what goes into the node and a digest of what comes out, on a thread that waits for the disk.
//!
//! `netserv-lab replay` gives a recording to a node again. It holds users' keys and requests and the node's seed, so only
//! the owner can read it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use netserv_model::Now;
use netserv_node::recording::{Header, Line, OutputDigest};
use netserv_node::{Input, Output};

/// Bytes of a recording; it ends there, and says so.
pub const RECORD_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Bytes that wait for the disk; a recording whose disk is slower ends, and says so.
pub const RECORD_WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A recording under way.
pub struct Recording {
    lines: Option<Sender<String>>,
    waiting: Arc<AtomicUsize>,
    begun: Option<(Now, Input)>,
    digest: OutputDigest,
    writer: Option<JoinHandle<()>>,
}

impl Recording {
    /// Starts a recording in place of an earlier one.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn start(path: &Path, header: &Header) -> Result<Recording> {
        let file = File::options().create(true).write(true).truncate(true).mode(0o600).open(path);
        let file = file.with_context(|| format!("cannot make {}", path.display()))?;
        let (lines, inbox) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let counted = waiting.clone();
        let thread = std::thread::Builder::new().name("record".to_owned());
        let writer = thread.spawn(move || write(file, &inbox, &counted)).context("thread for the recording")?;
        let digest = OutputDigest::default();
        let mut recording = Recording { lines: Some(lines), waiting, begun: None, digest, writer: Some(writer) };
        recording.line(header.to_line());
        Ok(recording)
    }

    /// Takes note of an input that the node is about to get.
    pub fn begin(&mut self, now: Now, input: &Input) {
        self.begun = self.lines.is_some().then(|| (now, input.clone()));
        self.digest = OutputDigest::default();
    }

    /// Takes note of an output of that input.
    pub fn output(&mut self, output: &Output) {
        if self.begun.is_some() {
            self.digest.add(output);
        }
    }

    /// Appends the input, whose outputs are all there.
    pub fn end(&mut self) {
        if let Some((now, input)) = self.begun.take() {
            self.line(Line { now, input, outputs: self.digest.to_hex() }.to_line());
        }
    }

    fn line(&mut self, mut line: String) {
        line.push('\n');
        let waiting = self.waiting.fetch_add(line.len(), Ordering::Relaxed) + line.len();
        if waiting > RECORD_WAITING_BYTES_MAX {
            tracing::warn!(waiting, "the recording ends: its disk is too slow");
            self.lines = None;
        }
        if self.lines.as_ref().is_some_and(|lines| lines.send(line).is_err()) {
            self.lines = None;
        }
    }
}

impl Drop for Recording {
    /// Waits until everything is written.
    fn drop(&mut self) {
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            // It does not panic; if it did, that was told.
            let _ = writer.join();
        }
    }
}

fn write(file: File, inbox: &Receiver<String>, waiting: &AtomicUsize) {
    let mut out = BufWriter::new(file);
    let mut written = 0;
    while let Ok(first) = inbox.recv() {
        for line in std::iter::once(first).chain(inbox.try_iter()) {
            waiting.fetch_sub(line.len(), Ordering::Relaxed);
            written += line.len() as u64;
            if let Err(error) = out.write_all(line.as_bytes()) {
                return tracing::warn!(%error, "the recording ends: it cannot be written");
            }
            if written > RECORD_BYTES_MAX {
                return tracing::warn!(bytes = written, "the recording ends: it is as long as it may be");
            }
        }
        if let Err(error) = out.flush() {
            return tracing::warn!(%error, "the recording ends: it cannot be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use netserv_model::policy::NodePolicy;
    use netserv_node::NodeConfig;
    use netserv_node::recording::{self, Replay};

    use super::*;

    #[test]
    fn what_a_node_did_is_done_again_by_its_recording() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record.jsonl");
        let mut recording = Recording::start(&path, &header()).unwrap();
        let mut node = header().node();
        for (second, input) in
            [Input::Restore(Box::default()), Input::Addresses(vec![[10, 0, 0, 1].into()]), Input::Timeout]
                .into_iter()
                .enumerate()
        {
            let now = Now::default() + std::time::Duration::from_secs(u64::try_from(second).unwrap() + 1);
            recording.begin(now, &input);
            node.handle(now, input);
            while let Some(output) = node.poll_output() {
                recording.output(&output);
            }
            recording.end();
        }
        drop(recording);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        let mut replay = Replay::begin(lines.next().unwrap()).unwrap();
        lines.for_each(|line| drop(replay.line(line).unwrap()));
        assert_eq!(replay.replayed().inputs, 3);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_recording_that_its_disk_does_not_take_ends() {
        let dir = tempfile::tempdir().unwrap();
        let mut recording = Recording::start(&dir.path().join("record.jsonl"), &header()).unwrap();
        // The first line is subtracted when it is written.
        while recording.waiting.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
        recording.waiting.store(RECORD_WAITING_BYTES_MAX, Ordering::Relaxed);
        recording.begin(Now::default(), &Input::Timeout);
        recording.end();
        assert!(recording.lines.is_none());
    }

    fn header() -> Header {
        let node: netserv_model::NodeId = "n1".parse().unwrap();
        Header {
            recording: recording::VERSION,
            software: "test".to_owned(),
            config: NodeConfig::new(node.clone(), vec![1; 16]),
            policy: NodePolicy::new(node),
            seed: [7; 32],
        }
    }
}
