// SPDX-License-Identifier: Apache-2.0
//! The repository against servers and files that are right, wrong, slow or hostile.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::{IpAddr, TcpListener};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::server::{Server, ok, status};
use crate::common::tar_file::Tar;
use crate::common::{MANIFEST, WASM, key, public, signed};
use netserv_model::request::StateSource;
use netserv_model::{Digest, Flavour, Refusal, RefusalKind, UserId};
use netserv_patience::grown;
use netserv_repository::limits::{REDIRECTS_MAX, SIGNATURES_MAX, URL_BYTES_MAX};
use netserv_repository::package;
use netserv_repository::{Config, FetchLimits, IsOwn, Package, Repository, Sources, Stored};
use sha2::{Digest as _, Sha256};

#[test]
fn a_package_is_fetched_checked_and_stored() {
    let (dir, package) = (dir(), signed(MANIFEST, WASM, &[1]));
    let server = Server::of(package.to_bytes());
    let repository = open(dir.path());
    let stored = fetch(&repository, &server.url("/m.nsm"), package.digest()).unwrap();
    assert_eq!(stored.manifest, *package.manifest());
    assert_eq!(fs::read(stored.code_path(Flavour::Wasm).unwrap()).unwrap(), WASM);
    assert_eq!((stored.digest, stored.signer, stored.cached), (package.digest(), public(1), false));
    assert_eq!(repository.digests(), [package.digest()]);
    assert_eq!(leftovers(dir.path()), 0);
}

#[test]
fn a_stored_package_needs_no_network_also_after_a_restart() {
    let (dir, package) = (dir(), signed(MANIFEST, WASM, &[1]));
    let server = Server::of(package.to_bytes());
    let url = server.url("/m.nsm");
    fetch(&open(dir.path()), &url, package.digest()).unwrap();
    assert_eq!(server.requests(), 1);
    drop(server);
    let repository = open(dir.path());
    for _ in 0..2 {
        let stored = fetch(&repository, &url, package.digest()).unwrap();
        assert!(stored.cached);
        assert_eq!(fs::read(stored.code_path(Flavour::Wasm).unwrap()).unwrap(), WASM);
    }
}

#[test]
fn the_store_is_not_trusted() {
    let (dir, package) = (dir(), signed(MANIFEST, WASM, &[1]));
    let server = Server::of(package.to_bytes());
    let repository = open(dir.path());
    let stored = fetch(&repository, &server.url("/m"), package.digest()).unwrap();
    fs::write(stored.code_path(Flavour::Wasm).unwrap(), b"\0asm evil").unwrap();
    let stored = fetch(&repository, &server.url("/m"), package.digest()).unwrap();
    assert!(stored.cached);
    assert_eq!(fs::read(stored.code_path(Flavour::Wasm).unwrap()).unwrap(), WASM);
    fs::write(stored.code_path(Flavour::Wasm).unwrap().with_file_name("package.nsm"), b"torn").unwrap();
    let stored = fetch(&repository, &server.url("/m"), package.digest()).unwrap();
    assert!(!stored.cached);
    assert_eq!((server.requests(), fs::read(stored.code_path(Flavour::Wasm).unwrap()).unwrap().as_slice()), (2, WASM));
    assert_eq!(leftovers(dir.path()), 0);
}

/// A package in the store serves only users who signed it: another's copy has to be had from where it is.
#[test]
fn another_users_package_is_not_taken_from_the_store() {
    let dir = dir();
    let (one, two) = (signed(MANIFEST, WASM, &[1]), signed(MANIFEST, WASM, &[2]));
    assert_eq!(one.digest(), two.digest());
    let (first, second) = (Server::of(one.to_bytes()), Server::of(two.to_bytes()));
    let repository = open(dir.path());
    fetch(&repository, &first.url("/m"), one.digest()).unwrap();
    let limits = FetchLimits::default();
    let refused = repository.fetch(&user(), &first.url("/m"), one.digest(), &[public(2)], &limits).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::ModuleUnsigned);
    let stored = repository.fetch(&user(), &second.url("/m"), one.digest(), &[public(2)], &limits).unwrap();
    assert_eq!((stored.signer, stored.cached), (public(2), false));
    for n in [1, 2] {
        let stored = repository.fetch(&user(), "http://nowhere.invalid/", one.digest(), &[public(n)], &limits).unwrap();
        assert_eq!((stored.signer, stored.cached), (public(n), true));
    }
}

