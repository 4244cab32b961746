// SPDX-License-Identifier: Apache-2.0
//! Which relay of media is for whose calls: tables for an unmodified Kamailio, whose modules rtpengine and permissions read them by db_text.

use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use netserv_placement::DeploymentId;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;

use crate::ids::give;
use crate::limits::{METRIC_TIME_MAX, RELAY_REGIONS_MAX};
use crate::metric::kamailio;
use crate::names::{Readers, replace};

/// Where the tables go, and whose relays they have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RelayTables {
    /// A folder, which Kamailio's modules have as `db_url` (`text://…`).
    pub dir: PathBuf,
    /// The group, by name or number, whose processes may read the tables, such as `kamailio`; without it, only the agent's user and root may.
    #[serde(default)]
    pub group: Option<String>,
    /// The datagram socket of Kamailio's module `jsonrpcs`, which is told to read them again.
    pub rpc: PathBuf,
    /// The rule whose modules are relays. Each deployment is a set, and the regions that share it are a group of addresses of the same number.
    pub rule: String,
    /// The port at which relays take requests.
    #[serde(default = "ng_port")]
    pub port: u16,
}

impl RelayTables {
    /// Checks what the shape of a file does not hold.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check<'a>(&self, mut rules: impl Iterator<Item = &'a String>) -> Result<()> {
        ensure!(rules.any(|name| *name == self.rule), "there is no rule `{}`", self.rule);
        ensure!(self.port != 0, "`port` is 0");
        Ok(())
    }
}

/// A relay, and whose calls are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relay {
    /// The deployment.
    pub id: DeploymentId,
    /// Where it is.
    pub address: IpAddr,
    /// Prefixes of callers, with their bits: first that of the client for which it came.
    pub regions: Vec<(IpAddr, u8)>,
    /// How many there are; no more are in `regions` than the tables take.
    pub regions_all: usize,
}

/// The tables as they were written last.
#[derive(Debug)]
pub struct Relays {
    goes_to: Option<RelayTables>,
    written: Option<String>,
    /// Whether something happened since.
    is_dirty: bool,
    /// How many regions they have no room for.
    left_out: usize,
    /// When it is tried again to write them, after that failed.
    not_before: Option<Instant>,
    /// Who is told of them.
    news: watch::Sender<Option<PathBuf>>,
}

impl Relays {
    /// Returns tables that go to a folder, if there is one. They are written at once, also if there is no relay: Kamailio does not start without.
    pub fn new(goes_to: Option<RelayTables>) -> Relays {
        Relays {
            is_dirty: goes_to.is_some(),
            goes_to,
            written: None,
            left_out: 0,
            not_before: None,
            news: watch::Sender::new(None),
        }
    }

    /// Has the tables go to another folder from here on. Those that are not theirs any more stay as they are.
    pub fn go_to(&mut self, goes_to: Option<RelayTables>) {
        (self.is_dirty, self.goes_to) = (goes_to.is_some(), goes_to);
        (self.written, self.not_before) = (None, None);
    }

    /// Returns what [`keep_told`] goes by: the socket at which Kamailio is told, whenever the tables are others.
    pub fn news(&self) -> watch::Receiver<Option<PathBuf>> {
        self.news.subscribe()
    }

    /// Takes note that relays, or who shares them, may be others.
    pub fn look_again(&mut self) {
        self.is_dirty = true;
    }

    /// Returns where the tables go, if they may not be what they should be.
    pub fn due(&self, now: Instant) -> Option<&RelayTables> {
        let is_time = self.is_dirty && self.not_before.is_none_or(|at| now >= at);
        self.goes_to.as_ref().filter(|_| is_time)
    }

