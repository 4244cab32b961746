// SPDX-License-Identifier: Apache-2.0
//! skopeo, which knows nothing of NetServ, reads and copies packages.

use std::path::Path;
use std::process::Command;

use crate::common::{MANIFEST, WASM, digest, signed};
use netserv_model::Flavour;
use netserv_repository::package;
use netserv_skips::skipped;

#[test]
fn skopeo_reads_a_package() {
    let Some(skopeo) = Skopeo::find("skopeo_reads_a_package") else { return };
    let package = signed(MANIFEST, WASM, &[1, 2]);
    skopeo.write(&package);
    let manifest = skopeo.run(&["inspect", "--raw", &skopeo.archive("m.nsm")]);
    assert_eq!(digest(&manifest), package.digest());
    let json: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(json["artifactType"], "application/vnd.netserv.module.v1");
    assert_eq!(json["config"]["mediaType"], "application/vnd.netserv.manifest.v1+json");
    assert_eq!(json["layers"][0]["mediaType"], "application/wasm");
}

#[test]
fn skopeo_copies_a_package_to_a_folder() {
    let Some(skopeo) = Skopeo::find("skopeo_copies_a_package_to_a_folder") else { return };
    let package = signed(MANIFEST, WASM, &[1]);
    skopeo.write(&package);
    skopeo.run(&["copy", &skopeo.archive("m.nsm"), &format!("dir:{}", skopeo.path("out").display())]);
    let hex = |blob: &[u8]| digest(blob).to_string().replace("sha256:", "");
    let file = |name: &str| std::fs::read(skopeo.path("out").join(name)).unwrap();
    assert_eq!(digest(&file("manifest.json")), package.digest());
    assert_eq!(file(&hex(WASM)), WASM);
    let manifest = netserv_repository::manifest::to_json(package.manifest()).unwrap();
    assert_eq!(file(&hex(&manifest)), manifest);
}

/// What skopeo writes is a package with the same digest; it leaves referrers behind, so its signatures are gone.
#[test]
fn a_copy_by_skopeo_is_a_package() {
    let Some(skopeo) = Skopeo::find("a_copy_by_skopeo_is_a_package") else { return };
    let package = signed(MANIFEST, WASM, &[1]);
    skopeo.write(&package);
    skopeo.run(&["copy", "--preserve-digests", &skopeo.archive("m.nsm"), &skopeo.archive("copy.nsm")]);
    let copy = package::read(&std::fs::read(skopeo.path("copy.nsm")).unwrap()).unwrap();
    assert_eq!((copy.digest(), copy.code(Flavour::Wasm), copy.signatures().len()), (package.digest(), Some(WASM), 0));
}

struct Skopeo {
    dir: tempfile::TempDir,
}

impl Skopeo {
    fn find(test: &str) -> Option<Skopeo> {
        if Command::new("skopeo").arg("--version").output().is_err() {
            skipped(test, "skopeo is not installed");
            return None;
        }
        Some(Skopeo { dir: tempfile::tempdir().unwrap() })
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn archive(&self, name: &str) -> String {
        format!("oci-archive:{}", self.path(name).display())
    }

    fn write(&self, package: &netserv_repository::Package) {
        std::fs::write(self.path("m.nsm"), package.to_bytes()).unwrap();
    }

    fn run(&self, args: &[&str]) -> Vec<u8> {
        let policy = self.path("policy.json");
        std::fs::write(&policy, r#"{"default":[{"type":"insecureAcceptAnything"}]}"#).unwrap();
        let output = skopeo(&policy, self.dir.path()).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

fn skopeo(policy: &Path, tmp: &Path) -> Command {
    let mut command = Command::new("skopeo");
    command.arg("--policy").arg(policy).arg("--tmpdir").arg(tmp);
    command
}
