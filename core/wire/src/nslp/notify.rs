// SPDX-License-Identifier: Apache-2.0
//! What nodes tell each other of what was installed: that it moved, and that it is not needed any more.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;

use netserv_model::control::{MODULE_NOTIFY_BYTES_MAX, decode_body, encode_body};
use netserv_model::limits::STACK_ENTRIES_MAX;
use netserv_model::notify::{Notify, NotifyEvent};
use netserv_model::text::one_line;
use netserv_model::{ModuleName, NodeId, Nonce, Refusal, SessionId, UserId};

use super::lines::{Header, Lines, bad};

const NOTIFY: &str = "NETSERV/1 NOTIFY";
const TEAR: &str = "NETSERV/1 TEAR";

/// Says downstream that the path of a SETUP does not lead there any more. Upstream, with a token, it asks whether that is so;
/// the answer brings the token back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tear {
    /// The session of the SETUP.
    pub session: SessionId,
    /// The nonce of the SETUP.
    pub nonce: Nonce,
    /// Whose module it is.
    pub user: UserId,
    /// The module.
    pub module: ModuleName,
    /// What only who was asked knows.
    pub token: Option<Nonce>,
}

impl Tear {
    /// Returns whether a text begins as one does.
    pub fn is_tear(bytes: &[u8]) -> bool {
        bytes.starts_with(TEAR.as_bytes())
    }

    /// Parses one; `bytes` may be anything, and headers that this version does not know are passed over.
    ///
    /// # Errors
    /// Anything but a TEAR within the model's limits is a `BadRequest` that names the line.
    pub fn parse(bytes: &[u8]) -> Result<Tear, Refusal> {
        let mut fields = Fields::parse(bytes, TEAR)?;
        Ok(Tear {
            session: fields.required("session")?,
            nonce: fields.required("nonce")?,
            user: fields.required("user")?,
            module: fields.required("module")?,
            token: fields.optional("token")?,
        })
    }

    /// Writes it.
    pub fn emit(&self) -> String {
        let Tear { session, nonce, user, module, token } = self;
        let token = token.map(|token| format!("token: {token}\n")).unwrap_or_default();
        format!("{TEAR}\nsession: {session}\nnonce: {nonce}\nuser: {user}\nmodule: {module}\n{token}\n")
    }
}

/// Returns whether a text begins as a NOTIFY does.
pub(super) fn is_notify(bytes: &[u8]) -> bool {
    bytes.starts_with(NOTIFY.as_bytes())
}

/// Parses a NOTIFY; `bytes` may be anything, and headers that this version does not know are passed over.
///
/// # Errors
/// Anything but a NOTIFY within the model's limits is a `BadRequest` that names the line.
pub(super) fn parse_notify(bytes: &[u8]) -> Result<Notify, Refusal> {
    let mut fields = Fields::parse(bytes, NOTIFY)?;
    let (line, event) = fields.take("event")?;
    let event = NotifyEvent::from_word(event.trim_matches(' '));
    let body = fields.0.remove("body").map(|(line, body)| {
        let body = decode_body(body.trim_matches(' '), MODULE_NOTIFY_BYTES_MAX);
        body.map_err(|error| bad(line, format!("`body`: {error}")))
    });
    let nodes = fields.0.remove("nodes").map(|(line, nodes)| parse_nodes(line, &nodes)).transpose()?;
    Ok(Notify {
        session: fields.required("session")?,
        nonce: fields.required("nonce")?,
        user: fields.required("user")?,
        module: fields.required("module")?,
        node: fields.required("node")?,
        event: event.ok_or_else(|| bad(line, "`event` is none that this version knows"))?,
        nodes: nodes.unwrap_or_default(),
        detail: fields.0.remove("detail").map(|(_, detail)| one_line(&detail)).unwrap_or_default(),
        topic: fields.optional("topic")?,
        body: body.transpose()?.unwrap_or_default(),
    })
}

/// Writes a NOTIFY; of very many nodes, the nearest ones.
pub fn emit_notify(notify: &Notify) -> String {
    let Notify { session, nonce, user, module, node, event, nodes, detail, topic, body } = notify;
    let mut text = format!(
        "{NOTIFY}\nsession: {session}\nnonce: {nonce}\nuser: {user}\nmodule: {module}\nnode: {node}\nevent: {}\n",
        event.as_str()
    );
    let nodes: Vec<&str> = nodes.iter().take(STACK_ENTRIES_MAX).map(NodeId::as_str).collect();
    if !nodes.is_empty() {
        writeln!(text, "nodes: {}", nodes.join(", ")).expect("writing to a String cannot fail");
    }
    if let Some(topic) = topic {
        let body = encode_body(body);
        writeln!(text, "topic: {topic}\nbody: {body}").expect("writing to a String cannot fail");
    }
    writeln!(text, "detail: {}\n", notify_detail(detail)).expect("writing to a String cannot fail");
    text
}

/// Returns the text for people of a NOTIFY as it is written: on one line, of 1,000 characters at most.
pub fn notify_detail(detail: &str) -> String {
    one_line(detail).chars().take(DETAIL_CHARS_MAX).collect()
}

fn parse_nodes(line: usize, nodes: &str) -> Result<Vec<NodeId>, Refusal> {
    let nodes = nodes.split(',').map(|node| node.trim_matches(' ').parse());
    let nodes: Result<Vec<NodeId>, _> = nodes.take(STACK_ENTRIES_MAX).collect();
    nodes.map_err(|error| bad(line, format!("`nodes`: {error}")))
}

/// Headers by name, each there once.
struct Fields(BTreeMap<String, (usize, String)>);

impl Fields {
    fn parse(bytes: &[u8], first_line: &str) -> Result<Fields, Refusal> {
        let lines = Lines::parse(bytes)?;
        if lines.first != first_line {
            return Err(bad(1, format!("not `{first_line}`")));
        }
        let mut fields = BTreeMap::new();
        for Header { line, name, value } in lines.headers {
            if fields.insert(name.clone(), (line, value)).is_some() {
                return Err(bad(line, format!("`{name}` is there twice")));
            }
        }
        Ok(Fields(fields))
    }

    fn take(&mut self, name: &str) -> Result<(usize, String), Refusal> {
        self.0.remove(name).ok_or_else(|| bad(0, format!("the message has no `{name}` header")))
    }

    fn optional<T: FromStr<Err: std::fmt::Display>>(&mut self, name: &str) -> Result<Option<T>, Refusal> {
        if self.0.contains_key(name) { self.required(name).map(Some) } else { Ok(None) }
    }

    fn required<T: FromStr<Err: std::fmt::Display>>(&mut self, name: &str) -> Result<T, Refusal> {
        let (line, value) = self.take(name)?;
        value.trim_matches(' ').parse().map_err(|error: T::Err| bad(line, format!("`{name}`: {error}")))
    }
}

/// Characters of the text for people; more are cut off.
const DETAIL_CHARS_MAX: usize = 1000;
