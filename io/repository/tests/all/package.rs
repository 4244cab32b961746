// SPDX-License-Identifier: Apache-2.0
//! Packages: what is built can be read, and nothing else can.

use crate::common::tar_file::{Entry, Tar};
use crate::common::{COMPONENT, JAR, MANIFEST, PEM, WASM, key, manifest_of, public, signed};
use netserv_model::limits::{BLOB_BYTES_MAX, PACKAGE_BYTES_MAX, PACKAGE_ENTRIES_MAX};
use netserv_model::{Flavour, Refusal, RefusalKind};
use netserv_repository::Part;
use netserv_repository::limits::{FRAME_BYTES_MAX, JSON_BYTES_MAX, LAYERS_MAX, PEM_BYTES_MAX, SIGNATURES_MAX};
use netserv_repository::manifest;
use netserv_repository::package::{self, Package};
use tar::EntryType;

#[test]
fn what_was_built_can_be_read() {
    let built = signed(MANIFEST, WASM, &[1, 2]);
    let read = package::read(&built.to_bytes()).unwrap();
    assert_eq!(read.digest(), built.digest());
    assert_eq!(read.manifest(), built.manifest());
    assert_eq!(read.code(Flavour::Wasm), Some(WASM));
    assert_eq!(read.signatures().len(), 2);
    assert_eq!(read.to_bytes(), built.to_bytes());
    let summary = read.summary();
    assert_eq!(summary.module.to_string(), "example.org/net-monitor@1.2.0");
    assert_eq!(summary.flavours, [("application/wasm".to_owned(), u64::try_from(WASM.len()).unwrap())]);
    assert_eq!((summary.signed_by.len(), summary.bad_signatures), (2, 0));
}

/// One package for nodes of both kinds; the order in which its parts are given does not matter.
#[test]
fn a_package_may_have_two_flavours() {
    let (wasm, osgi) = ((Flavour::Wasm, WASM), (Flavour::Osgi, JAR));
    let built = package::build(manifest_of(MANIFEST), &[osgi, wasm]).unwrap();
    assert_eq!(built.to_bytes(), package::build(manifest_of(MANIFEST), &[wasm, osgi]).unwrap().to_bytes());
    let read = package::read(&built.to_bytes()).unwrap();
    assert_eq!(read.flavours(), Flavour::ALL);
    assert_eq!((read.code(Flavour::Wasm), read.code(Flavour::Osgi)), (Some(WASM), Some(JAR)));
    let types: Vec<String> = read.summary().flavours.into_iter().map(|(media_type, _)| media_type).collect();
    assert_eq!(types, ["application/wasm", "application/java-archive"]);
    let bundle = package::build(manifest_of(&MANIFEST.replace("abi = 1\n", "")), &[osgi]).unwrap();
    assert_eq!(package::read(&bundle.to_bytes()).unwrap().flavours(), [Flavour::Osgi]);
    assert_eq!(package::build::<Part>(manifest_of(MANIFEST), &[]).unwrap_err().kind, RefusalKind::NoFlavour);
    assert_eq!(package::build(manifest_of(MANIFEST), &[wasm, wasm]).unwrap_err().kind, RefusalKind::BadPackage);
    assert_eq!(package::build(manifest_of(MANIFEST), &[(Flavour::Osgi, WASM)]).unwrap_err().kind, RefusalKind::BadCode);
}

/// The digest below is part of the format: if it changes, every published module has another digest.
#[test]
fn the_same_input_gives_the_same_bytes_everywhere() {
    let package = signed(MANIFEST, WASM, &[1]);
    assert_eq!(package.to_bytes(), signed(MANIFEST, WASM, &[1]).to_bytes());
    assert_eq!(signed(MANIFEST, WASM, &[1, 2]).to_bytes(), signed(MANIFEST, WASM, &[2, 1, 1]).to_bytes());
    assert_eq!(package.digest().to_string(), "sha256:4d63eee2dbc7f8768eaa4142788897d82dc7d56e1b1b569807b4c783e5b7d84a");
}

