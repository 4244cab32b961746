// SPDX-License-Identifier: Apache-2.0
//! The audit log on a real disk: restarts, crashes, a full disk, floods.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use netserv_audit::limits::SHARE_LINES_BURST;
use netserv_model::audit::{Asked, AuditReport, Proven};
use netserv_model::effect::RequestId;
use netserv_model::request::Verb;
use netserv_model::{Instant, PublicKey, Refusal, RefusalKind, UnixTime};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use super::*;
use crate::audit::folder::End;
use crate::caller::Caller;
use crate::limits::{AUDIT_FILE_BYTES_MIN, AUDIT_FILES_MIN, AUDIT_LOOK};

/// Set for a test that runs once more in a process of its own, to the state directory.
const CHILD: &str = "NETSERV_AUDIT_CHILD";

#[test]
fn decisions_of_several_runs_are_one_chain() {
    let dir = tempfile::tempdir().unwrap();
    for run in 1..4 {
        let (mut log, thread) = start(dir.path(), &node(), Audit::default(), Clock::start()).unwrap();
        log.take(now(1), answer("jane", true, Outcome::Installed { lease_s: 60 }));
        log.take(now(2), answer("eve", false, refused()));
        log.take_operation(now(3), Caller::Node, "RELOAD", Ok("admission.ttl-max-s"));
        let user = || "jane".parse().unwrap();
        let module = || "example.org/m@1.0.0".parse().unwrap();
        let refusal = Refusal::new(RefusalKind::BadProof, "it ended");
        let why = refusal.clone();
        let (evidence, is_stranger) = (None, false);
        log.take(now(4), Notice::Revoked { user: user(), module: module(), refusal: why, evidence, is_stranger });
        log.take(now(5), Notice::Expired { user: user(), module: module(), evidence: None, is_stranger: false });
        log.take(now(6), Notice::Resumed { user: user(), module: module(), evidence: None });
        log.take(now(6), Notice::Forgotten { user: user(), refusal, evidence: "address 192.0.2.1".to_owned() });
        drop(log);
        thread.unwrap().join().unwrap();
        let report = verify(dir.path());
        assert_eq!((report.broken, report.last), (None, Some(run * 8)), "after run {run}");
    }
    let lines = lines(dir.path());
    let verbs: Vec<&str> = lines.iter().map(|line| line["verb"].as_str().unwrap()).collect();
    assert_eq!(verbs, ["START", "SETUP", "SETUP", "RELOAD", "REVOKE", "EXPIRE", "RESUME", "FORGET"].repeat(3));
    let of_jane = serde_json::json!({
        "line": 2, "time": "2026-11-21T02:00:01Z", "node": "n1", "verb": "SETUP", "outcome": "installed", "detail": "for 60 s",
        "user": "jane", "key": format!("ed25519:{}", "07".repeat(32)), "evidence": "configured", "module": "example.org/m@1.0.0",
        "session": "01".repeat(16), "from": "192.0.2.1", "before": lines[1]["before"],
    });
    assert_eq!(lines[1], of_jane);
    assert_eq!(lines[2]["evidence"], serde_json::Value::Null, "nobody has proven to be eve");
    assert_eq!(lines[5]["module"], "example.org/m@1.0.0");
    let (evidence, detail, module) = (&lines[7]["evidence"], &lines[7]["detail"], &lines[7]["module"]);
    assert_eq!((evidence.as_str(), detail.as_str()), (Some("address 192.0.2.1"), Some("bad-proof: it ended")));
    assert_eq!(*module, serde_json::Value::Null);
    for path in [dir.path().join("audit"), only_file(dir.path())] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
    }
}

#[test]
fn without_a_log_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let wants = Audit { enabled: false, ..Audit::default() };
    let (mut log, thread) = start(dir.path(), &node(), wants, Clock::start()).unwrap();
    log.take(now(1), answer("jane", true, Outcome::Removed));
    assert!(thread.is_none() && !dir.path().join("audit").exists());
    assert_eq!(verify(dir.path()), AuditReport::default());
}

/// Goal: the log stays within its bounds, and what is there is whole. Method: more lines than three times its room, over restarts.
#[test]
fn the_oldest_file_goes_for_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut end = end_of(dir.path());
    let count = 3 * AUDIT_FILES_MIN as u64 * AUDIT_FILE_BYTES_MIN / 200;
    for number in 0..count {
        if number % 100 == 0 {
            end = end_of(dir.path());
        }
        end.add(entry()).unwrap();
    }
    let files = files(dir.path());
    assert_eq!(files.len(), AUDIT_FILES_MIN);
    assert!(files.iter().all(|file| fs::metadata(file).unwrap().len() <= AUDIT_FILE_BYTES_MIN));
    let report = verify(dir.path());
    assert_eq!((report.broken, report.last), (None, Some(count)));
    assert_eq!(report.first, Some(count - report.lines + 1), "the newest lines are there");
    assert!(report.first.unwrap() > 1);
}

