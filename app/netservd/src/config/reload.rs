// SPDX-License-Identifier: Apache-2.0
//! What a configuration that is read again changes, and from when.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use netserv_api::{ConfigChange, InForceFrom};
use netserv_model::effect::{Hold, Late};
use serde_json::Value;

use super::Config;
use super::tls::Tls;

/// A configuration that takes the place of the one in force.
pub struct Reload {
    /// The configuration that is in force from here on: users, issuers, classes, admission, the domain and whom TLS trusts as they were read, all
    /// else as it was.
    pub in_force: Config,
    /// What was changed in the file.
    pub changes: Vec<ConfigChange>,
}

impl Config {
    /// Returns what comes of reading a configuration while this one is in force.
    ///
    /// # Errors
    /// The users that were read do not go with what needs a restart, as a `listen` without addresses.
    pub fn reload(&self, read: Config) -> Result<Reload> {
        let (before, after) = (values(self), values(&read));
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let changed = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
        // Whether there is TLS is settled when the node starts.
        let has_tls = self.signaling.tls.is_on() && read.signaling.tls.is_on();
        let when = |key: &str| if has_tls && is_of_trust(key) { InForceFrom::Now } else { from(key) };
        let changes = changed.map(|key| ConfigChange { key: key.clone(), from: when(key), why: None }).collect();
        let (users, issuers, classes) = (read.users, read.issuers, read.classes);
        let mut in_force = Config { users, issuers, classes, admission: read.admission, ..self.clone() };
        let tls = &mut in_force.signaling.tls;
        if has_tls {
            *tls = Tls { require: tls.require, port: tls.port, ..read.signaling.tls };
        }
        in_force.signaling.domain = read.signaling.domain;
        in_force.check().context("what was read needs a restart of netservd")?;
        Ok(Reload { in_force, changes })
    }
}

/// Takes note of what containers could not be held to while they run.
pub fn put_off(changes: &mut [ConfigChange], late: &[Late]) {
    for Late { hold, refusal } in late {
        let is_theirs = |key: &str| match hold {
            Hold::Permits(user) => ["prefixes", "listen", "connect", "network"]
                .iter()
                .any(|field| has_prefix(key, &format!("user.{user}.{field}"))),
            Hold::Limits(user) => has_prefix(key, &format!("user.{user}.container")),
            Hold::Addresses => key.starts_with("user.") && key.ends_with(".addresses"),
        };
        for change in changes.iter_mut().filter(|change| is_theirs(&change.key)) {
            (change.from, change.why) = (InForceFrom::ContainerStart, Some(refusal.to_string()));
        }
    }
}

/// Returns all values by their keys, users by their names.
fn values(config: &Config) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    let whole = serde_json::to_value(Config { users: Vec::new(), ..config.clone() });
    flatten(String::new(), whole.unwrap_or_default(), &mut values);
    for user in &config.users {
        let fields = serde_json::to_value(user).unwrap_or_default();
        flatten(format!("user.{}", user.name), fields, &mut values);
    }
    values
}

fn flatten(key: String, value: Value, values: &mut BTreeMap<String, Value>) {
    let Value::Object(fields) = value else { return drop(values.insert(key, value)) };
    for (name, value) in fields {
        flatten(if key.is_empty() { name } else { format!("{key}.{name}") }, value, values);
    }
}

/// Returns whether a key says who is believed, or what is shown to be.
fn is_of_trust(key: &str) -> bool {
    let field = key.strip_prefix("signaling.tls.");
    field.is_some_and(|field| ["certificate", "key", "authorities", "client-certificate", "peers"].contains(&field))
}

fn from(key: &str) -> InForceFrom {
    if ["admission", "signaling.domain", "issuer"].iter().any(|prefix| has_prefix(key, prefix)) {
        return InForceFrom::Now;
    }
    if let Some((_, field)) = key.strip_prefix("class.").and_then(|rest| rest.split_once('.')) {
        return from_field(field);
    }
    // Users' names have no dots.
    let Some((_, field)) = key.strip_prefix("user.").and_then(|rest| rest.split_once('.')) else {
        return InForceFrom::NodeStart;
    };
    from_field(field)
}

fn from_field(field: &str) -> InForceFrom {
    match field {
        "container.disk-bytes" | "addresses" => InForceFrom::ContainerStart,
        _ if has_prefix(field, "module-limits") => InForceFrom::ModuleLoad,
        _ => InForceFrom::Now,
    }
}

