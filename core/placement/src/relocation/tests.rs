// SPDX-License-Identifier: Apache-2.0
//! Relocations between two simulated nodes that refuse, are silent, or whose answers are lost.

use std::collections::BTreeMap;

use netserv_model::api::RequestResult;
use netserv_model::{ModuleRef, Nonce, Refusal, SessionId, UnixTime};
use netserv_wire::nslp::Message;

use super::*;

/// Where the old node is.
const OLD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

#[test]
fn a_module_moves_step_by_step() {
    let mut world = World::new();
    let (ended, steps) = world.run(&mut |_| Link::Up);
    assert_eq!(ended, Ok(Moved { epoch: 2, resumed: false, state: Some((digest(1), 9)) }));
    let state = digest(1);
    assert_eq!(
        steps,
        [
            Step::AskOld,
            Step::AskNew,
            Step::Try(2),
            Step::Buffer(2, OLD),
            Step::Export,
            Step::Begin(2, state),
            Step::Check,
            Step::Release(2)
        ]
    );
    assert_eq!(world.owners(), ["new 2"]);
    let (ended, steps) = world.run(&mut |_| Link::Up);
    assert_eq!(ended, Ok(Moved { epoch: 2, resumed: true, state: None }));
    assert_eq!(steps, [Step::AskOld, Step::AskNew], "it is done, and asks only");
}

/// Goal: wherever one ends, since a request or its answer is lost or who sends it is killed, another one goes on, and the module runs
/// on one node afterwards, and never on two. Method: each step of each course is broken off in each way, then two after each other.
#[test]
fn whatever_is_lost_at_whatever_step_there_is_one_owner_afterwards() {
    let ways = [Link::Up, Link::RequestLost, Link::AnswerLost, Link::Killed];
    for first in 0..8 {
        for second in 0..9 {
            for (one, other) in ways.iter().flat_map(|one| ways.iter().map(move |other| (*one, *other))) {
                let (mut world, mut number) = (World::new(), 0);
                let mut tries = 0;
                loop {
                    let (ended, _) = world.run(&mut |_| {
                        number += 1;
                        if number == first + 1 {
                            one
                        } else if number == first + second + 2 {
                            other
                        } else {
                            Link::Up
                        }
                    });
                    tries += 1;
                    if ended.is_ok() {
                        break;
                    }
                    assert!(tries < 6, "{first} {one:?} {second} {other:?}: {ended:?}");
                }
                assert_eq!(world.owners().len(), 1, "{first} {one:?} {second} {other:?}");
                assert!(world.owners()[0].starts_with("new "), "{first} {one:?} {second} {other:?}");
            }
        }
    }
}

#[test]
fn a_node_that_does_not_take_it_leaves_it_where_it_is() {
    let mut world = World::new();
    world.node("new").refuses = Some(RefusalKind::QuotaExceeded);
    let stopped = world.run(&mut |_| Link::Up).0.unwrap_err();
    assert_eq!((stopped.owner, world.owners()), (Owner::Old, vec!["old 1".to_owned()]));
    assert!(stopped.cause.contains("new: refused"), "{stopped:?}");
    // It would take it, and does not when it comes to it.
    world.node("new").refuses = None;
    world.node("new").fails_to_begin = true;
    let (stopped, steps) = world.run(&mut |_| Link::Up);
    assert_eq!((stopped.unwrap_err().owner, world.owners()), (Owner::Old, vec!["old 1".to_owned()]));
    assert_eq!(steps[5..], [Step::Begin(2, digest(1)), Step::Check, Step::CallOff(1)]);
}

