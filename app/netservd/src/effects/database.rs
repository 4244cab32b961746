// SPDX-License-Identifier: Apache-2.0
//! The file of the node's database, whatever state it is in.

use std::fs::{File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, ErrorCode};

/// How long one connection waits for the other's transaction.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The version of the tables, kept in SQLite's `user_version`.
pub(super) const SCHEMA_VERSION: i64 = 3;

/// Opens the database, and makes it if there is none. A damaged one is set aside for its operator, and a new one begun: a
/// node without its modules is better than none, as requesters send their SETUPs again.
///
/// # Errors
/// The file cannot be opened, or was written by a newer version.
pub fn open(path: &Path) -> Result<Connection> {
    let opened = open_whole(path).or_else(|error| {
        if !is_damage(&error) {
            return Err(error);
        }
        let kept = set_aside(path).with_context(|| format!("{error:#}; it cannot be set aside"))?;
        let error = format!("{error:#}");
        tracing::error!(error, kept = %kept.display(), "the database is damaged: the node begins without modules and usage");
        open_whole(path)
    });
    opened.with_context(|| format!("cannot open {}", path.display()))
}

fn open_whole(path: &Path) -> Result<Connection> {
    let (connection, version) = connect(path)?;
    ensure!(
        version <= SCHEMA_VERSION,
        "it was written by a newer netservd (schema {version}, this one knows {SCHEMA_VERSION})"
    );
    let found: String = connection.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    if found != "ok" {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        return Err(rusqlite::Error::SqliteFailure(code, Some(found)).into());
    }
    make_tables(&connection)?;
    Ok(connection)
}

fn is_damage(error: &anyhow::Error) -> bool {
    let code = error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Renames a database with what SQLite keeps beside it, in place of one that was set aside before; returns its new name.
fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let unless_gone = |done: std::io::Result<()>| match done {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    };
    for end in ["-wal", "-shm"] {
        let kept = beside(&format!(".damaged{end}"));
        unless_gone(std::fs::remove_file(&kept))?;
        // First, so that no new database is begun beside it.
        unless_gone(std::fs::rename(beside(end), kept))?;
    }
    let kept = beside(".damaged");
    std::fs::rename(path, &kept)?;
    Ok(kept)
}

/// Opens the database, which is for its owner alone; returns the version of its tables too.
fn connect(path: &Path) -> Result<(Connection, i64)> {
    // SQLite gives its other files the permissions of this one. One that is there is not opened: closing it would end the locks of
    // this process's other connection (https://www.sqlite.org/howtocorrupt.html, 2.2).
    match File::options().create_new(true).append(true).mode(0o600).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        }
        made => drop(made?),
    }
    let connection = Connection::open(path)?;
    // The threads for modules and for networks each have a connection.
    connection.busy_timeout(LOCK_WAIT)?;
    // WAL with synchronous=FULL: a committed lease is still there after a power cut.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((connection, version))
}

fn make_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS installed (
             user TEXT NOT NULL, module TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (user, module)
         ) WITHOUT ROWID;
         CREATE TABLE IF NOT EXISTS usage (
             user TEXT NOT NULL, module TEXT NOT NULL, used TEXT NOT NULL, PRIMARY KEY (user, module)
         ) WITHOUT ROWID;
         CREATE TABLE IF NOT EXISTS messages (
             user TEXT NOT NULL, module TEXT NOT NULL, topic TEXT NOT NULL, message TEXT NOT NULL,
             PRIMARY KEY (user, module, topic)
         ) WITHOUT ROWID;
         CREATE TABLE IF NOT EXISTS revocations (issuer TEXT NOT NULL PRIMARY KEY, list TEXT NOT NULL) WITHOUT ROWID;
         CREATE TABLE IF NOT EXISTS addresses (user TEXT NOT NULL PRIMARY KEY, addresses TEXT NOT NULL) WITHOUT ROWID;",
    )?;
    connection.pragma_update(None, "user_version", SCHEMA_VERSION)
}

#[cfg(test)]
mod tests {
    use netserv_model::effect::InstalledRecord;

    use super::super::store::Store;
    use super::super::store::tests::example;

    /// Goal: no damaged file keeps a node from starting, and none is lost. Method: no database, one that is cut off, and one with rubbish in each
    /// of its pages.
    #[test]
    fn a_damaged_database_is_set_aside_and_a_new_one_begun() {
        let dir = tempfile::tempdir().unwrap();
        let (path, kept) = (dir.path().join("node.db"), dir.path().join("node.db.damaged"));
        let store = Store::open(&path).unwrap();
        for number in 0..100 {
            let module = format!("example.org/m{number}@1.0.0").parse().unwrap();
            store.put(&InstalledRecord { module, ..example() }).unwrap();
        }
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        let with_rubbish = |at: usize| [&whole[..at], &[0xa5; 4096], &whole[at + 4096..]].concat();
        let second_half = (1..whole.len() / 4096).map(|page| with_rubbish(page * 4096));
        let cut = [whole.len() / 2, 4096, 1000].map(|bytes| whole[..bytes].to_vec());
        for damaged in ["no database\n".repeat(1000).into_bytes()].into_iter().chain(cut).chain(second_half) {
            std::fs::write(&path, &damaged).unwrap();
            let store = Store::open(&path).unwrap();
            assert_eq!(store.all().unwrap(), []);
            assert_eq!((std::fs::read(&kept).unwrap() == damaged, store.usage().unwrap().len()), (true, 0));
            store.put(&example()).unwrap();
        }
        let folder = dir.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let error = format!("{:#}", Store::open(&folder).err().unwrap());
        assert!(error.contains(&folder.display().to_string()) && folder.is_dir(), "what is no damage stays: {error}");
    }
}