    /// Writes the tables. Returns whether they are others than before.
    ///
    /// # Errors
    /// They cannot be written; it is tried again after [`RETRY_EVERY`].
    pub fn write(&mut self, now: Instant, relays: &[Relay]) -> Result<bool> {
        let Some(RelayTables { dir, port, rpc, group, .. }) = &self.goes_to else { return Ok(false) };
        let Tables { sets, groups, left_out } = tables(relays, *port);
        if left_out > 0 && self.left_out == 0 {
            tracing::warn!(left_out, "{RELAY_REGIONS_MAX} regions have relays in Kamailio's tables, and no more");
        }
        self.left_out = left_out;
        let text = format!("{sets}{groups}");
        let is_new = self.written.as_ref() != Some(&text);
        if is_new {
            self.not_before = Some(now + RETRY_EVERY);
            make_folder(dir, group.as_deref()).with_context(|| format!("cannot make {}", dir.display()))?;
            for (name, table) in [("version", VERSIONS), (SETS, &sets), (GROUPS, &groups)] {
                let file = dir.join(name);
                put(&file, table, group.as_deref()).with_context(|| format!("cannot write {}", file.display()))?;
            }
            self.news.send_replace(Some(rpc.clone()));
            self.written = Some(text);
        }
        (self.is_dirty, self.not_before) = (false, None);
        Ok(is_new)
    }
}

/// Has Kamailio read the tables again whenever they are others, until nobody writes any more. One that is away reads them when it starts.
pub async fn keep_told(mut news: watch::Receiver<Option<PathBuf>>) {
    while news.changed().await.is_ok() {
        let rpc = news.borrow_and_update().clone();
        if let Some(rpc) = rpc {
            reload(&rpc).await;
        }
    }
}

async fn reload(rpc: &Path) {
    for method in ["rtpengine.reload", "permissions.addressReload"] {
        if let Err(error) = told(rpc, method).await {
            tracing::warn!("Kamailio does not read its relays again, {method}: {error:#}");
        }
    }
}

async fn told(rpc: &Path, method: &str) -> Result<()> {
    let mut last = Ok(());
    for _ in 0..TELLS_MAX {
        last = match tokio::time::timeout(METRIC_TIME_MAX, kamailio::call(rpc, method)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(anyhow::anyhow!("no answer")),
        };
        tokio::time::sleep(TELL_AGAIN).await;
    }
    last
}

/// Makes the tables' folder, which a group may pass. One of another user stays as it is.
fn make_folder(dir: &Path, group: Option<&str>) -> Result<()> {
    if !dir.exists() {
        fs::create_dir_all(dir)?;
        fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    }
    let is_own = fs::metadata(dir)?.uid() == rustix::process::geteuid().as_raw();
    if let Some(group) = group.filter(|_| is_own) {
        give(dir, group)?;
        fs::set_permissions(dir, Permissions::from_mode(0o750))?;
    }
    Ok(())
}

/// Writes a table. db_text reads one again only if it was changed in a later second than what it read, so it is a second later than the one
/// before in any case.
fn put(file: &Path, table: &str, group: Option<&str>) -> Result<()> {
    let before = fs::metadata(file).and_then(|before| before.modified()).ok();
    replace(file, table, Readers::Group(group))?;
    let later = before.map_or(SystemTime::UNIX_EPOCH, |before| before + Duration::from_secs(1));
    Ok(File::options().write(true).open(file)?.set_modified(later.max(SystemTime::now()))?)
}

/// The tables of sets and of groups, and how many regions these have no room for.
#[derive(Debug)]
struct Tables {
    sets: String,
    groups: String,
    left_out: usize,
}

