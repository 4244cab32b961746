// SPDX-License-Identifier: Apache-2.0
//! The file of the node's database, whatever state it is in.

use std::fs::{File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, ErrorCode};

/// How long one connection waits for the other's transaction.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The version of the tables, kept in SQLite's `user_version`.
pub(super) const SCHEMA_VERSION: i64 = 3;

/// Opens the database, and makes it if there is none. No new one takes the place of a damaged one by itself: usage would count from nothing,
/// a revocation list that was replaced would count again, and what strangers' modules kept would go.
///
/// # Errors
/// The file cannot be opened, is damaged, or was written by a newer version.
pub fn open(path: &Path) -> Result<Connection> {
    let name = || format!("cannot open {}", path.display());
    let opened = connect(path).and_then(|(connection, version)| {
        ensure!(
            version <= SCHEMA_VERSION,
            "it was written by a newer netservd (schema {version}, this one knows {SCHEMA_VERSION})"
        );
        make_tables(&connection)?;
        Ok(connection)
    });
    opened.map_err(|error| if is_damage(&error) { error.context(DAMAGED) } else { error }).with_context(name)
}

/// What its operator can do about a damaged database.
const DAMAGED: &str = "it is damaged; recover it (`sqlite3 node.db .recover`), or move it away with its -wal and -shm, to start without \
                       modules, usage and revocation lists";

fn is_damage(error: &anyhow::Error) -> bool {
    let code = error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
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
    use super::super::store::Store;

    /// Goal: a damaged database is left as it is, and the error names it, and what its operator can do. Method: one with other bytes in the place of
    /// its first page, and one that is cut off within it.
    #[test]
    fn a_damaged_database_is_named_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.db");
        drop(Store::open(&path).unwrap());
        let whole = std::fs::read(&path).unwrap();
        for damaged in [
            "no database\n".repeat(1000).into_bytes(),
            [&[0xa5; 4096], &whole[4096..]].concat(),
            whole[..1000].to_vec(),
        ] {
            std::fs::write(&path, &damaged).unwrap();
            let error = format!("{:#}", Store::open(&path).err().unwrap());
            assert!(
                error.contains(&path.display().to_string()) && error.contains("sqlite3 node.db .recover"),
                "{error}"
            );
            assert!(std::fs::read(&path).unwrap() == damaged);
        }
        let folder = dir.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let error = format!("{:#}", Store::open(&folder).err().unwrap());
        assert!(error.contains(&folder.display().to_string()) && !error.contains("damaged"), "{error}");
    }
}