#[test]
fn wrong_packages_are_refused_and_not_stored() {
    let good = signed(MANIFEST, WASM, &[1]);
    let other = signed(&MANIFEST.replace("1.2.0", "1.3.0"), WASM, &[1]);
    let unsigned = signed(MANIFEST, WASM, &[]);
    let by_another = signed(MANIFEST, WASM, &[2]);
    let whole = good.to_bytes();
    for (body, kind) in [
        (other.to_bytes(), RefusalKind::DigestMismatch),
        (unsigned.to_bytes(), RefusalKind::ModuleUnsigned),
        (by_another.to_bytes(), RefusalKind::ModuleUnsigned),
        (whole[..whole.len() / 2].to_vec(), RefusalKind::BadPackage),
        (b"<html>not found</html>".to_vec(), RefusalKind::BadPackage),
        (Vec::new(), RefusalKind::BadPackage),
    ] {
        let dir = dir();
        let server = Server::of(body);
        let repository = open(dir.path());
        check(fetch(&repository, &server.url("/m"), good.digest()), kind, "");
        assert_eq!((repository.digests().len(), leftovers(dir.path())), (0, 0));
    }
}

#[test]
fn a_package_without_our_flavour_is_refused() {
    let (dir, package) = (dir(), of_another_flavour());
    let server = Server::of(package.to_bytes());
    let result = fetch(&open(dir.path()), &server.url("/m"), package.digest());
    check(result, RefusalKind::NoFlavour, "[application/x-perl], no application/wasm and no application/java-archive");
}