/// Goal: wherever a crash cuts the last line off, the log goes on, and says so. Method: every length of it, also of the first line of a file.
#[test]
fn a_half_line_is_kept_noted_and_continued_from() {
    let dir = tempfile::tempdir().unwrap();
    let mut end = end_of(dir.path());
    (0..3).for_each(|_| end.add(entry()).unwrap());
    let file = only_file(dir.path());
    let whole = fs::read(&file).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for length in last..=whole.len() {
        let second = dir.path().join("audit").join(netserv_audit::name_of_file(3));
        for in_new_file in [false, true] {
            let _ = fs::remove_file(&second);
            if in_new_file {
                fs::write(&file, &whole[..last]).unwrap();
                fs::write(&second, &whole[last..length]).unwrap();
            } else {
                fs::write(&file, &whole[..length]).unwrap();
            }
            let mut writer = writer_of(dir.path());
            writer.write(vec![entry()]);
            let report = verify(dir.path());
            assert_eq!(report.broken, None, "cut at {length}, {in_new_file}");
            let is_half = length > last && length < whole.len() - 1;
            assert_eq!(report.damaged, u64::from(is_half), "cut at {length}, {in_new_file}");
            let kept = fs::read(if in_new_file { &second } else { &file }).unwrap();
            let half = &whole[if in_new_file { last } else { 0 }..length];
            assert!(kept.starts_with(half), "nothing is taken away");
        }
    }
}

#[test]
fn damaged_files_are_kept_and_continued_from() {
    for damage in [&b"\0\0\0\0"[..], b"\xff\xfe\n\n\n{}", b"{\"line\":9}\n", &vec![b'x'; 300_000]] {
        let dir = tempfile::tempdir().unwrap();
        let mut end = end_of(dir.path());
        (0..3).for_each(|_| end.add(entry()).unwrap());
        File::options().append(true).open(only_file(dir.path())).unwrap().write_all(damage).unwrap();
        writer_of(dir.path()).write(vec![entry()]);
        let report = verify(dir.path());
        assert_eq!((report.broken, report.damaged, report.last), (None, 1, Some(5)), "{:?}", &damage[..4]);
    }
    // Nothing that can be read at all.
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("audit")).unwrap();
    fs::write(dir.path().join("audit").join(netserv_audit::name_of_file(7)), "rubbish").unwrap();
    fs::write(dir.path().join("audit/notes.txt"), "none of the log").unwrap();
    writer_of(dir.path()).write(vec![entry()]);
    let report = verify(dir.path());
    assert_eq!((report.broken, report.damaged, report.first, report.last), (None, 1, Some(7), Some(8)));
}

/// Goal: a full disk costs lines, which are counted, and nothing else; the log says how many as soon as there is room. Method: a limit of
/// the size of files, in a process that ignores the signal for it.
#[test]
fn lines_that_find_no_room_on_the_disk_are_counted_and_told() {
    let Some(dir) = in_child("lines_that_find_no_room_on_the_disk_are_counted_and_told", true) else { return };
    let limit = |bytes: Option<u64>| {
        let maximum = getrlimit(Resource::Fsize).maximum;
        setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum }).unwrap();
    };
    let counts = Arc::new(AuditCounts::default());
    let mut writer = Writer::new(small(&dir), node(), Clock::start(), Arc::clone(&counts), Arc::default());
    limit(Some(1000));
    for _ in 0..3 {
        writer.write((0..10).map(|_| entry()).collect());
    }
    let (written, lost) = (count(&counts.written), count(&counts.lost));
    assert!(written > 0 && written + lost == 30, "{written} {lost}");
    let report = verify(&dir);
    assert_eq!((report.broken, report.lines), (None, written), "no half line stays");
    limit(None);
    writer.write(vec![entry()]);
    assert_eq!(count(&counts.lost), lost + 1, "it is not tried all the time");
    std::thread::sleep(AUDIT_LOOK);
    writer.write(Vec::new());
    let report = verify(&dir);
    assert_eq!((report.broken, report.lines, report.lost), (None, written + 1, lost + 1));
    writer.write(vec![entry()]);
    assert_eq!(verify(&dir).lines, written + 2, "it says so once");
}

