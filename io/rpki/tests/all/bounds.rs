// SPDX-License-Identifier: Apache-2.0
//! Bounds, time, and bytes that nobody signed.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use netserv_model::UnixTime;
use netserv_model::evidence::Holder;
use netserv_rpki::limits::{
    CHECKLIST_BYTES_MAX, DEPTH_MAX, FILE_BYTES_MAX, PREFIXES_MAX, REASON_CHARS_MAX, TAL_BYTES_MAX, TALS_MAX,
};
use netserv_rpki::{Cache, CacheError, Invalid};
use proptest::prelude::*;

use crate::scene::{AGE_MAX, HOLDER, Scene, Staged, grant, nets, now};

#[test]
fn a_checklist_speaks_for_its_prefixes_until_the_first_thing_ends() {
    let hours = |hours: u64| now() + Duration::from_secs(hours * 3600);
    let until = |change: fn(&mut Scene, UnixTime)| {
        let mut scene = Scene::new();
        change(&mut scene, hours(1));
        let staged = scene.stage();
        let spoken = staged.write().check(&staged.checklist).unwrap();
        assert_eq!(spoken.prefixes, nets(&["10.1.2.0/24", "2001:db8:1:2::/64"]));
        spoken.until
    };
    assert_eq!(until(|_, _| ()), hours(24));
    assert_eq!(until(|scene, end| scene.checklist.certificate.until = end), hours(1));
    assert_eq!(until(|scene, end| scene.tree.at(HOLDER).list.1 = end), hours(1));
    assert_eq!(until(|scene, end| scene.tree.at(HOLDER).manifest.1 = end), hours(1));
    assert_eq!(until(|scene, end| scene.tree.at(1).manifest_certificate.1 = end), hours(1));
    // It is good in its last second.
    let staged = Staged::good();
    let written = staged.write();
    let cache = written.open_for(Duration::from_secs(7 * 86_400));
    assert!(cache.check(&staged.checklist, &grant(), hours(24)).is_ok());
    let over = cache.check(&staged.checklist, &grant(), UnixTime(hours(24).0 + 1));
    assert!(matches!(over, Err(Invalid::Expired { .. })), "{over:?}");
    let said = over.unwrap_err().to_string();
    assert!(said.ends_with(&format!("until {}, it is {} here", hours(24), UnixTime(hours(24).0 + 1))), "{said}");
}

/// Goal: a checklist vouches for nothing once the cache has the revocation of a certificate above it. Method: the holder is revoked
/// and the cache written again, the manifest first.
#[test]
fn a_checklist_ends_with_the_certificate_above_it() {
    let mut scene = Scene::new();
    let checklist = scene.tree.sign(HOLDER, &scene.checklist);
    let staged = Staged { files: scene.tree.publish(), ..Staged::good() };
    let written = staged.write();
    let cache = written.open();
    let check = || cache.check(&checklist, &grant(), now());
    assert!(check().is_ok());
    scene.tree.revoke(HOLDER);
    let files = scene.tree.publish();
    let (manifest, rest) = files.into_iter().partition(|(path, _)| path.ends_with("registry.mft"));
    netserv_rpki_tree::write(&manifest, &written.cache).unwrap();
    let between = check().unwrap_err();
    assert!(matches!(between, Invalid::OtherHash { .. }) && between.may_pass(), "{between:?}");
    netserv_rpki_tree::write(&rest, &written.cache).unwrap();
    let revoked = check().unwrap_err();
    assert!(matches!(revoked, Invalid::Revoked { .. }) && !revoked.may_pass(), "{revoked:?}");
    assert!(revoked.fix().is_some());
}

