// SPDX-License-Identifier: Apache-2.0
//! Packages in registries and in image layouts: Debian's docker-registry and skopeo know nothing of NetServ.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::server::{Server, ok, status};
use crate::common::{MANIFEST, WASM, digest, public, signed};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use netserv_model::{Digest, Refusal, RefusalKind};
use netserv_repository::push::{self, Credentials, Options, PushError};
use netserv_repository::registry::Reference;
use netserv_repository::{Config, FetchLimits, Package, Repository, Sources, Stored};
use netserv_skips::skipped;

const PLAIN: Options = Options { plain_http: true, credentials: None };
/// `user` with the password `secret`.
const HTPASSWD: &str = "user:$2b$04$s302t/t4s0oo8okPupNLteoZyEim3rFjyvRbSSNsObqt5V9qOdtBe\n";

#[test]
fn a_package_comes_back_from_a_registry_with_its_signatures() {
    let Some(registry) = Registry::start("a_package_comes_back_from_a_registry", false) else { return };
    let package = signed(MANIFEST, WASM, &[1, 2]);
    let reference = registry.reference("modules/net-monitor:1.2.0");
    let pushed = push::to_registry(&package, &reference, &PLAIN).unwrap();
    assert_eq!((pushed.signatures, pushed.present > 0), (2, true), "the empty config is sent once: {pushed:?}");
    let stored = registry.fetch(&reference.to_string(), package.digest(), 2).unwrap();
    assert_eq!((stored.digest, stored.signer, stored.cached), (package.digest(), public(2), false));
    // By digest, and what is there is not sent again.
    let by_digest = Reference { tag: package.digest().to_string(), ..reference.clone() };
    registry.fetch(&by_digest.to_string(), package.digest(), 1).unwrap();
    let again = push::to_registry(&package, &reference, &PLAIN).unwrap();
    assert_eq!(again.present, 2 + 2 * 2, "config and layer of the module and of each signature: {again:?}");
}

/// A later signature joins those that are there.
#[test]
fn signatures_gather_in_a_registry() {
    let Some(registry) = Registry::start("signatures_gather_in_a_registry", false) else { return };
    let reference = registry.reference("m:1");
    for signer in [1, 2] {
        push::to_registry(&signed(MANIFEST, WASM, &[signer]), &reference, &PLAIN).unwrap();
    }
    let package = signed(MANIFEST, WASM, &[]);
    for signer in [1, 2] {
        assert_eq!(registry.fetch(&reference.to_string(), package.digest(), signer).unwrap().signer, public(signer));
    }
}

#[test]
fn skopeo_copies_packages_out_of_a_registry_and_into_it() {
    let test = "skopeo_copies_packages_out_of_a_registry_and_into_it";
    let Some(registry) = Registry::start(test, false) else { return };
    let Some(skopeo) = Skopeo::find(test) else { return };
    let package = signed(MANIFEST, WASM, &[1]);
    push::to_registry(&package, &registry.reference("m:1"), &PLAIN).unwrap();
    let docker = |name: &str| format!("docker://{}/{name}", registry.host());
    let manifest = skopeo.run(&["inspect", "--raw", "--tls-verify=false", &docker("m:1")]);
    assert_eq!(digest(&manifest), package.digest());
    let archive = skopeo.dir.path().join("copy.nsm");
    let copied = format!("oci-archive:{}", archive.display());
    skopeo.run(&["copy", "--preserve-digests", "--src-tls-verify=false", &docker("m:1"), &copied]);
    let copy = netserv_repository::package::read(&std::fs::read(&archive).unwrap()).unwrap();
    assert_eq!((copy.digest(), copy.signatures().len()), (package.digest(), 0), "skopeo leaves referrers behind");
    // Into another repository: nodes find the package, and no signature.
    skopeo.run(&["copy", "--preserve-digests", "--dest-tls-verify=false", &copied, &docker("other:1")]);
    let refusal = registry.fetch(&registry.reference("other:1").to_string(), package.digest(), 1).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::ModuleUnsigned);
    push::to_registry(&package, &registry.reference("other:1"), &PLAIN).unwrap();
    registry.fetch(&registry.reference("other:1").to_string(), package.digest(), 1).unwrap();
}