#[test]
fn a_node_that_vanishes_with_the_state_leaves_the_old_one_standing_still_until_its_time_is_up() {
    let mut world = World::new();
    let is_for_new = |step: Step| matches!(step, Step::Begin(..) | Step::Check | Step::AskNew);
    let silent = &mut |step: Step| if is_for_new(step) { Link::RequestLost } else { Link::Up };
    let mut is_there = true;
    let stopped = world.run(&mut |step| {
        is_there &= !matches!(step, Step::Begin(..));
        if is_there { Link::Up } else { silent(step) }
    });
    assert_eq!(stopped.0.unwrap_err().owner, Owner::Unknown, "it may have it");
    assert_eq!(world.run(silent).0.unwrap_err().owner, Owner::Unknown);
    assert!(world.owners().is_empty(), "nobody thaws it who does not know");
    world.node("old").thaw();
    assert_eq!(world.owners(), ["old 1"]);
    assert!(world.run(&mut |_| Link::Up).0.is_ok());
    assert_eq!(world.owners(), ["new 2"]);
}

/// Goal: the old node is not asked to let go while the new one may still fail to begin.
#[test]
fn a_node_that_is_still_beginning_is_not_taken_for_the_owner() {
    let mut world = World::new();
    world.node("new").has = Some((7, ModuleState::Fetching));
    let (stopped, steps) = world.run(&mut |_| Link::Up);
    assert_eq!((stopped.unwrap_err().owner, steps), (Owner::Unknown, vec![Step::AskOld, Step::AskNew]));
    let mut world = World::new();
    world.node("new").begins_slowly = true;
    let link = &mut |step: Step| if matches!(step, Step::Begin(..)) { Link::AnswerLost } else { Link::Up };
    assert_eq!(world.run(link).0.unwrap_err().owner, Owner::Unknown);
    assert_eq!(world.node("old").has, Some((1, ModuleState::Frozen)), "it is not removed");
    world.node("new").has = Some((2, ModuleState::Running));
    assert!(world.run(&mut |_| Link::Up).0.unwrap().resumed);
    assert_eq!(world.owners(), ["new 2"]);
}

/// Goal: a new node that says it has the module, and does not, does not have the old one let go of it; neither does one that claims an
/// epoch which nobody gave it. Method: forged answers.
#[test]
fn a_node_that_lies_leaves_the_module_where_it_is() {
    let mut world = World::new();
    world.node("new").lies = true;
    let (stopped, steps) = world.run(&mut |_| Link::Up);
    let stopped = stopped.unwrap_err();
    assert!(
        stopped.cause == "new says that it has example.org/m, and has not" && stopped.owner == Owner::Old,
        "{stopped:?}"
    );
    assert_eq!((steps.last(), world.owners()), (Some(&Step::CallOff(1)), vec!["old 1".to_owned()]));
    for (ahead, is_believed) in [(EPOCHS_AHEAD_MAX, true), (EPOCHS_AHEAD_MAX + 1, false)] {
        let mut relocation = Relocation::new(plan());
        relocation.answered(Ok(&answer("old", Outcome::Probed, Some((5, ModuleState::Running)))));
        relocation.answered(Ok(&answer("new", Outcome::Probed, Some((5 + ahead, ModuleState::Running)))));
        let stopped = relocation.next().map_err(|ended| ended.unwrap_err().owner);
        assert_eq!(stopped, if is_believed { Ok(Step::Release(5 + ahead)) } else { Err(Owner::Unknown) });
    }
}

#[test]
fn what_the_new_node_said_counts_if_nothing_else_is_heard_of_it() {
    let mut world = World::new();
    let lost = &mut |step: Step| if step == Step::Check { Link::AnswerLost } else { Link::Up };
    assert_eq!(world.run(lost).0.unwrap().epoch, 2);
    assert_eq!(world.owners(), ["new 2"]);
}

/// Goal: a new node that has accepted the module, and shows an earlier one until it is done, is not taken for one that refused.
#[test]
fn what_is_still_under_way_is_not_called_off() {
    let mut relocation = Relocation::new(plan());
    let running = |epoch| Some((epoch, ModuleState::Running));
    for (node, outcome, has) in [
        ("old", Outcome::Probed, running(5)),
        ("new", Outcome::Probed, running(3)),
        ("new", Outcome::WouldDo { action: "replace".to_owned() }, None),
        ("new", Outcome::WouldDo { action: "replace".to_owned() }, None),
        ("old", Outcome::Exported { digest: digest(1), bytes: 9 }, None),
        ("new", Outcome::Refused(Refusal::new(RefusalKind::InProgress, "accepted")), None),
        ("new", Outcome::Probed, running(3)),
    ] {
        assert!(relocation.next().is_ok());
        relocation.answered(Ok(&answer(node, outcome, has)));
    }
    assert_eq!(relocation.next().unwrap_err().unwrap_err().owner, Owner::Unknown);
}

