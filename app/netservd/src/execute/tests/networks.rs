// SPDX-License-Identifier: Apache-2.0
//! Who gets a network, and when it is to be removed.

use super::*;

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