#[test]
fn the_digest_covers_manifest_and_code_but_not_signatures() {
    let digest = signed(MANIFEST, WASM, &[]).digest();
    assert_eq!(signed(MANIFEST, WASM, &[1]).digest(), digest);
    assert_ne!(signed(&MANIFEST.replace("1.2.0", "1.2.1"), WASM, &[]).digest(), digest);
    assert_ne!(signed(MANIFEST, b"\0asm\x01\0\0\0\0", &[]).digest(), digest);
}

#[test]
fn only_a_signature_by_a_wanted_key_counts() {
    let package = signed(MANIFEST, WASM, &[1]);
    assert_eq!(package::verify(&package, &[public(2), public(1)]), Ok(public(1)));
    for keys in [vec![], vec![public(2)]] {
        assert_eq!(package::verify(&package, &keys).unwrap_err().kind, RefusalKind::ModuleUnsigned);
    }
    let unsigned = signed(MANIFEST, WASM, &[]);
    assert_eq!(package::verify(&unsigned, &[public(1)]).unwrap_err().kind, RefusalKind::ModuleUnsigned);
}

/// A signature of another package, put into this one with the right subject, fits its key but not the digest.
#[test]
fn a_signature_of_another_package_does_not_count() {
    let other = signed(&MANIFEST.replace("1.2.0", "6.6.6"), WASM, &[1]);
    let stolen = other.signatures().first().unwrap();
    let mut layout = Tar::of(&signed(MANIFEST, WASM, &[1]));
    let own = signed(MANIFEST, WASM, &[1]).signatures().first().unwrap().signature.to_string();
    layout.rewrite_everywhere(&own, &stolen.signature.to_string());
    let package = package::read(&layout.to_bytes()).unwrap();
    assert_eq!(package.signatures().first(), Some(stolen));
    assert_eq!(package::verify(&package, &[public(1)]).unwrap_err().kind, RefusalKind::ModuleUnsigned);
    assert_eq!(package.summary().bad_signatures, 1);
}

#[test]
fn the_signed_text_names_its_purpose() {
    let package = signed(MANIFEST, WASM, &[]);
    let expected = format!("netserv module signature v1\n{}\n", package.digest());
    assert_eq!(package::signed_text(package.digest()), expected);
}

#[test]
fn a_package_may_have_both_roles() {
    let manifest = tls_server();
    let parts = [(Part::Tls, PEM.as_bytes()), (Part::Component, COMPONENT), (Part::Core, WASM)];
    let built = build_parts(&manifest, &parts).unwrap();
    let read = package::read(&built.to_bytes()).unwrap();
    assert_eq!(read.parts().into_iter().collect::<Vec<_>>(), [parts[2], parts[1], parts[0]]);
    assert_eq!((read.flavours(), read.code(Flavour::Wasm)), (vec![Flavour::Wasm], Some(WASM)));
    let kinds: Vec<String> = read.summary().flavours.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["application/wasm", "application/wasm", "application/x-pem-file"]);
    assert_eq!(read.summary().parts[1], (Part::Component, 8));

    let service = build_parts(&service(2), &[]).unwrap();
    let read = package::read(&service.to_bytes()).unwrap();
    assert_eq!((read.flavours(), read.manifest().chain().len()), (vec![], 2));
    assert_eq!(read.manifest().chain()[1].to_string(), "example.org/a1@^1");
}