#[test]
fn a_folder_holds_several_packages_that_skopeo_reads() {
    let Some(skopeo) = Skopeo::find("a_folder_holds_several_packages_that_skopeo_reads") else { return };
    let folder = skopeo.dir.path().join("layout");
    let (one, two) = (signed(MANIFEST, WASM, &[1]), signed(&MANIFEST.replace("1.2.0", "1.3.0"), WASM, &[1, 2]));
    push::to_folder(&one, &folder, "1.2.0").unwrap();
    let pushed = push::to_folder(&two, &folder, "1.3.0").unwrap();
    assert_eq!(pushed.present, 2, "code and empty config are there: {pushed:?}");
    // A tag that is given again moves.
    push::to_folder(&two, &folder, "latest").unwrap();
    push::to_folder(&one, &folder, "latest").unwrap();
    for (tag, package) in [("1.2.0", &one), ("1.3.0", &two), ("latest", &one)] {
        let manifest = skopeo.run(&["inspect", "--raw", &format!("oci:{}:{tag}", folder.display())]);
        assert_eq!(digest(&manifest), package.digest(), "{tag}");
    }
    let archive = skopeo.dir.path().join("copy.nsm");
    let source = format!("oci:{}:1.3.0", folder.display());
    skopeo.run(&["copy", "--preserve-digests", &source, &format!("oci-archive:{}", archive.display())]);
    let copy = netserv_repository::package::read(&std::fs::read(&archive).unwrap()).unwrap();
    assert_eq!(copy.digest(), two.digest());
}

/// One package in a folder is a package when the folder is put into a tar file.
#[test]
fn a_folder_with_one_package_is_a_package() {
    let dir = tempfile::tempdir().unwrap();
    let package = signed(MANIFEST, WASM, &[1, 2]);
    push::to_folder(&package, dir.path(), "1").unwrap();
    let tar = dir.path().join("x.nsm");
    let mut made = Command::new("tar");
    made.arg("cf").arg(&tar).arg("-C").arg(dir.path());
    assert!(made.args(["oci-layout", "index.json", "blobs"]).status().unwrap().success());
    let read = netserv_repository::package::read(&std::fs::read(&tar).unwrap()).unwrap();
    assert_eq!((read.digest(), read.signatures()), (package.digest(), package.signatures()));
}

#[test]
fn a_registry_may_want_a_name_and_a_password() {
    let Some(registry) = Registry::start("a_registry_may_want_a_name_and_a_password", true) else { return };
    let (package, reference) = (signed(MANIFEST, WASM, &[1]), registry.reference("m:1"));
    let push = |password: &str| {
        let credentials = Some(Credentials { user: "user".to_owned(), password: password.to_owned() });
        push::to_registry(&package, &reference, &Options { plain_http: true, credentials })
    };
    let refused = push::to_registry(&package, &reference, &PLAIN).unwrap_err();
    assert!(refused.to_string().ends_with("does not let strangers write to m"), "{refused}");
    assert!(matches!(push("wrong"), Err(PushError::NotAllowed { .. })));
    push("secret").unwrap();
    // A node asks as everybody.
    let refusal = registry.fetch(&reference.to_string(), package.digest(), 1).unwrap_err();
    assert!(refusal.detail.contains("wants a name and a password"), "{}", refusal.detail);
}

#[test]
fn credentials_are_read_from_the_usual_file() {
    let file = r#"{"auths":{"registry.example":{"auth":"dXNlcjpzZWNyZXQ6MQ=="},"empty.example":{}}}"#;
    let found = Credentials::in_file(file, "registry.example").unwrap().unwrap();
    assert_eq!((found.user.as_str(), found.password.as_str()), ("user", "secret:1"));
    assert!(!format!("{found:?}").contains("secret"), "passwords are not for logs");
    for nothing in ["other.example", "empty.example"] {
        assert_eq!(Credentials::in_file(file, nothing).unwrap(), None);
    }
    for odd in ["[]x", r#"{"auths":{"a":{"auth":"*"}}}"#, r#"{"auths":{"a":{"auth":"dXNlcg=="}}}"#] {
        assert!(matches!(Credentials::in_file(odd, "a"), Err(PushError::CredentialsFile(_))), "{odd}");
    }
}

/// Goal: a package comes from a registry whose tokens are for one repository each, as those of GitHub and of Docker Hub are, also to a node
/// that tries `https` first. Method: Debian's docker-registry, with tokens of a server that gives them to everybody, for what is asked.
/// cloudflare/serverless-registry 148.
#[test]
fn a_token_is_for_what_it_was_asked_for() {
    let test = "a_token_is_for_what_it_was_asked_for";
    let Some(tokens) = Tokens::start(test) else { return };
    let Some(registry) = Registry::with(test, &tokens.auth()) else { return };
    let (package, reference) = (signed(MANIFEST, WASM, &[1]), registry.reference("m:1"));
    push::to_registry(&package, &reference, &PLAIN).unwrap();
    let stored = registry.fetch(&reference.to_string(), package.digest(), 1).unwrap();
    assert_eq!(stored.digest, package.digest());
    let Some(skopeo) = Skopeo::find(test) else { return };
    let from = reference.to_string().replace("oci:", "docker:");
    skopeo.run(&["inspect", "--raw", "--tls-verify=false", &from]);
}

