// SPDX-License-Identifier: Apache-2.0
//! The files of a new module.

mod filling;
mod java;
mod server;

use std::fmt;
use std::net::SocketAddr;

use netserv_model::ModuleName;
use netserv_wire::ip::build;

use self::filling::{BLOCKED_PORT, CARGO_CONFIG, Filling, GITIGNORE, sdk_files};
use crate::exit::{Exit, Failure, OrFail};

pub use self::filling::File;

/// What a new module does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Template {
    /// Sees packets
    Packet,
    /// Answers HTTP requests
    Http,
    /// Handles TCP connections
    Tcp,
    /// Sees packets and answers HTTP requests
    Both,
}

/// The language that a new module is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    /// WebAssembly, built by Cargo
    Rust,
    /// WebAssembly, built by clang
    C,
    /// WebAssembly with Go's runtime in it, built by go
    #[value(alias = "golang")]
    Go,
    /// WebAssembly with an engine in it, built by componentize-js
    #[value(alias = "javascript")]
    Js,
    /// An OSGi bundle, built by Maven
    Java,
}

/// What can be made.
const OFFERED: &[(Template, &[Language])] = &[
    (Template::Packet, &[Language::Rust, Language::C, Language::Go, Language::Java]),
    (Template::Http, &[Language::Rust, Language::Js]),
    (Template::Tcp, &[Language::Rust]),
    (Template::Both, &[Language::Rust]),
];

impl fmt::Display for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Template::Packet => "packet",
            Template::Http => "http",
            Template::Tcp => "tcp",
            Template::Both => "both",
        })
    }
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Language::Rust => "rust",
            Language::C => "c",
            Language::Go => "go",
            Language::Js => "js",
            Language::Java => "java",
        })
    }
}

/// Returns each file of a new module.
///
/// # Errors
/// There is no such template in the language, or what a module in Java is built with did not come with this program.
pub fn files(template: Template, language: Language, module: &ModuleName, short: &str) -> Result<Vec<File>, Failure> {
    let filling = Filling::new(module, short);
    let mut files = match (template, language) {
        (Template::Packet, Language::Rust) => rust_files(&filling),
        (Template::Packet, Language::C) => c_files(&filling),
        (Template::Packet, Language::Go) => go_files(&filling),
        (Template::Packet, Language::Java) => java::files(module, short, &java::repository()?),
        (Template::Http, Language::Rust) => server::http(&filling),
        (Template::Http, Language::Js) => server::javascript(&filling),
        (Template::Tcp, Language::Rust) => server::tcp(&filling),
        (Template::Both, Language::Rust) => server::both(&filling),
        (Template::Packet, Language::Js)
        | (Template::Http | Template::Tcp | Template::Both, Language::C | Language::Go | Language::Java)
        | (Template::Tcp | Template::Both, Language::Js) => return Err(not_offered(template, language)),
    };
    match template {
        Template::Packet | Template::Both => files.extend(captures()?),
        Template::Http | Template::Tcp => {}
    }
    Ok(files)
}

fn not_offered(template: Template, language: Language) -> Failure {
    let list = |languages: &[Language]| languages.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let all: Vec<String> =
        OFFERED.iter().map(|(template, languages)| format!("{template} ({})", list(languages))).collect();
    let cause = format!("there is no template `{template}` in {language}");
    Failure::new(cause, format!("choose one of: {}", all.join(", "))).with_exit(Exit::Usage)
}

fn rust_files(filling: &Filling) -> Vec<File> {
    let mut files = filling.fill(&[
        ("netserv.toml", include_str!("netserv.toml.in")),
        ("src/lib.rs", include_str!("lib.rs.in")),
        ("Cargo.toml", include_str!("Cargo.toml.in")),
        (".cargo/config.toml", CARGO_CONFIG),
        ("README.md", include_str!("README.md.in")),
        (".gitignore", GITIGNORE),
    ]);
    files.extend(sdk_files(filling));
    files
}

fn c_files(filling: &Filling) -> Vec<File> {
    filling.fill(&[
        ("netserv.toml", include_str!("c/netserv.toml.in")),
        ("module.c", include_str!("c/module.c.in")),
        ("netserv.h", include_str!("c/netserv.h.in")),
        ("build.sh", include_str!("c/build.sh.in")),
        ("README.md", include_str!("c/README.md.in")),
        (".gitignore", GITIGNORE),
    ])
}

