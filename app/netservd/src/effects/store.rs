// SPDX-License-Identifier: Apache-2.0
//! Installed modules, what was used and containers' addresses as they survive a restart or a power cut: SQLite tables, and
//! the thread that waits for the disk.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use netserv_model::control::ControlMessage;
use netserv_model::effect::{InstalledRecord, StoreJob, StoredList, StoredMessage};
use netserv_model::usage::{UsageChange, UsageKey, Used};
use netserv_model::{Digest, ModuleName, Refusal, RefusalKind, UserId};
use netserv_repository::Repository;
use rusqlite::{Connection, params};

use super::database;
use super::ticket::Ticket;
use crate::limits::STORE_BATCH;

/// Where what is to be stored is sent.
pub type Jobs = Sender<(StoreJob, Ticket)>;

/// Starts the thread that writes installed modules, and keeps their packages from leaving the store of packages. It writes
/// what was sent, and ends, when the sender is dropped. `installed` are the records that are there.
///
/// # Errors
/// The system gives no thread.
pub fn start(
    store: Store,
    packages: Option<Arc<Repository>>,
    installed: &[InstalledRecord],
    files: PathBuf,
) -> Result<(Jobs, JoinHandle<()>)> {
    // Each user has one job under way, and one for each of its requests that tell a module something.
    let (jobs, inbox) = channel();
    let mut keeper = PackageKeeper { packages, kept: BTreeMap::new(), files };
    installed.iter().for_each(|record| keeper.keep(record));
    let thread = std::thread::Builder::new().name("store".to_owned());
    let writes = thread.spawn(move || run(&store, &mut keeper, &inbox)).context("thread for the store")?;
    Ok((jobs, writes))
}

fn run(store: &Store, keeper: &mut PackageKeeper, inbox: &Receiver<(StoreJob, Ticket)>) {
    while let Ok(first) = inbox.recv() {
        let jobs: Vec<(StoreJob, Ticket)> =
            std::iter::once(first).chain(inbox.try_iter().take(STORE_BATCH - 1)).collect();
        let written = store.write(jobs.iter().map(|(job, _)| job)).map_err(|error| {
            tracing::error!(%error, jobs = jobs.len(), "what is to be kept cannot be written");
            Refusal::new(RefusalKind::NodeFailed, format!("the node's database cannot be written: {error:#}"))
        });
        for (job, ticket) in jobs {
            // Also if it is not written: what runs keeps its package.
            match &job {
                StoreJob::Put(record) => keeper.keep(record),
                StoreJob::Forget { user, module } => keeper.let_go(user, module),
                StoreJob::ForgetUser { user } => keeper.forget(user),
                StoreJob::PutMessage { .. } | StoreJob::PutList(_) | StoreJob::PutUsage(_) => {}
            }
            ticket.end(written.clone());
        }
    }
}

/// Keeps packages of installed modules in the store of packages, also while their containers are down.
struct PackageKeeper {
    /// Nothing on a host, which runs no modules.
    packages: Option<Arc<Repository>>,
    kept: BTreeMap<(UserId, ModuleName), Digest>,
    /// Where the files of users' modules are.
    files: PathBuf,
}

impl PackageKeeper {
    fn keep(&mut self, record: &InstalledRecord) {
        let Some(packages) = &self.packages else { return };
        packages.pin(&record.user, record.digest);
        if let Some(before) = self.kept.insert((record.user.clone(), record.module.name.clone()), record.digest) {
            packages.unpin(&record.user, before);
        }
    }

    fn forget(&self, user: &UserId) {
        if let Err(error) = netserv_container::remove_storage(&self.files, user) {
            tracing::warn!(%error, %user, "what modules of a user kept who is gone stays");
        }
    }

    fn let_go(&mut self, user: &UserId, module: &ModuleName) {
        let digest = self.kept.remove(&(user.clone(), module.clone()));
        if let (Some(packages), Some(digest)) = (&self.packages, digest) {
            packages.unpin(user, digest);
        }
    }
}

