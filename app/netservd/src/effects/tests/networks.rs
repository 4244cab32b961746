// SPDX-License-Identifier: Apache-2.0
//! Who gets a network, and when it is to be removed.

use std::os::fd::OwnedFd;

use netserv_model::effect::FilterId;
use netserv_model::manifest::ServerPart;
use netserv_model::verdict::FailureMode;
use netserv_wire::container::frames::PartKind;

use super::*;
use crate::effects::networks::jobs::Interception;
use crate::event::{NetworkEvent, SocketWish};

#[tokio::test]
async fn a_network_is_wanted_by_whom_something_is_permitted_until_the_last_module_goes() {
    let mut rig = Rig::new();
    rig.executor.set_users(&config("alice", "listen = ['tcp port 80']"));
    let [first, second] = ["alice", "bob"].map(|user| {
        rig.executor.carry_out(start(user));
        started(rig.launches.try_recv().unwrap())
    });
    assert_eq!(second.network, None, "the configuration grants nothing");
    let wanted = first.network.clone().unwrap();
    assert_eq!(wanted.permits.listen[0].to_string(), "tcp port 80");
    assert_eq!(rig.executor.addresses(&id("alice").user), wanted.addresses);
    assert!(rig.executor.addresses(&id("bob").user).is_empty());
    let [mut container, bobs] = [rig.launch(first), rig.launch(second)];

    rig.executor.carry_out(Command::Store(record(Digest([1; 32]))));
    rig.executor.carry_out(Command::StopWorker { worker: id("alice") });
    rig.see_end(&mut container).await;
    assert!(rig.launches.try_recv().is_err(), "a module is installed");
    rig.executor.carry_out(start("alice"));
    let again = started(rig.launches.try_recv().unwrap());
    assert_eq!(again.network.as_ref(), Some(&wanted));
    rig.executor.carry_out(Command::Forget { user: id("alice").user, module: "example.org/m".parse().unwrap() });
    assert!(rig.launches.try_recv().is_err(), "a worker is being started");
    for user in ["alice", "bob"] {
        rig.executor.carry_out(Command::StopWorker { worker: id(user) });
    }
    let removed: Vec<UserId> = rig.launches.try_iter().map(removed).collect();
    assert_eq!(removed, [id("alice").user], "once, and of nobody who had none");
    assert!(rig.executor.addresses(&id("alice").user).is_empty());
    drop(bobs);
}

/// Nothing was installed, so nothing is forgotten, and what never ran is not stopped.
#[tokio::test]
async fn a_network_goes_with_a_worker_that_did_not_start_or_died() {
    let mut rig = Rig::new();
    rig.executor.set_users(&config("alice", "listen = ['tcp port 80']"));
    rig.executor.carry_out(start("alice"));
    let Launch { worker, generation, .. } = started(rig.launches.try_recv().unwrap());
    let refusal = Refusal::new(RefusalKind::NodeFailed, "no more places");
    rig.executor.launched(Launched { worker, generation, result: Err(refusal) });
    assert_eq!(removed(rig.launches.try_recv().unwrap()), id("alice").user);
    rig.executor.poll_event().unwrap();

    let mut container = rig.start("alice").await;
    container.hang_up();
    container.report_signal(11).unwrap();
    let Some(ControllerEvent::WorkerDied { .. }) = rig.next().await else { panic!("no death") };
    assert_eq!(removed(rig.launches.try_recv().unwrap()), id("alice").user);

    // One that is to start again keeps it, and so does one beside.
    rig.executor.carry_out(Command::Store(record(Digest([1; 32]))));
    let mut container = rig.start("alice").await;
    container.hang_up();
    container.report_signal(11).unwrap();
    let Some(ControllerEvent::WorkerDied { .. }) = rig.next().await else { panic!("no death") };
    assert!(rig.launches.try_recv().is_err());
}

#[tokio::test]
async fn a_worker_for_which_no_address_is_left_is_not_started() {
    let mut rig = Rig::new();
    let config = [config("alice", "listen = ['ip']"), config("bob", "listen = ['ip']")];
    let users = config.iter().flat_map(|config| config.users.clone()).collect();
    rig.executor.set_users(&Config { users, ..config[0].clone() });
    rig.executor.carry_out(start("alice"));
    let _first = started(rig.launches.try_recv().unwrap());
    rig.executor.carry_out(start("bob"));
    assert!(rig.launches.try_recv().is_err());
    let Some(ControllerEvent::WorkerDied { worker, refusal, .. }) = rig.executor.poll_event() else {
        panic!("started")
    };
    assert_eq!((worker, refusal.kind), (id("bob"), RefusalKind::QuotaExceeded));
}