/// Goal: what a later version of `netserv module build` made is fetched unless it requires what this node does not know,
/// which the requester is told by its name, and then it is not stored.
#[test]
fn packages_of_later_versions_are_taken_or_refused_by_name() {
    let built = signed(MANIFEST, WASM, &[1]);
    let signature = built.signatures().first().unwrap().signature;
    for (from, to, refused) in [
        (r#""state-schema":1"#, r#""state-schema":1,"greeting":"hello""#, None),
        (r#""requires":[]"#, r#""requires":["detour"]"#, Some("requires `detour`, which this version does not know")),
        (r#"{"manifest":1"#, r#"{"manifest":2"#, Some("of version 2, understood here is 1")),
    ] {
        let mut layout = Tar::of(&built);
        layout.rewrite_everywhere(from, to);
        layout.sign_again(signature, &key(1));
        let (dir, server, digest) = (dir(), Server::of(layout.to_bytes()), layout.digest());
        let repository = open(dir.path());
        let fetched = fetch(&repository, &server.url("/m"), digest);
        match refused {
            None => assert_eq!(fetched.unwrap().manifest, *built.manifest()),
            Some(words) => check(fetched, RefusalKind::MissingFeature, words),
        }
        assert_eq!((repository.digests().len(), leftovers(dir.path())), (usize::from(refused.is_none()), 0), "{to}");
    }
}

#[test]
fn servers_that_fail_are_refused_in_time() {
    let package = signed(MANIFEST, WASM, &[1]);
    let bytes = package.to_bytes();
    let half = bytes[..bytes.len() / 2].to_vec();
    type Case = (&'static str, Server, RefusalKind, &'static str);
    let announced = bytes.len();
    let cases: Vec<Case> = vec![
        ("404", Server::start(|_, s| status(s, "404 Not Found", "")), RefusalKind::FetchFailed, "404"),
        ("500", Server::start(|_, s| status(s, "500 Oops", "")), RefusalKind::FetchFailed, "500"),
        ("no location", Server::start(|_, s| status(s, "302 Found", "")), RefusalKind::FetchFailed, "location"),
        ("garbage", Server::start(|_, s| s.write_all(b"\0\0\0\0\r\n\r\n")), RefusalKind::FetchFailed, ""),
        ("hangs up", Server::start(|_, _| Ok(())), RefusalKind::FetchFailed, ""),
        (
            "hangs",
            Server::start(|_, _| {
                thread::sleep(Duration::from_secs(30));
                Ok(())
            }),
            RefusalKind::FetchFailed,
            "not done within",
        ),
        ("never ends", Server::start(|_, s| endless(s)), RefusalKind::PackageTooLarge, "more than"),
        ("drips", Server::start(|_, s| drip(s)), RefusalKind::FetchFailed, "not done within"),
        (
            "too short",
            Server::start(move |_, s| {
                write!(s, "HTTP/1.1 200 OK\r\nContent-Length: {announced}\r\n\r\n")?;
                s.write_all(&half)
            }),
            RefusalKind::FetchFailed,
            "",
        ),
        (
            "announces too much",
            Server::start(|_, s| write!(s, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")),
            RefusalKind::PackageTooLarge,
            "more than",
        ),
    ];
    for (name, server, kind, detail) in cases {
        let time = if detail == "not done within" { Duration::from_millis(700) } else { Duration::from_secs(60) };
        let limits = FetchLimits { time, bytes: 1 << 20, ..FetchLimits::default() };
        let dir = dir();
        let started = Instant::now();
        let result = open(dir.path()).fetch(&user(), &server.url("/m"), package.digest(), &[public(1)], &limits);
        let refusal = result.unwrap_err();
        assert_eq!(refusal.kind, kind, "{name}: {}", refusal.detail);
        assert!(refusal.detail.contains(detail), "{name}: {}", refusal.detail);
        assert!(started.elapsed() < grown(Duration::from_millis(2500)), "{name} took {:?}", started.elapsed());
        assert_eq!(leftovers(dir.path()), 0);
    }
}

#[test]
fn a_server_that_is_not_there_is_refused() {
    let url = Server::of(Vec::new()).url("/m");
    thread::sleep(Duration::from_millis(50));
    let dir = dir();
    check(fetch(&open(dir.path()), &url, any_digest()), RefusalKind::FetchFailed, "");
}

#[test]
fn redirects_are_followed_and_bounded() {
    let package = signed(MANIFEST, WASM, &[1]);
    let bytes = package.to_bytes();
    // `/n` redirects n times.
    let server = Server::start(move |path, stream| match path.trim_start_matches('/').parse::<u32>() {
        Ok(0) | Err(_) => ok(stream, &bytes),
        Ok(n) => status(stream, "302 Found", &format!("Location: /{}\r\n", n - 1)),
    });
    let dir = dir();
    let repository = open(dir.path());
    let over = server.url(&format!("/{}", REDIRECTS_MAX + 1));
    check(fetch(&repository, &over, package.digest()), RefusalKind::FetchFailed, "more than 5 redirects");
    assert!(fetch(&repository, &server.url(&format!("/{REDIRECTS_MAX}")), package.digest()).is_ok());
    let circle = Server::start(|_, stream| status(stream, "301 Moved", "Location: /\r\n"));
    check(fetch(&repository, &circle.url("/"), any_digest()), RefusalKind::FetchFailed, "redirects");
    assert_eq!(circle.requests(), usize::try_from(REDIRECTS_MAX).unwrap() + 1);
}

/// All hops share one deadline.
#[test]
fn slow_redirects_do_not_add_up() {
    let server = Server::start(|_, stream| {
        thread::sleep(Duration::from_millis(300));
        status(stream, "302 Found", "Location: /\r\n")
    });
    let dir = dir();
    let limits = FetchLimits { time: Duration::from_millis(700), ..FetchLimits::default() };
    let started = Instant::now();
    let result = open(dir.path()).fetch(&user(), &server.url("/"), any_digest(), &[], &limits);
    check(result, RefusalKind::FetchFailed, "not done within");
    assert!(started.elapsed() < grown(Duration::from_millis(1500)), "{:?}", started.elapsed());
}

#[test]
fn redirects_do_not_lead_around_the_operators_list() {
    for target in ["http://192.0.2.1/", "file:///etc/hostname", "https://localhost/", "ftp://127.0.0.1/"] {
        let server = Server::start(move |_, stream| status(stream, "302 Found", &format!("Location: {target}\r\n")));
        let sources = Sources { https: false, ..sources() };
        let dir = dir();
        let config = Config { sources, ..Config::default() };
        let repository = Repository::open(dir.path(), config).unwrap();
        check(fetch(&repository, &server.url("/"), any_digest()), RefusalKind::BadUrl, "");
    }
}

#[test]
fn urls_that_the_operator_does_not_allow_are_refused() {
    let long = format!("http://127.0.0.1/{}", "x".repeat(URL_BYTES_MAX));
    let dir = dir();
    let repository = open(dir.path());
    for url in [
        "",
        "module.nsm",
        "ftp://127.0.0.1/m",
        "http://other.example/m",
        "http://user:password@127.0.0.1/m",
        "http://",
        "http:///m",
        "file:///etc/passwd",
        "javascript:alert(1)",
        &long,
    ] {
        check(fetch(&repository, url, any_digest()), RefusalKind::BadUrl, "");
    }
    let closed = Repository::open(dir.path(), Config::default()).unwrap();
    check(fetch(&closed, "http://127.0.0.1/m", any_digest()), RefusalKind::BadUrl, "does not fetch `http:`");
}

/// A user may name any URL, so the node must not become its way to services that trust whoever is on this machine, nor
/// tell which there are: a refusal says the same of a port where somebody listens as of one where nobody does.
#[test]
fn this_machine_is_asked_only_if_the_operator_allows_it() {
    let (dir, package) = (dir(), signed(MANIFEST, WASM, &[1]));
    let server = Server::of(package.to_bytes());
    let open_port = server.url("").rsplit_once(':').unwrap().1.to_owned();
    let hosts = ["127.0.0.1", "localhost", "2130706433", "127.1", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]"];
    let every = |own_addresses| Sources { http: true, own_addresses, ..Sources::default() };
    let listed = Sources { hosts: Some(hosts.map(str::to_owned).to_vec()), ..every(false) };
    for sources in [every(false), every(true), listed] {
        let repository = Repository::open(dir.path(), Config { sources, ..Config::default() }).unwrap();
        for host in hosts {
            let refused = |port| fetch(&repository, &format!("http://{host}:{port}/m"), package.digest()).unwrap_err();
            let refusal = refused(open_port.as_str());
            assert_eq!((refusal.kind, &refusal), (RefusalKind::BadUrl, &refused("1")), "{host}");
            assert!(refusal.detail.contains("fetch.own-addresses"), "{refusal}");
        }
    }
    assert_eq!(server.requests(), 0);
    assert!(fetch(&open(dir.path()), &server.url("/m"), package.digest()).is_ok());
}

/// Which addresses are the node's own, beside loopback, whoever runs the repository has to know.
#[test]
fn addresses_that_are_said_to_be_the_nodes_own_are_not_asked() {
    let dir = dir();
    let hosts = Some(["192.0.2.1", "[2001:db8::1]", "[::ffff:192.0.2.1]"].map(str::to_owned).to_vec());
    let own: [IpAddr; 2] = ["192.0.2.1", "2001:db8::1"].map(|address| address.parse().unwrap());
    let sources = Sources { http: true, hosts: hosts.clone(), ..Sources::default() };
    let config = Config { sources, is_own: IsOwn::new(move |address| own.contains(&address)), ..Config::default() };
    let repository = Repository::open(dir.path(), config).unwrap();
    for host in hosts.iter().flatten() {
        let refused = fetch(&repository, &format!("http://{host}/m"), any_digest());
        check(refused, RefusalKind::BadUrl, "fetch.own-addresses");
    }
}

#[test]
fn files_are_read_only_under_their_roots() {
    let (dir, roots) = (dir(), dir());
    let package = signed(MANIFEST, WASM, &[1]);
    let (allowed, secret) = (roots.path().join("allowed modules"), roots.path().join("secret"));
    fs::create_dir(&allowed).unwrap();
    fs::create_dir(&secret).unwrap();
    fs::write(allowed.join("m.nsm"), package.to_bytes()).unwrap();
    fs::write(secret.join("m.nsm"), package.to_bytes()).unwrap();
    std::os::unix::fs::symlink(secret.join("m.nsm"), allowed.join("link")).unwrap();
    let sources = Sources { file_roots: vec![allowed.clone()], ..Sources::default() };
    let repository = Repository::open(dir.path(), Config { sources, ..Config::default() }).unwrap();
    let url = |path: &Path| format!("file://{}", path.display());
    for (path, kind) in [
        (secret.join("m.nsm"), RefusalKind::BadUrl),
        (secret.join("none"), RefusalKind::BadUrl),
        (allowed.join("../secret/m.nsm"), RefusalKind::BadUrl),
        (allowed.join("../secret/none"), RefusalKind::BadUrl),
        (allowed.join("link"), RefusalKind::BadUrl),
        (allowed.join("none"), RefusalKind::FetchFailed),
        (allowed.clone(), RefusalKind::FetchFailed),
    ] {
        check(fetch(&repository, &url(&path), package.digest()), kind, "");
    }
    check(fetch(&repository, "file://relative", package.digest()), RefusalKind::BadUrl, "absolute");
    let small = FetchLimits { bytes: 10, ..FetchLimits::default() };
    let result = repository.fetch(&user(), &url(&allowed.join("m.nsm")), package.digest(), &[public(1)], &small);
    check(result, RefusalKind::PackageTooLarge, "");
    let escaped = url(&allowed.join("m.nsm")).replace(' ', "%20");
    assert!(fetch(&repository, &escaped, package.digest()).is_ok());
}

#[test]
fn what_a_crash_left_is_tidied_up() {
    let (dir, package) = (dir(), signed(MANIFEST, WASM, &[1]));
    let server = Server::of(package.to_bytes());
    fetch(&open(dir.path()), &server.url("/m"), package.digest()).unwrap();
    let packages = dir.path().join("packages");
    fs::create_dir(dir.path().join("tmp/new-half")).unwrap();
    fs::write(dir.path().join("tmp/new-half/package.nsm"), b"half").unwrap();
    fs::create_dir(packages.join(format!("sha256-{}", "0".repeat(64)))).unwrap();
    fs::create_dir(packages.join("nonsense")).unwrap();
    fs::write(packages.join("file"), b"").unwrap();
    let repository = open(dir.path());
    assert_eq!(leftovers(dir.path()), 0);
    assert_eq!(repository.digests(), [package.digest()]);
    assert_eq!(fs::read_dir(&packages).unwrap().count(), 1);
}

#[test]
fn the_least_recently_used_leave_but_never_those_in_use() {
    let dir = dir();
    let packages: Vec<Package> =
        (0..4).map(|n| signed(&MANIFEST.replace("1.2.0", &format!("1.2.{n}")), &code(), &[1])).collect();
    let bodies: Vec<Vec<u8>> = packages.iter().map(Package::to_bytes).collect();
    // Room for two and a half.
    let store_bytes_max = u64::try_from((bodies[0].len() + code().len()) * 5 / 2).unwrap();
    let server = Server::start(move |path, stream| ok(stream, &bodies[path[1..].parse::<usize>().unwrap()]));
    let repository =
        Repository::open(dir.path(), Config { sources: sources(), store_bytes_max, ..Config::default() }).unwrap();
    let get = |n: usize| fetch(&repository, &server.url(&format!("/{n}")), packages[n].digest());
    let has = |n: usize| repository.digests().contains(&packages[n].digest());

    drop(get(0).unwrap());
    drop(get(1).unwrap());
    assert!(get(0).unwrap().cached);
    drop(get(2).unwrap());
    assert_eq!([0, 1, 2].map(has), [true, false, true], "1 was used least recently");

    let (held, other) = (get(0).unwrap(), "other".parse().unwrap());
    repository.pin(&other, packages[2].digest());
    check(get(3), RefusalKind::QuotaExceeded, "");
    assert_eq!([0, 2, 3].map(has), [true, true, false]);
    drop(held);
    drop(get(3).unwrap());
    assert_eq!([0, 2, 3].map(has), [false, true, true], "2 is pinned");
    repository.unpin(&other, packages[2].digest());
    drop(get(1).unwrap());
    assert_eq!([1, 2, 3].map(has), [true, false, true]);
    assert_eq!(leftovers(dir.path()), 0);
}

#[test]
fn files_beside_the_code_count_and_leave_with_it() {
    let dir = dir();
    let one = signed(MANIFEST, &code(), &[1]);
    let two = signed(&MANIFEST.replace("1.2.0", "1.2.1"), &code(), &[1]);
    let bodies = [one.to_bytes(), two.to_bytes()];
    let store_bytes_max = u64::try_from((bodies[0].len() + code().len()) * 5 / 2).unwrap();
    let server = Server::start(move |path, stream| ok(stream, &bodies[path[1..].parse::<usize>().unwrap()]));
    let repository =
        Repository::open(dir.path(), Config { sources: sources(), store_bytes_max, ..Config::default() }).unwrap();
    let stored = fetch(&repository, &server.url("/0"), one.digest()).unwrap();
    let compiled = stored.code_path(Flavour::Wasm).unwrap().with_file_name("module.cwasm");
    fs::write(&compiled, vec![0; code().len() * 2]).unwrap();
    drop(stored);
    fetch(&repository, &server.url("/1"), two.digest()).unwrap();
    assert_eq!(repository.digests(), [two.digest()]);
    assert!(!compiled.exists());
}

#[test]
fn many_threads_may_fetch_the_same() {
    let (dir, package) = (dir(), signed(MANIFEST, &code(), &[1]));
    let server = Server::of(package.to_bytes());
    let repository = open(dir.path());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let stored = fetch(&repository, &server.url("/m"), package.digest()).unwrap();
                assert_eq!(fs::read(stored.code_path(Flavour::Wasm).unwrap()).unwrap(), code());
            });
        }
    });
    assert_eq!((repository.digests().len(), leftovers(dir.path())), (1, 0));
}

