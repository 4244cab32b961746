// SPDX-License-Identifier: Apache-2.0
//! What is deployed, for the time after a restart.

use std::fs::{File, Permissions};
use std::net::IpAddr;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use netserv_model::{Instant, ModuleName, NodeId, SessionId};
use netserv_placement::{Deployment, DeploymentId, Health, Moving, Node, RuleId};
use rusqlite::{Connection, ErrorCode, params};
use serde::{Deserialize, Serialize};

use crate::config::{Config, Deploy};

/// The database. One per agent.
pub struct Table {
    connection: Connection,
}

/// A deployment as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The name of its rule.
    pub rule: String,
    /// The module, which is to be removed even if the rule is gone.
    pub module: ModuleName,
    /// Whether nodes on the way back have it, too.
    #[serde(default)]
    pub both_ways: bool,
    /// The client whose path was taken.
    pub client: IpAddr,
    /// The signaling session.
    pub session: Option<SessionId>,
    /// The nodes with the module, with its addresses there.
    pub nodes: Vec<(NodeId, Vec<IpAddr>)>,
    /// The last node of the path, or the only one that has it, if its rule lets it move,
    pub edge: NodeId,
    /// and that one's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Which owner of its rule's floating addresses it is.
    #[serde(default = "first_epoch")]
    pub epoch: u64,
    /// A move that was under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving: Option<Moving>,
    /// Its first SETUP was under way.
    pub is_new: bool,
    /// It was being removed.
    pub is_leaving: bool,
}

/// What rows of before there were epochs have.
fn first_epoch() -> u64 {
    1
}

/// What nodes were asked for a deployment, by which it is removed though its rule is gone or another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The name of its rule.
    pub rule: String,
    /// The module.
    pub module: ModuleName,
    /// Whether nodes on the way back have it, too.
    pub both_ways: bool,
}

impl Row {
    /// Returns what nodes were asked.
    pub fn asked(&self) -> Asked {
        Asked { rule: self.rule.clone(), module: self.module.clone(), both_ways: self.both_ways }
    }

    /// Returns what is kept of a deployment.
    pub fn of(deployment: &Deployment, asked: &Asked) -> Row {
        Row {
            rule: asked.rule.clone(),
            module: asked.module.clone(),
            both_ways: asked.both_ways,
            client: deployment.client,
            session: deployment.session,
            nodes: deployment.nodes.iter().map(|node| (node.name.clone(), node.addresses.clone())).collect(),
            edge: deployment.edge.clone(),
            address: deployment.address,
            epoch: deployment.epoch,
            moving: deployment.moving.clone(),
            is_new: deployment.health == Health::New,
            is_leaving: deployment.health == Health::Leaving,
        }
    }

    /// Returns the deployment, of which it is not known when its lease ends. One of a rule that is not there, or whose rule has
    /// another module, is of no rule.
    pub fn deployment(&self, config: &Config, now: Instant) -> Deployment {
        let own = |rule: &&Deploy| rule.name == self.rule && rule.module.name == self.module;
        let rule = config.rules.iter().find(own).map(|rule| rule.id);
        let health = match (self.is_leaving, self.is_new) {
            (true, _) => Health::Leaving,
            (false, true) => Health::New,
            (false, false) => Health::Ailing,
        };
        Deployment {
            rule: rule.unwrap_or(RuleId(u32::MAX)),
            client: self.client,
            session: self.session,
            nodes: self.nodes.iter().map(|(name, addresses)| Node::new(name.clone(), addresses.clone())).collect(),
            health,
            seen: now,
            lease_until: now,
            lease: Duration::ZERO,
            edge: self.edge.clone(),
            address: self.address,
            epoch: self.epoch,
            failures: 0,
            moving: self.moving.clone(),
        }
    }
}