/// Goal: a node that is still making ready is asked again, a few times, while the module goes on where it is.
#[test]
fn a_node_that_makes_ready_is_waited_for() {
    for ready_after in [0, 3, TRIES_MAX, TRIES_MAX + 1] {
        let mut relocation = Relocation::new(plan());
        for node in ["old", "new"] {
            let has = (node == "old").then_some((1, ModuleState::Running));
            relocation.answered(Ok(&answer(node, Outcome::Probed, has)));
        }
        let mut asked = 0;
        while let Ok(Step::Try(2)) = relocation.next() {
            let outcome = match asked == ready_after {
                true => Outcome::WouldDo { action: "install".to_owned() },
                false => Outcome::Refused(Refusal::new(RefusalKind::InProgress, "accepted")),
            };
            relocation.answered(Ok(&answer("new", outcome, None)));
            asked += 1;
        }
        match relocation.next() {
            Ok(step) => assert_eq!((step, asked), (Step::Buffer(2, OLD), ready_after + 1)),
            Err(ended) => assert_eq!((ended.unwrap_err().owner, asked), (Owner::Old, TRIES_MAX + 1)),
        }
        assert_eq!(relocation.next().is_ok(), ready_after <= TRIES_MAX);
    }
}

/// Goal: a node that refuses to say what it has is not taken for one that has nothing.
#[test]
fn a_question_that_is_refused_says_nothing_of_the_owner() {
    let mut relocation = Relocation::new(plan());
    let refused = Outcome::Refused(Refusal::new(RefusalKind::StaleRequest, "the clock"));
    relocation.answered(Ok(&answer("old", refused.clone(), None)));
    assert_eq!(relocation.next().unwrap_err().unwrap_err().owner, Owner::Unknown);
    let mut relocation = Relocation::new(plan());
    relocation.answered(Ok(&answer("old", Outcome::Probed, Some((1, ModuleState::Running)))));
    relocation.answered(Ok(&answer("new", refused, None)));
    assert_eq!(relocation.next().unwrap_err().unwrap_err().owner, Owner::Unknown);
    // Another one answers in its place.
    let mut relocation = Relocation::new(plan());
    relocation.answered(Ok(&answer("new", Outcome::Probed, None)));
    assert_eq!(relocation.next().unwrap_err().unwrap_err().owner, Owner::Unknown);
}

#[test]
fn a_module_that_is_there_in_an_earlier_epoch_is_replaced_in_a_later_one_than_both() {
    let mut world = World::new();
    world.node("old").has = Some((5, ModuleState::Running));
    world.node("new").has = Some((3, ModuleState::BackingOff));
    assert_eq!(world.run(&mut |_| Link::Up).0.unwrap().epoch, 6);
    assert_eq!(world.owners(), ["new 6"]);
    world.node("new").has = None;
    let stopped = world.run(&mut |_| Link::Up).0.unwrap_err();
    assert_eq!(stopped.owner, Owner::None);
}

