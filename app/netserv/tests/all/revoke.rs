// SPDX-License-Identifier: Apache-2.0
//! `grant revoke`, and lists in `grant show` and `grant verify`.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use netserv_authority::digest_of_grant;
use netserv_authority::grant::Grant;
use netserv_authority::revocations::Revocations;

use crate::support::{Home, check, text};

/// The home of an issuer, and what others have: keys, and a grant for each.
struct Issuer {
    home: Home,
}

impl Issuer {
    fn new() -> Issuer {
        let issuer = Issuer { home: Home::with_key() };
        for name in ["shop", "app"] {
            issuer.run(&["key", "new", "--out", &format!("{name}.pem")]);
        }
        issuer.grant("shop", &["--delegations", "1"]);
        issuer
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.home.netserv(arguments);
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    }

    fn public(&self, name: &str) -> String {
        self.run(&["key", "show", &format!("{name}.pem")]).trim().to_owned()
    }

    fn grant(&self, to: &str, more: &[&str]) {
        let (to, out) = (self.public(to), format!("{to}.grant"));
        let issue = ["grant", "issue", "--to", &to, "--prefix", "192.0.2.0/24", "--out", &out];
        self.run(&[&issue, more].concat());
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.home.path().join(file)).unwrap().trim().to_owned()
    }

    fn revoke(&self, more: &[&str]) -> Revocations {
        self.run(&[&["grant", "revoke", "--list", "list.jws"], more].concat());
        Revocations::verify(&self.read("list.jws")).unwrap()
    }

    #[track_caller]
    fn refused(&self, arguments: &[&str], stderr: &str) {
        check(&self.home.netserv(arguments), 1, "", stderr);
    }
}

