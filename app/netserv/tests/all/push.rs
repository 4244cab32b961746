// SPDX-License-Identifier: Apache-2.0
//! `module push`: what it says. What registries and other tools make of it is tested where it is done.

use crate::support::{Home, check, text};

/// A home with a signed package `a.nsm`.
fn packaged() -> Home {
    let home = Home::with_key();
    let manifest = "manifest = 1\nname = \"example.org/m\"\nversion = \"1.0.0\"\n[packet]\nabi = 1\n";
    std::fs::write(home.path().join("netserv.toml"), manifest).unwrap();
    std::fs::write(home.path().join("code"), b"\0asm\x01\0\0\0").unwrap();
    let built = home.netserv(&["module", "build", "--wasm", "code", "--out", "a.nsm"]);
    assert!(built.status.success(), "{built:?}");
    assert!(home.netserv(&["module", "sign", "a.nsm"]).status.success());
    home
}

#[test]
fn a_folder_takes_a_package_under_its_version_or_a_tag() {
    let home = packaged();
    let pushed = home.netserv(&["-j", "module", "push", "a.nsm", "dir:layout"]);
    let json: serde_json::Value = serde_json::from_slice(&pushed.stdout).unwrap();
    assert_eq!((&json["to"], &json["signatures"]), (&"layout:1.0.0".into(), &1.into()));
    let again = text(&home.netserv(&["module", "push", "a.nsm", "dir:layout:latest"]).stdout);
    assert!(again.starts_with("pushed      layout:latest\ndigest      sha256:"), "{again}");
    let digest = json["digest"].as_str().unwrap();
    assert!(again.contains(digest) && again.contains("sent        0 parts, 0 B, 6 were there already"), "{again}");
    let index = std::fs::read_to_string(home.path().join("layout/index.json")).unwrap();
    assert!(index.contains("\"1.0.0\"") && index.contains("\"latest\""), "{index}");
}

#[test]
fn a_dry_run_pushes_nothing() {
    let home = packaged();
    let said = text(&home.netserv(&["module", "push", "a.nsm", "dir:layout", "--dry-run"]).stdout);
    assert!(said.starts_with("would push  sha256:") && said.ends_with("\nto          layout:1.0.0\n"), "{said}");
    assert!(!home.path().join("layout").exists());
}

#[test]
fn what_is_no_place_for_packages_is_said() {
    let home = packaged();
    for (to, cause) in [
        ("registry.example/m:1", "is neither oci://HOST[:PORT]/REPOSITORY:TAG nor dir:PATH[:TAG]"),
        ("oci://registry.example/m", "there is no tag"),
        ("oci://registry.example/M:1", "lower-case"),
        ("dir:", "is neither"),
    ] {
        let output = home.netserv(&["module", "push", "a.nsm", to]);
        assert_eq!(output.status.code(), Some(2), "{to}");
        assert!(text(&output.stderr).contains(cause), "{output:?}");
    }
    // Nobody listens at port 1.
    let output = home.netserv(&["module", "push", "a.nsm", "oci://127.0.0.1:1/m:1"]);
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("error: cannot reach 127.0.0.1:1: "), "{stderr}");
    assert!(stderr.contains("\nfix: check the host and the port; give --plain-http"), "{stderr}");
    std::fs::write(home.path().join("credentials"), "{}").unwrap();
    std::fs::write(home.path().join("odd"), "nothing").unwrap();
    let with = |file: &str| {
        let arguments = ["module", "push", "a.nsm", "oci://127.0.0.1:1/m:1", "--credentials", file];
        text(&home.netserv(&arguments).stderr)
    };
    assert!(with("credentials").contains("cannot reach"), "there are none for this registry");
    assert!(with("odd").starts_with("error: odd: the file with credentials: "), "{}", with("odd"));
}

#[test]
fn a_package_that_nobody_signed_is_pushed_with_a_remark() {
    let home = packaged();
    assert!(home.netserv(&["module", "build", "--wasm", "code", "--out", "b.nsm"]).status.success());
    let output = home.netserv(&["module", "push", "b.nsm", "dir:layout", "--dry-run"]);
    let stderr = "the package is not signed; nodes refuse it until `netserv module sign` and another push\n";
    check(&output, 0, &text(&output.stdout), stderr);
}

#[test]
fn a_folder_with_other_things_in_it_is_left_alone() {
    let home = packaged();
    let file = home.path().join("things/notes.txt");
    std::fs::create_dir(home.path().join("things")).unwrap();
    std::fs::create_dir(home.path().join("empty")).unwrap();
    std::fs::write(&file, "mine").unwrap();
    let stderr = "error: things is not empty, and no OCI image layout\n\
                  fix: name a folder with an OCI image layout, an empty or a new one, that you may write to\n";
    for more in [&["--dry-run"][..], &[]] {
        let output = home.netserv(&[&["module", "push", "a.nsm", "dir:things"], more].concat());
        check(&output, 1, "", stderr);
    }
    assert_eq!(std::fs::read_dir(home.path().join("things")).unwrap().count(), 1);
    let to_file = text(&home.netserv(&["module", "push", "a.nsm", "dir:a.nsm"]).stderr);
    assert!(to_file.starts_with("error: a.nsm/oci-layout: Not a directory"), "{to_file}");
    assert!(home.netserv(&["module", "push", "a.nsm", "dir:empty"]).status.success());

    // Somebody else's layout keeps what it has.
    std::fs::create_dir(home.path().join("theirs")).unwrap();
    std::fs::write(home.path().join("theirs/oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    let digest = format!("sha256:{}", "0".repeat(64));
    let entry = format!(r#"{{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"{digest}","size":2}}"#);
    let index = format!(r#"{{"schemaVersion":2,"manifests":[{entry}]}}"#);
    std::fs::write(home.path().join("theirs/index.json"), index).unwrap();
    assert!(home.netserv(&["module", "push", "a.nsm", "dir:theirs"]).status.success());
    let index = std::fs::read_to_string(home.path().join("theirs/index.json")).unwrap();
    assert!(index.contains(&digest) && index.contains("\"1.0.0\""), "{index}");
    std::fs::write(home.path().join("theirs/oci-layout"), r#"{"imageLayoutVersion":"9.0.0"}"#).unwrap();
    let newer = text(&home.netserv(&["module", "push", "a.nsm", "dir:theirs"]).stderr);
    assert!(newer.starts_with("error: theirs/oci-layout: image layout version 9.0.0"), "{newer}");
}
