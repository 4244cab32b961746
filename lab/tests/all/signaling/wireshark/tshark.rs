// SPDX-License-Identifier: Apache-2.0
//! What tshark shows of a capture with the dissector.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use netserv_skips::skipped;
use serde_json::Value;

use super::fields::Fields;

/// What tshark shows of one message.
#[derive(Debug)]
pub struct Shown {
    pub fields: Fields,
    /// Codes of the Errors that the message deserves.
    pub faults: BTreeSet<String>,
    pub netserv: Fields,
    pub text_is_malformed: bool,
}

/// Returns whether there is a tshark that runs Lua, and says so if not.
pub fn is_here(test: &str) -> bool {
    let version = Command::new("tshark").arg("--version").output();
    let has_lua = version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("with Lua"));
    if !has_lua {
        skipped(test, "no tshark with Lua (Debian: tshark)");
    }
    has_lua
}

/// Returns the messages of each packet of a capture.
pub fn tshark(capture: &Path) -> Vec<Vec<Shown>> {
    let script = root().join("dist/wireshark/netserv.lua");
    let home = tempfile::tempdir().unwrap();
    let output = Command::new("tshark")
        .args(["-n", "-X", &format!("lua_script:{}", script.display()), "-T", "json", "--no-duplicate-keys"])
        .args(["-J", "gist netserv icmp", "-r"])
        .arg(capture)
        .env("HOME", home.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !said.contains("Lua") && !said.contains("lua"), "{said}");
    let error = text.lines().find(|line| line.contains("Lua Error") || line.contains("_ws.lua.error"));
    assert_eq!(error, None, "an error in the script");
    let packets: Vec<Value> = serde_json::from_str(&text).unwrap();
    packets.iter().map(|packet| messages_of(&packet["_source"]["layers"])).collect()
}

fn messages_of(layers: &Value) -> Vec<Shown> {
    let mut messages: Vec<&Value> = Vec::new();
    let mut texts: Vec<&Value> = Vec::new();
    find(layers, "gist", &mut messages);
    find(layers, "netserv", &mut texts);
    let mut texts = texts.into_iter();
    let mut shown = Vec::new();
    for message in messages {
        let (mut fields, mut netserv) = (Fields::new(), Fields::new());
        flatten(message, &mut fields);
        let is_text = fields.get("gist.nslp_data").is_some_and(|data| data[0].contains("4e:45:54:53:45:52:56:2f:31"));
        if let Some(text) = texts.next_if(is_text) {
            flatten(text, &mut netserv);
        }
        let faults = fields.remove("gist.fault").unwrap_or_default().into_iter().collect();
        let is_layout = |name: &str| LAYOUT.split_whitespace().any(|layout| layout == name);
        fields.retain(|name, _| name.starts_with("gist.") && !name.starts_with("gist.expert.") && !is_layout(name));
        let text_is_malformed = netserv.contains_key("netserv.expert.malformed");
        netserv.retain(|name, _| {
            name.starts_with("netserv.") && !name.starts_with("netserv.expert.") && name != "netserv.padding"
        });
        shown.push(Shown { fields, faults, netserv, text_is_malformed });
    }
    shown
}

/// Takes the next one only under a condition.
trait NextIf: Iterator {
    fn next_if(&mut self, is_wanted: bool) -> Option<Self::Item> {
        if is_wanted { self.next() } else { None }
    }
}

impl<I: Iterator> NextIf for I {}

/// Collects the layers of a name, wherever they are.
fn find<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    let Value::Object(members) = value else { return };
    for (key, value) in members {
        match value {
            Value::Array(layers) if key == name => found.extend(layers),
            layer if key == name => found.push(layer),
            Value::Array(layers) => layers.iter().for_each(|layer| find(layer, name, found)),
            Value::Object(_) => find(value, name, found),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Collects the values of all fields below a layer.
fn flatten(value: &Value, fields: &mut Fields) {
    let Value::Object(members) = value else { return };
    for (key, value) in members {
        let values = if let Value::Array(values) = value { &values[..] } else { std::slice::from_ref(value) };
        for value in values {
            match value.as_str() {
                Some(text) => fields.entry(key.clone()).or_default().push(plain(text)),
                None => flatten(value, fields),
            }
        }
    }
}

/// Later versions of tshark write flags as words.
fn plain(text: &str) -> String {
    match text {
        "True" => "1".to_owned(),
        "False" => "0".to_owned(),
        other => other.to_owned(),
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Fields that say how a message is laid out, which a parsed one does not tell.
const LAYOUT: &str = "gist.magic gist.version gist.length gist.object gist.object.action gist.object.type \
    gist.object.length gist.mri.n gist.mri.ip_version gist.mri.flags.p gist.mri.flags.t gist.mri.flags.f \
    gist.mri.flags.s gist.mri.flags.a gist.mri.flags.b gist.nli.identity_length gist.nli.ip_version \
    gist.stack_proposal.count gist.stack_configuration.count gist.stack_configuration.length \
    gist.stack_configuration.data gist.nat.mri_length gist.nat.type_count gist.nat.count gist.nat.entry_length \
    gist.error.name gist.error.flags.s gist.error.flags.m gist.error.flags.c gist.error.mri_length \
    gist.error.info_count gist.error.info.type gist.error.info.length";
