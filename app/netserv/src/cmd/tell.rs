// SPDX-License-Identifier: Apache-2.0
//! `netserv tell`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use netserv_model::control::{CONTROL_BYTES_MAX, ControlMessage};
use netserv_model::{ModuleName, Topic};
use netserv_wire::nslp::RequestBuilder;

use crate::exit::{Exit, Failure, OrFail};
use crate::output::Output;
use crate::report;
use crate::request::SignedRequest;
use netserv_api::Client;

/// Send a message to a running module, on every node toward a destination
#[derive(Args)]
pub struct Tell {
    /// The module's name, without a version
    #[arg(value_name = "NAME")]
    module: ModuleName,
    /// Message, at most 4,096 bytes; `-` reads it from standard input
    #[arg(value_name = "TEXT", required_unless_present = "file", conflicts_with = "file")]
    text: Option<String>,
    /// File with the message
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Topic, as the module defines it: 1 to 64 visible ASCII characters. Nodes keep the last message of each topic
    /// for later instances of the module
    #[arg(long, value_name = "TOPIC")]
    topic: Topic,
    /// Sequence number; it must be above those of all earlier messages to the module [default: the time in
    /// nanoseconds since 1970]
    #[arg(long, value_name = "N")]
    seq: Option<u64>,
    #[command(flatten)]
    request: SignedRequest,
}

impl Tell {
    /// Sends the TELL and shows the response stack.
    ///
    /// # Errors
    /// The message cannot be read, or the request cannot be made or sent.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        let body = self.body()?;
        if body.len() > CONTROL_BYTES_MAX {
            let cause = format!("the message is longer than {CONTROL_BYTES_MAX} bytes");
            return Err(Failure::new(cause, "send less, or have the module fetch the rest").with_exit(Exit::Usage));
        }
        let (topic, seq) = (self.topic.clone(), self.seq.unwrap_or_else(number));
        let message = ControlMessage { topic, seq, body };
        let builder = RequestBuilder::tell(&self.module, &message);
        let what = format!("tell {} {} (seq {seq})", self.module, self.topic);
        let result = self.request.send(client, output, builder, &what).await?;
        report::write(&result, output)
    }

    fn body(&self) -> Result<Vec<u8>, Failure> {
        match (&self.file, self.text.as_deref()) {
            (Some(file), _) => read_file(file),
            (None, Some("-")) => read(std::io::stdin().lock(), "standard input"),
            (None, text) => Ok(text.unwrap_or_default().as_bytes().to_vec()),
        }
    }
}

fn read_file(file: &Path) -> Result<Vec<u8>, Failure> {
    let name = file.display().to_string();
    let opened = std::fs::File::open(file).or_fail(format!("cannot open {name}"), "give a file that can be read")?;
    read(opened, &name)
}

/// Reads no more than it takes to see that there is too much.
fn read(from: impl Read, name: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let most = u64::try_from(CONTROL_BYTES_MAX + 1).unwrap_or(u64::MAX);
    from.take(most).read_to_end(&mut bytes).or_fail(format!("cannot read {name}"), "give a file that can be read")?;
    Ok(bytes)
}

/// Returns a number that grows from one command to the next.
fn number() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_with_the_clock() {
        let (first, second) = (number(), number());
        assert!(first > 1_700_000_000_000_000_000 && second >= first);
    }

    #[test]
    fn no_more_of_a_long_message_is_read_than_shows_that_it_is_too_long() {
        let bytes = read(std::io::repeat(b'x'), "endless").unwrap();
        assert_eq!(bytes.len(), CONTROL_BYTES_MAX + 1);
    }
}