#[test]
fn each_step_is_a_request_to_one_node() {
    let relocation = Relocation::new(plan());
    let text = |step: Step| {
        let setup = || {
            let module: ModuleRef = "example.org/m@1.0.0".parse().unwrap();
            RequestBuilder::setup(&module, "https://r.example/m", digest(2), Duration::from_secs(60))
        };
        let request = relocation.request(step, setup).user(&"jane".parse().unwrap());
        let message = request.build(UnixTime(1), Nonce([0; 16])).unwrap().into_message();
        Message::parse(message.as_str().as_bytes()).unwrap().as_str().to_owned()
    };
    let check = |step: Step, parts: &[&str]| {
        let text = text(step);
        assert!(parts.iter().all(|part| text.contains(part)), "{step:?}: {text}");
    };
    check(Step::AskOld, &["PROBE ", "modules", "old"]);
    check(Step::AskNew, &["PROBE ", "modules", "new"]);
    check(Step::Try(2), &["SETUP example.org/m@1.0.0", "epoch: 2", "dry-run: true", "prepare: true", "new"]);
    check(Step::Buffer(2, OLD), &["epoch: 2", "dry-run: true", "prepare: true", "buffer: 192.0.2.1", "new"]);
    check(Step::Export, &["EXPORT example.org/m", "https://s.example/put", "10", "old"]);
    check(Step::Begin(2, digest(1)), &["SETUP ", "epoch: 2", "https://s.example/get", &digest(1).to_string(), "new"]);
    check(Step::CallOff(1), &["SETUP ", "epoch: 1", "old"]);
    assert!(!text(Step::CallOff(0)).contains("epoch"), "who counts no epochs says none");
    check(Step::Release(2), &["REMOVE example.org/m", "epoch: 2", "old"]);
}

/// Goal: what cannot wait is no reason not to move. Method: the old node's address is not known; the new one refuses to have packets wait.
#[test]
fn a_module_moves_also_where_packets_cannot_wait() {
    let mut relocation = Relocation::new(plan());
    let mut asked = answer("old", Outcome::Probed, Some((1, ModuleState::Running)));
    asked.nodes[0].address = std::net::Ipv4Addr::UNSPECIFIED.into();
    relocation.answered(Ok(&asked));
    relocation.answered(Ok(&answer("new", Outcome::Probed, None)));
    relocation.answered(Ok(&answer("new", Outcome::WouldDo { action: "install".to_owned() }, None)));
    assert_eq!(relocation.next(), Ok(Step::Export));
    let mut world = World::new();
    let lost = &mut |step: Step| if matches!(step, Step::Buffer(..)) { Link::RequestLost } else { Link::Up };
    assert!(world.run(lost).0.is_ok());
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Up,
    RequestLost,
    AnswerLost,
    /// It arrives, and who sent it is no more.
    Killed,
}

#[derive(Default)]
struct SimNode {
    has: Option<(u64, ModuleState)>,
    /// The first epoch that it takes.
    least: u64,
    /// Whether a SETUP of a later epoch went past.
    handed_over: bool,
    refuses: Option<RefusalKind>,
    fails_to_begin: bool,
    begins_slowly: bool,
    /// It says that it has what it has not.
    lies: bool,
}

impl SimNode {
    /// The time is up for which it has the module stand still.
    fn thaw(&mut self) {
        if let Some((_, state @ ModuleState::Frozen)) = self.has.as_mut().filter(|_| !self.handed_over) {
            *state = ModuleState::Running;
        }
    }
}

struct World {
    nodes: BTreeMap<&'static str, SimNode>,
}

impl World {
    fn new() -> World {
        let old = SimNode { has: Some((1, ModuleState::Running)), ..SimNode::default() };
        World { nodes: [("old", old), ("new", SimNode::default())].into() }
    }

    fn node(&mut self, name: &str) -> &mut SimNode {
        self.nodes.get_mut(name).unwrap()
    }

    fn owners(&self) -> Vec<String> {
        let runs = |(name, node): (&&str, &SimNode)| match node.has {
            Some((epoch, ModuleState::Running)) => Some(format!("{name} {epoch}")),
            _ => None,
        };
        self.nodes.iter().filter_map(runs).collect()
    }

    /// Runs one relocation to its end, or until who sends is killed.
    fn run(&mut self, link: &mut dyn FnMut(Step) -> Link) -> (Result<Moved, Stopped>, Vec<Step>) {
        let (mut relocation, mut steps) = (Relocation::new(plan()), Vec::new());
        loop {
            let step = match relocation.next() {
                Ok(step) => step,
                Err(ended) => return (ended, steps),
            };
            steps.push(step);
            let link = link(step);
            let answer = (link != Link::RequestLost).then(|| self.carry_out(step, relocation.node(step).as_str()));
            assert!(self.owners().len() <= 1, "two run after {steps:?}");
            match (link, answer) {
                (Link::Killed, _) => {
                    let cause = "killed".to_owned();
                    return (Err(Stopped { cause, fix: String::new(), owner: Owner::Unknown }), steps);
                }
                (Link::Up, Some(answer)) => relocation.answered(Ok(&answer)),
                (_, _) => relocation.answered(Err("no answer".to_owned())),
            }
        }
    }

