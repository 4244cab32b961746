// SPDX-License-Identifier: Apache-2.0
//! What one node tells the next about a request, in front of the text that the user signed.
//!
//! ```text
//! NETSERV/1 HOP
//! budget-ms: 12000
//! nodes-passed: 1
//!
//! PROBE * NETSERV/1
//! …
//! ```
//!
//! Nobody signs an envelope, and each node writes its own: it says nothing that the user's rights depend on.

use std::fmt::Write;
use std::time::Duration;

use netserv_model::Refusal;
use netserv_model::limits::MESSAGE_BYTES_MAX;
use netserv_model::off_path::RADIUS_MAX;

use super::lines::{Header, Lines, bad, is_header_name};
use super::message::Message;
use super::part::{PART_BYTES_MAX, PARTS_MAX};

/// Bytes of an envelope at most, with the empty line at its end.
pub const ENVELOPE_BYTES_MAX: usize = 1024;
/// Headers of an envelope at most.
pub const ENVELOPE_HEADERS_MAX: usize = 16;

const FIRST_LINE: &str = "NETSERV/1 HOP";
const BUDGET: &str = "budget-ms";
const PASSED: &str = "nodes-passed";
const MAY_RETURN: &str = "may-return";
const ORIGIN: &str = "origin";
const OUTSIDE: &str = "outside";
const COPY: &str = "beside";
const AFRESH: &str = "find-path";
const WAY: &str = "way";
const BACK: &str = "back";

const _: () = assert!(
    MESSAGE_BYTES_MAX + ENVELOPE_BYTES_MAX <= PARTS_MAX * (PART_BYTES_MAX - 64),
    "the longest request fits its parts with an envelope"
);

/// What the previous node says about a request; all of it may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// How long the receiver may take to answer, in whole milliseconds on the wire.
    pub budget: Option<Duration>,
    /// How many nodes the request has passed.
    pub passed: Option<u32>,
    /// The flow's source is the requester, and the last node may send the request back there.
    pub may_return: bool,
    /// The request came from outside of the sender's domain.
    pub is_outside: bool,
    /// The path is looked for from the beginning, whatever GIST knows of it from the session's earlier messages.
    pub is_afresh: bool,
    /// The last node of its path sent the request back: this is the way there.
    pub is_back: bool,
    /// The receiver is beside the request's path; how much further it may go.
    pub copy: Option<Spread>,
    /// Headers that this version does not know, in order. They are for this node, and go no further.
    pub unknown: Vec<(String, String)>,
}

/// How far a request beside its path may go on from the node that gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// GIST hops.
    pub radius: u8,
    /// Messages in all.
    pub copies: u16,
}

impl Envelope {
    /// Takes the envelope off a text; without one, nothing is said and all of the text is left. `bytes` may be anything.
    ///
    /// # Errors
    /// An envelope that is none or too long is a `BadRequest` that names the line.
    pub fn take(bytes: &[u8]) -> Result<(Envelope, &[u8]), Refusal> {
        if !bytes.starts_with(FIRST_LINE.as_bytes()) {
            return Ok((Envelope::default(), bytes));
        }
        let lines = Lines::head(bytes, ENVELOPE_HEADERS_MAX)?;
        if lines.first != FIRST_LINE {
            return Err(bad(1, format!("not `{FIRST_LINE}`")));
        }
        let of_header = |header: &Header| header.name.len() + header.value.len() + ": \n".len();
        if FIRST_LINE.len() + "\n\n".len() + lines.headers.iter().map(of_header).sum::<usize>() > ENVELOPE_BYTES_MAX {
            return Err(bad(0, format!("the envelope is longer than {ENVELOPE_BYTES_MAX} bytes")));
        }
        let mut envelope = Envelope::default();
        for Header { line, name, value } in lines.headers {
            let value = value.trim_matches(' ');
            let twice = match name.as_str() {
                BUDGET => {
                    let budget = parse_number(line, BUDGET, value, "milliseconds")?;
                    envelope.budget.replace(Duration::from_millis(budget.into())).is_some()
                }
                PASSED => envelope.passed.replace(parse_number(line, PASSED, value, "nodes")?).is_some(),
                MAY_RETURN if value == "true" => std::mem::replace(&mut envelope.may_return, true),
                MAY_RETURN => return Err(bad(line, format!("`{MAY_RETURN}` is `true`"))),
                ORIGIN if value == OUTSIDE => std::mem::replace(&mut envelope.is_outside, true),
                AFRESH if value == "true" => std::mem::replace(&mut envelope.is_afresh, true),
                AFRESH => return Err(bad(line, format!("`{AFRESH}` is `true`"))),
                WAY if value == BACK => std::mem::replace(&mut envelope.is_back, true),
                COPY => envelope.copy.replace(parse_spread(line, value)?).is_some(),
                _ => {
                    envelope.unknown.push((name.clone(), value.to_owned()));
                    false
                }
            };
            if twice {
                return Err(bad(line, format!("`{name}` is there twice")));
            }
        }
        Ok((envelope, &bytes[lines.bytes..]))
    }