/// Goal: who signed is known for each user, so that nobody takes away another's signature. Method: a user's copy has as many
/// signatures as there may be, of throw-away keys but for its own; the owner's module comes back without its server.
#[test]
fn signatures_of_others_displace_nobodys() {
    let dir = dir();
    let throw_away: Vec<u8> = (2..).take(SIGNATURES_MAX).collect();
    let (owners, strangers) = (signed(MANIFEST, WASM, &[1]), signed(MANIFEST, WASM, &throw_away));
    assert_eq!(owners.digest(), strangers.digest());
    let (owner, stranger) = (Server::of(owners.to_bytes()), Server::of(strangers.to_bytes()));
    for stranger_first in [false, true] {
        let store = dir.path().join(stranger_first.to_string());
        let repository = open(&store);
        let (own, theirs) = (public(1), public(2));
        let mut fetches = [(&owner, "owner", own), (&stranger, "stranger", theirs)];
        if stranger_first {
            fetches.reverse();
        }
        for (server, name, key) in fetches {
            let (name, url) = (name.parse().unwrap(), server.url("/m"));
            repository.fetch(&name, &url, owners.digest(), &[key], &FetchLimits::default()).unwrap();
        }
        drop(repository);
        let repository = open(&store);
        for key in [own, theirs] {
            let nowhere = "http://nowhere.invalid/";
            let stored = repository.fetch(&user(), nowhere, owners.digest(), &[key], &FetchLimits::default()).unwrap();
            assert_eq!((stored.signer, stored.cached), (key, true));
        }
        let unknown = repository.fetch(
            &user(),
            "http://nowhere.invalid/",
            owners.digest(),
            &[public(99)],
            &FetchLimits::default(),
        );
        check(unknown, RefusalKind::FetchFailed, "");
    }
}