/// The node takes a bundle for what WebAssembly code is missing for.
#[test]
fn parts_are_those_that_the_manifest_asks_for() {
    use Part::{Bundle, Component, Core, Tls};
    let (core, component, bundle) = ((Core, WASM), (Component, COMPONENT), (Bundle, JAR));
    let tls = (Tls, PEM.as_bytes());
    let packet_only = MANIFEST.to_owned();
    let server_only = format!("{}[server]\nlisten = [\"tcp port 80\"]\n", MANIFEST.split("[packet]").next().unwrap());
    let both = server("tcp port 80");
    for (manifest, parts, expected) in [
        (&packet_only, vec![core], Ok("wasm")),
        (&server_only, vec![component], Ok("wasm")),
        (&both, vec![core, component], Ok("wasm")),
        (&both, vec![core, component, bundle], Ok("wasm, osgi")),
        (&both, vec![core, bundle], Ok("osgi")),
        (&both, vec![bundle], Ok("osgi")),
        (&both, vec![core], Err("has [server], but the package no WebAssembly component (`[build] component`)")),
        (&both, vec![component], Err("has [packet], but the package no WebAssembly core module (`[build] wasm`)")),
        (&packet_only, vec![core, component], Err("no [server], which the WebAssembly component would be for")),
        (&server_only, vec![core, component], Err("no [packet], which the WebAssembly core module would be for")),
        (&packet_only, vec![(Core, COMPONENT)], Err("not a core module but a component")),
        (&server_only, vec![(Component, WASM)], Err("not a component but a core module")),
        (&server_only, vec![(Component, &COMPONENT[..7])], Err("not a WebAssembly module")),
        (&server_only, vec![component, tls], Err("a certificate, but the manifest no `server.tls`")),
        (&tls_server(), vec![core, component], Err("`server.tls`, but the package no certificate")),
        (&tls_server(), vec![core, component, (Tls, &PEM.as_bytes()[..70])], Err("holds 0 keys")),
        (&service(2), vec![component], Err("remove the WebAssembly component")),
        (&intercept("tcp port 80"), vec![core, component, bundle], Err("bundles take over no connections")),
        (&tls_server(), vec![bundle, tls], Err("server.tls is set, and bundles get no certificate")),
        (&messages(), vec![core, bundle], Err("has messages, and a bundle is one part")),
        (&both, vec![core, component, component], Err("one part is there twice")),
    ] {
        let built = build_parts(manifest, &parts);
        match expected {
            Ok(flavours) => assert_eq!(Flavour::list(built.unwrap().flavours()), flavours, "{parts:?}"),
            Err(words) => {
                let detail = built.unwrap_err().detail;
                assert!(detail.contains(words), "{detail} has no {words}");
            }
        }
    }
}

#[test]
fn what_could_not_be_built_cannot_be_read() {
    let whole =
        build_parts(&tls_server(), &[(Part::Tls, PEM.as_bytes()), (Part::Component, COMPONENT), (Part::Core, WASM)]);
    let whole = whole.unwrap();
    let layer = |kind: &str, blob: &[u8]| {
        format!("{{\"mediaType\":\"{kind}\",\"digest\":\"{}\",\"size\":{}}}", crate::common::digest(blob), blob.len())
    };
    let replaced = |from: &[u8], to: &[u8], kind: &str| {
        let mut layout = Tar::of(&whole);
        layout.push_blob(to);
        layout.rewrite_everywhere(&layer(kind, from), &layer(kind, to));
        layout.to_bytes()
    };
    let (wasm, pem) = ("application/wasm", "application/x-pem-file");
    let other = [COMPONENT, b"\0"].concat();
    check(&replaced(WASM, &other, wasm), RefusalKind::BadPackage, "one part is there twice");
    check(&replaced(COMPONENT, b"\0asm\x01\0\0\0\0", wasm), RefusalKind::BadPackage, "one part is there twice");
    check(&replaced(COMPONENT, b"\0asm", wasm), RefusalKind::BadPackage, "one part is there twice");
    check(&replaced(PEM.as_bytes(), &PEM.as_bytes()[..70], pem), RefusalKind::BadPackage, "holds 0 keys");
    let huge = format!("{PEM}{}", "#".repeat(PEM_BYTES_MAX));
    check(&replaced(PEM.as_bytes(), huge.as_bytes(), pem), RefusalKind::PackageTooLarge, "at most 65536");
    let mut layout = Tar::of(&whole);
    layout.rewrite_everywhere(&format!("{},", layer(wasm, COMPONENT)), "");
    check(&layout.to_bytes(), RefusalKind::BadPackage, "has [server], but the package no");
    let mut layout = Tar::of(&whole);
    layout.push_blob(JAR);
    layout.rewrite_everywhere(&layer(wasm, COMPONENT), &layer("application/java-archive", JAR));
    check(&layout.to_bytes(), RefusalKind::BadManifest, "bundles get no certificate");
}

