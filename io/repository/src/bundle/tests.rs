// SPDX-License-Identifier: Apache-2.0
//! Bundles, good and bad.

use netserv_model::RefusalKind;

use super::*;

#[test]
fn a_bundle_says_who_it_is() {
    let symbolic = "Bundle-SymbolicName: org.example.hello;singleton:=true\r\n";
    let import = "Import-Package: org.netserv.packet;version=\"[1,\r\n 2)\"\r\n";
    let headers = headers(&jar(&format!("{symbolic}{import}"))).unwrap();
    assert_eq!(headers["bundle-symbolicname"], "org.example.hello;singleton:=true");
    assert_eq!(headers["import-package"], "org.netserv.packet;version=\"[1,2)\"");
    for line_end in ["\n", "\r\n"] {
        let manifest =
            "Manifest-Version: 1.0\r\nBundle-SymbolicName: m\r\n\r\nName: x\r\nBroken\r\n".replace("\r\n", line_end);
        assert_eq!(check(&Zip::of(&[(MANIFEST, manifest.as_bytes())]).build()), Ok(()));
    }
    assert_eq!(check(&Zip::of(&[("meta-inf/manifest.mf", GOOD)]).build()), Ok(()), "names are found in any case");
}

#[test]
fn what_is_no_jar_is_refused() {
    for (bytes, detail) in [
        (b"".to_vec(), "no directory"),
        (b"PK\x03\x04".to_vec(), "no directory"),
        (b"\xca\xfe\xba\xbe\0\0\0\x3d class, not jar".to_vec(), "no directory"),
        (vec![0; 70_000], "no directory"),
        (jar("Bundle-SymbolicName: m\r\n")[..100].to_vec(), "no directory"),
        ([jar("Bundle-SymbolicName: m\r\n"), vec![0; 3]].concat(), "no directory"),
    ] {
        check_refused(&bytes, RefusalKind::BadCode, detail);
    }
}

#[test]
fn a_manifest_that_is_missing_or_malformed_is_refused() {
    let symbolic = "Bundle-SymbolicName: m\r\n";
    for (manifest, detail) in [
        ("Manifest-Version: 1.0\r\n".to_owned(), "no Bundle-SymbolicName"),
        (format!("{symbolic}\r\n"), "no Manifest-Version"),
        (format!("Manifest-Version: 1.0\r\n\r\n{symbolic}"), "no Bundle-SymbolicName"),
        (format!("Manifest-Version: 1.0\r\n{symbolic}{symbolic}"), "Bundle-SymbolicName is there twice"),
        (format!("Manifest-Version: 1.0\r\n{symbolic}bundle-symbolicname: n\r\n"), "is there twice"),
        (" Manifest-Version: 1.0\r\n".to_owned(), "starts with a space"),
        ("Manifest-Version 1.0\r\n".to_owned(), "`Manifest-Version 1.0` is no line"),
        (format!("Manifest-Version:1.0\r\n{symbolic}"), "`Manifest-Version:1.0` is no line"),
        (format!("Manifest-Version: 1.0\r\n: x\r\n{symbolic}"), "is no line"),
        (format!("Manifest-Version: 1.0\r\n{}: x\r\n{symbolic}", "n".repeat(71)), "is no line"),
        ("Manifest-Version: 1.0\r\nBundle-SymbolicName: a b\r\n".to_owned(), "`a b` is no symbolic name"),
        ("Manifest-Version: 1.0\r\nBundle-SymbolicName: ../x\r\n".to_owned(), "is no symbolic name"),
        (String::new(), "no Manifest-Version"),
    ] {
        check_refused(&Zip::of(&[(MANIFEST, manifest.as_bytes())]).build(), RefusalKind::BadManifest, detail);
    }
    check_refused(&Zip::of(&[("a.class", b"x")]).build(), RefusalKind::BadManifest, "it is missing");
    check_refused(&Zip::of(&[]).build(), RefusalKind::BadManifest, "it is missing");
    check_refused(&Zip::of(&[(MANIFEST, b"\xff\xfe")]).build(), RefusalKind::BadManifest, "not text in UTF-8");
}

/// A JVM takes the one, another reader the other: what was checked must be what runs.
#[test]
fn a_manifest_that_is_there_twice_is_refused() {
    for second in [MANIFEST, "META-INF/manifest.mf"] {
        let zip = Zip::of(&[(MANIFEST, GOOD), ("x", b"x"), (second, GOOD)]).build();
        check_refused(&zip, RefusalKind::BadManifest, "it is there twice");
    }
}

#[test]
fn packings_that_are_not_understood_are_refused() {
    let with = |change: &dyn Fn(&mut Zip)| {
        let mut zip = Zip::of(&[(MANIFEST, GOOD)]);
        change(&mut zip);
        zip.build()
    };
    check_refused(&with(&|zip| zip.flags = 1), RefusalKind::BadManifest, "encrypted");
    check_refused(&with(&|zip| zip.method = 12), RefusalKind::BadManifest, "method 12");
    check_refused(&with(&|zip| zip.method = 8), RefusalKind::BadCode, "cannot be unpacked");
    check_refused(&with(&|zip| zip.unpacked = Some(3)), RefusalKind::BadCode, "another length");
    check_refused(&with(&|zip| zip.header = Some(9)), RefusalKind::BadCode, "outside of the jar");
    check_refused(&with(&|zip| zip.header = Some(u32::MAX)), RefusalKind::BadCode, "outside of the jar");
    check_refused(&with(&|zip| zip.count = Some(2)), RefusalKind::BadCode, "entry 1 of its directory is broken");
    check_refused(&with(&|zip| zip.count = Some(0)), RefusalKind::BadCode, "longer than it says");
}