/// Goal: a registry without the API for referrers is asked by the tag that stands in for it, whatever it answers to the API.
/// sigstore/sigstore-js 1187.
#[test]
fn a_registry_that_knows_no_referrers_may_say_so_in_its_way() {
    let package = signed(MANIFEST, WASM, &[1]);
    let blobs = blobs_of(&package);
    let (index, module) = (index_of(&package), package.digest().to_string());
    for answer in ["200 OK", "400 Bad Request", "403 Forbidden", "405 Method Not Allowed"] {
        let (blobs, index, module) = (blobs.clone(), index.clone(), module.clone());
        let server = Server::start(move |path, stream| {
            let name = path.rsplit('/').next().unwrap_or_default();
            if path.contains("/referrers/") {
                return match answer {
                    "200 OK" => ok(stream, b"<html>a page for people</html>"),
                    _ => status(stream, answer, ""),
                };
            }
            if name == module.replace(':', "-") {
                return ok(stream, &index);
            }
            match blobs.iter().find(|(known, _)| known == if name == "1" { &module } else { name }) {
                Some((_, blob)) => ok(stream, blob),
                None => status(stream, "404 Not Found", ""),
            }
        });
        let fetched = fetch(&server.url("/m:1").replace("http://", "oci://"), package.digest(), 1);
        assert!(fetched.is_ok(), "{answer}: {fetched:?}");
    }
}