#[test]
fn only_code_can_be_built_and_only_so_much() {
    assert_eq!(build_error(b"(module)"), RefusalKind::BadCode);
    assert_eq!(build_error(b""), RefusalKind::BadCode);
    let room = usize::try_from(PACKAGE_BYTES_MAX - FRAME_BYTES_MAX).unwrap();
    let room = room - manifest::to_json(&manifest_of(MANIFEST)).unwrap().len();
    let code = |bytes: usize| [WASM, &vec![0; bytes - WASM.len()]].concat();
    assert_eq!(build_error(&code(room + 1)), RefusalKind::PackageTooLarge);
    let mut largest = build(MANIFEST, &code(room)).unwrap();
    (0..SIGNATURES_MAX).for_each(|n| package::sign(&mut largest, &key(u8::try_from(n).unwrap())).unwrap());
    assert!(package::read(&largest.to_bytes()).is_ok());
}

#[test]
fn signatures_are_bounded() {
    let mut package = signed(MANIFEST, WASM, &[]);
    for n in 0..SIGNATURES_MAX {
        package::sign(&mut package, &key(u8::try_from(n).unwrap())).unwrap();
    }
    assert_eq!(package::sign(&mut package, &key(200)).unwrap_err().kind, RefusalKind::QuotaExceeded);
    assert!(package::sign(&mut package, &key(0)).is_ok(), "a repeated signature is none more");
    let mut layout = Tar::of(&package);
    let list = "org.netserv.signatures\":\"";
    layout.rewrite_everywhere(list, &format!("{list}sha256:{},", "0".repeat(64)));
    check(&layout.to_bytes(), RefusalKind::BadPackage, "more than 16 signatures");
}

#[test]
fn an_unfinished_file_is_refused_wherever_it_ends() {
    let bytes = signed(MANIFEST, WASM, &[1]).to_bytes();
    let content = bytes.len() - 1024;
    for end in (0..content).step_by(64) {
        let refusal = package::read(&bytes[..end]).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::BadPackage, "{end} of {content}: {}", refusal.detail);
    }
}

#[test]
fn a_changed_byte_is_found_wherever_it_is() {
    let bytes = signed(MANIFEST, WASM, &[]).to_bytes();
    let (digest, manifest) = (package::read(&bytes).unwrap().digest(), manifest_of(MANIFEST));
    for at in 0..bytes.len() - 1024 {
        let mut changed = bytes.clone();
        changed[at] ^= 0x20;
        // Some bytes of a tar file mean nothing (padding), or make another package of it; but never the same digest
        // with other content.
        if let Ok(package) = package::read(&changed) {
            let same = package.code(Flavour::Wasm) == Some(WASM) && *package.manifest() == manifest;
            assert!(same || package.digest() != digest, "byte {at}");
        }
    }
}

