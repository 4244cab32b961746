// SPDX-License-Identifier: Apache-2.0
//! What workers want of their users' networks, and when those may go.

use std::os::fd::OwnedFd;

use netserv_container::network::ContainerNetwork;
use netserv_model::manifest::ServerPart;
use netserv_wire::container::frames::PartKind;

use super::*;

#[tokio::test]
async fn a_network_is_left_when_nothing_of_its_user_runs_starts_or_ends() {
    let mut rig = Rig::new();
    let mut container = rig.start_in("alice", Some(network("198.51.100.7"))).await;
    rig.stop("alice");
    assert!(rig.left().is_empty(), "the worker has not ended");
    rig.ask_in("alice", Ok(Some(network("198.51.100.7"))));
    rig.see_end(&mut container).await;
    let launch = started(rig.launches.try_recv().unwrap());
    assert!(launch.network.is_some() && rig.left().is_empty(), "the next one is being started");
    let Launch { worker, generation, .. } = launch;
    let refusal = Refusal::new(RefusalKind::NodeFailed, "no more places");
    rig.workers.launched(Launched { worker, generation, result: Err(refusal) });
    assert_eq!(rig.left(), [id("alice").user]);

    let mut container = rig.start_in("alice", Some(network("198.51.100.7"))).await;
    container.hang_up();
    container.report_signal(11).unwrap();
    rig.next().await;
    let Some(News { what: WorkerNews::Died { .. }, .. }) = rig.next().await else { panic!("no death") };
    assert_eq!(rig.left(), [id("alice").user], "it died");
    rig.start("bob").await;
    rig.stop("bob");
    assert!(rig.left().is_empty(), "nobody leaves who had none");
}

#[tokio::test]
async fn a_worker_without_its_network_is_not_started() {
    let mut rig = Rig::new();
    let refusal = Refusal::new(RefusalKind::QuotaExceeded, "no address is left");
    assert_eq!(rig.ask_in("bob", Err(refusal.clone())), Some(refusal));
    assert!(rig.launches.try_recv().is_err());
}

#[tokio::test]
async fn a_module_is_loaded_with_its_listening_sockets() {
    let mut rig = Rig::new();
    let container = rig.start_in("alice", Some(network("198.51.100.7"))).await;
    let code = rig.dir.path().join("code");
    std::fs::write(&code, "code").unwrap();
    let server = ServerPart { intercept: vec!["tcp port 80".parse().unwrap()], ..ServerPart::default() };
    let parts = CodeParts { server: Some(code), ..CodeParts::default() };
    let files = LoadFiles { code: Some(parts), composition: None, state: None };
    for made in [true, false] {
        let load = ModuleLoad { packet: false, server: Some(server.clone()), ..load("alice") };
        let listeners = match made {
            true => Ok(vec![(PartKind::ListenerV4, a_descriptor())]),
            false => Err(anyhow::anyhow!("the kernel refuses")),
        };
        let (loading, ticket) = (Loading { load, files: files.clone(), listeners }, rig.ticket());
        rig.workers.carry_out(WorkersJob::Load(Box::new(loading), ticket));
        if made {
            assert_eq!(rig.answered(), None);
            let Some(ToWorker::Load { parts, .. }) = container.receive() else { panic!("no load") };
            assert_eq!(parts, [PartKind::Server, PartKind::ListenerV4]);
        } else {
            assert!(rig.answered().unwrap().detail.contains("the kernel refuses"));
            let dropped = rig.wishes.try_iter().any(|wish| matches!(wish, Wish::DropListeners(_, Some(ModuleSlot(0)))));
            assert!(dropped && container.receive().is_none());
        }
    }
}

/// A worker that wants sockets over and over does not fill the queue of the thread that makes them.
#[tokio::test]
async fn a_worker_gets_one_batch_of_sockets_at_a_time() {
    let mut rig = Rig::new();
    let container = rig.start_in("alice", Some(network("198.51.100.7"))).await;
    for _ in 0..2 {
        for v6 in [false, true, false] {
            assert!(container.send(&FromWorker::Sockets { count: 3, v6 }));
        }
        while !rig.workers.workers[&id("alice")].sockets_asked.iter().all(|asked| *asked) {
            rig.hear().await;
        }
        let wishes: Vec<SocketWish> = rig.wishes.try_iter().filter_map(wish).collect();
        assert_eq!(wishes.iter().map(|wish| (wish.v6, wish.count)).collect::<Vec<_>>(), [(false, 3), (true, 3)]);
        for wish in wishes {
            let v6 = wish.v6;
            rig.workers.handle(WorkerEvent::Sockets(wish, vec![a_descriptor()]));
            assert_eq!(container.receive(), Some(ToWorker::Sockets { v6 }));
        }
    }
}

impl Rig {
    /// Starts a container in a network, and hears that it is ready.
    pub(super) async fn start_in(&mut self, user: &str, network: Option<UserNetwork>) -> DetachedContainer {
        assert_eq!(self.ask_in(user, Ok(network)), None);
        let launch = started(self.launches.try_recv().unwrap());
        let container = self.launch(launch);
        assert!(container.send(&ready()));
        self.next().await;
        container
    }

    /// Returns whose networks were left.
    fn left(&self) -> Vec<UserId> {
        let left = |wish| if let Wish::Leave(user) = wish { Some(user) } else { None };
        self.wishes.try_iter().filter_map(left).collect()
    }
}

/// Returns a network that the kernel knows nothing of.
pub(super) fn network(address: &str) -> UserNetwork {
    let addresses = vec![address.parse().unwrap()];
    UserNetwork { network: Arc::new(ContainerNetwork::detached(&addresses).unwrap()), addresses }
}

fn wish(wish: Wish) -> Option<SocketWish> {
    if let Wish::Sockets(wish) = wish { Some(wish) } else { None }
}

fn a_descriptor() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}
