// SPDX-License-Identifier: Apache-2.0
//! The node from outside: inputs in, outputs out.

use std::collections::BTreeMap;
use std::time::Duration;

use netserv_model::api::{PathSpec, PostRequest, RequestResult};
use netserv_model::effect::{Effect, EffectId, EffectOutcome, Job, News, PackageJob, WorkerJob, WorkerNews};
use netserv_model::evidence::Holder;
use netserv_model::manifest::{Manifest, ModuleLimits};
use netserv_model::policy::{NodePolicy, UserPolicy};
use netserv_model::{
    Digest, Flavour, Instant, ModuleName, ModuleRef, Nonce, Now, PublicKey, Refusal, RefusalKind, UnixTime, WorkerId,
};
use netserv_wire::nslp::RequestBuilder;

use crate::{CallId, Input, Node, NodeConfig, Output, What};

mod applications;
mod bounds;
mod calls;
mod order;
mod recording;
mod usage;

const START: Now = Now { instant: Instant::from_millis(5000), wall: UnixTime::from_secs(1_800_000_000) };
const MODULE: &str = "example.org/m@1.0.0";

/// A node with its clock, and what it waits for.
struct Script {
    node: Node,
    now: Now,
    /// Effects that were given out and not answered.
    open: Vec<Effect>,
    /// The answers to clients' requests.
    replies: BTreeMap<CallId, Result<RequestResult, Refusal>>,
    /// The effect that started each worker.
    generations: BTreeMap<WorkerId, EffectId>,
    nonces: u128,
}

impl Script {
    /// Returns a node where some users are known, and need not sign.
    fn new(users: usize) -> Script {
        Script {
            node: node(users),
            now: START,
            open: Vec::new(),
            replies: BTreeMap::new(),
            generations: BTreeMap::new(),
            nonces: 0,
        }
    }

    /// Gives an input; returns what comes out.
    fn handle(&mut self, input: Input) -> Vec<Output> {
        self.node.handle(self.now, input);
        let outputs: Vec<Output> = std::iter::from_fn(|| self.node.poll_output()).collect();
        for output in &outputs {
            match output {
                Output::Do(effect) => self.open.push(effect.clone()),
                Output::Reply(call, result) => {
                    let before = self.replies.insert(*call, (**result).clone());
                    assert!(before.is_none(), "{call:?} is answered once");
                }
                Output::Send(_)
                | Output::Attach(..)
                | Output::Release(..)
                | Output::Abandon(_)
                | Output::Fresh(_)
                | Output::Applied(..)
                | Output::Application(..)
                | Output::Stopped
                | Output::Notice(_) => {}
            }
        }
        outputs
    }

    fn sleep(&mut self, time: Duration) {
        self.now = self.now + time;
        self.handle(Input::Timeout);
    }

    /// Posts a SETUP of a user's, along a path or for this node alone.
    fn setup(&mut self, call: u64, user: &str, path: Option<PathSpec>) -> Vec<Output> {
        let module: ModuleRef = MODULE.parse().unwrap();
        let builder = RequestBuilder::setup(&module, "file:///m.nsm", Digest([1; 32]), Duration::from_secs(60));
        self.post(call, builder.user(&user.parse().unwrap()), path)
    }

    fn post(&mut self, call: u64, builder: RequestBuilder, path: Option<PathSpec>) -> Vec<Output> {
        self.nonces += 1;
        let nonce = Nonce(self.nonces.to_be_bytes());
        let message = builder.build(self.now.wall, nonce).unwrap().into_message().as_str().to_owned();
        let request = PostRequest { message, path, session: None, timeout_ms: 0 };
        self.handle(Input::Post(CallId(call), Box::new(request)))
    }

    /// Answers the effects that are open, and those that come of it, as a machine does where all goes well; those of one
    /// user stay open.
    fn work(&mut self, but: Option<&str>) {
        let waits = |effect: &Effect| but.is_none() || effect.user.as_ref().map(|user| user.as_str()) != but;
        while let Some(at) = self.open.iter().position(waits) {
            let effect = self.open.remove(at);
            self.carry_out(&effect);
        }
    }

