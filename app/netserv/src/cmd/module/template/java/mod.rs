// SPDX-License-Identifier: Apache-2.0
//! The files of a new module in Java, which Maven builds without a network.

use std::path::{Path, PathBuf};

use netserv_model::ModuleName;

use super::filling::{BLOCKED_PORT, File};
use crate::exit::{Failure, OrFail};

const MANIFEST: &str = include_str!("netserv.toml.in");
const POM: &str = include_str!("pom.xml.in");
const BND: &str = include_str!("bnd.bnd.in");
const MAVEN_CONFIG: &str = include_str!("maven.config.in");
const ACTIVATOR: &str = include_str!("Activator.java.in");
const MODULE: &str = include_str!("PortFilter.java.in");
const TEST: &str = include_str!("PortFilterTest.java.in");
const README: &str = include_str!("README.md.in");
const GITIGNORE: &str = "/target/\n*.nsm\n";

/// Returns the files of a new module. Its build takes what it needs from the Maven repository `repository`.
pub(super) fn files(module: &ModuleName, short: &str, repository: &Path) -> Vec<File> {
    let package = package(module);
    let fill = |text: &str| {
        let text = text.replace("@MODULE@", module.as_str()).replace("@SHORT@", short).replace("@PACKAGE@", &package);
        let text = text.replace("@PORT@", &BLOCKED_PORT.to_string()).replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        text.replace("@REPOSITORY@", &xml(&repository.display().to_string())).into_bytes()
    };
    let folder = package.replace('.', "/");
    let (main, test) = (PathBuf::from("src/main/java").join(&folder), PathBuf::from("src/test/java").join(&folder));
    vec![
        ("netserv.toml".into(), fill(MANIFEST)),
        (main.join("PortFilter.java"), fill(MODULE)),
        (main.join("Activator.java"), fill(ACTIVATOR)),
        (test.join("PortFilterTest.java"), fill(TEST)),
        ("pom.xml".into(), fill(POM)),
        ("bnd.bnd".into(), fill(BND)),
        (".mvn/maven.config".into(), MAVEN_CONFIG.into()),
        ("README.md".into(), fill(README)),
        (".gitignore".into(), GITIGNORE.into()),
    ]
}

/// Returns where the Maven repository is that comes with this program: in `NETSERV_JAVA`, or in `netserv-java` beside it.
///
/// # Errors
/// There is none.
pub(super) fn repository() -> Result<PathBuf, Failure> {
    let fix = "install netserv-java beside netserv (./dev build makes it), or name it with NETSERV_JAVA";
    let named = std::env::var_os("NETSERV_JAVA").map(PathBuf::from);
    let beside = || std::env::current_exe().map(|own| own.with_file_name("netserv-java"));
    let dir = named.map_or_else(beside, Ok).or_fail("cannot find this program's own file", fix)?;
    let missing = || Failure::new(format!("there is no {}", dir.join("repository").display()), fix);
    let dir = dir.join("repository").canonicalize().ok().filter(|dir| dir.is_dir()).ok_or_else(missing)?;
    Ok(dir)
}

/// Returns the Java package of a module: the domain turned round, then the path, for instance `org.example.my_monitor`.
fn package(module: &ModuleName) -> String {
    let (domain, path) = module.as_str().split_once('/').unwrap_or((module.as_str(), ""));
    let parts = domain.split('.').rev().chain(path.split('/')).filter(|part| !part.is_empty());
    parts.map(identifier).collect::<Vec<_>>().join(".")
}

/// Returns a part of a name as an identifier of the language.
fn identifier(part: &str) -> String {
    let name: String = part.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let is_fit = name.starts_with(|first: char| first.is_ascii_alphabetic()) && !WORDS.contains(&name.as_str());
    if is_fit { name } else { format!("_{name}") }
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Words of the language that no package has as a part of its name.
const WORDS: &[&str] = &[
    "abstract",
    "assert",
    "boolean",
    "break",
    "byte",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extends",
    "false",
    "final",
    "finally",
    "float",
    "for",
    "goto",
    "if",
    "implements",
    "import",
    "instanceof",
    "int",
    "interface",
    "long",
    "native",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "short",
    "static",
    "strictfp",
    "super",
    "switch",
    "synchronized",
    "this",
    "throw",
    "throws",
    "transient",
    "true",
    "try",
    "void",
    "volatile",
    "while",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_after_modules() {
        for (module, expected) in [
            ("example.org/my-monitor", "org.example.my_monitor"),
            ("cp.example/a/b.c_d", "example.cp.a.b_c_d"),
            ("new.example/1st", "example._new._1st"),
        ] {
            assert_eq!(package(&module.parse().unwrap()), expected);
        }
    }
}