/// Goal: users who keep all the packages in use that they can leave room for others.
#[test]
fn each_user_has_a_share_of_the_store() {
    let dir = dir();
    let packages: Vec<Package> =
        (0..80).map(|n| signed(&MANIFEST.replace("1.2.0", &format!("1.2.{n}")), &code(), &[1])).collect();
    let bodies: Vec<Vec<u8>> = packages.iter().map(Package::to_bytes).collect();
    let store_bytes_max = u64::try_from((bodies[0].len() + code().len()) * 60).unwrap();
    let server = Server::start(move |path, stream| ok(stream, &bodies[path[1..].parse::<usize>().unwrap()]));
    let config = || Config { sources: sources(), store_bytes_max, ..Config::default() };
    let repository = Repository::open(dir.path(), config()).unwrap();
    let get = |user: &str, n: usize| {
        let (user, url) = (user.parse().unwrap(), server.url(&format!("/{n}")));
        repository.fetch(&user, &url, packages[n].digest(), &[public(1)], &FetchLimits::default())
    };
    let (mut held, mut next) = (Vec::new(), 0);
    for greedy in 0..8 {
        let before = held.len();
        loop {
            match get(&format!("greedy{greedy}"), next) {
                Ok(stored) => held.push(stored),
                Err(refusal) => {
                    assert_eq!(refusal.kind, RefusalKind::QuotaExceeded, "{refusal}");
                    break;
                }
            }
            next += 1;
        }
        assert!((1..=60 / 5).contains(&(held.len() - before)), "{}", held.len() - before);
    }
    let own = [get("honest", next).unwrap(), get("honest", next + 1).unwrap()];
    // What a user has in use already, it goes on having.
    let again = held[0].digest;
    assert_eq!(get("greedy0", 0).unwrap().digest, again);
    drop((own, held));
    drop(get("greedy0", next).unwrap());
}

