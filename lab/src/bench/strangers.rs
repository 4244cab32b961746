// SPDX-License-Identifier: Apache-2.0
//! Users whom no configuration names: what the decision about one costs, and a thousand of them at one node.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use ed25519_dalek::pkcs8::DecodePrivateKey as _;
use ed25519_dalek::{Signer as _, SigningKey};
use ipnet::IpNet;
use netserv_authority::grant::{Grant, user_of};
use netserv_authority::{Authority, Question, Said, Unproven, digest_of_grant};
use netserv_model::api::{PostRequest, RequestResult};
use netserv_model::evidence::Checklist;
use netserv_model::policy::{Class, Issuer, NodePolicy, UserPolicy};
use netserv_model::request::{Outcome, Request};
use netserv_model::{Nonce, PublicKey, SessionId, Signature, UnixTime, UserId};
use netserv_rpki::Cache;
use netserv_rpki_tree::Tree;
use netserv_wire::nslp::{Message, RequestBuilder};
use rustix::time::{ClockId, clock_gettime};

use super::goals::Goal;
use super::summary::{Figure, Row};
use super::{Plan, progress};
use crate::netns::Lab;
use crate::node::LabUser;
use crate::topology::{Kind, Topology};

/// Users who come to one node.
const STRANGERS: usize = 1000;
/// How many of them ask at a time.
const AT_A_TIME: usize = 8;
/// Requests of the user of the configuration among theirs.
const CONFIGURED: usize = 100;
/// Decisions of a round, of which the median counts.
const DECISIONS: usize = 51;
/// Objects of the relying party's cache, all in one manifest that the decision reads.
const OBJECTS: u64 = 20_000;
const OBJECT_BYTES: usize = 2000;
/// Everything is about these addresses.
const PREFIX: &str = "10.7.0.0/16";
/// The seeds of keys: the issuer's, and those of three holders who pass its grant on.
const CHAIN: [u64; 4] = [1, 2, 3, 4];
/// The seed of the first stranger's.
const FIRST: u64 = 1000;
const HOUR: u64 = 3600;

/// Measures decisions in memory, and the admission of strangers by a running node.
///
/// # Errors
/// Something is refused that is allowed.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    Ok(vec![decisions(plan)?, admission(plan)?])
}

fn decisions(plan: &Plan) -> Result<Figure> {
    let (now, directory) = (now()?, tempfile::tempdir()?);
    let (policy, stranger) = (policy()?, key(FIRST));
    let chain = request(&dry_run(&stranger, &chain(&stranger, now)?, None, now, 0)?);
    let held: IpNet = PREFIX.parse()?;
    let grant = grant(CHAIN[0], &stranger, now, 0)?;
    let mut tree = Tree::new(now);
    let certificate = tree.certificate(&[held]);
    let holder = tree.authority(0, "holder", &certificate);
    let objects = (0..OBJECTS).map(|number| (format!("{:040x}.roa", number * 7919), vec![0x5A; OBJECT_BYTES]));
    tree.at(holder).files.extend(objects);
    let checklist = tree.checklist(&[held], digest_of_grant(&grant));
    let checklist = Checklist::new(tree.sign(holder, &checklist)).context("a checklist has a length")?;
    let (files, locator) = (directory.path().join("cache"), directory.path().join("lab.tal"));
    netserv_rpki_tree::write(&tree.publish(), &files)?;
    std::fs::write(&locator, tree.locator())?;
    let cache = Cache::open(files, &[locator], Duration::from_secs(24 * HOUR))?;
    let checked = request(&dry_run(&stranger, &[grant], Some(&checklist), now, 0)?);

    let (mut by_chain, mut by_checklist) = (Vec::new(), Vec::new());
    for _ in 0..plan.stranger_rounds {
        by_chain.push(micros(median(|| decide_alone(&policy, &chain, now))?));
        by_checklist.push(millis(median(|| decide_by(&cache, &policy, &checked, now))?));
    }
    progress("decisions about strangers");
    let how = format!(
        "One request in memory, parsed: who asks, by which evidence, and what it gives. The chain is an issuer's grant that three passed on, and \
         each signature is verified anew. The checklist (RFC 9323) is checked against a cache whose holder publishes {OBJECTS} objects. Processor \
         time of the thread; the median of {DECISIONS} decisions is one measurement."
    );
    let rows = vec![
        Row::new("decision with a chain of 4 grants", "µs", &by_chain).goal(Goal::ChainDecision),
        Row::new("decision with a checklist", "ms", &by_checklist).goal(Goal::ChecklistDecision),
    ];
    Ok(Figure { name: "Decisions about strangers", how, rows })
}