/// Goal: a cache is refused by name if its relying party last ran three days ago and one day is allowed. Method: the times of what
/// rpki-client changes are set.
#[test]
fn a_cache_of_three_days_ago_is_refused() {
    let staged = Staged::good();
    let written = staged.write();
    let folders = ["", "ta/lab"].map(|folder| written.cache.join(folder));
    let change = |path: &Path, days: u64| {
        let then = SystemTime::now() - Duration::from_secs(days * 86_400);
        std::fs::File::open(path).unwrap().set_modified(then).unwrap();
    };
    let is_old = |said: &Result<Holder, Invalid>| matches!(said, Err(Invalid::OldCache { .. }));
    folders.iter().for_each(|folder| change(folder, 3));
    let said = written.check(&staged.checklist);
    assert!(is_old(&said), "{said:?}");
    let old = said.unwrap_err();
    assert!(old.may_pass() && old.to_string().contains(" at most 86400 s"), "{old}");
    let longer = written.open_for(Duration::from_secs(4 * 86_400));
    assert!(longer.check(&staged.checklist, &grant(), now()).is_ok());
    // Each of the folders that rpki-client changes shows that it ran.
    for (folder, others) in [(0, 1), (1, 0)] {
        change(&folders[folder], 0);
        change(&folders[others], 3);
        assert!(written.check(&staged.checklist).is_ok());
    }
    std::fs::create_dir(written.cache.join(".rsync")).unwrap();
    folders.iter().for_each(|folder| change(folder, 3));
    assert!(written.check(&staged.checklist).is_ok());
    // A file that the operator names counts instead of folders.
    let stamp = written.folder.path().join("json");
    let stamped = written.open().stamped_by(stamp.clone());
    let check = || stamped.check(&staged.checklist, &grant(), now());
    assert!(matches!(check(), Err(Invalid::Unreadable { .. })));
    std::fs::write(&stamp, "").unwrap();
    assert!(check().is_ok());
    change(&stamp, 3);
    assert!(is_old(&check()));
    // A clock that is wrong by more than the bound is no better.
    change(&stamp, 0);
    let earlier = UnixTime(now().0 - 2 * 86_400_000);
    assert!(is_old(&stamped.check(&staged.checklist, &grant(), earlier)));
    std::fs::remove_dir_all(&written.cache).unwrap();
    assert!(matches!(written.check(&staged.checklist), Err(Invalid::NoCache { .. })));
}

