// SPDX-License-Identifier: Apache-2.0
//! `netserv state`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use netserv_model::limits::STATE_BYTES_MAX;
use netserv_model::{Digest, ModuleName};
use netserv_wire::nslp::RequestBuilder;
use netserv_wire::state::{self, ModuleState, StateError};
use serde::Serialize;

use crate::exit::{Exit, Failure, OrFail};
use crate::output::Output;
use crate::report;
use crate::request::SignedRequest;
use crate::units::parse_freeze;
use netserv_api::Client;

/// Export a running module's state, and show exported states
#[derive(Subcommand)]
pub enum State {
    Export(Box<Export>),
    Show(Show),
}

/// Have a node write the state of a running module to a URL, by an HTTP PUT
///
/// The module keeps running, unless you give --freeze. The answer contains the state's digest. To start the module
/// from this state on another node, run `netserv setup --state URL --state-digest DIGEST --epoch N`. The operator
/// lists the hosts that may receive states in `fetch.put-hosts`.
#[derive(Args)]
pub struct Export {
    /// The module's name, without a version
    #[arg(value_name = "NAME")]
    module: ModuleName,
    /// URL to which the node writes the state
    #[arg(long, value_name = "URL")]
    url: String,
    /// Pause the module just before its state is written, for this long or until the next SETUP for it. So another
    /// node can continue from the state, and nothing is done twice
    #[arg(long, value_name = "TIME", value_parser = parse_freeze)]
    freeze: Option<Duration>,
    #[command(flatten)]
    request: SignedRequest,
}

/// Show the contents of a file with a state
#[derive(Args)]
pub struct Show {
    /// File with the state
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// What `-j` shows of a state.
#[derive(Debug, Serialize)]
struct Shown {
    module: ModuleName,
    schema: u32,
    /// Bytes that each part says.
    parts: BTreeMap<&'static str, usize>,
    /// Entries of kv, and bytes of their keys and values.
    entries: usize,
    entry_bytes: usize,
    bytes: usize,
    digest: Digest,
}

impl State {
    /// Sends the EXPORT and shows the response stack, or shows a state.
    ///
    /// # Errors
    /// The request cannot be made or sent, or the file is no state.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        match self {
            State::Export(export) => {
                let Export { module, url, freeze, request } = *export;
                let builder = RequestBuilder::export(&module, &url);
                let builder = freeze.iter().fold(builder, |builder, time| builder.freeze(time.as_secs()));
                let result = request.send(client, output, builder, &format!("export {module}")).await?;
                report::write(&result, output)
            }
            State::Show(Show { file }) => show(&read(&file)?, &file, output),
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let (cause, fix) = (format!("cannot read {}", file.display()), "give a file that can be read");
    let opened = File::open(file).or_fail(cause.clone(), fix)?;
    let mut bytes = Vec::new();
    // No more than it takes to see that there is too much.
    opened.take(STATE_BYTES_MAX + 1).read_to_end(&mut bytes).or_fail(cause, fix)?;
    Ok(bytes)
}

impl Shown {
    fn of(bytes: &[u8]) -> Result<Shown, StateError> {
        let ModuleState { module, schema, parts, entries } = ModuleState::parse(bytes)?;
        Ok(Shown {
            module,
            schema,
            parts: parts.iter().map(|(part, said)| (part.as_str(), said.len())).collect(),
            entries: entries.len(),
            entry_bytes: entries.iter().map(|(key, value)| key.len() + value.len()).sum(),
            bytes: bytes.len(),
            digest: state::digest_of(bytes),
        })
    }
}

fn show(bytes: &[u8], file: &Path, output: &mut Output) -> Result<Exit, Failure> {
    let shown = Shown::of(bytes).map_err(|error| {
        Failure::new(format!("{}: {error}", file.display()), "export the state once more: `netserv state export`")
    })?;
    if output.is_json() {
        output.json(&shown)?;
        return Ok(Exit::Done);
    }
    output.line(format!("module   {}", shown.module));
    output.line(format!("schema   {}", shown.schema));
    for (part, bytes) in &shown.parts {
        output.line(format!("{part:8} {bytes} bytes"));
    }
    output.line(format!("kv       {} entries, {} bytes", shown.entries, shown.entry_bytes));
    output.line(format!("bytes    {}", shown.bytes));
    output.line(format!("digest   {}", shown.digest));
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use netserv_wire::state::StatePart;

    use super::*;

    #[test]
    fn a_state_is_shown_and_a_damaged_one_is_not() {
        let state = ModuleState {
            module: "example.org/m".parse().unwrap(),
            schema: 3,
            parts: BTreeMap::from([(StatePart::Packet, b"abc".as_slice())]),
            entries: vec![(b"key", b"value")],
        };
        let mut bytes = state.to_bytes().unwrap();
        show(&bytes, Path::new("state"), &mut Output::stdio(false, false)).unwrap();
        let shown = Shown::of(&bytes).unwrap();
        assert_eq!((shown.module.as_str(), shown.schema, shown.entries, shown.entry_bytes), ("example.org/m", 3, 1, 8));
        assert_eq!(shown.parts, BTreeMap::from([("packet", 3)]));
        bytes.pop();
        assert!(Shown::of(&bytes).unwrap_err().to_string().contains("cut off"));
    }
}