#[test]
fn each_list_takes_the_place_of_the_one_before() {
    let issuer = Issuer::new();
    let first = issuer.revoke(&[]);
    assert_eq!((first.number, first.exp - first.iat), (1, 7 * 86_400));
    assert!(first.grants.is_empty() && first.keys.is_empty());
    let second = issuer.revoke(&["shop.grant", "--valid-for", "2d"]);
    assert_eq!((second.number, second.exp - second.iat), (2, 2 * 86_400));
    assert_eq!(second.grants, [digest_of_grant(&issuer.read("shop.grant"))].into());
    let app = issuer.public("app");
    let third = issuer.revoke(&["--user-key", &app]);
    assert_eq!((third.number, &third.grants, third.keys), (3, &second.grants, [app.parse().unwrap()].into()));
    let mode = std::fs::metadata(issuer.home.path().join("list.jws")).unwrap().permissions().mode();
    assert_eq!(mode & 0o444, 0o444, "the web server reads it");
    let files = std::fs::read_dir(issuer.home.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(files.into_iter().all(|name| !name.to_string_lossy().contains(".new")));
    // Of a chain, its holder's own grant is taken back, and not those before it.
    issuer.run(&["grant", "delegate", "shop.grant", "--key", "shop.pem", "--to", &app, "--out", "app.grant"]);
    let fourth = issuer.revoke(&["app.grant"]);
    let chain = issuer.read("app.grant");
    assert_eq!(fourth.grants.len(), 2);
    assert!(fourth.grants.contains(&digest_of_grant(chain.lines().last().unwrap())));
    // It was lost, and nodes know a higher number.
    std::fs::remove_file(issuer.home.path().join("list.jws")).unwrap();
    assert_eq!(issuer.revoke(&["--number", "9"]).number, 9);
}

#[test]
fn a_list_is_shown_and_checked() {
    let issuer = Issuer::new();
    let app = issuer.public("app");
    let stdout = issuer.run(&["grant", "revoke", "--list", "list.jws", "shop.grant", "--user-key", &app]);
    let digest = digest_of_grant(&issuer.read("shop.grant"));
    for line in ["list       1 of ed25519:", &format!("  grant    {digest}\n"), &format!("  key      {app}\n")] {
        assert!(stdout.contains(line), "{stdout}");
    }
    for command in ["show", "verify"] {
        check(&issuer.home.netserv(&["grant", command, "list.jws"]), 0, &stdout, "");
        let json: serde_json::Value = serde_json::from_str(&issuer.run(&["-j", "grant", command, "list.jws"])).unwrap();
        assert_eq!(json["number"], 1);
    }
    issuer.run(&["grant", "revoke", "--list", "empty.jws"]);
    assert!(issuer.run(&["grant", "show", "empty.jws"]).ends_with("  takes nothing back\n"));
    let shown = issuer.run(&["grant", "show", "shop.grant"]);
    assert!(shown.starts_with("user       k-"), "a grant is shown as before: {shown}");
    let list = issuer.read("list.jws");
    let (_, signature) = list.rsplit_once('.').unwrap();
    let (signed, _) = issuer.read("empty.jws").rsplit_once('.').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    std::fs::write(issuer.home.path().join("forged.jws"), format!("{signed}.{signature}")).unwrap();
    let fix = "fix: name a file that `netserv grant revoke` made\n";
    let own = issuer.run(&["key", "show"]);
    issuer.refused(
        &["grant", "verify", "forged.jws"],
        &format!(
            "error: forged.jws holds no revocation list: its issuer {} did not sign a revocation list\n{fix}",
            own.trim()
        ),
    );
    let other = issuer.public("shop");
    let stderr = format!("error: the revocation list is signed by {}, not by {other}\n{fix}", own.trim());
    issuer.refused(&["grant", "verify", "list.jws", "--issuer", &other], &stderr);
}

#[test]
fn what_is_not_the_issuers_is_not_taken_back() {
    let issuer = Issuer::new();
    let before = issuer.revoke(&[]);
    let (own, shop) = (issuer.run(&["key", "show"]).trim().to_owned(), issuer.public("shop"));
    let of_shop = ["grant", "revoke", "--list", "shops.jws", "--key", "shop.pem"];
    let stderr = format!(
        "error: the first grant in shop.grant is signed by {own}\nfix: take back grants of yours, with the key that signed them\n"
    );
    issuer.refused(&[&of_shop[..], &["shop.grant"]].concat(), &stderr);
    let fix = "fix: take back keys of others, not your own, and give a --valid-for of a second or more; \
               leave grants out that have ended, by naming their files\n";
    let revoke = ["grant", "revoke", "--list", "list.jws"];
    for (more, cause) in [
        (["--user-key", &own], "`keys` has the key that signs it"),
        (["--valid-for", "0s"], "`exp` is not after `iat`"),
    ] {
        let stderr = format!("error: cannot make this revocation list: a revocation list's claims: {cause}\n{fix}");
        issuer.refused(&[&revoke[..], &more].concat(), &stderr);
    }
    let stderr =
        "error: the revocation list has number 1, after another one with number 1\nfix: give a higher --number\n";
    issuer.refused(&[&revoke[..], &["--number", "1"]].concat(), stderr);
    assert_eq!(Revocations::verify(&issuer.read("list.jws")).unwrap(), before, "it is as it was");
    // A new key of the issuer's goes on from the list of the old one, which it takes back.
    let next = issuer.revoke(&["--key", "shop.pem", "--user-key", &own]);
    assert_eq!((next.number, next.iss.to_string()), (2, shop));
    std::fs::write(issuer.home.path().join("list.jws"), "nothing").unwrap();
    let stderr = "error: list.jws holds no revocation list: a revocation list has three parts of base64url with dots between\n\
                  fix: name a file that `netserv grant revoke` made\n";
    issuer.refused(&revoke, stderr);
}

#[test]
fn grants_that_have_ended_leave_the_list() {
    let issuer = Issuer::new();
    let mut grant = Grant::parse(&issuer.read("shop.grant")).unwrap();
    grant.exp = grant.nbf + 1;
    let key = std::fs::read_to_string(issuer.home.path().join(".config/netserv/key.pem")).unwrap();
    let key = <ed25519_dalek::SigningKey as ed25519_dalek::pkcs8::DecodePrivateKey>::from_pkcs8_pem(&key).unwrap();
    let ended = grant.sign(&key);
    std::fs::write(issuer.home.path().join("ended.grant"), &ended).unwrap();
    let list = Revocations { number: 7, grants: [digest_of_grant(&ended)].into(), ..issuer.revoke(&[]) };
    std::fs::write(issuer.home.path().join("list.jws"), list.sign(&key)).unwrap();
    let list = issuer.revoke(&["shop.grant", "ended.grant"]);
    assert_eq!((list.number, list.grants), (8, [digest_of_grant(&issuer.read("shop.grant"))].into()));
}

/// Goal: a list that cannot be written leaves the one before. Method: a folder lies where the new file goes, as on a disk that takes no more.
#[test]
fn a_list_that_cannot_be_written_leaves_the_one_before() {
    let issuer = Issuer::new();
    issuer.revoke(&[]);
    let before = issuer.read("list.jws");
    std::fs::create_dir(issuer.home.path().join(".list.jws.new")).unwrap();
    let output = issuer.home.netserv(&["grant", "revoke", "--list", "list.jws", "shop.grant"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("fix: make room on the disk"), "{output:?}");
    assert_eq!(issuer.read("list.jws"), before);
}

/// Goal: no list is lost when several are made at one time. Method: twelve programs make the next one.
#[test]
fn lists_that_are_made_at_one_time_come_one_after_the_other() {
    let issuer = Issuer::new();
    let keys: Vec<String> = (0..12).map(|number| format!("ed25519:{number:064x}")).collect();
    let revoke = ["grant", "revoke", "--list", "list.jws", "--user-key"];
    let program = |key| {
        let mut program = issuer.home.command(&[&revoke[..], &[key]].concat());
        program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let all = keys.iter().map(|key| program(key.as_str()));
    for mut program in all.collect::<Vec<_>>() {
        assert!(program.wait().unwrap().success());
    }
    let list = Revocations::verify(&issuer.read("list.jws")).unwrap();
    assert_eq!((list.number, list.keys.len()), (12, 12));
}