    /// Writes the envelope, with the request in it. Unknown headers that do not fit are left out.
    pub fn emit(&self, message: &Message) -> String {
        let mut text = format!("{FIRST_LINE}\n");
        let mut headers = 0;
        if let Some(budget) = self.budget {
            writeln!(text, "{BUDGET}: {}", milliseconds(budget)).expect("writing to a String cannot fail");
            headers += 1;
        }
        if let Some(passed) = self.passed {
            writeln!(text, "{PASSED}: {passed}").expect("writing to a String cannot fail");
            headers += 1;
        }
        if self.may_return {
            writeln!(text, "{MAY_RETURN}: true").expect("writing to a String cannot fail");
            headers += 1;
        }
        if self.is_outside {
            writeln!(text, "{ORIGIN}: {OUTSIDE}").expect("writing to a String cannot fail");
            headers += 1;
        }
        if self.is_afresh {
            writeln!(text, "{AFRESH}: true").expect("writing to a String cannot fail");
            headers += 1;
        }
        if self.is_back {
            writeln!(text, "{WAY}: {BACK}").expect("writing to a String cannot fail");
            headers += 1;
        }
        if let Some(Spread { radius, copies }) = self.copy {
            writeln!(text, "{COPY}: {radius} {copies}").expect("writing to a String cannot fail");
            headers += 1;
        }
        for (name, value) in &self.unknown {
            let bytes = text.len() + name.len() + value.len() + ": \n\n".len();
            let fits = headers < ENVELOPE_HEADERS_MAX && bytes <= ENVELOPE_BYTES_MAX;
            if fits && is_header_name(name) && !value.contains(char::is_control) {
                writeln!(text, "{name}: {value}").expect("writing to a String cannot fail");
                headers += 1;
            }
        }
        text.push('\n');
        text.push_str(message.as_str());
        text
    }
}

fn milliseconds(budget: Duration) -> u32 {
    u32::try_from(budget.as_millis()).unwrap_or(u32::MAX)
}

fn parse_spread(line: usize, value: &str) -> Result<Spread, Refusal> {
    let numbers = value.split_once(' ').and_then(|(radius, copies)| Some((radius.parse().ok()?, copies.parse().ok()?)));
    let numbers = numbers.filter(|(radius, _): &(u8, u16)| *radius < RADIUS_MAX && !value.contains('+'));
    let (radius, copies) = numbers.ok_or_else(|| bad(line, format!("`{COPY}` is not hops and messages")))?;
    Ok(Spread { radius, copies })
}

fn parse_number(line: usize, name: &str, value: &str, what: &str) -> Result<u32, Refusal> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| value.parse().ok()).flatten();
    number.ok_or_else(|| bad(line, format!("`{name}` is not a whole number of {what}")))
}