fn decide_alone(policy: &NodePolicy, request: &Request, now: UnixTime) -> Result<()> {
    let decided = Authority::default().prove(policy, request, now).map(drop);
    decided.map_err(|unproven| anyhow::anyhow!("{unproven:?}"))
}

fn decide_by(cache: &Cache, policy: &NodePolicy, request: &Request, now: UnixTime) -> Result<()> {
    let question = match Authority::default().prove(policy, request, now) {
        Err(Unproven::Ask(question)) => question,
        other => bail!("a checklist is decided without its holder: {other:?}"),
    };
    let Question::Holder { checklist, grant } = question else { bail!("an address is asked: {question:?}") };
    let holder = cache.check(checklist.der(), &grant, now)?;
    let found = Authority::default().vouched_for(policy, request, Said::Holder(holder), now);
    Ok(found.map(drop)?)
}

fn admission(plan: &Plan) -> Result<Figure> {
    let mut lab = Lab::up(Topology::chain(&[("sender", Kind::Host), ("n1", Kind::Node)]))?;
    let user = lab.user("configured", &[PREFIX])?;
    let issuer = PublicKey(key(CHAIN[0]).verifying_key().to_bytes());
    let trust = format!(
        "[class.guest]\nusers-max = 512\n[[issuer]]\nname = \"house\"\nkeys = [\"{issuer}\"]\nprefixes = [\"{PREFIX}\"]\n\
         class = \"guest\"\n"
    );
    lab.start_netservd("n1", "node", std::slice::from_ref(&user), &trust)?;
    let (mut strangers, mut configured) = (Vec::new(), Vec::new());
    for round in 0..plan.stranger_rounds {
        let met = come(&lab, &user, u64::try_from(round)?)?;
        strangers.push(millis(quantile(met.strangers)));
        configured.push(millis(quantile(met.configured)));
        progress(&format!("{STRANGERS} strangers at one node"));
    }
    let how = format!(
        "{STRANGERS} users whom no configuration names each ask one node for a dry run of SETUP by its API, {AT_A_TIME} at a time, each with a key \
         and a chain of 4 grants of its own: HTTP, text, signatures, rights and filters, without the module. The node has places for 512 of them, \
         so half of them take the place of others. {CONFIGURED} requests of a user whom the configuration names come among theirs."
    );
    let rows = vec![
        Row::new("strangers, 99th percentile", "ms", &strangers).goal(Goal::StrangersAdmission),
        Row::new("a user of the configuration, 99th percentile", "ms", &configured),
    ];
    Ok(Figure { name: "A thousand strangers at one node", how, rows })
}

#[derive(Default)]
struct Met {
    strangers: Vec<Duration>,
    configured: Vec<Duration>,
}

/// Has all strangers ask a node, and the user of the configuration among them.
fn come(lab: &Lab, user: &LabUser, round: u64) -> Result<Met> {
    let now = now()?;
    let own = SigningKey::from_pkcs8_pem(&std::fs::read_to_string(&user.key)?).context("the key of a user")?;
    let mut requests = Vec::new();
    for number in 0..STRANGERS {
        let (nonce, key) = (round << 32 | u64::try_from(number)?, key(FIRST + u64::try_from(number)?));
        if number % (STRANGERS / CONFIGURED) == 0 {
            requests.push((false, signed(&own, &user.name.parse()?, &[], None, now, nonce)?));
        }
        requests.push((true, dry_run(&key, &chain(&key, now)?, None, now, nonce)?));
    }
    let next = AtomicUsize::new(0);
    let ask = || -> Result<Met> {
        let mut met = Met::default();
        while let Some((is_stranger, message)) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
            let asked = Instant::now();
            check_allowed(&post(lab, message)?)?;
            let all = if *is_stranger { &mut met.strangers } else { &mut met.configured };
            all.push(asked.elapsed());
        }
        Ok(met)
    };
    let met: Result<Vec<Met>> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|asking| asking.join().expect("no panic")).collect()
    });
    let (strangers, configured) = met?.into_iter().map(|met| (met.strangers, met.configured)).unzip();
    let all = |parts: Vec<Vec<Duration>>| parts.into_iter().flatten().collect();
    Ok(Met { strangers: all(strangers), configured: all(configured) })
}