/// The database of installed modules, what was used, and containers' addresses.
pub struct Store {
    connection: Connection,
}

impl Store {
    /// Opens the database, and makes it if there is none.
    ///
    /// # Errors
    /// The file cannot be opened, or was written by a newer version.
    pub fn open(path: &Path) -> Result<Store> {
        Ok(Store { connection: database::open(path)? })
    }

    /// Carries jobs out in one transaction, all of them or none.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn write<'a>(&self, jobs: impl Iterator<Item = &'a StoreJob>) -> Result<()> {
        let transaction = self.connection.unchecked_transaction()?;
        for job in jobs {
            match job {
                StoreJob::Put(record) => self.put(record)?,
                StoreJob::Forget { user, module } => self.forget(user, module)?,
                StoreJob::PutMessage { user, module, message } => self.put_message(user, module, message)?,
                StoreJob::PutList(list) => self.put_list(list)?,
                StoreJob::PutUsage(change) => self.put_usage(change)?,
                // Its modules are forgotten.
                StoreJob::ForgetUser { .. } => {}
            }
        }
        Ok(transaction.commit()?)
    }

    /// Remembers a module, in place of an earlier record of the same user and name.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn put(&self, record: &InstalledRecord) -> Result<()> {
        let json = serde_json::to_string(record)?;
        let key = params![record.user.as_str(), record.module.name.as_str(), json];
        self.connection.execute("INSERT OR REPLACE INTO installed (user, module, record) VALUES (?1, ?2, ?3)", key)?;
        Ok(())
    }

    /// Forgets a module, and the messages to it.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget(&self, user: &UserId, module: &ModuleName) -> Result<()> {
        let key = params![user.as_str(), module.as_str()];
        self.connection.execute("DELETE FROM installed WHERE user = ?1 AND module = ?2", key)?;
        self.connection.execute("DELETE FROM messages WHERE user = ?1 AND module = ?2", key)?;
        Ok(())
    }

    /// Returns every record that can be read; one that cannot is logged and left out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn all(&self) -> Result<Vec<InstalledRecord>> {
        let mut statement = self.connection.prepare("SELECT user, module, record FROM installed")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let mut records = Vec::new();
        for row in rows {
            let (user, module, json): (String, String, String) = row?;
            match serde_json::from_str(&json) {
                Ok(record) => records.push(record),
                Err(error) => tracing::warn!(%user, %module, %error, "a stored module cannot be read"),
            }
        }
        Ok(records)
    }
}

/// The last control message of each topic to each module.
impl Store {
    /// Remembers a message, in place of an earlier one of the same module and topic.
    fn put_message(&self, user: &UserId, module: &ModuleName, message: &ControlMessage) -> Result<()> {
        let row = params![user.as_str(), module.as_str(), message.topic.as_str(), serde_json::to_string(message)?];
        let put = "INSERT OR REPLACE INTO messages (user, module, topic, message) VALUES (?1, ?2, ?3, ?4)";
        self.connection.prepare_cached(put)?.execute(row)?;
        Ok(())
    }

    /// Returns every message that can be read; one that cannot is logged and left out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn messages(&self) -> Result<Vec<StoredMessage>> {
        let mut statement = self.connection.prepare("SELECT user, module, message FROM messages")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let mut messages = Vec::new();
        for row in rows {
            let (user, module, json): (String, String, String) = row?;
            match (user.parse(), module.parse(), serde_json::from_str(&json)) {
                (Ok(user), Ok(module), Ok(message)) => messages.push(StoredMessage { user, module, message }),
                (Err(_), ..) | (_, Err(_), _) | (.., Err(_)) => {
                    tracing::warn!(%user, %module, "a stored message to a module cannot be read");
                }
            }
        }
        Ok(messages)
    }
}

