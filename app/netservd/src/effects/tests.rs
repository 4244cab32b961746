// SPDX-License-Identifier: Apache-2.0
//! Effects on their way to owners, which are the test.

use std::sync::mpsc::{Receiver, channel};

use netserv_model::effect::EffectOutcome;
use netserv_model::policy::ContainerLimits;
use netserv_model::{ModuleRef, WorkerId};
use netserv_repository::IsOwn;

use super::*;

#[test]
fn a_service_is_composed_of_what_was_fetched_once() {
    let mut rig = Rig::new();
    let parts = vec![Digest([2; 32]), Digest([3; 32])];
    let names: Vec<ModuleRef> = vec!["example.org/m@1.0.0".parse().unwrap()];
    let compose = || Job::Packages(PackageJob::Compose { parts: parts.clone(), names: names.clone() });
    rig.begin(1, compose());
    let answer = rig.answers.try_recv().unwrap();
    assert!(matches!(answer.outcome, EffectOutcome::Refused(refusal) if refusal.detail.contains("was not fetched")));
    for digest in &parts {
        let code = CodeParts { component: Some("component".into()), ..CodeParts::default() };
        rig.effects.keep(Cargo::Code(*digest, Flavour::Wasm, code));
    }
    rig.begin(2, compose());
    let Ok(PackageRequest::Compose { components, ticket, .. }) = rig.packages.try_recv() else { panic!("nothing") };
    assert_eq!(components.len(), 2);
    ticket.done();
    rig.effects.keep(Cargo::Composition(parts.clone(), "composed".into()));
    rig.begin(3, compose());
    let done = [rig.answers.try_recv().unwrap(), rig.answers.try_recv().unwrap()].map(|answer| answer.outcome);
    assert_eq!(done, [EffectOutcome::Done, EffectOutcome::Done], "it is there");
    assert!(rig.packages.try_recv().is_err());
}

#[test]
fn compositions_are_bounded_and_older_ones_removed() {
    let mut rig = Rig::new();
    for n in 0..=COMPOSITIONS_MAX {
        let parts = vec![Digest([u8::try_from(n).unwrap(); 32])];
        rig.effects.keep(Cargo::Composition(parts, format!("composed-{n}").into()));
    }
    assert_eq!(rig.effects.compositions.len(), 1);
    let newer = rig.effects.compositions.keys().next().unwrap().clone();
    rig.effects.keep(Cargo::Composition(newer, "newer".into()));
    let removed = rig.packages.try_iter().filter(|request| matches!(request, PackageRequest::Remove(_))).count();
    assert_eq!(removed, COMPOSITIONS_MAX + 1);
}

#[test]
fn states_that_wait_to_be_loaded_are_bounded() {
    let mut rig = Rig::new();
    let keep = |rig: &mut Rig, n: usize, user: usize| {
        let state = Digest([u8::try_from(n).unwrap(); 32]);
        let user = format!("user{user}").parse().unwrap();
        let file = Arc::new(Downloaded::from_file(tempfile::tempfile().unwrap(), &user));
        rig.effects.keep(Cargo::CodeAndState(Digest([7; 32]), Flavour::Wasm, CodeParts::default(), state, file));
    };
    let held = |rig: &Rig| rig.effects.states.iter().map(|(digest, _)| usize::from(digest.0[0])).collect::<Vec<_>>();
    for n in 0..=STATES_HELD_PER_USER_MAX {
        keep(&mut rig, n, 0);
    }
    assert_eq!(held(&rig), (1..=STATES_HELD_PER_USER_MAX).collect::<Vec<_>>());
    // A user with fewer states takes a place of the user with the most.
    for n in 0..STATES_HELD_MAX - 1 {
        keep(&mut rig, 100 + n, 1 + n);
    }
    assert_eq!(rig.effects.states.len(), STATES_HELD_MAX);
    assert_eq!(held(&rig)[0], STATES_HELD_PER_USER_MAX);
}

