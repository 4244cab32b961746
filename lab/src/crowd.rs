// SPDX-License-Identifier: Apache-2.0
//! A hundred users who install within two seconds, and what the node's API and timers do meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use ed25519_dalek::pkcs8::DecodePrivateKey as _;
use ed25519_dalek::{Signer as _, SigningKey};
use netserv_model::api::{PathSpec, PostRequest, RequestResult};
use netserv_model::request::Outcome;
use netserv_model::{Nonce, Signature, UnixTime};
use netserv_wire::nslp::RequestBuilder;

use crate::histogram::Histogram;
use crate::netns::Lab;
use crate::node::FILES_ALLOWED;
use crate::node::{LabPackage, LabUser, module_wasm};
use crate::topology::{Kind, Topology};

/// Users, each with a container of its own.
pub const USERS: usize = 100;
/// Different packages among them, each of which the node compiles once.
const PACKAGES: usize = 8;
/// Modules' lease.
const LEASE: Duration = Duration::from_secs(600);
/// How long a SETUP waits for its response stack.
const SETUP_WAIT: Duration = Duration::from_secs(60);
/// From one user's SETUP to the next one's, so that their timers are not all due together.
const STAGGER: Duration = Duration::from_millis(20);
/// The pause between an answer of the API and the next question.
const PAUSE: Duration = Duration::from_millis(2);
/// The port of the first user's packets; the others follow.
const FIRST_PORT: usize = 10_000;

/// `sender – n1 – receiver`, whose node knows a hundred users and has nothing installed.
pub struct Crowd {
    lab: Lab,
    users: Vec<LabUser>,
    key: SigningKey,
    packages: Vec<(LabPackage, String)>,
}

/// What was seen of the node while all users installed.
pub struct Met {
    /// From a question to the API until its whole answer, the shortest first.
    pub answers: Vec<Duration>,
    /// How late the node came to its timers.
    pub lateness: Histogram,
    /// From the first SETUP until the last one was answered.
    pub took: Duration,
}

impl Crowd {
    /// Builds the network, and packs and publishes the modules.
    ///
    /// # Errors
    /// A daemon does not start, or the module is not built.
    pub fn up() -> Result<Crowd> {
        let chain = [("sender", Kind::Host), ("n1", Kind::Node), ("receiver", Kind::Host)];
        let mut lab = Lab::up(Topology::chain(&chain))?;
        let first = lab.user("user0", &[&format!("{}/32", lab.v4("receiver"))])?;
        // One key for all: what differs between users is their containers.
        let users: Vec<LabUser> = (0..USERS).map(|n| LabUser { name: format!("user{n}"), ..first.clone() }).collect();
        lab.start_netservd("n1", "node", &users, FILES_ALLOWED)?;
        lab.start_netservd("sender", "host", &[], "")?;
        lab.serve_http("sender")?;
        // A receiver that says nothing, so that the node asks it again and again after each SETUP, by timers.
        lab.run("receiver", "iptables", &["-A", "INPUT", "-p", "udp", "--dport", "270", "-j", "DROP"])?;
        let key = SigningKey::from_pkcs8_pem(&std::fs::read_to_string(&first.key)?).context("the key of a user")?;
        let wasm = module_wasm("echo")?;
        let mut packages = Vec::new();
        for number in 0..PACKAGES {
            let manifest = lab.dir().join("small.toml");
            let text =
                format!("manifest = 1\nname = \"example.org/small\"\nversion = \"1.0.{number}\"\n[packet]\nabi = 1\n");
            std::fs::write(&manifest, text)?;
            let package = lab.package_from(&manifest, &wasm, &lab.dir().join(format!("small{number}.nsm")), &first)?;
            let url = lab.publish("sender", &package)?;
            packages.push((package, url));
        }
        Ok(Crowd { lab, users, key, packages })
    }

    /// Has all users install, one soon after the other, and asks the API until the last one has its answer.
    ///
    /// # Errors
    /// A SETUP is refused, or the API does not answer.
    pub fn install(&self) -> Result<Met> {
        let before = self.lateness()?;
        let (begun, is_over) = (Instant::now(), AtomicBool::new(false));
        let (answers, installed) = std::thread::scope(|scope| {
            let asking = scope.spawn(|| self.ask_until(&is_over));
            let setups: Vec<_> = (0..USERS)
                .map(|number| {
                    std::thread::sleep(STAGGER);
                    scope.spawn(move || self.setup(number))
                })
                .collect();
            let installed: Result<Vec<()>> = setups.into_iter().map(|setup| setup.join().expect("no panic")).collect();
            is_over.store(true, Ordering::Relaxed);
            (asking.join().expect("no panic"), installed)
        });
        installed?;
        let mut answers = answers?;
        answers.sort();
        Ok(Met { answers, lateness: self.lateness()?.since(&before), took: begun.elapsed() })
    }

    fn setup(&self, number: usize) -> Result<()> {
        let (user, (package, url)) = (&self.users[number], &self.packages[number % PACKAGES]);
        let filter = format!("udp dst {}/32 port {}", self.lab.v4("receiver"), FIRST_PORT + number);
        let setup = RequestBuilder::setup(&package.module.parse()?, url, package.digest.parse()?, LEASE);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let nonce = Nonce([u8::try_from(number)?; 16]);
        let unsigned = setup.filter(&filter.parse()?).user(&user.name.parse()?);
        let unsigned = unsigned.build(UnixTime(u64::try_from(now.as_millis())?), nonce)?;
        let signature = Signature(self.key.sign(unsigned.canonical_bytes()).to_bytes());
        let request = PostRequest {
            message: unsigned.with_signature(signature)?.as_str().to_owned(),
            path: Some(PathSpec { destination: self.lab.v4("receiver").into(), source: None }),
            session: None,
            timeout_ms: u64::try_from(SETUP_WAIT.as_millis())?,
        };
        let answer = self.lab.post("sender", "/v1/requests", &serde_json::to_string(&request)?)?;
        let result: RequestResult = serde_json::from_str(&answer)?;
        let installed = |outcome: &Outcome| matches!(outcome, Outcome::Installed { .. });
        ensure!(result.nodes.iter().any(|node| installed(&node.outcome)), "{}: {result:?}", user.name);
        Ok(())
    }

    fn ask_until(&self, is_over: &AtomicBool) -> Result<Vec<Duration>> {
        let mut answers = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let asked = Instant::now();
            self.lab.get("n1", "/v1/node")?;
            answers.push(asked.elapsed());
            std::thread::sleep(PAUSE);
        }
        Ok(answers)
    }

    fn lateness(&self) -> Result<Histogram> {
        Histogram::read(&self.lab.get("n1", "/metrics")?, "timer_lateness_seconds")
    }
}

impl Met {
    /// Returns how long 99 of 100 answers took at most.
    pub fn answer_p99(&self) -> Duration {
        let at = (self.answers.len() * 99).div_ceil(100);
        self.answers.get(at.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// Returns how late 99 of 100 timers were at most.
    pub fn lateness_p99(&self) -> Duration {
        self.lateness.quantile(0.99).unwrap_or_default()
    }
}