#[test]
fn a_manifest_that_unpacks_to_more_than_it_says_is_refused() {
    let bomb = miniz_oxide::deflate::compress_to_vec(&vec![b' '; 8 << 20], 9);
    let mut zip = Zip::of(&[(MANIFEST, &bomb)]);
    (zip.method, zip.unpacked) = (8, Some(1000));
    check_refused(&zip.build(), RefusalKind::BadCode, "cannot be unpacked");
    zip.unpacked = Some(8 << 20);
    check_refused(&zip.build(), RefusalKind::BadManifest, "it has 8388608 bytes, at most 262144");
}

#[test]
fn a_packed_manifest_is_read() {
    let packed = miniz_oxide::deflate::compress_to_vec(GOOD, 6);
    let mut zip = Zip::of(&[(MANIFEST, &packed)]);
    (zip.method, zip.unpacked) = (8, Some(u32::try_from(GOOD.len()).unwrap()));
    assert_eq!(check(&zip.build()), Ok(()));
}

#[test]
fn manifests_and_entries_are_bounded() {
    let manifest = |bytes: usize| {
        let head = "Manifest-Version: 1.0\r\nBundle-SymbolicName: m\r\nX: ";
        format!("{head}{}\r\n", "x".repeat(bytes - head.len() - 2))
    };
    let jar = |bytes: usize| Zip::of(&[(MANIFEST, manifest(bytes).as_bytes())]).build();
    assert_eq!(check(&jar(JAR_MANIFEST_BYTES_MAX)), Ok(()));
    check_refused(&jar(JAR_MANIFEST_BYTES_MAX + 1), RefusalKind::BadManifest, "at most 262144");
    let entries = |count: usize| {
        let names: Vec<String> = (1..count).map(|n| format!("f{n}")).collect();
        let mut files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
        files.push((MANIFEST, GOOD));
        Zip::of(&files).build()
    };
    assert_eq!(check(&entries(JAR_ENTRIES_MAX)), Ok(()));
    check_refused(&entries(JAR_ENTRIES_MAX + 1), RefusalKind::BadCode, "at most 16384");
}

/// Whatever happens to a jar, reading it ends in a value.
#[test]
fn broken_jars_never_panic() {
    let jar = jar("Bundle-SymbolicName: m\r\n");
    for at in 0..jar.len() {
        let _ = check(&jar[..at]);
        let _ = check(&jar[at..]);
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = jar.clone();
            changed[at] = value;
            let _ = check(&changed);
        }
    }
}

/// Returns a jar whose manifest has these lines beside its version.
pub(crate) fn jar(lines: &str) -> Vec<u8> {
    let manifest = format!("Manifest-Version: 1.0\r\n{lines}");
    Zip::of(&[(MANIFEST, manifest.as_bytes()), ("a/B.class", b"\xca\xfe\xba\xbe")]).build()
}

const GOOD: &[u8] = b"Manifest-Version: 1.0\r\nBundle-SymbolicName: m\r\n";

fn check_refused(jar: &[u8], kind: RefusalKind, detail: &str) {
    let refusal = check(jar).unwrap_err();
    assert_eq!(refusal.kind, kind, "{}", refusal.detail);
    assert!(refusal.detail.contains(detail), "`{}` has no `{detail}`", refusal.detail);
}

/// A zip archive that may say of its files, and of itself, what is not so.
#[derive(Default)]
struct Zip {
    files: Vec<(String, Vec<u8>)>,
    flags: u16,
    method: u16,
    unpacked: Option<u32>,
    header: Option<u32>,
    count: Option<u16>,
}

impl Zip {
    fn of(files: &[(&str, &[u8])]) -> Zip {
        let files = files.iter().map(|(name, content)| ((*name).to_owned(), content.to_vec())).collect();
        Zip { files, ..Zip::default() }
    }

    fn build(&self) -> Vec<u8> {
        let (mut bytes, mut directory) = (Vec::new(), Vec::new());
        for (name, content) in &self.files {
            let header = self.header.unwrap_or(u32::try_from(bytes.len()).unwrap());
            let (length, name_length) = (u32::try_from(content.len()).unwrap(), u16::try_from(name.len()).unwrap());
            let unpacked = self.unpacked.unwrap_or(length);
            let common = [
                &20_u16.to_le_bytes()[..],
                &self.flags.to_le_bytes(),
                &self.method.to_le_bytes(),
                &[0; 8],
                &length.to_le_bytes(),
                &unpacked.to_le_bytes(),
                &name_length.to_le_bytes(),
                &[0; 2],
            ]
            .concat();
            bytes.extend([LOCAL_MAGIC, &common, name.as_bytes(), content].concat());
            directory
                .extend([ENTRY_MAGIC, &[20, 0], &common, &[0; 10], &header.to_le_bytes(), name.as_bytes()].concat());
        }
        let count = self.count.unwrap_or(u16::try_from(self.files.len()).unwrap());
        let start = u32::try_from(bytes.len()).unwrap();
        let end = [
            END_MAGIC,
            &[0; 4],
            &count.to_le_bytes(),
            &count.to_le_bytes(),
            &u32::try_from(directory.len()).unwrap().to_le_bytes(),
            &start.to_le_bytes(),
            &[0; 2],
        ];
        bytes.extend(directory);
        bytes.extend(end.concat());
        bytes
    }
}
