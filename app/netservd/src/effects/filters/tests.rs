// SPDX-License-Identifier: Apache-2.0
//! Changes of rules over the dummy plane, which can be told to refuse.

use netserv_model::Flavour;
use netserv_model::WorkerId;
use netserv_model::effect::ModuleSlot;
use netserv_model::verdict::FailureMode;
use netserv_packet_loop::thread::{PacketThread, PacketThreadConfig};
use netserv_plane::dummy::{Dummy, Plane};
use netserv_plane::{Driver as _, DriverError};
use tokio::sync::mpsc::unbounded_channel;

use super::*;

#[test]
fn a_refused_change_leaves_the_rules_as_they_were() {
    let mut rig = Rig::new();
    rig.filters.change(change(&[1], &[])).unwrap();
    rig.table.refuse(FilterId(2));
    let refusal = rig.filters.change(change(&[2], &[1])).unwrap_err();
    assert!(refusal.detail.contains("could not be installed"), "{refusal}");
    assert_eq!((rig.installed(), rig.filters.rules.keys().count()), (vec![1], 1));
    rig.filters.change(change(&[3], &[1])).unwrap();
    rig.filters.change(change(&[], &[3, 99])).unwrap();
    assert!(rig.installed().is_empty() && rig.filters.rules.is_empty());
}

/// Goal: one user's bad rule costs nobody else's. Method: three changes wait, and the plane refuses the second.
#[test]
fn changes_that_wait_are_made_as_one_or_each_alone() {
    let mut rig = Rig::new();
    rig.table.refuse(FilterId(2));
    let (answers, mut inbox) = unbounded_channel();
    let ticket = |id| Ticket::new(netserv_model::effect::EffectId(id), answers.clone());
    let changes = [change(&[1], &[]), change(&[2], &[]), change(&[3], &[1])];
    rig.filters.change_all(changes.into_iter().zip(1..).map(|(change, id)| (change, ticket(id))).collect());
    let done: Vec<bool> = std::iter::from_fn(|| inbox.try_recv().ok())
        .map(|answer| answer.outcome == netserv_model::effect::EffectOutcome::Done)
        .collect();
    assert_eq!((done, rig.installed()), (vec![true, false, true], vec![3]));
}

#[test]
fn the_plane_learns_which_modules_fail_closed() {
    let mut rig = Rig::new();
    let mut both = change(&[1, 2], &[]);
    both.add[1].on_failure = FailureMode::Closed;
    rig.filters.change(both).unwrap();
    assert_eq!((rig.installed(), rig.table.closed.lock().unwrap().clone()), (vec![1, 2], vec![FilterId(2)]));
}

#[test]
fn merged_changes_do_not_name_what_comes_and_goes() {
    let merged = merge([change(&[1, 2], &[7]), change(&[3], &[1])].iter());
    let added: Vec<u64> = merged.add.iter().map(|rule| rule.id.0).collect();
    assert_eq!((added, merged.remove), (vec![2, 3], vec![FilterId(7)]));
}

/// Goal: a user with many filters leaves some for every other one, up to the node's bound.
#[test]
fn filters_of_one_user_leave_room_for_others() {
    let mut rig = Rig::new();
    let mut next = 0;
    let mut add = |rig: &mut Rig, name: &str, count: usize| {
        let first = next;
        next += u64::try_from(count).unwrap();
        let mut added = change(&(first..next).collect::<Vec<_>>(), &[]);
        added.add.iter_mut().for_each(|rule| rule.worker.user = name.parse().unwrap());
        rig.filters.change(added)
    };
    add(&mut rig, "alice", FILTERS_MAX / 2 + FILTERS_EACH).unwrap();
    let refusal = add(&mut rig, "alice", 1).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::QuotaExceeded, "{refusal}");
    for number in 0..(FILTERS_MAX / 2 - FILTERS_EACH) / FILTERS_EACH {
        assert!(add(&mut rig, &format!("user{number}"), FILTERS_EACH + 1).is_err());
        add(&mut rig, &format!("user{number}"), FILTERS_EACH).unwrap();
    }
    assert_eq!(rig.installed().len(), FILTERS_MAX);
    assert!(add(&mut rig, "bob", 1).is_err(), "the node's bound");
    rig.filters.change(change(&[], &[0])).unwrap();
    add(&mut rig, "bob", 1).unwrap();
}

struct Rig {
    filters: Filters,
    table: Arc<Refusing>,
    plane: Plane,
    _packets: PacketThread,
}

impl Rig {
    fn new() -> Rig {
        let (dummy, plane) = Dummy::new();
        let table = Arc::new(Refusing {
            table: dummy.filters(),
            refused: std::sync::Mutex::default(),
            closed: std::sync::Mutex::default(),
        });
        let packets =
            PacketThread::start(vec![Box::new(dummy)], &PacketThreadConfig::default(), Arc::new(|_| true)).unwrap();
        let traces = Traces::new(|_| {});
        let filters = Filters { table: table.clone(), packets: packets.sender(), rules: BTreeMap::new(), traces };
        Rig { filters, table, plane, _packets: packets }
    }

    fn installed(&self) -> Vec<u64> {
        self.plane.installed().keys().map(|id| id.0).collect()
    }
}

/// Refuses every change that installs one of some rules.
struct Refusing {
    table: Arc<dyn FilterTable>,
    refused: std::sync::Mutex<Vec<FilterId>>,
    /// Filters that were installed for modules that fail closed.
    closed: std::sync::Mutex<Vec<FilterId>>,
}

impl Refusing {
    fn refuse(&self, id: FilterId) {
        self.refused.lock().unwrap().push(id);
    }
}

impl FilterTable for Refusing {
    fn change(&self, changes: &[Change<'_>]) -> Result<(), DriverError> {
        let refused = self.refused.lock().unwrap();
        let is_refused = |change: &Change<'_>| match change {
            Change::Install(id, _) | Change::InstallClosed(id, _) => refused.contains(id),
            Change::Remove(_) => false,
        };
        if changes.iter().any(is_refused) {
            return Err(DriverError::Unsupported { what: "the filter", why: "as the test says".to_owned() });
        }
        let closed = changes.iter().filter_map(|change| match change {
            Change::InstallClosed(id, _) => Some(*id),
            Change::Install(..) | Change::Remove(_) => None,
        });
        self.closed.lock().unwrap().extend(closed);
        self.table.change(changes)
    }
}

fn change(add: &[u64], remove: &[u64]) -> FilterChange {
    let rule = |id: &u64| FilterRule {
        id: FilterId(*id),
        worker: WorkerId::new("alice".parse().unwrap(), Flavour::Wasm),
        slot: ModuleSlot(0),
        module: "example.org/m@1.0.0".parse().unwrap(),
        filter: format!("udp port {id}").parse().unwrap(),
        on_failure: FailureMode::Open,
        buffering: None,
    };
    FilterChange { add: add.iter().map(rule).collect(), remove: remove.iter().map(|id| FilterId(*id)).collect() }
}