/// Goal: decisions stay in the log, whatever other programs do to its newest file. Method: what `find -delete`, logrotate with `create` and with
/// `copytruncate`, and `rm -r` do to the log of a running node.
#[test]
fn decisions_go_into_a_new_file_once_the_newest_one_is_moved_deleted_or_cut_short() {
    let delete = |file: &Path| fs::remove_file(file).unwrap();
    let rotate = |file: &Path| {
        fs::rename(file, file.with_extension("jsonl.1")).unwrap();
        File::create(file).unwrap();
    };
    let cut = |file: &Path| File::options().write(true).open(file).unwrap().set_len(0).unwrap();
    let delete_all = |file: &Path| fs::remove_dir_all(file.parent().unwrap()).unwrap();
    let ways = [("delete", delete as fn(&Path)), ("rotate", rotate), ("cut", cut), ("delete all", delete_all)];
    for (way, clear_up) in ways {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer_of(dir.path());
        writer.write(vec![entry(), entry()]);
        clear_up(&only_file(dir.path()));
        writer.write(vec![entry()]);
        writer.write(vec![entry()]);
        let report = verify(dir.path());
        assert_eq!((report.broken, report.first, report.last), (None, Some(3), Some(5)), "{way}");
        let newest = dir.path().join("audit").join(netserv_audit::name_of_file(3));
        let text = fs::read_to_string(newest).unwrap();
        let told = text.lines().filter(|line| line.contains(netserv_audit::DAMAGED)).count();
        assert_eq!((text.lines().count(), told), (3, 1), "{way}: it says so once");
    }
}