fn tables(relays: &[Relay], port: u16) -> Tables {
    let mut sets = "setid(int) url(string) weight(int) disabled(int) stamp(string)\n".to_owned();
    let mut groups = "id(int,auto) grp(int) ip_addr(string) mask(int) port(int) tag(string,null)\n".to_owned();
    let (mut number, mut all) = (0, 0);
    for (Relay { id, address, regions, regions_all }, share) in relays.iter().zip(shares(relays)) {
        // Set 0 is that of whoever has none. In a table, colons stand between columns.
        let set = 1 + id.0 % SETS_MAX;
        let protocol = if address.is_ipv4() { "udp" } else { "udp6" };
        let url = format!("{protocol}:{}", SocketAddr::new(*address, port));
        // A string takes all there is.
        let _ = writeln!(sets, "{set}:{}:1:0:0", url.replace(':', "\\:"));
        for (prefix, bits) in &regions[..share] {
            number += 1;
            let _ = writeln!(groups, "{number}:{set}:{}:{bits}:0:", prefix.to_string().replace(':', "\\:"));
        }
        all += regions_all;
    }
    Tables { sets, groups, left_out: all.saturating_sub(number) }
}

/// Returns how many regions of each relay are in the tables: one of each as long as there is room, then one more of each that has more.
fn shares(relays: &[Relay]) -> Vec<usize> {
    let (mut shares, mut left) = (vec![0; relays.len()], RELAY_REGIONS_MAX);
    loop {
        let before = left;
        for (share, relay) in shares.iter_mut().zip(relays) {
            if left > 0 && *share < relay.regions.len() {
                (*share, left) = (*share + 1, left - 1);
            }
        }
        if left == before {
            return shares;
        }
    }
}

fn ng_port() -> u16 {
    2223
}