/// The newest revocation list of each issuer.
impl Store {
    /// Remembers a list, in place of an earlier one of the same issuer.
    fn put_list(&self, StoredList { issuer, text }: &StoredList) -> Result<()> {
        let put = "INSERT OR REPLACE INTO revocations (issuer, list) VALUES (?1, ?2)";
        self.connection.execute(put, params![issuer, text])?;
        Ok(())
    }

    /// Returns all lists.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn lists(&self) -> Result<Vec<StoredList>> {
        let mut statement = self.connection.prepare("SELECT issuer, list FROM revocations")?;
        let rows = statement.query_map([], |row| Ok(StoredList { issuer: row.get(0)?, text: row.get(1)? }))?;
        Ok(rows.collect::<rusqlite::Result<Vec<StoredList>>>()?)
    }
}

/// What users and their modules used.
impl Store {
    /// Remembers sums, in place of earlier ones, and forgets others.
    fn put_usage(&self, change: &UsageChange) -> Result<()> {
        let mut delete = self.connection.prepare_cached("DELETE FROM usage WHERE user = ?1 AND module = ?2")?;
        for key in &change.forget {
            delete.execute(names(key))?;
        }
        let put = "INSERT OR REPLACE INTO usage (user, module, used) VALUES (?1, ?2, ?3)";
        let mut put = self.connection.prepare_cached(put)?;
        for (key, used) in &change.put {
            let [user, module] = names(key);
            put.execute(params![user, module, serde_json::to_string(used)?])?;
        }
        Ok(())
    }

    /// Returns every sum that can be read; one that cannot is logged and left out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn usage(&self) -> Result<Vec<(UsageKey, Used)>> {
        let mut statement = self.connection.prepare("SELECT user, module, used FROM usage")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let mut usage = Vec::new();
        for row in rows {
            let (user, module, json): (String, String, String) = row?;
            match (key_of(&user, &module), serde_json::from_str(&json)) {
                (Some(key), Ok(used)) => usage.push((key, used)),
                (None, _) | (_, Err(_)) => tracing::error!(%user, %module, %json, "stored usage cannot be read"),
            }
        }
        Ok(usage)
    }
}

/// Returns the user and module as they are stored; nothing is an empty name.
fn names(key: &UsageKey) -> [&str; 2] {
    let UsageKey { user, module } = key;
    [user.as_ref().map_or("", UserId::as_str), module.as_ref().map_or("", ModuleName::as_str)]
}

fn key_of(user: &str, module: &str) -> Option<UsageKey> {
    let user = if user.is_empty() { None } else { Some(user.parse().ok()?) };
    let module = if module.is_empty() { None } else { Some(module.parse().ok()?) };
    Some(UsageKey { user, module })
}