/// Goal: a node that is killed leaves a log that goes on. Method: a process that writes all the time, killed five times.
#[test]
fn a_kill_leaves_a_chain_that_goes_on() {
    if let Some(dir) = in_child("a_kill_leaves_a_chain_that_goes_on", false) {
        let mut writer = writer_of(&dir);
        loop {
            writer.write((0..50).map(|_| entry()).collect());
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mut before = 0;
    for _ in 0..5 {
        let mut child = child("a_kill_leaves_a_chain_that_goes_on", dir.path());
        while verify(dir.path()).last.unwrap_or_default() < before + 50 {
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut writer = writer_of(dir.path());
        writer.write(vec![entry()]);
        let report = verify(dir.path());
        assert_eq!(report.broken, None);
        before = report.last.unwrap();
    }
}

/// Goal: the control loop never waits; what finds no room is counted. Method: a log whose thread does not run.
#[test]
fn audit_waiting_max_entries_wait() {
    let (mut log, inbox) = stuck_log();
    for number in 0..AUDIT_WAITING_MAX + 3 {
        log.take(now(1), answer(&format!("u{number}"), true, Outcome::Removed));
    }
    assert_eq!((inbox.try_iter().count(), count(&log.counts.lost)), (AUDIT_WAITING_MAX, 3));
}

/// Goal: rights that end again and again get no lines of others out of the log. Method: more modules of a stranger go than it has lines for,
/// and as many of a user of the configuration.
#[test]
fn a_flood_of_ends_of_a_strangers_rights_is_counted() {
    let (mut log, inbox) = stuck_log();
    for is_stranger in [true, false] {
        for _ in 0..2 * SHARE_LINES_BURST {
            let (user, module) = ("k-1".parse().unwrap(), "example.org/m@1.0.0".parse().unwrap());
            let refusal = Refusal::new(RefusalKind::BadProof, "it ended");
            log.take(now(1), Notice::Revoked { user, module, refusal, evidence: None, is_stranger });
        }
    }
    assert_eq!(inbox.try_iter().count() as u64, 3 * SHARE_LINES_BURST);
    assert_eq!(count(&log.counts.left_out), SHARE_LINES_BURST);
}

/// Goal: whoever floods the node with requests gets neither the lines of others out of the log nor its own decisions before.
#[test]
fn a_flood_of_refusals_leaves_room_for_decisions() {
    let (mut log, inbox) = stuck_log();
    for number in 0..3 * SHARE_LINES_BURST {
        log.take(now(1), answer(&format!("u{number}"), false, refused()));
        log.take(now(1), answer("jane", true, refused()));
    }
    assert_eq!(inbox.try_iter().count() as u64, 2 * SHARE_LINES_BURST);
    assert_eq!(count(&log.counts.left_out), 4 * SHARE_LINES_BURST);
    log.take(now(1), answer("jane", true, Outcome::Removed));
    assert_eq!(inbox.try_iter().count(), 1);
    let left_out = lock(&log.shares).left_out(now(9).instant, true);
    assert_eq!(left_out.into_values().collect::<Vec<_>>(), [2 * SHARE_LINES_BURST; 2]);
}

/// Goal: leases that are renewed all the time do not fill the log; another evidence is news. Method: also over the bound of what is known.
#[test]
fn a_renewal_by_the_same_evidence_is_no_news() {
    let (mut log, inbox) = stuck_log();
    let renewal = |user: &str, evidence: &str| {
        let Notice::Answered { request, outcome, took_us, asked, proven } =
            answer(user, true, Outcome::Refreshed { lease_s: 9 })
        else {
            unreachable!("it is an answer")
        };
        let proven = proven.map(|proven| Proven { evidence: evidence.to_owned(), ..proven });
        Notice::Answered { request, outcome, took_us, asked, proven }
    };
    log.take(now(1), answer("jane", true, Outcome::Installed { lease_s: 9 }));
    for (user, evidence, is_news) in [
        ("jane", "configured", false),
        ("jane", "grant a", true),
        ("jane", "grant a", false),
        ("john", "grant a", true),
        ("jane", "grant b", true),
        ("john", "grant a", false),
    ] {
        inbox.try_iter().for_each(drop);
        log.take(now(1), renewal(user, evidence));
        assert_eq!(inbox.try_iter().count(), usize::from(is_news), "{user} {evidence}");
    }
    for number in 0..AUDIT_SESSIONS_MAX {
        log.take(now(1), renewal(&format!("u{number}"), "configured"));
        assert!(log.known.len() <= AUDIT_SESSIONS_MAX);
        inbox.try_iter().for_each(drop);
    }
    log.take(now(1), renewal("john", "grant a"));
    assert_eq!(inbox.try_iter().count(), 1, "it is told once more rather than not at all");
}

#[test]
fn what_decides_nothing_is_no_entry() {
    let (mut log, inbox) = stuck_log();
    for outcome in [Outcome::Probed, Outcome::WouldDo { action: "install".into() }] {
        log.take(now(1), answer("jane", true, outcome));
    }
    assert_eq!(inbox.try_iter().count(), 0);
}

fn stuck_log() -> (AuditLog, Receiver<AuditEntry>) {
    let (entries, inbox) = sync_channel(AUDIT_WAITING_MAX);
    let (counts, shares) = (Arc::default(), Arc::default());
    (AuditLog { node: node(), entries: Some(entries), counts, shares, known: BTreeMap::new() }, inbox)
}

fn answer(user: &str, is_proven: bool, outcome: Outcome) -> Notice {
    let (module, from) = (Some("example.org/m@1.0.0".to_owned()), Some("192.0.2.1".parse().unwrap()));
    let (user, session) = (Some(user.parse().unwrap()), SessionId([1; 16]));
    let asked = Asked { verb: Verb::Setup, user, session, module, package: None, from, dry_run: false };
    let proven = is_proven.then(|| Proven {
        key: Some(PublicKey([7; 32])),
        evidence: "configured".to_owned(),
        is_stranger: false,
    });
    Notice::Answered { request: RequestId(1), outcome, took_us: 1, asked: Box::new(asked), proven }
}

fn refused() -> Outcome {
    Refusal::new(RefusalKind::BadProof, "no").into()
}

fn entry() -> AuditEntry {
    AuditEntry::new(now(1).wall, node(), "SETUP", "installed", "")
}

fn now(seconds: u64) -> Now {
    Now { instant: Instant::from_millis(1000 * seconds), wall: UnixTime::from_secs(1_795_226_400 + seconds) }
}

fn node() -> NodeId {
    "n1".parse().unwrap()
}

fn small(state_dir: &Path) -> Folder {
    Folder::of(state_dir, AUDIT_FILE_BYTES_MIN, AUDIT_FILES_MIN)
}

fn end_of(state_dir: &Path) -> End {
    End::open(small(state_dir)).unwrap()
}

fn writer_of(state_dir: &Path) -> Writer {
    Writer::new(small(state_dir), node(), Clock::start(), Arc::default(), Arc::default())
}

fn verify(state_dir: &Path) -> AuditReport {
    small(state_dir).verify().unwrap()
}

fn count(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn files(state_dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(state_dir.join("audit")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn only_file(state_dir: &Path) -> PathBuf {
    let files = files(state_dir);
    assert_eq!(files.len(), 1);
    files[0].clone()
}

fn lines(state_dir: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(only_file(state_dir)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs a test in a process of its own, where signals for a file that gets too large are ignored; there this returns the state directory.
fn in_child(test: &str, waits: bool) -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os(CHILD) {
        return Some(dir.into());
    }
    if waits {
        let dir: TempDir = tempfile::tempdir().unwrap();
        assert!(child(test, dir.path()).wait().unwrap().success());
    }
    None
}

fn child(test: &str, state_dir: &Path) -> std::process::Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
    shell.args(["--exact", "--nocapture", &format!("audit::tests::{test}")]).env(CHILD, state_dir);
    shell.stdout(Stdio::null()).spawn().unwrap()
}
