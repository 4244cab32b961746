// SPDX-License-Identifier: Apache-2.0
//! What templates have in common: names that are filled in, and the files of the SDK.

use std::path::PathBuf;

use netserv_model::ModuleName;

include!(concat!(env!("OUT_DIR"), "/sdk_files.rs"));

pub(super) const CARGO_CONFIG: &str = include_str!("cargo-config.toml.in");
pub(super) const GITIGNORE: &str = "/target\n*.nsm\n";
const SDK_CARGO_TOML: &str = include_str!("sdk.toml.in");

/// The port that the new module drops packets to, unless its property says otherwise.
pub(super) const BLOCKED_PORT: u16 = 9;

/// A file with its path in the module's folder.
pub type File = (PathBuf, Vec<u8>);

/// What takes the places of names in templates.
pub(super) struct Filling {
    pub(super) module: String,
    pub(super) short: String,
    pub(super) crate_name: String,
}

impl Filling {
    pub(super) fn new(module: &ModuleName, short: &str) -> Filling {
        // A crate's name has no dots, does not begin with a digit and is no word of the language.
        let crate_name = format!("module-{}", short.replace('.', "-"));
        Filling { module: module.to_string(), short: short.to_owned(), crate_name }
    }

    pub(super) fn text(&self, text: &str) -> String {
        let text = text.replace("@MODULE@", &self.module).replace("@SHORT@", &self.short);
        let text = text.replace("@PORT@", &BLOCKED_PORT.to_string()).replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        text.replace("@CRATE_FILE@", &self.crate_name.replace('-', "_")).replace("@CRATE@", &self.crate_name)
    }

    pub(super) fn fill(&self, files: &[(&str, &str)]) -> Vec<File> {
        files.iter().map(|(path, text)| (PathBuf::from(path), self.text(text).into_bytes())).collect()
    }
}

pub(super) fn sdk_files(filling: &Filling) -> Vec<File> {
    let mut files = filling.fill(&[("sdk/Cargo.toml", SDK_CARGO_TOML)]);
    files.extend(SDK_FILES.iter().map(|(path, bytes)| (PathBuf::from("sdk").join(path), bytes.to_vec())));
    files
}