/// Goal: whether connections can be taken over is known before what follows from it. Method: the thread that has the
/// kernel do it is the test.
#[tokio::test]
async fn commands_wait_for_what_the_kernel_says_of_an_interception() {
    let mut rig = Rig::new();
    let jobs = rig.network_jobs();
    let rule = Interception {
        id: FilterId(7),
        worker: id("alice"),
        slot: ModuleSlot(0),
        filter: "tcp port 80".parse().unwrap(),
        on_failure: FailureMode::Open,
    };
    for refused in [false, true] {
        let Interception { id, worker, slot, filter, on_failure } = rule.clone();
        rig.executor.carry_out(Command::Intercept { id, worker, slot, filter, on_failure });
        let Ok(NetworkJob::Intercept(asked)) = jobs.try_recv() else { panic!("no interception") };
        assert!(asked == rule && rig.executor.is_busy() && rig.executor.poll_event().is_none());
        let refusal = Refusal::new(RefusalKind::QuotaExceeded, "too many");
        let result = if refused { Err(refusal.clone()) } else { Ok(()) };
        rig.executor.network_changed(NetworkEvent::Intercepted(id, result));
        let failed = refused.then_some(ControllerEvent::FilterFailed { id, refusal });
        assert_eq!((rig.executor.is_busy(), rig.executor.poll_event()), (false, failed));
    }
}

#[tokio::test]
async fn a_module_is_loaded_when_its_listening_sockets_are_there() {
    let mut rig = Rig::new();
    let jobs = rig.network_jobs();
    let mut container = rig.start("alice").await;
    let code = rig.dir.path().join("code");
    std::fs::write(&code, "code").unwrap();
    let server = ServerPart { intercept: vec!["tcp port 80".parse().unwrap()], ..ServerPart::default() };
    let load = Load { packet: false, server: Some(server), ..load("alice") };
    let parts = CodeParts { server: Some(code), ..CodeParts::default() };
    rig.executor.code.insert((load.digest, Flavour::Wasm), parts);
    for dies in [false, true] {
        rig.executor.carry_out(Command::Load(load.clone()));
        let Ok(NetworkJob::Listeners(asked)) = jobs.try_recv() else { panic!("no listeners") };
        assert!(rig.executor.is_busy() && container.receive().is_none());
        if dies {
            container.hang_up();
            container.report_signal(11).unwrap();
            let Some(ControllerEvent::WorkerDied { .. }) = rig.next().await else { panic!("no death") };
        }
        let listeners = Ok(vec![(PartKind::ListenerV4, a_descriptor())]);
        rig.executor.network_changed(NetworkEvent::Listeners(asked, listeners));
        assert_eq!((rig.executor.is_busy(), rig.executor.poll_event()), (false, None), "its death was told");
        if !dies {
            let Some(ToWorker::Load { parts, .. }) = container.receive() else { panic!("no load") };
            assert_eq!(parts, [PartKind::Server, PartKind::ListenerV4]);
        }
    }
}

/// A worker that wants sockets over and over does not fill the queue of the thread that makes them.
#[tokio::test]
async fn a_worker_gets_one_batch_of_sockets_at_a_time() {
    let mut rig = Rig::new();
    let jobs = rig.network_jobs();
    let container = rig.start("alice").await;
    for _ in 0..2 {
        for v6 in [false, true, false] {
            assert!(container.send(&FromWorker::Sockets { count: 3, v6 }));
        }
        while !rig.executor.workers[&id("alice")].sockets_asked.iter().all(|asked| *asked) {
            rig.hear().await;
        }
        let wishes: Vec<SocketWish> = jobs.try_iter().filter_map(wish).collect();
        assert_eq!(wishes.iter().map(|wish| (wish.v6, wish.count)).collect::<Vec<_>>(), [(false, 3), (true, 3)]);
        for wish in wishes {
            let v6 = wish.v6;
            rig.executor.network_changed(NetworkEvent::Sockets(wish, vec![a_descriptor()]));
            assert_eq!(container.receive(), Some(ToWorker::Sockets { v6 }));
        }
    }
}

impl Rig {
    /// Puts the test in the place of the thread of networks.
    fn network_jobs(&mut self) -> Receiver<NetworkJob> {
        let (sender, jobs) = channel();
        self.executor.parts.as_mut().unwrap().network_jobs = Some(sender);
        jobs
    }
}

fn wish(job: NetworkJob) -> Option<SocketWish> {
    if let NetworkJob::Sockets(wish) = job { Some(wish) } else { None }
}

fn a_descriptor() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

fn config(user: &str, permits: &str) -> Config {
    let user = format!("[[user]]\nname = '{user}'\nkeys = []\nprefixes = []\n{permits}\n");
    Config::parse(&format!("[network]\nprefixes = ['198.51.100.77/32', '2001:db8::/64']\n{user}")).unwrap()
}

fn removed(job: Job) -> UserId {
    match job {
        Job::RemoveNetwork(user) => user,
        Job::Start(launch) => panic!("{} is to be started", launch.worker),
        Job::Media(_) => panic!("media is to be worked on"),
    }
}