#[test]
fn other_entries_are_refused() {
    let file = |name: &str| Entry { name: name.into(), kind: EntryType::Regular, content: b"x".to_vec(), size: None };
    let of_kind = |kind: EntryType| Entry { kind, content: Vec::new(), ..file("oci-layout") };
    for (entry, expected) in [
        (file("../oci-layout"), "does not belong"),
        (file("/etc/passwd"), "does not belong"),
        (file("blobs/sha256/../../x"), "does not belong"),
        (file("blobs/sha256/ABCD"), "does not belong"),
        (file(&format!("blobs/sha256/{}", "A".repeat(64))), "does not belong"),
        (file("readme.txt"), "does not belong"),
        (file("index.json"), "there twice"),
        (file("oci-layout"), "there twice"),
        (file(&format!("blobs/sha256/{}", "0".repeat(64))), "another content"),
        (of_kind(EntryType::Symlink), "neither file nor folder"),
        (of_kind(EntryType::Link), "neither file nor folder"),
        (of_kind(EntryType::GNUSparse), "neither file nor folder"),
        (of_kind(EntryType::GNULongName), "neither file nor folder"),
        (of_kind(EntryType::XHeader), "neither file nor folder"),
        (of_kind(EntryType::XGlobalHeader), "neither file nor folder"),
        (of_kind(EntryType::Fifo), "neither file nor folder"),
        (of_kind(EntryType::Char), "neither file nor folder"),
        (of_kind(EntryType::Continuous), "neither file nor folder"),
        (Entry { kind: EntryType::Directory, content: Vec::new(), ..file("etc/") }, "neither file nor folder"),
    ] {
        let mut layout = Tar::of(&signed(MANIFEST, WASM, &[]));
        layout.entries.push(entry);
        check(&layout.to_bytes(), RefusalKind::BadPackage, expected);
    }
}

#[test]
fn folders_and_a_leading_dot_are_taken() {
    let mut layout = Tar::of(&signed(MANIFEST, WASM, &[1]));
    for name in ["blobs/sha256/", "blobs/", "./"] {
        let folder = Entry { name: name.into(), kind: EntryType::Directory, content: Vec::new(), size: None };
        layout.entries.insert(0, folder);
    }
    layout.entries.iter_mut().skip(3).for_each(|entry| entry.name = format!("./{}", entry.name));
    assert_eq!(package::read(&layout.to_bytes()).unwrap().digest(), signed(MANIFEST, WASM, &[]).digest());
}

#[test]
fn a_blob_there_twice_is_refused() {
    let mut layout = Tar::of(&signed(MANIFEST, WASM, &[]));
    let blob = layout.entries.last().unwrap().clone();
    layout.entries.push(blob);
    check(&layout.to_bytes(), RefusalKind::BadPackage, "there twice");
}

#[test]
fn bounds_of_the_file_hold() {
    let too_long = vec![0; usize::try_from(PACKAGE_BYTES_MAX).unwrap() + 1];
    check(&too_long, RefusalKind::PackageTooLarge, "at most 33554432");

    let mut layout = Tar::of(&signed(MANIFEST, WASM, &[]));
    layout.entries.last_mut().unwrap().size = Some(BLOB_BYTES_MAX + 1);
    check(&layout.to_bytes(), RefusalKind::PackageTooLarge, "at most 33554432");

    let mut layout = Tar::of(&signed(MANIFEST, WASM, &[]));
    let room = PACKAGE_ENTRIES_MAX - layout.entries.len();
    (0..room).for_each(|n| layout.push_blob(format!("{n}").as_bytes()));
    assert!(package::read(&layout.to_bytes()).is_ok());
    layout.push_blob(b"one more");
    check(&layout.to_bytes(), RefusalKind::BadPackage, "more than 64 entries");

    let mut layout = Tar::of(&signed(MANIFEST, WASM, &[]));
    layout.entry("index.json").content.extend(vec![b' '; JSON_BYTES_MAX]);
    check(&layout.to_bytes(), RefusalKind::BadPackage, "index.json has");
}

