// SPDX-License-Identifier: Apache-2.0
//! Recordings: what went into a node, and a digest of what came out, one JSON line each.
//!
//! The first line is the [`Header`]. A node that is made from it and gets the inputs of the others has the same outputs;
//! [`Replay`] does that a line at a time and says where they differ. A recording holds requests, keys of users and the
//! seed of cookies: it is as secret as the node.

use std::fmt::{self, Write as _};

use netserv_gist::limits::PEER_IDENTITY_BYTES_MAX;
use netserv_model::Now;
use netserv_model::policy::NodePolicy;
use serde::{Deserialize, Serialize};

use crate::config::NodeConfig;
use crate::input::Input;
use crate::node::Node;
use crate::output::Output;

/// The version of the format.
pub const VERSION: u32 = 9;

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

/// How much of a recording was given to a node again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Inputs.
    pub inputs: u64,
    /// Outputs.
    pub outputs: u64,
}

/// Why a recording cannot be replayed, or was not what the node does.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
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
        /// What came out.
        outputs: Vec<Output>,
    },
}

/// A recording that is given to a node again.
#[derive(Debug)]
pub struct Replay {
    node: Node,
    /// The number of the last line.
    line: u64,
    replayed: Replayed,
}

impl Replay {
    /// Makes the node from the first line of a recording.
    ///
    /// # Errors
    /// The line is no header, or one of another format.
    pub fn begin(header: &str) -> Result<Replay, ReplayError> {
        let malformed = |error: String| ReplayError::Malformed { line: 1, error };
        let version: Version = serde_json::from_str(header).map_err(|error| malformed(error.to_string()))?;
        if version.recording != VERSION {
            return Err(ReplayError::Version(version.recording));
        }
        let header: Header = serde_json::from_str(header).map_err(|error| malformed(error.to_string()))?;
        let identity = header.config.gist.peer_identity.len();
        if !(1..=PEER_IDENTITY_BYTES_MAX).contains(&identity) {
            return Err(malformed(format!("the peer identity has {identity} bytes")));
        }
        Ok(Replay { node: header.node(), line: 1, replayed: Replayed::default() })
    }

    /// Gives the input of the next line to the node; returns what comes out.
    ///
    /// # Errors
    /// The line is damaged, or something else came out when it was recorded. The replay cannot go on after that.
    pub fn line(&mut self, text: &str) -> Result<Vec<Output>, ReplayError> {
        self.line += 1;
        let line = self.line;
        let parsed = serde_json::from_str(text);
        let Line { now, input, outputs: recorded } =
            parsed.map_err(|error| ReplayError::Malformed { line, error: error.to_string() })?;
        self.node.handle(now, input);
        let outputs: Vec<Output> = std::iter::from_fn(|| self.node.poll_output()).collect();
        let mut digest = OutputDigest::default();
        outputs.iter().for_each(|output| digest.add(output));
        let found = digest.to_hex();
        if found != recorded {
            return Err(ReplayError::Differs { line, recorded, found, outputs });
        }
        self.replayed.inputs += 1;
        self.replayed.outputs += u64::try_from(outputs.len()).unwrap_or(u64::MAX);
        Ok(outputs)
    }

    /// Returns how much was replayed without a difference.
    pub fn replayed(&self) -> Replayed {
        self.replayed
    }
}

/// What every format's header has.
#[derive(Deserialize)]
struct Version {
    recording: u32,
}