/// The table of sets of relays.
pub const SETS: &str = "rtpengine";
/// That of groups of addresses, and the versions of both as Kamailio 5 wants them.
const GROUPS: &str = "address";
const VERSIONS: &str = "table_name(string) table_version(int)\nrtpengine:1\naddress:6\n";
/// Numbers of sets.
const SETS_MAX: u64 = 1 << 30;
/// How often Kamailio is told of tables, and what is between: it reads sets ten seconds after the last time at the earliest.
const TELLS_MAX: usize = 15;
const TELL_AGAIN: Duration = Duration::from_secs(1);
/// How long it takes until tables that could not be written are tried again.
const RETRY_EVERY: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(id: u64, address: &str, regions: &[(&str, u8)]) -> Relay {
        let regions: Vec<_> = regions.iter().map(|(prefix, bits)| (prefix.parse().unwrap(), *bits)).collect();
        Relay { id: DeploymentId(id), address: address.parse().unwrap(), regions_all: regions.len(), regions }
    }

    fn tables_in(dir: &Path, port: u16) -> RelayTables {
        RelayTables { dir: dir.into(), rpc: "/x".into(), rule: "media".to_owned(), port, group: None }
    }

    /// Goal: Kamailio, which is another user, reads the tables if its group is named, and nobody else does, whatever the umask.
    #[test]
    fn the_tables_are_for_a_group() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("kamailio");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let modes =
            || [mode(&folder), mode(&folder.join(SETS)), mode(&folder.join(GROUPS)), mode(&folder.join("version"))];
        let mut relays = Relays::new(Some(tables_in(&folder, 2223)));
        relays.write(Instant::now(), &[]).unwrap();
        assert_eq!(modes(), [0o700, 0o600, 0o600, 0o600]);
        let group = rustix::process::getegid().as_raw().to_string();
        relays.go_to(Some(RelayTables { group: Some(group), ..tables_in(&folder, 2223) }));
        relays.write(Instant::now(), &[]).unwrap();
        assert_eq!(modes(), [0o750, 0o640, 0o640, 0o640]);
        relays.go_to(Some(RelayTables { group: Some("no-such-group".to_owned()), ..tables_in(&folder, 2223) }));
        let error = format!("{:#}", relays.write(Instant::now(), &[]).unwrap_err());
        assert!(error.contains("there is no group `no-such-group`"), "{error}");
    }

    /// Goal: each relay is a set, and who shares it the group of that number; tables are there from the begin, and written when they change.
    #[test]
    fn sets_and_groups_have_one_number() {
        let dir = tempfile::tempdir().unwrap();
        let own = tables_in(dir.path(), 2223);
        let (mut relays, begun) = (Relays::new(Some(own.clone())), Instant::now());
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(relays.due(begun), Some(&own));
        assert!(relays.write(begun, &[]).unwrap());
        assert_eq!(
            (relays.due(begun), read("rtpengine").lines().count(), read("address").lines().count()),
            (None, 1, 1)
        );
        let all = [
            relay(0, "10.99.7.1", &[("198.51.100.0", 24), ("2001:db8:1::", 56)]),
            relay(7, "fd99:7::1", &[("192.0.2.0", 24)]),
        ];
        relays.look_again();
        assert!(relays.write(begun, &all).unwrap() && !relays.write(begun, &all).unwrap());
        let rows = |name: &str| read(name).lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(rows("rtpengine"), [r"1:udp\:10.99.7.1\:2223:1:0:0", r"8:udp6\:[fd99\:7\:\:1]\:2223:1:0:0"]);
        let groups = [r"1:1:198.51.100.0:24:0:", r"2:1:2001\:db8\:1\:\::56:0:", r"3:8:192.0.2.0:24:0:"];
        assert_eq!(rows("address"), groups);
        assert_eq!(rows("version"), ["rtpengine:1", "address:6"]);
        // As db_text tells whether a table is another one.
        let second = |name: &str| {
            let changed = fs::metadata(dir.path().join(name)).unwrap().modified().unwrap();
            changed.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
        };
        for number in 0..3 {
            let before = [second("rtpengine"), second("address")];
            assert!(relays.write(begun, &all[(number + 1) % 2..]).unwrap());
            assert!(second("rtpengine") > before[0] && second("address") > before[1]);
        }
        relays.go_to(None);
        assert!(relays.due(begun).is_none() && !relays.write(begun, &all).unwrap());
    }

    #[test]
    fn tables_are_bounded_and_tried_again() {
        let many = |id: u8, count: usize| {
            let regions = (0..=u8::MAX).flat_map(|a| (0..3).map(move |b| (IpAddr::from([10 + id, a, b, 0]), 24)));
            let regions: Vec<_> = regions.take(count.min(RELAY_REGIONS_MAX)).collect();
            Relay { id: DeploymentId(id.into()), address: IpAddr::from([10, 0, 0, id]), regions, regions_all: count }
        };
        // Whoever comes late has its regions, and whoever has many what others do not want.
        let all = [many(1, 700), many(2, 1), many(3, 600), many(4, 2), many(5, 0)];
        let Tables { groups, left_out, .. } = tables(&all, 1);
        let of = |set: &str| groups.lines().filter(|line| line.split(':').nth(1) == Some(set)).count();
        assert_eq!(["2", "3", "4", "5", "6"].map(of), [255, 1, 254, 2, 0]);
        assert_eq!((groups.lines().count(), left_out), (1 + RELAY_REGIONS_MAX, 445 + 346));
        assert_eq!(tables(&all[1..2], 1).left_out, 0);
        let each: Vec<_> = (0..600).map(|id| Relay { id: DeploymentId(id), ..many(1, 3) }).collect();
        let Tables { sets, groups, left_out } = tables(&each, 1);
        let counts = [sets.lines().count(), groups.lines().count(), left_out];
        assert_eq!(counts, [601, 1 + RELAY_REGIONS_MAX, 1800 - RELAY_REGIONS_MAX]);
        let file = tempfile::NamedTempFile::new().unwrap();
        let gone = tables_in(&file.path().join("no-folder"), 1);
        let (mut relays, begun) = (Relays::new(Some(gone.clone())), Instant::now());
        assert!(relays.write(begun, &all).is_err());
        assert_eq!(relays.left_out, 445 + 346);
        assert_eq!((relays.due(begun), relays.due(begun + RETRY_EVERY)), (None, Some(&gone)));
        assert!(gone.check([].iter()).is_err() && gone.check(["media".to_owned()].iter()).is_ok());
        assert!(RelayTables { port: 0, ..gone }.check(["media".to_owned()].iter()).is_err());
    }
}