#[test]
fn the_paths_of_code_are_bounded() {
    let mut rig = Rig::new();
    for n in 0..=CODE_PATHS_MAX {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&u64::try_from(n).unwrap().to_be_bytes());
        rig.effects.keep(Cargo::Code(Digest(digest), Flavour::Wasm, CodeParts::default()));
    }
    assert_eq!(rig.effects.code.len(), 1);
}

/// What an owner makes for another one goes through here, with the ticket.
#[test]
fn a_worker_is_started_in_the_network_that_was_made_for_it() {
    let mut rig = Rig::new();
    let worker: WorkerId = WorkerId::new("alice".parse().unwrap(), Flavour::Wasm);
    rig.begin(
        7,
        Job::Workers(WorkerJob::Start {
            worker: worker.clone(),
            limits: ContainerLimits::default(),
            permits: Box::default(),
        }),
    );
    assert!(rig.workers.try_recv().is_err(), "the network is not there");
    let Ok(NetworkJob::Make(user, _, then)) = rig.networks.try_recv() else { panic!("no network") };
    assert_eq!(user, worker.user);
    then(Ok(None));
    let Ok(WorkersJob::Start { worker: started, ticket, .. }) = rig.workers.try_recv() else { panic!("no worker") };
    assert_eq!((started, ticket.id()), (worker, EffectId(7)));
}

/// The kernel holds a container to what is permitted before it knows itself.
#[test]
fn a_permission_goes_to_the_network_and_then_to_the_workers() {
    let mut rig = Rig::new();
    rig.begin(7, Job::Permit(Box::default()));
    assert!(rig.workers.try_recv().is_err(), "the network comes first");
    let Ok(NetworkJob::Permit(user, _, then)) = rig.networks.try_recv() else { panic!("no network") };
    then(Err(Refusal::new(RefusalKind::NoNetwork, "none")));
    let Ok(WorkersJob::Permit(told, _, network, ticket)) = rig.workers.try_recv() else { panic!("no worker") };
    assert!(told == user && network.is_err() && ticket.id() == EffectId(7));
}

#[test]
fn an_effect_whose_owner_is_gone_is_refused() {
    let Rig { mut effects, mut answers, networks, .. } = Rig::new();
    drop(networks);
    let worker = WorkerId::new("alice".parse().unwrap(), Flavour::Wasm);
    let job = Job::Workers(WorkerJob::Start { worker, limits: ContainerLimits::default(), permits: Box::default() });
    effects.begin(Effect { id: EffectId(1), user: Some("alice".parse().unwrap()), job });
    assert!(matches!(answers.try_recv().unwrap().outcome, EffectOutcome::Refused(_)));
}

struct Rig {
    effects: Effects,
    answers: tokio::sync::mpsc::UnboundedReceiver<Answer>,
    packages: Receiver<PackageRequest>,
    networks: Receiver<NetworkJob>,
    workers: tokio::sync::mpsc::UnboundedReceiver<WorkersJob>,
}

impl Rig {
    fn new() -> Rig {
        let (to_packages, packages) = channel();
        let (to_networks, networks) = channel();
        let (to_workers, workers) = unbounded_channel();
        let proofs = Arc::new(AddressAsker::new(&IsOwn::default()));
        let lists = ListAsker::new(IsOwn::default());
        let modules = ModuleOwners {
            packages: to_packages,
            networks: to_networks,
            workers: to_workers,
            proofs,
            holders: None,
            lists,
        };
        let (filters, store, routes) = (channel().0, channel().0, channel().0);
        let (effects, answers) = Effects::new(Owners { filters, store, routes, modules: Some(modules) });
        Rig { effects, answers, packages, networks, workers }
    }

    fn begin(&mut self, id: u64, job: Job) {
        self.effects.begin(Effect { id: EffectId(id), user: Some("alice".parse().unwrap()), job });
    }
}
