// SPDX-License-Identifier: Apache-2.0
//! `key`, and the user's own key file.

use std::os::unix::fs::PermissionsExt;

use crate::support::{Home, check, text};

#[test]
fn a_new_key_is_private_shown_and_never_overwritten() {
    let home = Home::empty();
    let made = home.netserv(&["key", "new"]);
    let file = home.path().join(".config/netserv/key.pem");
    assert_eq!(
        text(&made.stderr),
        format!("made {}; give this line to node operators, or to who issues grants:\n", file.display())
    );
    let public = text(&made.stdout);
    assert!(public.trim().parse::<netserv_model::PublicKey>().is_ok(), "{public}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    check(&home.netserv(&["key", "show"]), 0, &public, "");
    check(&home.netserv(&["key", "show", file.to_str().unwrap()]), 0, &public, "");

    let before = std::fs::read(&file).unwrap();
    let stderr = format!(
        "error: {} exists and is not overwritten\nfix: choose another file with --out, or move the old key away\n",
        file.display()
    );
    check(&home.netserv(&["key", "new"]), 1, "", &stderr);
    check(&home.netserv(&["key", "new", "--dry-run"]), 1, "", &stderr);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn xdg_config_home_comes_first_and_json_names_the_file() {
    let home = Home::empty();
    let config = home.path().join("xdg");
    let output = home.command(&["-j", "key", "new"]).env("XDG_CONFIG_HOME", &config).output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["file"], config.join("netserv/key.pem").to_str().unwrap());
    assert!(shown["public"].as_str().unwrap().starts_with("ed25519:"));
    assert!(config.join("netserv/key.pem").exists());
}

#[test]
fn a_dry_run_makes_nothing() {
    let home = Home::empty();
    check(&home.netserv(&["key", "new", "--out", "k.pem", "--dry-run"]), 0, "", "would make k.pem\n");
    assert!(!home.path().join("k.pem").exists());
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let home = Home::with_key();
    let file = home.path().join(".config/netserv/key.pem");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let stderr =
        format!("error: the key file {0} has mode 0644, so others can use it\nfix: chmod 600 {0}\n", file.display());
    check(&home.netserv(&["key", "show"]), 1, "", &stderr);
}
