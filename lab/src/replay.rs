// SPDX-License-Identifier: Apache-2.0
//! `netserv-lab replay`: a recording is read a line at a time and given to a node again.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use netserv_node::recording::{Replay, ReplayError, Replayed};
use serde_json::{Value, json};

/// Bytes of one line. The longest are those with the records of a whole node.
const LINE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Inputs between two lines about the progress.
const PROGRESS_INPUTS: u64 = 100_000;

/// What to replay, and how to say what came of it.
#[derive(clap::Args)]
pub struct Options {
    /// The recording.
    file: PathBuf,
    /// Prints one JSON object.
    #[arg(short, long)]
    json: bool,
}

/// Replays a recording; the result goes to `out`, the progress of a long one to `progress`.
///
/// # Errors
/// The file cannot be read, is none of a recording, or something else came out when it was recorded.
pub fn run(options: &Options, out: &mut impl Write, progress: &mut impl Write) -> Result<()> {
    let file = File::open(&options.file).with_context(|| format!("cannot open {}", options.file.display()))?;
    let size = file.metadata().map(|metadata| metadata.len()).unwrap_or_default();
    let mut lines = Lines { from: BufReader::new(file), buffer: Vec::new(), read: 0 };
    let header = lines.next()?.context("the recording is empty")?;
    let replay = match Replay::begin(header) {
        Ok(replay) => replay,
        Err(error) => return difference(options, out, Replayed::default(), &error),
    };
    match play(replay, &mut lines, size, progress)? {
        (Replayed { inputs, outputs }, None) if options.json => {
            writeln!(out, "{}", json!({ "inputs": inputs, "outputs": outputs, "identical": true }))?;
            Ok(())
        }
        (Replayed { inputs, outputs }, None) => {
            writeln!(out, "{inputs} inputs, {outputs} outputs, as recorded")?;
            Ok(())
        }
        (replayed, Some(error)) => difference(options, out, replayed, &error),
    }
}

fn play<F: BufRead>(
    mut replay: Replay,
    lines: &mut Lines<F>,
    size: u64,
    progress: &mut impl Write,
) -> Result<(Replayed, Option<ReplayError>)> {
    while let Some(line) = lines.next()? {
        if let Err(error) = replay.line(line) {
            return Ok((replay.replayed(), Some(error)));
        }
        let inputs = replay.replayed().inputs;
        if inputs.is_multiple_of(PROGRESS_INPUTS) {
            let percent = lines.read.saturating_mul(100) / size.max(1);
            writeln!(progress, "{inputs} inputs, {percent} %")?;
        }
    }
    Ok((replay.replayed(), None))
}

/// Says where a replay ended, and fails.
fn difference(options: &Options, out: &mut impl Write, replayed: Replayed, error: &ReplayError) -> Result<()> {
    let message = error.to_string();
    let (line, outputs) = match error {
        ReplayError::Malformed { line, .. } => (*line, Vec::new()),
        ReplayError::Version(_) => (1, Vec::new()),
        ReplayError::Differs { line, outputs, .. } => {
            (*line, outputs.iter().map(|output| format!("{output:?}")).collect())
        }
    };
    if options.json {
        let mut found = json!({ "inputs": replayed.inputs, "outputs": replayed.outputs, "identical": false });
        found["line"] = json!(line);
        found["error"] = json!(message);
        if let ReplayError::Differs { recorded, found: came, .. } = error {
            found["recorded"] = Value::String(recorded.clone());
            found["found"] = Value::String(came.clone());
            found["came-out"] = json!(outputs);
        }
        writeln!(out, "{found}")?;
    } else {
        outputs.iter().try_for_each(|output| writeln!(out, "came out: {output}"))?;
    }
    bail!("after {} inputs and {} outputs, {message}", replayed.inputs, replayed.outputs)
}

/// Lines of a file, one at a time and none too long.
struct Lines<F> {
    from: F,
    buffer: Vec<u8>,
    read: u64,
}

