// SPDX-License-Identifier: Apache-2.0
//! The files of a new module.

mod java;

use std::net::SocketAddr;
use std::path::PathBuf;

use netserv_model::ModuleName;
use netserv_wire::ip::build;

use crate::exit::{Failure, OrFail};

include!(concat!(env!("OUT_DIR"), "/sdk_files.rs"));

const CARGO_TOML: &str = include_str!("template/Cargo.toml.in");
const MANIFEST: &str = include_str!("template/netserv.toml.in");
const CARGO_CONFIG: &str = include_str!("template/cargo-config.toml.in");
const SDK_CARGO_TOML: &str = include_str!("template/sdk.toml.in");
const LIB: &str = include_str!("template/lib.rs.in");
const README: &str = include_str!("template/README.md.in");
const GITIGNORE: &str = "/target\n*.nsm\n";

/// The port that the new module drops packets to, unless its property says otherwise.
const BLOCKED_PORT: u16 = 9;

/// The language that a new module is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    /// WebAssembly, built by Cargo
    Rust,
    /// An OSGi bundle, built by Maven
    Java,
}

/// A file with its path in the module's folder.
pub type File = (PathBuf, Vec<u8>);

/// Returns each file of a new module.
///
/// # Errors
/// What a module in Java is built with did not come with this program.
pub fn files(language: Language, module: &ModuleName, short: &str) -> Result<Vec<File>, Failure> {
    let mut files = match language {
        Language::Rust => rust_files(module, short),
        Language::Java => java::files(module, short, &java::repository()?),
    };
    files.extend(captures()?);
    Ok(files)
}

fn rust_files(module: &ModuleName, short: &str) -> Vec<File> {
    // A crate's name has no dots, does not begin with a digit and is no word of the language.
    let crate_name = format!("module-{}", short.replace('.', "-"));
    let fill = |text: &str| {
        let text = text.replace("@MODULE@", module.as_str()).replace("@CRATE@", &crate_name);
        let text = text.replace("@PORT@", &BLOCKED_PORT.to_string()).replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        text.replace("@CRATE_FILE@", &crate_name.replace('-', "_")).into_bytes()
    };
    let mut files: Vec<File> = vec![
        ("netserv.toml".into(), fill(MANIFEST)),
        ("src/lib.rs".into(), fill(LIB)),
        ("Cargo.toml".into(), fill(CARGO_TOML)),
        (".cargo/config.toml".into(), fill(CARGO_CONFIG)),
        ("README.md".into(), fill(README)),
        (".gitignore".into(), GITIGNORE.into()),
        ("sdk/Cargo.toml".into(), fill(SDK_CARGO_TOML)),
    ];
    files.extend(SDK_FILES.iter().map(|(path, bytes)| (PathBuf::from("sdk").join(path), bytes.to_vec())));
    files
}

/// The packets of the new module's test, which is the same in each language.
fn captures() -> Result<[File; 2], Failure> {
    let ports = [5060, BLOCKED_PORT, 53];
    let packets = ports.iter().map(|port| sample_packet(*port)).collect::<Result<Vec<_>, _>>()?;
    let passing: Vec<_> = packets.iter().zip(ports).filter(|(_, port)| *port != BLOCKED_PORT).collect();
    Ok([
        ("tests/in.pcap".into(), pcap(packets.iter())),
        ("tests/out.pcap".into(), pcap(passing.into_iter().map(|(packet, _)| packet))),
    ])
}

/// A UDP packet over IPv4 with good checksums.
fn sample_packet(port: u16) -> Result<Vec<u8>, Failure> {
    let source = SocketAddr::from(([192, 0, 2, 1], 40_000));
    let destination = SocketAddr::from(([198, 51, 100, 7], port));
    build::udp(source, destination, 64, b"hello").or_fail("cannot make a sample packet", "report this as a bug")
}

/// A capture file of raw IP packets, one each millisecond.
fn pcap<'a>(packets: impl Iterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    // Magic number, version 2.4, time zone 0, accuracy 0, 65,535 bytes of each packet, LINKTYPE_RAW.
    let mut file = Vec::new();
    file.extend_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
    file.extend_from_slice(&[2, 0, 4, 0]);
    [0_u32, 0, 65_535, 101].iter().for_each(|word| file.extend_from_slice(&word.to_le_bytes()));
    for (micros, packet) in (0_u32..).step_by(1000).zip(packets) {
        let length = u32::try_from(packet.len()).expect("sample packets are short");
        [0, micros, length, length].iter().for_each(|word| file.extend_from_slice(&word.to_le_bytes()));
        file.extend_from_slice(packet);
    }
    file
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_sdk_is_whole_and_depends_on_nothing() {
        let names: Vec<&str> = SDK_FILES.iter().map(|(name, _)| *name).collect();
        for wanted in ["src/lib.rs", "src/packet.rs", "src/sys.rs"] {
            assert!(names.contains(&wanted), "{names:?}");
        }
        let manifest = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../modules/sdk/Cargo.toml"));
        // The template writes a manifest of its own, which has no dependencies.
        assert!(!manifest.unwrap().contains("dependencies"), "tell template/sdk.toml.in of the SDK's dependencies");
    }

    #[test]
    fn every_name_makes_a_crate_and_a_package() {
        for name in ["example.org/a", "example.org/1st", "cp.example/type", "cp.example/a/b.c_d", "a.example/class"] {
            let module: ModuleName = name.parse().unwrap();
            let short = name.rsplit('/').next().unwrap();
            let files = rust_files(&module, short);
            let cargo: toml::Table = toml::from_str(&text(&files, "Cargo.toml")).unwrap();
            let crate_name = cargo["package"]["name"].as_str().unwrap();
            assert!(crate_name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)), "{crate_name}");
            check(&files, &module, &["Cargo.toml", "src/lib.rs", "sdk/Cargo.toml"]);

            let files = java::files(&module, short, Path::new("/opt/netserv"));
            check(&files, &module, &["pom.xml", "bnd.bnd"]);
            for (path, bytes) in files.iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "java")) {
                let package =
                    path.parent().unwrap().components().skip(3).map(|part| part.as_os_str().to_str().unwrap());
                let package = package.collect::<Vec<_>>().join(".");
                assert!(std::str::from_utf8(bytes).unwrap().starts_with(&format!("package {package};\n")), "{path:?}");
            }
        }
    }

    /// Checks that the module's own names took all their places.
    fn check(files: &[File], module: &ModuleName, more: &[&str]) {
        for path in ["netserv.toml", "README.md"].iter().chain(more) {
            let text = text(files, path);
            assert!(!text.contains('@'), "{path} of {module}: {text}");
        }
        let manifest = netserv_repository::manifest::parse(&text(files, "netserv.toml")).unwrap();
        assert_eq!(manifest.name, *module);
    }

    fn text(files: &[File], path: &str) -> String {
        let (_, bytes) = files.iter().find(|(known, _)| known.to_str() == Some(path)).unwrap();
        String::from_utf8(bytes.clone()).unwrap()
    }
}
