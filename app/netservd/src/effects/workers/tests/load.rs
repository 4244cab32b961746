// SPDX-License-Identifier: Apache-2.0
//! What workers get to load, and what else they are told of their modules.

use netserv_model::manifest::ServerPart;
use netserv_wire::container::frames::{PartKind, ServerLoad};

use super::networks::network;
use super::*;

#[tokio::test]
async fn a_module_gets_the_parts_that_its_manifest_asks_for() {
    let mut rig = Rig::new();
    rig.permit("alice", permits(&["tcp port 443"], &["tcp port 80"]));
    let wasm = rig.start_in("alice", Some(network("198.51.100.7"))).await;
    let server =
        |tls: bool| Some(ServerPart { listen: vec!["tcp port 443".parse().unwrap()], tls, ..ServerPart::default() });
    use PartKind::{Packet, Server, Tls};
    for (packet, server, expected) in [
        (true, None, vec![Packet]),
        (false, server(false), vec![Server]),
        (true, server(false), vec![Packet, Server]),
        (true, server(true), vec![Packet, Server, Tls]),
    ] {
        let parallel = packet && server.is_none();
        // The node has one lane.
        let processors = u32::from(server.is_none());
        rig.give(ModuleLoad { packet, parallel: packet, processors, server: server.clone(), ..load("alice") });
        let frame = wasm.receive();
        let Some(ToWorker::Load { parts, server: told, blocks, parallel: is_parallel, .. }) = frame else {
            panic!("a load")
        };
        assert_eq!(is_parallel, parallel);
        assert_eq!((parts, told.is_some()), (expected, server.is_some()));
        assert!(blocks.iter().eq(["kv"]), "{blocks:?}");
        let Some(ServerLoad { listen, intercept, addresses, connect, .. }) = told else { continue };
        assert_eq!((listen[0].to_string(), intercept.len()), ("tcp port 443".to_owned(), 0));
        assert_eq!((addresses, connect[0].to_string()), (vec!["198.51.100.7".parse().unwrap()], "tcp port 80".into()));
    }

    // What the operator changes is told to who runs.
    rig.permit("alice", permits(&[], &["tcp port 8080"]));
    let Some(ToWorker::Permit { connect, listen }) = wasm.receive() else { panic!("permissions") };
    assert_eq!((connect[0].to_string(), listen.len()), ("tcp port 8080".to_owned(), 0));

    // A part that is gone is the node's fault.
    let files = LoadFiles { code: Some(rig.code()), composition: None, state: None };
    std::fs::remove_file(rig.dir.path().join("server")).unwrap();
    let refusal =
        rig.load_from(ModuleLoad { server: server(false), ..load("alice") }, files).expect("a file is missing");
    assert!(refusal.kind == RefusalKind::NodeFailed && refusal.detail.contains("cannot open"), "{refusal}");
}

#[tokio::test]
async fn other_limits_hold_for_containers_that_run_and_for_those_that_start() {
    let mut rig = Rig::new();
    let limits = ContainerLimits { memory_bytes: 1 << 26, ..ContainerLimits::default() };
    rig.ask("alice");
    rig.ask("alice/osgi");
    let wasm = started(rig.launches.try_recv().unwrap());
    let ticket = rig.ticket();
    rig.workers.carry_out(WorkersJob::Limit(id("alice").user, limits, ticket));
    let Ok(launches::Job::Limit(user, wanted, ticket)) = rig.launches.try_recv() else { panic!("no limits") };
    assert_eq!((user, wanted), (id("alice").user, limits));
    ticket.done();
    assert_eq!(rig.answered(), None);
    rig.launch(wasm);
    assert_eq!(started(rig.launches.try_recv().unwrap()).limits, limits, "the one that waited for its turn");
}

#[tokio::test]
async fn a_service_is_loaded_from_its_composition() {
    let mut rig = Rig::new();
    let wasm = rig.start("alice").await;
    let service = || ModuleLoad {
        packet: false,
        server: Some(ServerPart::default()),
        chain: vec![Digest([2; 32]), Digest([3; 32])],
        ..load("alice")
    };
    let files = LoadFiles { code: Some(rig.code()), composition: None, state: None };
    let refusal = rig.load_from(service(), files.clone()).expect("there is no composition");
    assert!(refusal.detail.contains("was not composed"), "{refusal}");
    let composed = rig.dir.path().join("composed");
    std::fs::write(&composed, "code").unwrap();
    assert_eq!(rig.load_from(service(), LoadFiles { composition: Some(composed), ..files }), None);
    let Some(ToWorker::Load { parts, .. }) = wasm.receive() else { panic!("a load") };
    assert_eq!(parts, [PartKind::Server]);
    let (slots, ticket) = (vec![ModuleSlot(3), ModuleSlot(0)], rig.ticket());
    rig.workers.carry_out(WorkersJob::Order(id("alice"), slots.clone(), ticket));
    assert_eq!((rig.answered(), wasm.receive()), (None, Some(ToWorker::Order { slots })));
}

impl Rig {
    /// Loads a module, with a file for each of its parts.
    fn give(&mut self, load: ModuleLoad) {
        let files = LoadFiles { code: Some(self.code()), composition: None, state: None };
        assert_eq!(self.load_from(load, files), None, "it was given to the worker");
    }

    /// Returns where the files of a package are, which are there.
    fn code(&self) -> CodeParts {
        let file = |name: &str| {
            let path = self.dir.path().join(name);
            std::fs::write(&path, name).unwrap();
            Some(path)
        };
        CodeParts { packet: file("packet"), server: file("server"), component: None, tls: file("tls") }
    }
}

fn permits(listen: &[&str], connect: &[&str]) -> Permits {
    let [listen, connect] = [listen, connect].map(|list| list.iter().map(|text| text.parse().unwrap()).collect());
    Permits { listen, connect, ..Permits::default() }
}
