// SPDX-License-Identifier: Apache-2.0
//! Plausible mistakes on the command line: each is told with what was meant, most likely.

use std::os::unix::fs::MetadataExt as _;

use crate::support::{Home, text};

const MANIFEST: &str = "manifest = 1\nname = \"example.org/m\"\nversion = \"1.0.0\"\n[packet]\nabi = 1\n\
                        [build]\ncommand = \"no-such-compiler a.c\"\nwasm = \"a.wasm\"\n";
/// A bundle without classes.
const JAR: &[u8] = include_bytes!("../../../../io/repository/tests/all/common/empty.jar");

/// A home with a module's folder `m`, code and a bundle.
fn home() -> Home {
    let home = Home::with_key();
    std::fs::create_dir(home.path().join("m")).unwrap();
    for (name, bytes) in
        [("m/netserv.toml", MANIFEST.as_bytes()), ("a.wasm", b"\0asm\x01\0\0\0"), ("a.jar", JAR), ("a.nsm", b"odd")]
    {
        std::fs::write(home.path().join(name), bytes).unwrap();
    }
    home
}

#[track_caller]
fn check(home: &Home, arguments: &str, code: i32, cause: &str, fix: &str) {
    let output = home.netserv(&arguments.split(' ').collect::<Vec<_>>());
    let stderr = text(&output.stderr);
    assert!(output.status.code() == Some(code) && output.stdout.is_empty(), "{arguments}: {output:?}");
    assert!(stderr.contains(&format!("error: {cause}")), "{arguments}: {stderr}");
    assert!(stderr.contains("\nfix: ") && stderr.contains(fix), "{arguments}: {stderr}");
}

#[test]
fn what_is_no_package_is_said_to_be_what_it_is() {
    let home = home();
    let build = "build the package with `netserv module build`, and name that";
    for command in ["module inspect", "module sign"] {
        let cause = "m/netserv.toml is a project's file, and no package";
        check(&home, &format!("{command} m/netserv.toml"), 1, cause, build);
        check(&home, &format!("{command} m"), 1, "m is a folder", "name a package");
    }
    for command in ["module inspect", "module sign", "setup --local"] {
        check(&home, &format!("{command} gone.nsm"), 1, "cannot read gone.nsm: No such file", "name a package");
    }
    check(&home, "module sign a.wasm", 1, "a.wasm is WebAssembly code, and no package", build);
    check(&home, "module sign a.jar", 1, "a.jar is an OSGi bundle or another zip file, and no package", build);
    check(&home, "module push a.wasm dir:x", 1, "a.wasm is WebAssembly code, and no package", build);
    check(&home, "module adapt m out.wasm", 1, "m is a folder", "name a core module that Go made");
}

#[test]
fn a_file_in_place_of_a_folder_is_no_module() {
    let home = home();
    for command in ["test", "bench", "run", "build"] {
        let fix = "name the folder that netserv.toml is in";
        check(&home, &format!("module {command} a.nsm"), 1, "a.nsm is a file, and no module's folder", fix);
        check(&home, &format!("module {command} gone"), 1, "cannot read gone/netserv.toml", "`netserv module new`");
    }
}

#[test]
fn a_compiler_that_is_missing_is_to_be_installed() {
    let home = home();
    let cause = "the build command names a program that is not there: no-such-compiler a.c";
    check(&home, "module build m", 1, cause, "install what the line above names");
}

#[test]
fn what_cannot_be_tested_or_measured_is_said() {
    let home = home();
    check(&home, "module test m", 1, "m/netserv.toml has no tests", "a [[tcp-test]] with name and steps");
    let only_bundle = MANIFEST.replace("wasm = \"a.wasm\"", "bundle = \"a.jar\"");
    std::fs::write(home.path().join("m/netserv.toml"), only_bundle).unwrap();
    check(&home, "module bench m", 1, "m/netserv.toml names no WebAssembly below [build]", "`component = \"FILE\"`");
}

#[test]
fn http_alone_goes_without_a_node() {
    let home = home();
    let cause = "m/netserv.toml has no component for HTTP, and --direct serves HTTP alone";
    check(&home, "module run m --direct", 1, cause, "run it as root without --direct");
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        let cause = "--listen is for HTTP without a node, and root gets a node";
        check(&home, "module run m --listen 127.0.0.1:1", 2, cause, "add --direct");
    }
}

#[test]
fn other_names_of_languages_are_understood_or_explained() {
    let home = home();
    for (name, file) in [("javascript", "a/module.js"), ("golang", "a/module.go")] {
        let template = if name == "javascript" { "http" } else { "packet" };
        let arguments = ["module", "new", "a", "--template", template, "--lang", name, "--dry-run"];
        let output = home.netserv(&arguments);
        assert!(text(&output.stdout).contains(file), "{output:?}");
    }
    let cause = "invalid value 'typescript' for '--lang <LANGUAGE>' [possible values: rust, c, go, js, java]";
    check(&home, "module new a --lang typescript", 2, cause, "write `--lang js`");
    let cause = "invalid value 'python' for '--lang <LANGUAGE>'";
    check(&home, "module new a --lang python", 2, cause, "`netserv module build --component`");
}