/// A token for everybody is asked for where the registry says, once.
#[test]
fn a_node_gets_a_token_where_the_registry_says() {
    let package = signed(MANIFEST, WASM, &[1]);
    let (host, blobs) = (Arc::new(std::sync::OnceLock::<String>::new()), blobs_of(&package));
    let (own, asked) = (Arc::clone(&host), Arc::new(AtomicBool::new(false)));
    let module = package.digest().to_string();
    let server = Server::start(move |path, stream| {
        if path.starts_with("/token?service=here&scope=repository:m:pull") {
            asked.store(true, Ordering::SeqCst);
            return ok(stream, br#"{"token":"abc"}"#);
        }
        if !asked.load(Ordering::SeqCst) {
            let realm = format!("realm=\"http://{}/token\"", own.get().unwrap());
            let header = format!("WWW-Authenticate: Bearer {realm},service=\"here\",scope=\"repository:m:pull\"\r\n");
            return status(stream, "401 Unauthorized", &header);
        }
        let name = path.rsplit('/').next().filter(|_| !path.contains("/referrers/")).unwrap_or_default();
        match blobs.iter().find(|(known, _)| known == if name == "1" { &module } else { name }) {
            Some((_, blob)) => ok(stream, blob),
            None => status(stream, "404 Not Found", ""),
        }
    });
    host.set(server.url("").replace("http://", "")).unwrap();
    let refusal = fetch(&format!("oci://{}/m:1", host.get().unwrap()), package.digest(), 1).unwrap_err();
    // The server has no list of signatures; everything else was there.
    assert_eq!(refusal.kind, RefusalKind::ModuleUnsigned, "{}", refusal.detail);
}

#[test]
fn what_a_registry_gives_is_not_believed() {
    let package = signed(MANIFEST, WASM, &[1]);
    let module = package.digest().to_string();
    let serve = |change: fn(&str, Vec<u8>) -> Vec<u8>| {
        let (blobs, module) = (blobs_of(&package), module.clone());
        let server = Server::start(move |path, stream| {
            let name = path.rsplit('/').next().unwrap_or_default();
            match blobs.iter().find(|(known, _)| known == if name == "1" { &module } else { name }) {
                Some((name, blob)) => ok(stream, &change(name, blob.clone())),
                None => status(stream, "404 Not Found", ""),
            }
        });
        let refusal = fetch(&server.url("/m:1").replace("http://", "oci://"), package.digest(), 1).unwrap_err();
        format!("{}: {}", refusal.kind, refusal.detail)
    };
    let text = serve(|_, blob| if blob == WASM { b"\0asm\x02\0\0\0".to_vec() } else { blob });
    assert!(text.contains("has another content than its name says"), "{text}");
    let text = serve(|_, blob| if blob == WASM { vec![0; 100_000] } else { blob });
    assert!(text.contains("package-too-large"), "a layer longer than its descriptor: {text}");
    let text = serve(|_, _| br#"{"schemaVersion":2,"manifests":[]}"#.to_vec());
    assert!(text.contains("the image manifest"), "{text}");
    let text = serve(|_, _| vec![b'{'; 1 << 20]);
    assert!(text.contains("package-too-large"), "a manifest without end: {text}");
    let other = serve(|_, blob| String::from_utf8_lossy(&blob).replace("netserv.module", "other.thing").into_bytes());
    assert!(other.contains("is no NetServ module"), "{other}");
}

#[test]
fn who_may_be_asked_holds_for_registries_too() {
    let check = |sources: Sources, url: &str, detail: &str| {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::open(dir.path(), Config { sources, ..Config::default() }).unwrap();
        let refusal = repository
            .fetch(&"jane".parse().unwrap(), url, Digest([7; 32]), &[public(1)], &FetchLimits::default())
            .unwrap_err();
        assert!(refusal.detail.contains(detail), "{url}: {}", refusal.detail);
    };
    let listed = |host: &str| Sources { http: true, hosts: Some(vec![host.to_owned()]), ..Sources::default() };
    check(listed("registry.example"), "oci://127.0.0.1:5000/m:1", "does not ask host `127.0.0.1`");
    check(Sources { http: true, ..Sources::default() }, "oci://127.0.0.1:5000/m:1", "fetch.own-addresses");
    check(listed("127.0.0.1"), "oci://127.0.0.1:5000/m:1", "fetch.own-addresses");
    check(Sources { https: false, ..Sources::default() }, "oci://registry.example/m:1", "neither `https:` nor `http:`");
    check(listed("registry.example"), "oci://registry.example/M:1", "lower-case");
}

/// The blobs of a package by their digests, as text.
fn blobs_of(package: &Package) -> Vec<(String, Vec<u8>)> {
    let dir = tempfile::tempdir().unwrap();
    push::to_folder(package, dir.path(), "1").unwrap();
    let entries = std::fs::read_dir(dir.path().join("blobs/sha256")).unwrap().flatten();
    let blob = |entry: std::fs::DirEntry| {
        (format!("sha256:{}", entry.file_name().into_string().unwrap()), std::fs::read(entry.path()).unwrap())
    };
    entries.map(blob).collect()
}

/// What lists the signatures of a package.
fn index_of(package: &Package) -> Vec<u8> {
    let signature = "application/vnd.netserv.signature.v1";
    let of_signature = |(digest, blob): (String, Vec<u8>)| {
        let manifest: serde_json::Value = serde_json::from_slice(&blob).ok()?;
        (manifest["artifactType"] == signature).then(|| {
            let media_type = "application/vnd.oci.image.manifest.v1+json";
            serde_json::json!({ "mediaType": media_type, "digest": digest, "size": blob.len(), "artifactType": signature })
        })
    };
    let manifests: Vec<_> = blobs_of(package).into_iter().filter_map(of_signature).collect();
    serde_json::json!({ "schemaVersion": 2, "manifests": manifests }).to_string().into_bytes()
}

fn fetch(url: &str, digest: Digest, signer: u8) -> Result<Stored, Refusal> {
    let dir = tempfile::tempdir().unwrap();
    let hosts = Some(vec!["127.0.0.1".to_owned()]);
    let sources = Sources { https: false, http: true, hosts, own_addresses: true, ..Sources::default() };
    let repository = Repository::open(dir.path(), Config { sources, ..Config::default() }).unwrap();
    repository.fetch(&"jane".parse().unwrap(), url, digest, &[public(signer)], &FetchLimits::default())
}

/// A docker-registry of its own, on a free port of 127.0.0.1.
struct Registry {
    child: Child,
    port: u16,
    _dir: tempfile::TempDir,
    _password: Option<tempfile::TempDir>,
}

impl Registry {
    fn start(test: &str, with_password: bool) -> Option<Registry> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("htpasswd");
        std::fs::write(&file, HTPASSWD).unwrap();
        let auth = format!("auth:\n  htpasswd:\n    realm: here\n    path: {}\n", file.display());
        let mut registry = Registry::with(test, if with_password { &auth } else { "" })?;
        registry._password = Some(dir);
        Some(registry)
    }

    /// Starts one with this section `auth`.
    fn with(test: &str, auth: &str) -> Option<Registry> {
        if Command::new("docker-registry").arg("--version").output().is_err() {
            skipped(test, "docker-registry is not installed");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "version: 0.1\nlog: {{ level: error }}\nstorage:\n  filesystem:\n    rootdirectory: {}\n\
             http:\n  addr: 127.0.0.1:{port}\n{auth}",
            dir.path().join("data").display()
        );
        let path = dir.path().join("config.yml");
        std::fs::write(&path, config).unwrap();
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let registry = Registry { child, port, _dir: dir, _password: None };
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "docker-registry does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(registry)
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn reference(&self, name: &str) -> Reference {
        format!("oci://{}/{name}", self.host()).parse().unwrap()
    }

    /// Fetches as a node that tries `https` first.
    fn fetch(&self, url: &str, digest: Digest, signer: u8) -> Result<Stored, Refusal> {
        let dir = tempfile::tempdir().unwrap();
        let hosts = Some(vec!["127.0.0.1".to_owned()]);
        let sources = Sources { http: true, hosts, own_addresses: true, ..Sources::default() };
        let repository = Repository::open(dir.path(), Config { sources, ..Config::default() }).unwrap();
        repository.fetch(&"jane".parse().unwrap(), url, digest, &[public(signer)], &FetchLimits::default())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that signs tokens for everybody, each for the repository that it was asked for.
struct Tokens {
    server: Server,
    dir: tempfile::TempDir,
}

impl Tokens {
    fn start(test: &str) -> Option<Tokens> {
        let dir = tempfile::tempdir().unwrap();
        let (key, certificate) = (dir.path().join("key.pem"), dir.path().join("certificate.pem"));
        let mut made = Command::new("openssl");
        made.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", "-subj", "/CN=tokens", "-keyout"]);
        if !made.arg(&key).arg("-out").arg(&certificate).output().is_ok_and(|made| made.status.success()) {
            skipped(test, "openssl is not installed");
            return None;
        }
        let pem = std::fs::read_to_string(certificate).unwrap();
        let chain: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let server = Server::start(move |path, stream| {
            let path = path.replace("%3A", ":");
            let scope =
                path.split("scope=repository:").nth(1).and_then(|scope| scope.split('&').next()?.split_once(':'));
            let access = scope.map(|(name, actions)| {
                let actions: Vec<&str> = actions.split(',').collect();
                serde_json::json!({ "type": "repository", "name": name, "actions": actions })
            });
            let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
            let head = serde_json::json!({ "typ": "JWT", "alg": "RS256", "x5c": [chain] });
            let claims = serde_json::json!({ "iss": "tokens", "sub": "", "aud": "here", "jti": "1", "iat": now - 5,
                "nbf": now - 5, "exp": now + 300, "access": access.into_iter().collect::<Vec<_>>() });
            let text = [head, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
            let mut signing = Command::new("openssl");
            signing.args(["dgst", "-sha256", "-sign"]).arg(&key).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut signing = signing.spawn().unwrap();
            signing.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let signature = URL_SAFE_NO_PAD.encode(signing.wait_with_output().unwrap().stdout);
            ok(stream, format!("{{\"token\":\"{text}.{signature}\"}}").as_bytes())
        });
        Some(Tokens { server, dir })
    }

    /// What a docker-registry is told of it.
    fn auth(&self) -> String {
        let (realm, bundle) = (self.server.url("/token"), self.dir.path().join("certificate.pem"));
        let bundle = bundle.display();
        format!(
            "auth:\n  token:\n    realm: {realm}\n    service: here\n    issuer: tokens\n    rootcertbundle: {bundle}\n"
        )
    }
}

struct Skopeo {
    dir: tempfile::TempDir,
    policy: PathBuf,
}

impl Skopeo {
    fn find(test: &str) -> Option<Skopeo> {
        if Command::new("skopeo").arg("--version").output().is_err() {
            skipped(test, "skopeo is not installed");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let policy = dir.path().join("policy.json");
        std::fs::write(&policy, r#"{"default":[{"type":"insecureAcceptAnything"}]}"#).unwrap();
        Some(Skopeo { dir, policy })
    }

    fn run(&self, args: &[&str]) -> Vec<u8> {
        let output = skopeo(&self.policy, self.dir.path()).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

fn skopeo(policy: &Path, tmp: &Path) -> Command {
    let mut command = Command::new("skopeo");
    command.arg("--policy").arg(policy).arg("--tmpdir").arg(tmp);
    command
}