impl<F: BufRead> Lines<F> {
    fn next(&mut self) -> Result<Option<&str>> {
        self.buffer.clear();
        let read = self.from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.buffer)?;
        self.read += u64::try_from(read).unwrap_or(u64::MAX);
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let whole = self.buffer.last() == Some(&b'\n');
        ensure!(whole, "the recording is cut off, or a line of it has more than {LINE_BYTES_MAX} bytes");
        let text = std::str::from_utf8(&self.buffer[..self.buffer.len() - 1]);
        Ok(Some(text.context("the recording has a line that is no text")?))
    }
}

#[cfg(test)]
mod tests {
    use netserv_model::policy::NodePolicy;
    use netserv_model::{Instant, Now, UnixTime};
    use netserv_node::recording::{Header, Line, OutputDigest, VERSION};
    use netserv_node::{Input, NodeConfig, What};

    use super::*;

    #[test]
    fn a_recording_is_counted() {
        let (result, out, _) = replay(&recording(3), false);
        result.unwrap();
        assert_eq!(out, "3 inputs, 0 outputs, as recorded\n");
        let (result, out, _) = replay(&recording(3), true);
        result.unwrap();
        assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["inputs"], 3);
    }

    #[test]
    fn progress_is_told_of_a_long_one() {
        let (result, _, progress) = replay(&recording(PROGRESS_INPUTS), false);
        result.unwrap();
        assert_eq!(progress, format!("{PROGRESS_INPUTS} inputs, 100 %\n"));
    }

    #[test]
    fn the_first_difference_is_shown() {
        let recording = recording(3);
        let lines: Vec<&str> = recording.lines().collect();
        let input = Input::Ask(netserv_node::CallId(7), What::Counters);
        let asked = Line { now: now(), input, outputs: OutputDigest::default().to_hex() };
        let changed = [lines[0], lines[1], &asked.to_line(), lines[3], ""].join("\n");
        let (result, out, _) = replay(&changed, false);
        assert!(result.unwrap_err().to_string().contains("after 1 inputs and 0 outputs, line 3: "));
        assert!(out.starts_with("came out: Do(Effect"), "{out}");
        let (result, out, _) = replay(&changed, true);
        result.unwrap_err();
        let found: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&found["line"], &found["identical"]), (&json!(3), &json!(false)));
        assert_eq!(found["came-out"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_recording_is_an_error() {
        let good = recording(1);
        let cut = &good[..good.len() - 9];
        let other = good.replacen(&format!("\"recording\":{VERSION}"), "\"recording\":999", 1);
        for (bad, why) in [
            (&b""[..], "is empty"),
            (b"hello\n", "line 1 is none of a recording"),
            (b"\xff\n", "no text"),
            (cut.as_bytes(), "is cut off"),
            (other.as_bytes(), "format 999"),
            (format!("{good}{{}}\n").as_bytes(), "line 3 is none of a recording"),
        ] {
            let (result, _, _) = replay_bytes(bad, false);
            let error = format!("{:#}", result.unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }

    fn replay(recording: &str, json: bool) -> (Result<()>, String, String) {
        replay_bytes(recording.as_bytes(), json)
    }

    fn replay_bytes(recording: &[u8], json: bool) -> (Result<()>, String, String) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("recording");
        std::fs::write(&file, recording).unwrap();
        let (mut out, mut progress) = (Vec::new(), Vec::new());
        let result = run(&Options { file, json }, &mut out, &mut progress);
        (result, String::from_utf8(out).unwrap(), String::from_utf8(progress).unwrap())
    }

    /// Returns a recording of a node that nothing happens to.
    fn recording(inputs: u64) -> String {
        let node: netserv_model::NodeId = "n1".parse().unwrap();
        let header = Header {
            recording: VERSION,
            software: "0".to_owned(),
            config: NodeConfig::new(node.clone(), vec![1]),
            policy: NodePolicy::new(node),
            seed: [0; 32],
        };
        let line =
            Line { now: now(), input: Input::Timeout, outputs: OutputDigest::default().to_hex() }.to_line() + "\n";
        header.to_line() + "\n" + &line.repeat(usize::try_from(inputs).unwrap())
    }

    fn now() -> Now {
        Now { instant: Instant::from_millis(1000), wall: UnixTime::from_secs(1_800_000_000) }
    }
}