/// Goal: what is downloaded is not in memory meanwhile. Method: sixteen states of 8 MiB of which the last byte is missing.
#[test]
fn states_under_way_are_on_disk() {
    let (dir, bytes, states) = (dir(), 8 << 20, 16);
    let (sent, all_sent) = std::sync::mpsc::channel();
    let end = std::sync::Arc::new(std::sync::RwLock::new(()));
    let stalled = end.write().unwrap();
    let (body, digest) = (vec![7; bytes], Digest(Sha256::digest(vec![7; bytes]).into()));
    let ends = std::sync::Arc::clone(&end);
    let server = Server::start(move |_, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\nconnection: close\r\n\r\n")?;
        stream.write_all(&body[1..])?;
        sent.send(()).unwrap();
        drop(ends.read().unwrap());
        stream.write_all(&body[..1])
    });
    let repository = open(dir.path());
    let before = resident();
    thread::scope(|scope| {
        let fetches: Vec<_> = (0..states)
            .map(|n| {
                let (repository, source) = (&repository, StateSource { url: server.url(&format!("/{n}")), digest });
                scope.spawn(move || {
                    let user = format!("user{n}").parse().unwrap();
                    repository.fetch_state(&user, &source, &FetchLimits::default())
                })
            })
            .collect();
        (0..states).for_each(|_| all_sent.recv_timeout(Duration::from_secs(60)).unwrap());
        let grown = resident().saturating_sub(before);
        drop(stalled);
        assert!(fetches.into_iter().all(|fetch| fetch.join().unwrap().is_ok()));
        assert!(grown < bytes * states / 4, "{grown} bytes more");
    });
    assert_eq!(leftovers(dir.path()), 0);
}

