// SPDX-License-Identifier: Apache-2.0
//! Properties of bundles as OSGi has them, with the real host of `java/` and its blocks, if they are built.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_wire::container::frames::{FromWorker, PartKind, ToWorker};

use crate::host::built;
use crate::node::Node;
use crate::support::{java_homes, run, serve, tool};

/// Goal: a bundle has the properties of its SETUP as framework properties, and its `ManagedService` and its component get them as
/// configuration. Two modules in one framework with the same PIDs, and two versions of one, get each its own.
#[test]
fn each_bundle_is_configured_with_its_own_properties() {
    let Some(dist) = built() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut command = serve(&java_homes().remove(0), &dist.join("host"), &folder.path().join("data"));
    command.arg("--blocks").arg(dist.join("blocks")).stderr(Stdio::inherit());
    let mut node = Node::start(command);
    assert!(matches!(node.frame(), FromWorker::Ready { .. }));
    for (slot, name, version, colour) in
        [(1, "one", "1.0.0", "red"), (2, "two", "1.0.0", "blue"), (1, "one", "2.0.0", "green"), (2, "two", "3.0.0", "")]
    {
        let jar = jar(folder.path(), &dist, name, version);
        let properties = [("colour".to_owned(), colour.to_owned())].into();
        node.send(&load(slot, name, properties), Some(File::open(jar).unwrap().as_fd()));
        let java = "framework %colour Java Platform API Specification".replace("%colour", colour);
        let expected = BTreeSet::from([java, format!("service {colour}"), format!("component {colour}")]);
        let (mut said, mut loaded) = (BTreeSet::new(), false);
        while said.len() < expected.len() || !loaded {
            let frame = node.frame();
            if let FromWorker::Log { slot: Some(ModuleSlot(at)), text, .. } = &frame
                && *at == slot
            {
                said.insert(text.clone());
                continue;
            }
            assert_eq!(frame, FromWorker::Loaded { slot: ModuleSlot(slot) }, "{name} {version}");
            loaded = true;
        }
        assert_eq!(said, expected, "{name} {version}");
    }
}

fn load(slot: u8, name: &str, properties: BTreeMap<String, String>) -> ToWorker {
    ToWorker::Load {
        slot: ModuleSlot(slot),
        module: format!("example.org/{name}@1.0.0").parse().unwrap(),
        properties,
        limits: ModuleLimits::default(),
        state_schema: 1,
        parts: vec![PartKind::Packet],
        server: None,
        blocks: BTreeSet::new(),
        parallel: false,
    }
}

/// Makes the bundle under a name of its own.
fn jar(folder: &Path, dist: &Path, name: &str, version: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/configured/Configured.java");
    let classes = folder.join("classes");
    if !classes.exists() {
        let class_path = netserv_worker_jvm::home::class_path(&dist.join("host")).unwrap();
        let class_path = format!("{class_path}:{}", dist.join("blocks/org.apache.felix.configadmin.jar").display());
        run(Command::new(tool("javac")).args(["--release", "17", "-cp", &class_path, "-d"]).arg(&classes).arg(source));
        std::fs::create_dir(classes.join("OSGI-INF")).unwrap();
        let component = "<scr:component xmlns:scr='http://www.osgi.org/xmlns/scr/v1.3.0' immediate='true' name='of.part'\n\
            activate='activate'><implementation class='configured.Configured$Part'/></scr:component>\n";
        std::fs::write(classes.join("OSGI-INF/part.xml"), component).unwrap();
    }
    let manifest = folder.join("manifest");
    let headers = format!(
        "Bundle-ManifestVersion: 2\nBundle-SymbolicName: {name}\nBundle-Version: {version}\n\
         Bundle-Activator: configured.Configured\nService-Component: OSGI-INF/*.xml\n\
         Import-Package: org.netserv.block,org.osgi.framework,org.osgi.service.cm\n"
    );
    std::fs::write(&manifest, headers).unwrap();
    let jar = folder.join("bundle.jar");
    run(Command::new(tool("jar")).arg("cfm").arg(&jar).arg(manifest).arg("-C").arg(classes).arg("."));
    jar
}