fn go_files(filling: &Filling) -> Vec<File> {
    filling.fill(&[
        ("netserv.toml", include_str!("go/netserv.toml.in")),
        ("module.go", include_str!("go/module.go.in")),
        ("netserv.go", include_str!("go/netserv.go.in")),
        ("go.mod", "module @MODULE@\n\ngo 1.24\n"),
        ("README.md", include_str!("go/README.md.in")),
        (".gitignore", GITIGNORE),
    ])
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

    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn the_sdk_is_whole_and_depends_on_nothing() {
        let names: Vec<&str> = filling::SDK_FILES.iter().map(|(name, _)| *name).collect();
        for wanted in ["src/lib.rs", "src/packet.rs", "src/sys.rs"] {
            assert!(names.contains(&wanted), "{names:?}");
        }
        let manifest =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../modules/sdk/packet/Cargo.toml"));
        // The template writes a manifest of its own, which has no dependencies.
        assert!(!manifest.unwrap().contains("dependencies"), "tell template/sdk.toml.in of the SDK's dependencies");
    }

    #[test]
    fn every_name_makes_a_crate_and_a_package() {
        for name in ["example.org/a", "example.org/1st", "cp.example/type", "cp.example/a/b.c_d", "a.example/class"] {
            let module: ModuleName = name.parse().unwrap();
            let short = name.rsplit('/').next().unwrap();
            for (template, language) in offered().filter(|(_, language)| *language != Language::Java) {
                let files = files(template, language, &module, short).unwrap();
                check(&files, &module);
                if language == Language::Rust {
                    let cargo: toml::Table = toml::from_str(&text(&files, "Cargo.toml")).unwrap();
                    let crate_name = cargo["package"]["name"].as_str().unwrap();
                    assert!(crate_name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)), "{crate_name}");
                }
            }
            let files = java::files(&module, short, Path::new("/opt/netserv"));
            check(&files, &module);
            for (path, bytes) in files.iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "java")) {
                let package =
                    path.parent().unwrap().components().skip(3).map(|part| part.as_os_str().to_str().unwrap());
                let package = package.collect::<Vec<_>>().join(".");
                assert!(std::str::from_utf8(bytes).unwrap().starts_with(&format!("package {package};\n")), "{path:?}");
            }
        }
    }

    #[test]
    fn what_there_is_not_is_refused_with_a_list() {
        let module: ModuleName = "example.org/a".parse().unwrap();
        for template in Template::value_variants() {
            for language in Language::value_variants() {
                if offered().any(|one| one == (*template, *language)) {
                    continue;
                }
                let failure = files(*template, *language, &module, "a").unwrap_err();
                assert_eq!(failure.exit, Exit::Usage);
                assert!(failure.cause.contains(&format!("`{template}` in {language}")), "{}", failure.cause);
                assert!(failure.fix.contains("packet (rust, c, go, java)"), "{}", failure.fix);
            }
        }
    }

    fn offered() -> impl Iterator<Item = (Template, Language)> {
        OFFERED.iter().flat_map(|(template, languages)| languages.iter().map(|language| (*template, *language)))
    }

    /// Checks that the module's own names took all their places, and that the project names files that are there.
    fn check(files: &[File], module: &ModuleName) {
        for (path, bytes) in files {
            let text = String::from_utf8_lossy(bytes);
            let place =
                text.split('@').find(|one| !one.is_empty() && one.bytes().all(|byte| byte.is_ascii_uppercase()));
            assert!(place.is_none(), "{path:?} of {module} has @{place:?}@");
        }
        text(files, "README.md");
        let project = netserv_project::Project::parse(&text(files, "netserv.toml")).unwrap();
        assert_eq!(project.manifest.name, *module);
        let captures = project.tests.iter().flat_map(|test| [&test.input, &test.output]);
        let golden = project.http_tests.iter().filter_map(|test| test.expect_body_file.as_ref());
        for named in golden.chain(captures.filter(|path| !path.ends_with(".pcap"))) {
            assert!(files.iter().any(|(path, _)| path == Path::new(named)), "{named} of {module} is not there");
        }
    }

    fn text(files: &[File], path: &str) -> String {
        let (_, bytes) = files.iter().find(|(known, _)| known.to_str() == Some(path)).unwrap();
        String::from_utf8(bytes.clone()).unwrap()
    }
}