/// Goal: a server that several users share is told whose state it gets.
#[test]
fn a_state_is_put_with_the_names_of_its_user_and_module() {
    let dir = dir();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/state", listener.local_addr().unwrap());
    let sources = Sources { put_hosts: vec!["127.0.0.1".to_owned()], ..sources() };
    let repository = Repository::open(dir.path(), Config { sources, ..Config::default() }).unwrap();
    let head = thread::scope(|scope| {
        let module = "example.org/m".parse().unwrap();
        scope.spawn(move || {
            repository.put_state(&url, b"state", (&user(), &module), &FetchLimits::default()).unwrap();
        });
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        let head: Vec<String> =
            reader.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
        reader.read_exact(&mut [0; 5]).unwrap();
        (&stream).write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n").unwrap();
        head
    });
    assert_eq!(head[0], "PUT /state HTTP/1.1");
    let has = |line: &str| head.iter().any(|one| one.eq_ignore_ascii_case(line));
    assert!(has("netserv-user: jane") && has("netserv-module: example.org/m"), "{head:?}");
}

/// Returns how much memory this process holds (proc(5), `statm`).
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn user() -> UserId {
    "jane".parse().unwrap()
}

fn open(dir: &Path) -> Repository {
    Repository::open(dir, Config { sources: sources(), ..Config::default() }).unwrap()
}