/// Addresses of users' containers that the node chose.
impl Store {
    /// Remembers a user's addresses, in place of earlier ones.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn put_addresses(&self, user: &UserId, addresses: &[IpAddr]) -> Result<()> {
        let row = params![user.as_str(), serde_json::to_string(addresses)?];
        self.connection.execute("INSERT OR REPLACE INTO addresses (user, addresses) VALUES (?1, ?2)", row)?;
        Ok(())
    }

    /// Forgets a user's addresses.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget_addresses(&self, user: &UserId) -> Result<()> {
        self.connection.execute("DELETE FROM addresses WHERE user = ?1", params![user.as_str()])?;
        Ok(())
    }

    /// Returns the addresses of all users; what cannot be read is logged and left out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn addresses(&self) -> Result<BTreeMap<UserId, Vec<IpAddr>>> {
        let mut statement = self.connection.prepare("SELECT user, addresses FROM addresses")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut all = BTreeMap::new();
        for row in rows {
            let (user, addresses): (String, String) = row?;
            match (user.parse(), serde_json::from_str(&addresses)) {
                (Ok(user), Ok(addresses)) => drop(all.insert(user, addresses)),
                (Err(_), _) | (_, Err(_)) => tracing::warn!(%user, %addresses, "stored addresses cannot be read"),
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use netserv_model::{Digest, Flavour, SessionId, UnixTime};

    use super::*;

    #[test]
    fn records_survive_and_are_replaced_and_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.db");
        let mut record = example();
        Store::open(&path).unwrap().put(&record).unwrap();
        record.lease_until = UnixTime::from_secs(99);
        Store::open(&path).unwrap().put(&record).unwrap();
        let store = Store::open(&path).unwrap();
        for file in std::fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{file:?}");
        }
        assert_eq!(store.all().unwrap(), [record.clone()]);
        store.forget(&record.user, &record.module.name).unwrap();
        assert_eq!(store.all().unwrap(), []);
    }

    #[test]
    fn addresses_survive_and_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.db");
        let [alice, bob]: [UserId; 2] = ["alice", "bob"].map(|name| name.parse().unwrap());
        let addresses: [IpAddr; 2] = ["192.0.2.7", "2001:db8::7"].map(|text| text.parse().unwrap());
        let store = Store::open(&path).unwrap();
        store.put_addresses(&alice, &addresses[..1]).unwrap();
        store.put_addresses(&alice, &addresses).unwrap();
        store.put_addresses(&bob, &addresses[..1]).unwrap();
        store.forget_addresses(&bob).unwrap();
        store.connection.execute("INSERT INTO addresses VALUES ('carol', 'nowhere')", []).unwrap();
        drop(store);
        let expected = BTreeMap::from([(alice, addresses.to_vec())]);
        assert_eq!(Store::open(&path).unwrap().addresses().unwrap(), expected);
    }

    #[test]
    fn usage_survives_is_replaced_and_folded_in_one_commit_with_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.db");
        let (user, module) = ("jane".parse().unwrap(), "example.org/echo".parse().unwrap());
        let (all, one) = (UsageKey::of_user(&user), UsageKey::of_module(&user, &module));
        let used = |cpu_ns| {
            let usage = netserv_model::usage::Usage { cpu_ns, ..Default::default() };
            Used { since: UnixTime::from_secs(1), until: UnixTime::from_secs(2), usage }
        };
        let put = |put: &[(&UsageKey, u64)], forget: &[&UsageKey]| {
            let put = put.iter().map(|(key, cpu_ns)| ((*key).clone(), used(*cpu_ns))).collect();
            StoreJob::PutUsage(Box::new(UsageChange { put, forget: forget.iter().copied().cloned().collect() }))
        };
        let store = Store::open(&path).unwrap();
        let jobs = [StoreJob::Put(Box::new(example())), put(&[(&all, 5), (&one, u64::MAX)], &[])];
        store.write(jobs.iter()).unwrap();
        let others = UsageKey::default();
        store.write([put(&[(&all, 7), (&others, 9)], &[&one])].iter()).unwrap();
        store.connection.execute("INSERT INTO usage VALUES ('x', 'y/z', '{')", []).unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.usage().unwrap(), [(others, used(9)), (all, used(7))]);
        assert_eq!(store.all().unwrap().len(), 1);
    }

    #[test]
    fn messages_survive_are_replaced_by_topic_and_go_with_their_module() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.db");
        let stored = |module: &str, topic: &str, seq: u64| {
            let message = ControlMessage { topic: topic.parse().unwrap(), seq, body: b"\x00\xff".to_vec() };
            StoredMessage { user: "jane".parse().unwrap(), module: module.parse().unwrap(), message }
        };
        let put = |store: &Store, stored: StoredMessage| {
            let StoredMessage { user, module, message } = stored;
            store.write([StoreJob::PutMessage { user, module, message }].iter()).unwrap();
        };
        let store = Store::open(&path).unwrap();
        for (module, topic, seq) in [("a/m", "x", 1), ("a/m", "y", 2), ("a/n", "x", 1), ("a/m", "x", u64::MAX)] {
            put(&store, stored(module, topic, seq));
        }
        store.connection.execute("INSERT INTO messages VALUES ('x', 'y/z', 't', '{')", []).unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        let all = [stored("a/m", "x", u64::MAX), stored("a/m", "y", 2), stored("a/n", "x", 1)];
        assert_eq!(store.messages().unwrap(), all);
        store.forget(&"jane".parse().unwrap(), &"a/m".parse().unwrap()).unwrap();
        assert_eq!(store.messages().unwrap(), all[2..]);
    }

    #[test]
    fn revocation_lists_survive_and_are_replaced_by_issuer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.db");
        let list = |issuer: &str, text: &str| StoredList { issuer: issuer.to_owned(), text: text.to_owned() };
        let all = [list("house", "b"), list("second", "c")];
        let store = Store::open(&path).unwrap();
        let jobs: Vec<StoreJob> =
            [list("house", "a"), all[0].clone(), all[1].clone()].map(|list| StoreJob::PutList(Box::new(list))).into();
        store.write(jobs.iter()).unwrap();
        drop(store);
        assert_eq!(Store::open(&path).unwrap().lists().unwrap(), all);
    }

    /// What a node wrote that did not know of usage.
    #[test]
    fn an_older_database_is_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.db");
        let store = Store::open(&path).unwrap();
        store.put(&example()).unwrap();
        store.connection.execute_batch("DROP TABLE usage; DROP TABLE messages; PRAGMA user_version = 1;").unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!((store.usage().unwrap(), store.all().unwrap().len()), (Vec::new(), 1));
    }

    #[test]
    fn a_newer_database_and_a_broken_record_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.db");
        let store = Store::open(&path).unwrap();
        store.put(&example()).unwrap();
        store.connection.execute("INSERT INTO installed VALUES ('x', 'y/z', '{')", []).unwrap();
        assert_eq!(store.all().unwrap().len(), 1);
        store.connection.pragma_update(None, "user_version", database::SCHEMA_VERSION + 1).unwrap();
        drop(store);
        assert!(format!("{:#}", Store::open(&path).err().unwrap()).contains("newer"));
    }

    /// What a node wrote that knew one flavour.
    #[test]
    fn a_record_without_a_flavour_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("node.db")).unwrap();
        let old = r#"{"user":"janedoe","module":"example.org/echo@1.0.0","url":"https://cp.example/echo.nsm",
            "digest":"sha256:0707070707070707070707070707070707070707070707070707070707070707",
            "session":"01010101010101010101010101010101","filters":["udp dst 10.2.0.0/24 port 44444"],
            "properties":{},"lease_until":1000,"order":1}"#;
        let insert = "INSERT INTO installed VALUES ('janedoe', 'example.org/echo', ?1)";
        store.connection.execute(insert, [old]).unwrap();
        assert_eq!(
            store.all().unwrap(),
            [InstalledRecord { flavour: None, intercept: Vec::new(), floating: Vec::new(), ..example() }]
        );
    }

    pub fn example() -> InstalledRecord {
        InstalledRecord {
            user: "janedoe".parse().unwrap(),
            module: "example.org/echo@1.0.0".parse().unwrap(),
            url: "https://cp.example/echo.nsm".into(),
            digest: Digest([7; 32]),
            evidence: None,
            suspended: None,
            session: SessionId([1; 16]),
            nonce: None,
            filters: vec!["udp dst 10.2.0.0/24 port 44444".parse().unwrap()],
            intercept: vec!["tcp dst 10.2.0.0/24 port 80".parse().unwrap()],
            properties: BTreeMap::new(),
            lease_until: UnixTime::from_secs(1),
            sessions: Vec::new(),
            wish: None,
            order: 1,
            flavour: Some(Flavour::Osgi),
            epoch: 0,
            floating: vec![[10, 2, 0, 9].into()],
            given_up: Vec::new(),
            state: None,
            moved_in: None,
        }
    }
}