fn post(lab: &Lab, message: &Message) -> Result<RequestResult> {
    let request = PostRequest { message: message.as_str().to_owned(), path: None, session: None, timeout_ms: 10_000 };
    Ok(serde_json::from_str(&lab.post("n1", "/v1/requests", &serde_json::to_string(&request)?)?)?)
}

fn check_allowed(result: &RequestResult) -> Result<()> {
    let is_allowed = |outcome: &Outcome| matches!(outcome, Outcome::WouldDo { .. });
    ensure!(result.nodes.iter().any(|node| is_allowed(&node.outcome)), "{result:?}");
    Ok(())
}

fn policy() -> Result<NodePolicy> {
    let mut policy = NodePolicy::new("n1".parse()?);
    let rights = UserPolicy { modules_max: 2, ..UserPolicy::default() };
    policy.classes.insert("guest".to_owned(), Class { users_max: 512, prefixes_max: 1, lease_max: None, rights });
    policy.issuers.push(Issuer {
        name: "house".to_owned(),
        keys: vec![PublicKey(key(CHAIN[0]).verifying_key().to_bytes())],
        prefixes: vec![PREFIX.parse()?],
        class: "guest".to_owned(),
        revocations: None,
    });
    policy.rpki_class = Some("guest".to_owned());
    Ok(policy)
}

/// Returns the longest chain: the issuer's grant, passed on until it is a stranger's.
fn chain(to: &SigningKey, now: UnixTime) -> Result<Vec<String>> {
    let next = |by: usize| CHAIN.get(by + 1).map_or_else(|| to.clone(), |seed| key(*seed));
    let left = |by: usize| u8::try_from(CHAIN.len() - 1 - by);
    (0..CHAIN.len()).map(|by| grant(CHAIN[by], &next(by), now, left(by)?)).collect()
}

fn grant(by: u64, to: &SigningKey, now: UnixTime, delegations: u8) -> Result<String> {
    let (iss, sub) = (PublicKey([0; 32]), PublicKey(to.verifying_key().to_bytes()));
    let (begin, prefixes) = (now.0 / 1000 - HOUR, vec![PREFIX.parse()?]);
    let (nbf, exp) = (begin, begin + 24 * HOUR);
    let grant = Grant { iss, sub, nbf, exp, prefixes, ports: Vec::new(), modules_max: None, delegations };
    Ok(grant.sign(&key(by)))
}

fn dry_run(
    by: &SigningKey,
    grants: &[String],
    checklist: Option<&Checklist>,
    now: UnixTime,
    nonce: u64,
) -> Result<Message> {
    signed(by, &user_of(&PublicKey(by.verifying_key().to_bytes())), grants, checklist, now, nonce)
}

fn signed(
    by: &SigningKey,
    user: &UserId,
    grants: &[String],
    checklist: Option<&Checklist>,
    now: UnixTime,
    nonce: u64,
) -> Result<Message> {
    let digest = digest_of_grant("any");
    let lease = Duration::from_secs(600);
    let setup = RequestBuilder::setup(&"example.org/any@1.0.0".parse()?, "http://192.0.2.1/any.nsm", digest, lease);
    let setup = setup.filter(&format!("udp dst {PREFIX} port 5060").parse()?).user(user).grants(grants);
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&nonce.to_be_bytes());
    let unsigned = setup.checklist(checklist).dry_run().build(now, Nonce(bytes))?;
    let signature = Signature(by.sign(unsigned.canonical_bytes()).to_bytes());
    Ok(unsigned.with_signature(signature)?)
}

fn request(message: &Message) -> Request {
    message.request(SessionId([1; 16]))
}

fn key(seed: u64) -> SigningKey {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    SigningKey::from_bytes(&bytes)
}

fn now() -> Result<UnixTime> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(UnixTime(u64::try_from(since.as_millis())?))
}

/// Returns what something takes of the processor, the median of some times.
fn median(work: impl Fn() -> Result<()>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..DECISIONS {
        let began = processor_time();
        work()?;
        times.push(processor_time().saturating_sub(began));
    }
    times.sort();
    Ok(times[times.len() / 2])
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

/// Returns how long 99 of 100 took at most.
fn quantile(mut times: Vec<Duration>) -> Duration {
    times.sort();
    let at = (times.len() * 99).div_ceil(100);
    times.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
