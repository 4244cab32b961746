// SPDX-License-Identifier: Apache-2.0
//! Recordings: what went into a node, and a digest of what came out, one JSON line each.
//!
//! The first line is the [`Header`]. Whoever gives the inputs of the others to a node that is made from it gets the same
//! outputs; [`replay`] does that and says where they differ. A recording holds requests, keys of users and cookies'
//! seeds: it is as secret as the node.

use std::fmt::{self, Write as _};

use netserv_model::Now;
use netserv_model::policy::NodePolicy;
use serde::{Deserialize, Serialize};

use crate::config::NodeConfig;
use crate::input::Input;
use crate::node::Node;
use crate::output::Output;

/// The version of the format.
pub const VERSION: u32 = 1;

/// What a node was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`VERSION`].
    pub recording: u32,
    /// The version of the software, which alone gives the same outputs.
    pub software: String,
    /// The settings.
    pub config: NodeConfig,
    /// The policy at first.
    pub policy: NodePolicy,
    /// The seed.
    #[serde(with = "hex::serde")]
    pub seed: [u8; 32],
}

/// One input, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The clocks.
    pub now: Now,
    /// The input.
    pub input: Input,
    /// The digest of its outputs, in hex.
    pub outputs: String,
}

impl Header {
    /// Returns the node that this is the header of.
    pub fn node(&self) -> Node {
        Node::new(self.config.clone(), self.policy.clone(), self.seed)
    }

    /// Returns it as a line, without its end.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("plain data with text as keys can be written")
    }
}

impl Line {
    /// Returns it as a line, without its end.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("plain data with text as keys can be written")
    }
}

/// Sums outputs up: FNV-1a of how they are written for people.
#[derive(Clone, Debug)]
pub struct OutputDigest(u64);

impl Default for OutputDigest {
    fn default() -> OutputDigest {
        OutputDigest(0xcbf2_9ce4_8422_2325)
    }
}

impl OutputDigest {
    /// Adds one output.
    pub fn add(&mut self, output: &Output) {
        // It is written into itself, which never fails.
        let _ = writeln!(self, "{output:?}");
    }

    /// Returns the digest in hex.
    pub fn to_hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}

impl fmt::Write for OutputDigest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

/// What a recording says, given to a node again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Inputs.
    pub inputs: u64,
    /// Outputs.
    pub outputs: u64,
}

/// Why a recording cannot be replayed, or was not what the node does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// There is no line.
    #[error("the recording is empty")]
    Empty,
    /// A line is none of a recording.
    #[error("line {line} is none of a recording: {error}")]
    Malformed {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        error: String,
    },
    /// The recording has another format.
    #[error("the recording has format {0}, understood is {VERSION}")]
    Version(u32),
    /// The outputs differ.
    #[error("line {line}: the outputs are {found}, recorded is {recorded}")]
    Differs {
        /// Its number, from 1.
        line: u64,
        /// The digest in the recording.
        recorded: String,
        /// The digest of what came out.
        found: String,
    },
}

/// Gives a recording to a node again. `each` is called with each input and output.
///
/// # Errors
/// A line is damaged, or the first difference in what comes out.
pub fn replay<'a>(
    lines: impl Iterator<Item = &'a str>,
    mut each: impl FnMut(&Line, &[Output]),
) -> Result<Replayed, ReplayError> {
    let mut lines = (1..).zip(lines);
    let (_, first) = lines.next().ok_or(ReplayError::Empty)?;
    let malformed = |line: u64, error: serde_json::Error| ReplayError::Malformed { line, error: error.to_string() };
    let header: Header = serde_json::from_str(first).map_err(|error| malformed(1, error))?;
    if header.recording != VERSION {
        return Err(ReplayError::Version(header.recording));
    }
    let mut node = header.node();
    let mut replayed = Replayed::default();
    for (number, text) in lines {
        let line: Line = serde_json::from_str(text).map_err(|error| malformed(number, error))?;
        node.handle(line.now, line.input.clone());
        let outputs: Vec<Output> = std::iter::from_fn(|| node.poll_output()).collect();
        let mut digest = OutputDigest::default();
        outputs.iter().for_each(|output| digest.add(output));
        let found = digest.to_hex();
        if found != line.outputs {
            return Err(ReplayError::Differs { line: number, recorded: line.outputs, found });
        }
        replayed.inputs += 1;
        replayed.outputs += u64::try_from(outputs.len()).unwrap_or(u64::MAX);
        each(&line, &outputs);
    }
    Ok(replayed)
}
