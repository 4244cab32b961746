// SPDX-License-Identifier: Apache-2.0
//! The files of new modules with a server part in Rust, and in JavaScript.

use std::path::{Path, PathBuf};

use super::filling::{CARGO_CONFIG, File, Filling, GITIGNORE, SERVER_SDK_FILES, sdk_files};
use crate::cmd::module::code::WIT_FILES;

const SDK_CARGO_TOML: &str = include_str!("server-sdk.toml.in");
const GREETING: &str = "Hello, you are visitor 1\n";

/// The version of WASI in the WIT of modules in JavaScript: that of the engine inside componentize-js 0.19.3.
const JS_WASI: &str = "0.2.3";
/// The version of WASI in our WIT.
const OWN_WASI: &str = "0.2.12";

/// Returns the files of a module in Rust that answers HTTP requests.
pub(super) fn http(filling: &Filling) -> Vec<File> {
    let mut files = filling.fill(&[
        ("netserv.toml", include_str!("http/netserv.toml.in")),
        ("src/lib.rs", include_str!("http/lib.rs.in")),
        ("Cargo.toml", include_str!("http/Cargo.toml.in")),
        ("README.md", include_str!("http/README.md.in")),
        (".gitignore", GITIGNORE),
        ("tests/greeting.txt", GREETING),
    ]);
    files.extend(server_sdk(filling, "sdk"));
    files
}

/// Returns the files of a module in Rust that handles TCP connections.
pub(super) fn tcp(filling: &Filling) -> Vec<File> {
    let mut files = filling.fill(&[
        ("netserv.toml", include_str!("tcp/netserv.toml.in")),
        ("src/lib.rs", include_str!("tcp/lib.rs.in")),
        ("Cargo.toml", include_str!("tcp/Cargo.toml.in")),
        ("README.md", include_str!("tcp/README.md.in")),
        (".gitignore", GITIGNORE),
    ]);
    files.extend(server_sdk(filling, "sdk"));
    files
}

/// Returns the files of a module in Rust that sees packets and answers HTTP requests; without the captures of its test.
pub(super) fn both(filling: &Filling) -> Vec<File> {
    let mut files = filling.fill(&[
        ("netserv.toml", include_str!("both/netserv.toml.in")),
        ("src/lib.rs", include_str!("both/lib.rs.in")),
        ("src/packets.rs", include_str!("both/packets.rs.in")),
        ("src/page.rs", include_str!("both/page.rs.in")),
        ("Cargo.toml", include_str!("both/Cargo.toml.in")),
        (".cargo/config.toml", CARGO_CONFIG),
        ("README.md", include_str!("both/README.md.in")),
        (".gitignore", GITIGNORE),
        ("tests/page.txt", "seen 0\ndropped 0\nblocked port @PORT@\n"),
    ]);
    files.extend(sdk_files(filling));
    files.extend(server_sdk(filling, "server-sdk"));
    files
}

/// Returns the files of a module in JavaScript that answers HTTP requests.
pub(super) fn javascript(filling: &Filling) -> Vec<File> {
    let mut files = filling.fill(&[
        ("netserv.toml", include_str!("js/netserv.toml.in")),
        ("module.js", include_str!("js/module.js.in")),
        ("build.mjs", include_str!("js/build.mjs.in")),
        ("package.json", include_str!("js/package.json.in")),
        ("wit/world.wit", include_str!("js/world.wit.in")),
        ("README.md", include_str!("js/README.md.in")),
        (".gitignore", "/node_modules\n/target\n*.nsm\n"),
        ("tests/greeting.txt", GREETING),
    ]);
    let deps = WIT_FILES.iter().filter(|(path, _)| path.starts_with("deps/") && !path.contains("netserv-tcp"));
    files.extend(deps.map(|(path, text)| (Path::new("wit").join(path), older_wasi(text).into_bytes())));
    files
}

/// Returns the SDK for server modules with the WIT that its bindings are made from, for whoever reads or extends it.
fn server_sdk(filling: &Filling, dir: &str) -> Vec<File> {
    let sdk = PathBuf::from(dir);
    let mut files = vec![(sdk.join("Cargo.toml"), filling.text(SDK_CARGO_TOML).into_bytes())];
    files.extend(SERVER_SDK_FILES.iter().map(|(path, bytes)| (sdk.join(path), bytes.to_vec())));
    files.extend(WIT_FILES.iter().map(|(path, text)| (sdk.join("wit").join(path), text.as_bytes().to_vec())));
    files
}

/// Returns WIT with the version of WASI that JavaScript's tools know. Between these versions nothing was taken away.
fn older_wasi(text: &str) -> String {
    let text = text.replace(OWN_WASI, JS_WASI);
    // The tools do not know the feature of this import, and then do not find what is imported.
    text.lines().filter(|line| !line.contains("import wasi:clocks/timezone")).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_for_servers_is_whole_and_has_the_dependencies_of_ours() {
        let modules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../modules");
        let own = std::fs::read_to_string(format!("{modules}/sdk/server/Cargo.toml")).unwrap();
        let own: toml::Table = toml::from_str(&own).unwrap();
        let written: toml::Table = toml::from_str(SDK_CARGO_TOML).unwrap();
        let workspace: toml::Table =
            toml::from_str(&std::fs::read_to_string(format!("{modules}/Cargo.toml")).unwrap()).unwrap();
        let names = |table: &toml::Table| table["dependencies"].as_table().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&own), names(&written));
        for (name, value) in written["dependencies"].as_table().unwrap() {
            assert_eq!(*value, workspace["workspace"]["dependencies"][name], "{name}");
        }
        let filling = Filling::new(&"example.org/a".parse().unwrap(), "a");
        let files = server_sdk(&filling, "sdk");
        let has = |path: &str| files.iter().any(|(known, _)| known == Path::new(path));
        assert!(has("sdk/src/lib.rs") && has("sdk/src/http.rs") && has("sdk/wit/worlds.wit"));
        for (path, bytes) in &files {
            let text = String::from_utf8_lossy(bytes);
            assert!(!text.contains("../../wit"), "{path:?} points out of the folder");
            for part in text.split("include_bytes!(\"").skip(1) {
                let (mut from, mut included) = (path.parent().unwrap(), part.split('"').next().unwrap());
                while let Some(above) = included.strip_prefix("../") {
                    (from, included) = (from.parent().unwrap(), above);
                }
                assert!(has(from.join(included).to_str().unwrap()), "{path:?} includes {included:?}");
            }
        }
    }

    #[test]
    fn javascript_has_one_version_of_wasi() {
        let files = javascript(&Filling::new(&"example.org/a".parse().unwrap(), "a"));
        for (path, bytes) in files.iter().filter(|(path, _)| path.starts_with("wit")) {
            let text = String::from_utf8_lossy(bytes);
            assert!(!text.contains("0.2.12") && !text.contains("import wasi:clocks/timezone"), "{path:?}");
        }
    }
}