fn sources() -> Sources {
    let hosts = ["127.0.0.1", "nowhere.invalid"].map(str::to_owned);
    Sources { http: true, hosts: Some(hosts.to_vec()), own_addresses: true, ..Sources::default() }
}

fn fetch(repository: &Repository, url: &str, digest: Digest) -> Result<Stored, Refusal> {
    repository.fetch(&user(), url, digest, &[public(1)], &FetchLimits::default())
}

fn check(result: Result<Stored, Refusal>, kind: RefusalKind, detail: &str) {
    let refusal = result.unwrap_err();
    assert_eq!(refusal.kind, kind, "{}", refusal.detail);
    assert!(refusal.detail.contains(detail), "`{}` has no `{detail}`", refusal.detail);
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn leftovers(dir: &Path) -> usize {
    fs::read_dir(dir.join("tmp")).unwrap().count()
}

fn any_digest() -> Digest {
    Digest([7; 32])
}

/// A module that is large against a package's frame.
fn code() -> Vec<u8> {
    [WASM, &vec![0; 100_000]].concat()
}

/// Turns a package into one whose only flavour is of no known kind; it is signed afresh.
fn of_another_flavour() -> Package {
    let mut layout = Tar::of(&signed(MANIFEST, WASM, &[]));
    layout.rewrite_everywhere("application/wasm", "application/x-perl");
    let mut package = package::read(&layout.to_bytes()).unwrap();
    package::sign(&mut package, &key(1)).unwrap();
    package
}

fn endless(stream: &mut std::net::TcpStream) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\n\r\n")?;
    loop {
        stream.write_all(&[0; 65536])?;
    }
}

fn drip(stream: &mut std::net::TcpStream) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")?;
    for _ in 0..60 {
        stream.write_all(b"x")?;
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