    fn carry_out(&mut self, step: Step, name: &str) -> RequestResult {
        // The path to the new node leads past the old one.
        if let Step::Begin(epoch, _) = step {
            let old = self.node("old");
            old.handed_over |= matches!(old.has, Some((has, ModuleState::Frozen)) if has < epoch);
        }
        let node = self.node(name);
        let refused = |kind| Outcome::Refused(Refusal::new(kind, "simulated"));
        let lease = Outcome::Installed { lease_s: 60 };
        let outcome = match step {
            Step::AskOld | Step::AskNew | Step::Check => Outcome::Probed,
            Step::Try(epoch)
            | Step::Buffer(epoch, _)
            | Step::Begin(epoch, _)
            | Step::GoOn(epoch)
            | Step::CallOff(epoch)
                if epoch < node.least =>
            {
                refused(RefusalKind::OldEpoch)
            }
            Step::Try(_) | Step::Buffer(..) => {
                node.refuses.map_or(Outcome::WouldDo { action: "install".to_owned() }, refused)
            }
            Step::Begin(..) if node.fails_to_begin => refused(RefusalKind::StateRefused),
            Step::Begin(..) if node.lies => lease,
            Step::Begin(epoch, _) => {
                let state = if node.begins_slowly { ModuleState::Starting } else { ModuleState::Running };
                (node.has, node.least) = (Some((epoch, state)), epoch);
                lease
            }
            Step::Export => match &mut node.has {
                Some((_, state @ ModuleState::Running)) => {
                    *state = ModuleState::Frozen;
                    Outcome::Exported { digest: digest(1), bytes: 9 }
                }
                _ => refused(RefusalKind::NotRunning),
            },
            Step::GoOn(epoch) | Step::CallOff(epoch) => {
                (node.has, node.handed_over) = (Some((epoch, ModuleState::Running)), false);
                lease
            }
            Step::Release(epoch) => match node.has {
                Some((has, _)) if has < epoch => {
                    (node.has, node.least) = (None, epoch + 1);
                    Outcome::Removed
                }
                Some(_) => refused(RefusalKind::OldEpoch),
                None => refused(RefusalKind::NotInstalled),
            },
        };
        answer(name, outcome, node.has)
    }
}

fn plan() -> Plan {
    Plan {
        module: "example.org/m".parse().unwrap(),
        old: "old".parse().unwrap(),
        new: "new".parse().unwrap(),
        store: "https://s.example/put".to_owned(),
        fetch: "https://s.example/get".to_owned(),
        freeze: Duration::from_secs(10),
    }
}

fn digest(byte: u8) -> Digest {
    format!("sha256:{}", format!("{byte:02x}").repeat(32)).parse().unwrap()
}

fn answer(name: &str, outcome: Outcome, has: Option<(u64, ModuleState)>) -> RequestResult {
    let status = |(epoch, state): (u64, ModuleState)| {
        serde_json::from_value::<ModuleStatus>(serde_json::json!({
            "user": "jane", "module": "example.org/m@1.0.0", "digest": digest(2), "state": state, "epoch": epoch,
            "lease_s": 60, "filters": [], "restarts": 0
        }))
        .unwrap()
    };
    RequestResult {
        session: SessionId([0; 16]),
        nodes: vec![NodeReport {
            node: name.parse().unwrap(),
            address: "192.0.2.1".parse().unwrap(),
            outcome,
            took_us: 0,
            hop: None,
            load: None,
            modules: has.map(status).into_iter().collect(),
            blocks: Vec::new(),
            environments: Vec::new(),
            policy: None,
        }],
        incomplete: None,
        withheld: Default::default(),
        beside: Default::default(),
        end: None,
        returned: None,
        took_us: 0,
    }
}
