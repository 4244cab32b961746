// SPDX-License-Identifier: Apache-2.0
//! What workers get to load, and what else they are told of their modules.

use netserv_model::manifest::{ServerPart, Tls};
use netserv_wire::container::frames::{PartKind, ServerLoad};

use super::*;
use crate::limits::COMPOSITIONS_MAX;

#[tokio::test]
async fn a_module_gets_the_parts_that_its_manifest_asks_for() {
    let mut rig = Rig::new();
    rig.executor.set_users(&config("listen = ['tcp port 443']\nconnect = ['tcp port 80']"));
    let wasm = rig.start("alice").await;
    let server = |tls: bool| {
        let tls = tls.then(|| Tls { certificate: "cert.pem".to_owned(), key: "key.pem".to_owned() });
        Some(ServerPart { listen: vec!["tcp port 443".parse().unwrap()], tls, ..ServerPart::default() })
    };
    use PartKind::{Packet, Server, Tls as Pem};
    for (packet, server, expected) in [
        (true, None, vec![Packet]),
        (false, server(false), vec![Server]),
        (true, server(false), vec![Packet, Server]),
        (true, server(true), vec![Packet, Server, Pem]),
    ] {
        rig.give(Load { packet, server: server.clone(), ..load("alice") });
        let Some(ToWorker::Load { parts, server: told, blocks, .. }) = wasm.receive() else { panic!("a load") };
        assert_eq!((parts, told.is_some()), (expected, server.is_some()));
        assert!(blocks.contains("kv") && blocks.contains("http") && blocks.contains("packet"), "{blocks:?}");
        let Some(ServerLoad { listen, intercept, addresses, connect }) = told else { continue };
        assert_eq!((listen[0].to_string(), intercept.len()), ("tcp port 443".to_owned(), 0));
        assert_eq!((addresses, connect[0].to_string()), (vec!["198.51.100.7".parse().unwrap()], "tcp port 80".into()));
    }

    // What the operator changes is told to who runs.
    rig.executor.set_users(&config("connect = ['tcp port 8080']"));
    let Some(ToWorker::Permit { connect, listen }) = wasm.receive() else { panic!("permissions") };
    assert_eq!((connect[0].to_string(), listen.len()), ("tcp port 8080".to_owned(), 0));

    // A part that is gone is the node's fault.
    std::fs::remove_file(rig.dir.path().join("server")).unwrap();
    rig.executor.carry_out(Command::Load(Load { server: server(false), ..load("alice") }));
    let Some(ControllerEvent::ModuleFailed { refusal, .. }) = rig.executor.poll_event() else { panic!("no failure") };
    assert!(refusal.kind == RefusalKind::NodeFailed && refusal.detail.contains("cannot open"), "{refusal}");
}

#[tokio::test]
async fn a_service_is_loaded_from_its_composition() {
    let mut rig = Rig::new();
    let wasm = rig.start("alice").await;
    let (parts, code) = (vec![Digest([2; 32]), Digest([3; 32])], rig.dir.path().join("composed"));
    let service = || Load {
        packet: false,
        server: Some(ServerPart::default()),
        chain: vec![Digest([2; 32]), Digest([3; 32])],
        ..load("alice")
    };
    rig.fetched();
    rig.executor.carry_out(Command::Load(service()));
    let Some(ControllerEvent::ModuleFailed { refusal, .. }) = rig.executor.poll_event() else { panic!("no failure") };
    assert!(refusal.detail.contains("was not composed"), "{refusal}");
    // Its parts are to be there before.
    rig.executor.carry_out(Command::Compose { job: JobId(7), parts: parts.clone(), names: vec![] });
    let failed = rig.executor.poll_event();
    assert!(matches!(failed, Some(ControllerEvent::FetchFailed { job: JobId(7), .. })), "{failed:?}");

    std::fs::write(&code, "code").unwrap();
    // Two services of the same parts wait for one composition.
    rig.executor.composing.insert(parts.clone(), vec![JobId(8)]);
    rig.executor.carry_out(Command::Compose { job: JobId(10), parts: parts.clone(), names: vec![] });
    assert_eq!(rig.executor.poll_event(), None);
    rig.executor.composed(parts.clone(), Ok(code));
    for job in [8, 10] {
        assert_eq!(rig.executor.poll_event(), Some(ControllerEvent::Composed { job: JobId(job) }));
    }
    rig.executor.carry_out(Command::Compose { job: JobId(9), parts, names: vec![] });
    assert_eq!(rig.executor.poll_event(), Some(ControllerEvent::Composed { job: JobId(9) }), "it is there");
    rig.executor.carry_out(Command::Load(service()));
    assert_eq!(rig.executor.poll_event(), None);
    let Some(ToWorker::Load { parts, .. }) = wasm.receive() else { panic!("a load") };
    assert_eq!(parts, [PartKind::Server]);
    let slots = vec![ModuleSlot(3), ModuleSlot(0)];
    rig.executor.carry_out(Command::Order { worker: id("alice"), slots: slots.clone() });
    assert_eq!(wasm.receive(), Some(ToWorker::Order { slots }));
}

#[tokio::test]
async fn compositions_are_bounded() {
    let mut rig = Rig::new();
    for n in 0..=COMPOSITIONS_MAX {
        let code = rig.dir.path().join(format!("composed-{n}"));
        std::fs::write(&code, "code").unwrap();
        rig.executor.composed(vec![Digest([u8::try_from(n).unwrap(); 32])], Ok(code));
    }
    assert_eq!(rig.executor.composed.len(), 1);
    assert!(!rig.dir.path().join("composed-0").exists());

    // Nothing of an older composition of the same parts is left.
    let (parts, newer) = (rig.executor.composed.keys().next().unwrap().clone(), rig.dir.path().join("newer"));
    let older = rig.executor.composed[&parts].clone();
    std::fs::write(&newer, "code").unwrap();
    rig.executor.composed(parts, Ok(newer));
    assert!(!older.exists());
}

impl Rig {
    /// Loads a module, with a file for each of its parts.
    fn give(&mut self, load: Load) {
        self.fetched();
        self.executor.carry_out(Command::Load(load));
        assert_eq!(self.executor.poll_event(), None, "it was given to the worker");
    }

    fn fetched(&mut self) {
        let file = |name: &str| {
            let path = self.dir.path().join(name);
            std::fs::write(&path, name).unwrap();
            Some(path)
        };
        let parts = CodeParts { packet: file("packet"), server: file("server"), component: None, tls: file("tls") };
        let manifest = "manifest = 1\nname = \"example.org/m\"\nversion = \"1.0.0\"\npacket = { abi = 1 }\n";
        let manifest = Box::new(netserv_repository::manifest::parse(manifest).unwrap());
        let fetched = Fetched { digest: Digest([1; 32]), flavour: Flavour::Wasm, parts, manifest };
        self.executor.fetched(JobId(0), Ok(fetched));
        assert!(matches!(self.executor.poll_event(), Some(ControllerEvent::Fetched { .. })));
    }
}

fn config(permits: &str) -> Config {
    let user = format!("[[user]]\nname = 'alice'\nkeys = []\nprefixes = []\naddresses = ['198.51.100.7']\n{permits}\n");
    Config::parse(&user).unwrap()
}