impl Table {
    /// Opens the database of a state directory, which is made if it is not there.
    ///
    /// # Errors
    /// It cannot be made or read.
    pub fn open(state_dir: &Path) -> Result<Table> {
        std::fs::create_dir_all(state_dir).with_context(|| format!("cannot make {}", state_dir.display()))?;
        let path = state_dir.join("placement.db");
        // Clients' addresses are nobody else's to read. SQLite gives its other files the permissions of this one.
        let own = File::options().create(true).append(true).mode(0o600).open(&path);
        own.and_then(|file| file.set_permissions(Permissions::from_mode(0o600)))
            .with_context(|| format!("cannot keep {} from others", path.display()))?;
        // No new one takes its place by itself: rules that were switched off would be on again.
        let connection = connect(&path).map_err(|error| {
            let code = error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
            let fix = match code {
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    "; mend it, or move it away to begin without deployments and with all rules on"
                }
                Some(_) | None => "",
            };
            error.context(format!("cannot use {}{fix}", path.display()))
        })?;
        Ok(Table { connection })
    }

    /// Returns everything that can be read; what cannot is logged and left out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn all(&self) -> Result<Vec<(DeploymentId, Row)>> {
        let mut statement = self.connection.prepare("SELECT id, row FROM deployments ORDER BY id")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        let mut all = Vec::new();
        for row in rows {
            let (id, text) = row?;
            match (u64::try_from(id), serde_json::from_str(&text)) {
                (Ok(id), Ok(row)) => all.push((DeploymentId(id), row)),
                (Err(_), _) | (_, Err(_)) => {
                    tracing::warn!(id, "a kept deployment is not understood, and left to its lease");
                }
            }
        }
        Ok(all)
    }

    /// Returns the names of the rules that are switched off.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn off(&self) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare("SELECT rule FROM off")?;
        let names = statement.query_map([], |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    /// Keeps that a rule is switched off, or on.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn switch(&self, rule: &str, on: bool) -> Result<()> {
        let change =
            if on { "DELETE FROM off WHERE rule = ?1" } else { "INSERT OR IGNORE INTO off (rule) VALUES (?1)" };
        self.connection.execute(change, [rule])?;
        Ok(())
    }

    /// Keeps a deployment, in place of an earlier form of it.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn put(&self, id: DeploymentId, row: &Row) -> Result<()> {
        let put = "INSERT OR REPLACE INTO deployments (id, row) VALUES (?1, ?2)";
        self.connection.prepare_cached(put)?.execute(params![i64::try_from(id.0)?, serde_json::to_string(row)?])?;
        Ok(())
    }

    /// Forgets a deployment.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget(&self, id: DeploymentId) -> Result<()> {
        let forget = "DELETE FROM deployments WHERE id = ?1";
        self.connection.prepare_cached(forget)?.execute(params![i64::try_from(id.0)?])?;
        Ok(())
    }
}

fn connect(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS deployments (id INTEGER PRIMARY KEY, row TEXT NOT NULL);
         CREATE TABLE IF NOT EXISTS off (rule TEXT PRIMARY KEY)",
    )?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use netserv_placement::Why;

    use super::*;

    #[test]
    fn a_damaged_database_is_named_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (path, text) = (dir.path().join("placement.db"), "no database\n".repeat(1000));
        std::fs::write(&path, &text).unwrap();
        let error = format!("{:#}", Table::open(dir.path()).err().unwrap());
        assert!(error.contains(&path.display().to_string()) && error.contains("move it away"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn what_is_kept_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let row = Row {
            rule: "edge".to_owned(),
            module: "example.org/m".parse().unwrap(),
            both_ways: true,
            client: "2001:db8::1".parse().unwrap(),
            session: Some(SessionId([7; 16])),
            nodes: vec![("n1".parse().unwrap(), vec!["192.0.2.1".parse().unwrap()])],
            edge: "n1".parse().unwrap(),
            address: Some("192.0.2.1".parse().unwrap()),
            epoch: 7,
            moving: Some(Moving {
                to: "n2".parse().unwrap(),
                address: "192.0.2.2".parse().unwrap(),
                client: "2001:db8::2".parse().unwrap(),
                why: Why::Load,
                tried: true,
            }),
            is_new: false,
            is_leaving: true,
        };
        let table = Table::open(dir.path()).unwrap();
        table.put(DeploymentId(3), &Row { is_leaving: false, ..row.clone() }).unwrap();
        table.put(DeploymentId(3), &row).unwrap();
        table.put(DeploymentId(4), &row).unwrap();
        table.forget(DeploymentId(4)).unwrap();
        for file in std::fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{file:?}");
        }
        table.connection.execute("INSERT INTO deployments VALUES (9, 'half a ro')", []).unwrap();
        drop(table);
        let table = Table::open(dir.path()).unwrap();
        assert_eq!(table.all().unwrap(), [(DeploymentId(3), row.clone())]);
        for rule in ["a", "b", "a"] {
            table.switch(rule, false).unwrap();
        }
        table.switch("b", true).unwrap();
        assert_eq!(table.off().unwrap(), ["a"]);
        let config = Config::parse("user = \"janedoe\"\nkey = \"k\"\n").unwrap();
        let deployment = row.deployment(&config, Instant::default());
        assert_eq!((deployment.rule, deployment.health), (RuleId(u32::MAX), Health::Leaving));
        assert_eq!(Row::of(&deployment, &row.asked()), row);
    }
}