fn has_prefix(key: &str, prefix: &str) -> bool {
    key.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use netserv_model::{Refusal, RefusalKind};

    use super::*;

    #[test]
    fn each_changed_key_is_told_with_when_it_holds() {
        let before = config("[admission]\nttl-max-s = 60\n", "");
        let text = "[admission]\nttl-max-s = 90\n[dataplane]\nqueue = 7\n";
        let more = "listen = ['tcp port 80']\naddresses = ['192.0.2.1']\ncontainer = { pids = 9, disk-bytes = 65536 }\n\
                    module-limits = { memory-bytes = 65536 }\n";
        let Reload { in_force, changes } = before.reload(config(text, more)).unwrap();
        let told: Vec<String> = changes.iter().map(|change| format!("{} {}", change.key, change.from)).collect();
        assert_eq!(
            told.iter().filter(|line| !line.contains("module-limits")).collect::<Vec<_>>(),
            [
                "admission.ttl-max-s now",
                "dataplane.queue the next start of netservd",
                "user.jane.addresses the next start of the container",
                "user.jane.container.disk-bytes the next start of the container",
                "user.jane.container.pids now",
                "user.jane.listen now",
            ]
        );
        assert!(
            told.contains(&"user.jane.module-limits.memory-bytes the next load of each module".to_owned()),
            "{told:?}"
        );
        assert_eq!((in_force.admission.ttl_max_s, in_force.dataplane.queue), (90, before.dataplane.queue));
        assert_eq!(in_force.users[0].listen.len(), 1);
        assert_eq!(before.reload(before.clone()).unwrap().changes, []);
    }

    #[test]
    fn whom_tls_trusts_changes_at_once_and_whether_there_is_tls_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/certificates");
        let with = |name: &str, more: &str| {
            let key = dir.path().join(name);
            std::fs::copy(vectors.join(format!("{name}.key")), &key).unwrap();
            std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            let (file, authority) = (vectors.join(format!("{name}.pem")), vectors.join("authority.pem"));
            let text = format!("certificate = {file:?}\nkey = {key:?}\nauthorities = {authority:?}\n{more}");
            Config::parse(&format!("[signaling.tls]\n{text}")).unwrap()
        };
        let before = with("n1", "");
        let read = with("n2", "peers = ['n1.example.net']\nrequire = true\nport = 7\n");
        let Reload { in_force, changes } = before.reload(read.clone()).unwrap();
        let told: Vec<String> = changes.iter().map(|change| format!("{} {}", change.key, change.from)).collect();
        assert_eq!(
            told,
            [
                "signaling.tls.certificate now",
                "signaling.tls.key now",
                "signaling.tls.peers now",
                "signaling.tls.port the next start of netservd",
                "signaling.tls.require the next start of netservd",
            ]
        );
        let (old, new) = (&before.signaling.tls, &read.signaling.tls);
        assert_eq!(in_force.signaling.tls, Tls { require: old.require, port: old.port, ..new.clone() });
        for (before, read) in [(Config::default(), read.clone()), (read, Config::default())] {
            let Reload { in_force, changes } = before.reload(read).unwrap();
            assert_eq!(in_force.signaling, before.signaling);
            assert!(changes.iter().all(|change| change.from == InForceFrom::NodeStart), "{changes:?}");
        }
    }

    #[test]
    fn users_come_and_go_at_once() {
        let (without, with) = (Config::default(), config("", ""));
        for (before, after) in [(&without, &with), (&with, &without)] {
            let changes = before.reload(after.clone()).unwrap().changes;
            assert!(changes.iter().any(|change| change.key == "user.jane.name"));
        }
    }

    #[test]
    fn users_that_need_what_needs_a_restart_are_refused() {
        let before = config("", "");
        let read = config("[network]\nprefixes = ['192.0.2.0/24']\n", "listen = ['tcp port 80']\n");
        let error = format!("{:#}", before.reload(read).err().unwrap());
        assert!(error.contains("needs a restart") && error.contains("network.prefixes"), "{error}");
    }

    #[test]
    fn what_cannot_be_held_to_is_put_off() {
        let before = config("", "");
        let read = config("", "container = { pids = 9 }\nnetwork = { packets-per-second = 9 }\n");
        let mut changes = before.reload(read).unwrap().changes;
        let refusal = Refusal::new(RefusalKind::NodeFailed, "it holds more");
        put_off(&mut changes, &[Late { hold: Hold::Limits("jane".parse().unwrap()), refusal }]);
        let told: Vec<(&str, bool)> =
            changes.iter().map(|change| (change.key.as_str(), change.why.is_some())).collect();
        assert_eq!(told, [("user.jane.container.pids", true), ("user.jane.network.packets-per-second", false)]);
        assert_eq!(changes[0].from, InForceFrom::ContainerStart);
    }

    fn config(text: &str, user: &str) -> Config {
        Config::parse(&format!("{text}[[user]]\nname = 'jane'\nkeys = []\nprefixes = []\n{user}")).unwrap()
    }
}