#[test]
fn layouts_without_a_module_are_refused() {
    for (from, to, expected) in [
        ("vnd.netserv.module.v1", "vnd.netserv.other.v1", "0 NetServ modules"),
        (
            "vnd.netserv.manifest.v1+json",
            "vnd.netserv.manifest.v1+toml",
            "v1+toml, understood is application/vnd.netserv.",
        ),
        (
            "\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.man",
            "\"schemaVersion\":1,\"mediaType\":\"application/vnd.oci.image.man",
            "schema version 1",
        ),
    ] {
        let mut layout = Tar::of(&signed(MANIFEST, WASM, &[]));
        layout.rewrite_everywhere(from, to);
        check(&layout.to_bytes(), RefusalKind::BadPackage, expected);
    }
    let mut layout = Tar::of(&signed(MANIFEST, WASM, &[]));
    layout.entry("oci-layout").content = br#"{"imageLayoutVersion":"2.0.0"}"#.to_vec();
    check(&layout.to_bytes(), RefusalKind::BadPackage, "image layout version 2.0.0");
    for name in ["oci-layout", "index.json"] {
        let mut layout = Tar::of(&signed(MANIFEST, WASM, &[]));
        layout.entries.retain(|entry| entry.name != name);
        check(&layout.to_bytes(), RefusalKind::BadPackage, &format!("no {name}"));
    }
}

#[test]
fn every_blob_that_is_named_must_be_there() {
    let whole = Tar::of(&signed(MANIFEST, WASM, &[1]));
    for gone in whole.entries.iter().filter(|entry| entry.name.starts_with("blobs/") && entry.content != b"{}") {
        let mut layout = whole.clone();
        layout.entries.retain(|entry| entry.name != gone.name);
        check(&layout.to_bytes(), RefusalKind::BadPackage, "missing");
    }
}

#[test]
fn layers_are_one_per_part_and_bounded() {
    let layer = |kind: &str| {
        format!("{{\"mediaType\":\"{kind}\",\"digest\":\"{}\",\"size\":{}}}", crate::common::digest(WASM), WASM.len())
    };
    let with = |more: &str| {
        let mut layout = Tar::of(&signed(MANIFEST, WASM, &[]));
        layout.rewrite_everywhere("\"layers\":[", &format!("\"layers\":[{more},"));
        layout.to_bytes()
    };
    assert!(package::read(&with(&layer("application/x-perl"))).is_ok());
    check(&with(&layer("application/java-archive")), RefusalKind::BadCode, "the bundle is no jar");
    check(&with(&layer("application/wasm")), RefusalKind::BadPackage, "one part is there twice");
    let many: Vec<String> = (0..LAYERS_MAX).map(|n| layer(&format!("application/x-{n}"))).collect();
    check(&with(&many.join(",")), RefusalKind::BadPackage, "9 layers, at most 8");
    assert!(package::read(&with(&many[1..].join(","))).is_ok());
}

fn check(bytes: &[u8], kind: RefusalKind, detail: &str) {
    let refusal = package::read(bytes).unwrap_err();
    assert_eq!(refusal.kind, kind, "{}", refusal.detail);
    assert!(refusal.detail.contains(detail), "`{}` has no `{detail}`", refusal.detail);
}

fn build(manifest: &str, wasm: &[u8]) -> Result<Package, Refusal> {
    package::build(manifest_of(manifest), &[(Flavour::Wasm, wasm)])
}

fn build_parts(manifest: &str, parts: &[(Part, &[u8])]) -> Result<Package, Refusal> {
    package::build(manifest_of(manifest), parts)
}

fn build_error(wasm: &[u8]) -> RefusalKind {
    build(MANIFEST, wasm).unwrap_err().kind
}

fn server(listen: &str) -> String {
    format!("{MANIFEST}\n[server]\nlisten = [\"{listen}\"]\n")
}

fn tls_server() -> String {
    server("tcp port 443") + "tls = { certificate = \"cert.pem\", key = \"key.pem\" }\n"
}

fn intercept(filter: &str) -> String {
    format!("{MANIFEST}\n[server]\nintercept = [\"{filter}\"]\n")
}

fn messages() -> String {
    MANIFEST.replace("kv>=1", "messages>=1")
}

fn service(parts: usize) -> String {
    let parts: Vec<String> = (0..parts).map(|n| format!("\"example.org/a{n}@^1\"")).collect();
    let head = MANIFEST.split("[packet]").next().unwrap();
    format!("{head}[service]\nchain = [{}]\n", parts.join(", "))
}