    fn carry_out(&mut self, effect: &Effect) {
        self.handle(Input::Done(effect.id, outcome(&effect.job)));
        if let Job::Workers(WorkerJob::Start { worker, .. }) = &effect.job {
            self.generations.insert(worker.clone(), effect.id);
            self.tell(worker, WorkerNews::Ready { addresses: Vec::new() });
        }
        if let Job::Workers(WorkerJob::Load(load)) = &effect.job {
            self.tell(&load.worker, WorkerNews::Loaded(load.slot));
        }
    }

    fn tell(&mut self, worker: &WorkerId, what: WorkerNews) {
        let generation = self.generations[worker];
        self.handle(Input::News(News { worker: worker.clone(), generation, what }));
    }

    /// Returns what has come of a posted request.
    fn outcome(&self, call: u64) -> Option<Result<String, RefusalKind>> {
        let reply = self.replies.get(&CallId(call))?;
        let said = |result: &RequestResult| result.nodes[0].outcome.to_string();
        Some(reply.as_ref().map(said).map_err(|refusal| refusal.kind))
    }
}

/// Returns a node where `user0`, `user1`, … are known.
fn node(users: usize) -> Node {
    let name: netserv_model::NodeId = "n1".parse().unwrap();
    Node::new(NodeConfig::new(name, vec![1; 16]), policy(users), [7; 32])
}

fn policy(users: usize) -> NodePolicy {
    let user = UserPolicy {
        keys: vec![PublicKey([0; 32])],
        prefixes: vec!["10.0.0.0/8".parse().unwrap()],
        modules_max: 100,
        module_limits: ModuleLimits::default(),
        ..UserPolicy::default()
    };
    let mut policy = NodePolicy::new("n1".parse().unwrap());
    policy.accept_unsigned = true;
    policy.blocks = BTreeMap::from([("packet".to_owned(), 1)]);
    policy.users = (0..users).map(|n| (format!("user{n}").parse().unwrap(), user.clone())).collect();
    policy
}

/// Returns the outcome of a job where all goes well.
fn outcome(job: &Job) -> EffectOutcome {
    match job {
        Job::Packages(PackageJob::Fetch { .. }) => {
            EffectOutcome::Fetched { manifest: Box::new(manifest()), flavour: Flavour::Wasm }
        }
        Job::Measure => EffectOutcome::Measured(Box::default()),
        Job::ReadMeters => EffectOutcome::Metered(Box::default()),
        Job::AskAddress { .. } => EffectOutcome::Vouched(Digest([7; 32])),
        Job::FindHolder { .. } => EffectOutcome::Held(Holder { prefixes: Vec::new(), until: UnixTime(0) }),
        Job::AskList { .. } => EffectOutcome::Listed(None),
        Job::Route(_) => EffectOutcome::Routed(Some([10, 0, 0, 1].into())),
        Job::Packages(PackageJob::Compose { .. })
        | Job::Workers(_)
        | Job::Filters(_)
        | Job::Intercepts(_)
        | Job::Permit(_)
        | Job::Limit(_)
        | Job::Floating(_)
        | Job::Addresses(_)
        | Job::Store(_) => EffectOutcome::Done,
    }
}

fn manifest() -> Manifest {
    let text = r#"{"manifest":1,"name":"example.org/m","version":"1.0.0","packet":{"abi":1,"filters":["udp dst 10.2.0.0/24"]}}"#;
    serde_json::from_str(text).unwrap()
}

/// Returns the effects among some outputs.
fn effects(outputs: &[Output]) -> Vec<(EffectId, &Job)> {
    let effect = |output| if let &Output::Do(Effect { id, ref job, .. }) = output { Some((id, job)) } else { None };
    outputs.iter().filter_map(effect).collect()
}

fn module_name() -> ModuleName {
    MODULE.parse::<ModuleRef>().unwrap().name
}