/// Goal: no checklist with one flipped bit vouches. Method: each bit is flipped.
#[test]
fn no_flipped_bit_is_accepted() {
    let staged = Staged::good();
    let written = staged.write();
    let cache = written.open();
    for bit in 0..staged.checklist.len() * 8 {
        let mut flipped = staged.checklist.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let said = cache.check(&flipped, &grant(), now());
        assert!(said.is_err(), "bit {bit}");
    }
    assert!(cache.check(&staged.checklist, &grant(), now()).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_bytes_are_accepted(bytes in prop::collection::vec(any::<u8>(), 0..CHECKLIST_BYTES_MAX + 2)) {
        let cache = Staged::good().write().open();
        prop_assert!(cache.check(&bytes, &grant(), now()).is_err());
    }

    /// Replaces a few bytes of a checklist and of each file that is read for it.
    #[test]
    fn replaced_bytes_cause_no_panic(file in 0..9_usize, at in any::<usize>(), bytes in prop::collection::vec(any::<u8>(), 1..6)) {
        let mut staged = Staged::good();
        let paths: Vec<String> = staged.files.keys().cloned().collect();
        let place = match paths.get(file) {
            Some(path) => staged.files.get_mut(path).unwrap(),
            None => &mut staged.checklist,
        };
        let at = at % (place.len() - bytes.len());
        place[at..at + bytes.len()].copy_from_slice(&bytes);
        let _ = staged.write().check(&staged.checklist);
    }
}

#[test]
fn a_chain_has_so_many_certificates_at_most() {
    let mut scene = Scene::new();
    for depth in 3..=DEPTH_MAX + 1 {
        let certificate = scene.tree.certificate(&nets(&["10.1.0.0/16", "2001:db8:1::/48"]));
        scene.signer = scene.tree.authority(scene.signer, &format!("level-{depth}"), &certificate);
        if depth >= DEPTH_MAX {
            let mut scene = Scene { tree: scene.tree.clone(), checklist: scene.checklist.clone(), ..scene };
            let checklist = scene.tree.sign(scene.signer, &scene.checklist);
            let staged = Scene { tree: scene.tree, ..scene }.stage();
            let said = staged.write().check(&checklist);
            assert_eq!(said.is_ok(), depth == DEPTH_MAX, "{depth}: {said:?}");
            assert!(said.is_ok() || said == Err(Invalid::TooDeep), "{said:?}");
        }
    }
}

#[test]
fn a_checklist_has_so_many_prefixes_at_most() {
    for (count, is_taken) in [(PREFIXES_MAX, true), (PREFIXES_MAX + 1, false)] {
        let mut scene = Scene::new();
        // None is beside another, so that they stay apart.
        let prefixes = (0..count).map(|n| format!("10.1.{}.{}/32", n / 64, n % 64 * 4)).collect::<Vec<_>>();
        scene.checklist.prefixes = prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect();
        scene.checklist.certificate.prefixes = nets(&["10.1.0.0/16"]);
        let staged = scene.stage();
        let said = staged.write().check(&staged.checklist);
        assert_eq!(said.is_ok(), is_taken, "{count}: {said:?}");
        assert!(is_taken || said == Err(Invalid::TooManyPrefixes), "{said:?}");
    }
}

#[test]
fn a_checklist_adds_so_many_characters_to_a_reason() {
    let mut scene = Scene::new();
    scene.checklist.content_type = vec![1; 1000];
    let staged = scene.stage();
    match staged.write().check(&staged.checklist) {
        Err(Invalid::NotChecklist { content_type }) => assert_eq!(content_type.chars().count(), REASON_CHARS_MAX),
        said => panic!("{said:?}"),
    }
}

#[test]
fn a_file_has_so_many_bytes_at_most() {
    let mut staged = Staged::good();
    let file = "rpki.example/repo/holder/holder.mft";
    for (bytes, is_read) in [(FILE_BYTES_MAX, true), (FILE_BYTES_MAX + 1, false)] {
        staged.files.insert(file.to_owned(), vec![0; bytes]);
        let said = staged.write().check(&staged.checklist);
        let expected = Err(Invalid::TooMuch { file: file.to_owned() });
        assert_eq!(said != expected, is_read, "{said:?}");
    }
}

#[test]
fn only_regular_files_of_the_cache_are_read() {
    let staged = Staged::good();
    let read = |place: fn(&Path, &Path)| {
        let written = staged.write();
        let certificate = written.path("registry/holder.cer");
        let outside = written.folder.path().join("outside.cer");
        std::fs::rename(&certificate, &outside).unwrap();
        place(&certificate, &outside);
        written.check(&staged.checklist).unwrap_err()
    };
    let is_outside = |error: Invalid| assert!(matches!(error, Invalid::Outside { .. }), "{error:?}");
    is_outside(read(|file, outside| symlink(outside, file).unwrap()));
    is_outside(read(|file, _| symlink("../../../../outside.cer", file).unwrap()));
    is_outside(read(|file, outside| {
        let folder = file.parent().unwrap();
        std::fs::rename(folder, folder.with_file_name("moved")).unwrap();
        symlink(outside.parent().unwrap(), folder).unwrap();
    }));
    let is_unreadable = |error: Invalid| assert!(matches!(error, Invalid::Unreadable { .. }), "{error:?}");
    is_unreadable(read(|file, _| std::fs::create_dir(file).unwrap()));
    is_unreadable(read(|file, _| {
        assert!(std::process::Command::new("mkfifo").arg(file).status().unwrap().success());
    }));
    // A URI that leads up is no URI: both have the same length.
    let mut checklist = staged.checklist.clone();
    let (name, up) = (b"registry/holder.cer", b"../../../etc/passwd");
    let at = checklist.windows(name.len()).position(|window| window == name).unwrap();
    checklist[at..at + up.len()].copy_from_slice(up);
    let error = staged.write().check(&checklist).unwrap_err();
    assert!(matches!(error, Invalid::Malformed { .. }), "{error:?}");
}

#[test]
fn locators_are_read_at_the_start() {
    let staged = Staged::good();
    let written = staged.write();
    let open = |tals: &[PathBuf]| Cache::open(written.cache.clone(), tals, AGE_MAX).map(|_| ());
    assert_eq!(open(&[]), Err(CacheError::NoTal));
    assert_eq!(open(&vec![written.tal.clone(); TALS_MAX]), Ok(()));
    assert_eq!(open(&vec![written.tal.clone(); TALS_MAX + 1]), Err(CacheError::TooManyTals));
    let with = |text: &[u8]| {
        let path = written.folder.path().join("other.tal");
        std::fs::write(&path, text).unwrap();
        open(&[written.tal.clone(), path])
    };
    let comment = format!("# {}\n", "x".repeat(100));
    assert_eq!(with(format!("{comment}{}", staged.locator).as_bytes()), Ok(()));
    assert!(matches!(open(&[written.cache.join("none.tal")]), Err(CacheError::Unreadable { .. })));
    assert!(matches!(with(&vec![b'#'; TAL_BYTES_MAX + 1]), Err(CacheError::Unreadable { .. })));
    let key = staged.locator.split_once("\n\n").unwrap().1;
    for text in
        ["", "#", "\n", "rsync://host/", "nonsense\n\nAAAA", &staged.locator[..99], &format!("\n{key}"), "\u{FF}"]
    {
        assert!(matches!(with(text.as_bytes()), Err(CacheError::NotTal { .. })), "{text}");
    }
}
