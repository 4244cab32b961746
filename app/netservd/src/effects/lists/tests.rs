// SPDX-License-Identifier: Apache-2.0
//! Lists on web servers, and a controller that wants them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ed25519_dalek::{Signer as _, SigningKey};
use netserv_authority::digest_of_grant;
use netserv_authority::grant::{Grant, user_of};
use netserv_authority::revocations::Revocations;
use netserv_model::effect::{Command, Effect, Job, RequestId};
use netserv_model::policy::{Class, Issuer, NodePolicy, RevocationSource, UserPolicy};
use netserv_model::request::{Ask, Body, Outcome, Probe, Request};
use netserv_model::{Nonce, Now, PublicKey, SessionId, Signature, UnixTime};
use netserv_node::controller::Controller;
use netserv_repository::IsOwn;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;
use crate::effects::ticket::Answer;

/// Goal: a list that lies on a web server is in force soon, whatever the servers of other issuers do. Method: servers that stall, redirect and send without
/// an end beside one with lists, and a controller that has them asked.
#[test]
fn a_list_comes_from_its_server_whatever_others_do() {
    let server = Server::start();
    let issuers = ["house", "stall", "moved", "endless", "missing"];
    let mut node = Node::new(issuers.map(|name| server.issuer(name)).to_vec());
    let text = node.grant();
    server.put("house", &list(1, &[]));
    node.run_until("the first list is there", |node| node.number("house") == Some(1));
    assert_eq!(node.probe(&text), Outcome::Probed);
    node.run_until("the server says that it is the same", |_| server.unchanged() >= 2);
    server.put("house", &list(2, &[&text]));
    node.run_until("the next list is there", |node| node.number("house") == Some(2));
    let Outcome::Refused(refusal) = node.probe(&text) else { panic!("it is taken") };
    assert!(refusal.detail.contains("takes back grant"), "{refusal:?}");
    server.put("house", &list(1, &[]));
    node.run_until("an older list is refused", |node| node.failure("house").contains("number 1, after another one"));
    let bounds = [("moved", "redirects"), ("endless", "more than"), ("missing", "404")];
    node.run_until("the others fail", |node| bounds.iter().all(|(name, why)| node.failure(name).contains(why)));
    assert_eq!((node.number("stall"), node.open.get("stall")), (None, Some(&1)), "it is asked once");
    let Outcome::Refused(_) = node.probe(&text) else { panic!("it is taken") };
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn public(seed: u8) -> PublicKey {
    PublicKey(key(seed).verifying_key().to_bytes())
}

const NOW: u64 = 1_800_000_000;

fn list(number: u64, grants: &[&str]) -> String {
    let grants = grants.iter().map(|text| digest_of_grant(text)).collect();
    Revocations { iss: public(1), iat: NOW, exp: NOW + 600, number, grants, keys: BTreeSet::new() }.sign(&key(1))
}

/// A controller whose lists are asked for, and nothing else.
struct Node {
    controller: Controller,
    start: Instant,
    asker: ListAsker,
    answers: (UnboundedSender<Answer>, UnboundedReceiver<Answer>),
    /// How often each issuer is asked without an answer.
    open: BTreeMap<String, usize>,
    outcomes: Vec<Outcome>,
}

impl Node {
    fn new(issuers: Vec<Issuer>) -> Node {
        let mut policy = NodePolicy::new("n1".parse().unwrap());
        let class = Class { users_max: 9, prefixes_max: 9, lease_max: None, rights: UserPolicy::default() };
        policy.classes.insert("guest".to_owned(), class);
        policy.issuers = issuers;
        Node {
            controller: Controller::new(policy),
            start: Instant::now(),
            asker: ListAsker::new(IsOwn::default()),
            answers: unbounded_channel(),
            open: BTreeMap::new(),
            outcomes: Vec::new(),
        }
    }

    fn now(&self) -> Now {
        Now { instant: netserv_model::Instant::default(), wall: UnixTime::from_secs(NOW) } + self.start.elapsed()
    }

    fn grant(&self) -> String {
        let prefixes = vec!["10.2.0.0/16".parse().unwrap()];
        let (iss, sub, nbf, exp) = (public(1), public(2), NOW - 60, NOW + 600);
        Grant { iss, sub, nbf, exp, prefixes, ports: Vec::new(), modules_max: None, delegations: 0 }.sign(&key(1))
    }

    fn probe(&mut self, grant: &str) -> Outcome {
        let (now, signed_bytes) = (self.now(), b"probe".to_vec());
        let request = Request {
            session: SessionId([1; 16]),
            user: Some(user_of(&public(2))),
            created: now.wall,
            nonce: Nonce([u8::try_from(self.outcomes.len()).unwrap(); 16]),
            body: Body::Probe(Probe { ask: vec![Ask::Policy] }),
            signature: Some(Signature(key(2).sign(&signed_bytes).to_bytes())),
            signed_bytes,
            grants: vec![grant.to_owned()],
            address_proof: None,
            checklist: None,
            from: None,
            dry_run: false,
            nodes: Vec::new(),
            is_bound: false,
            require: Vec::new(),
            passed_by: None,
        };
        let before = self.outcomes.len();
        self.controller.handle_request(now, RequestId(0), request);
        self.turn();
        self.outcomes[before].clone()
    }

    fn turn(&mut self) {
        self.controller.handle_timeout(self.now());
        while let Ok(Answer { id, outcome, .. }) = self.answers.1.try_recv() {
            self.controller.handle_outcome(self.now(), id, outcome);
        }
        while let Some(command) = self.controller.poll_command() {
            match command {
                Command::Do(Effect { id, job: Job::AskList { url, etag }, .. }) => {
                    let issuer = url.rsplit('/').next().unwrap_or_default().to_owned();
                    *self.open.entry(issuer).or_default() += 1;
                    ask(&self.asker, url, etag, Ticket::new(id, self.answers.0.clone()));
                }
                Command::Do(Effect { id, .. }) => {
                    self.controller.handle_outcome(self.now(), id, EffectOutcome::Done);
                }
                Command::Answer { report, .. } => self.outcomes.push(report.outcome),
                Command::Abandon(_)
                | Command::Notify(_)
                | Command::TellRequesters(_)
                | Command::InForce(..)
                | Command::Proven(_)
                | Command::Settled => {}
            }
        }
    }

    fn run_until(&mut self, what: &str, holds: impl Fn(&Node) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !holds(self) {
            assert!(Instant::now() < end, "{what}: {:?}", self.controller.revocations(self.now()));
            self.turn();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn info(&self, issuer: &str) -> netserv_model::api::RevocationInfo {
        self.controller.revocations(self.now()).into_iter().find(|info| info.issuer == issuer).unwrap()
    }

    fn number(&self, issuer: &str) -> Option<u64> {
        self.info(issuer).list.map(|list| list.number)
    }

    fn failure(&self, issuer: &str) -> String {
        self.info(issuer).failure.unwrap_or_default()
    }
}

/// A web server with files that have an entity tag, and paths that do harm.
#[derive(Clone)]
struct Server {
    address: std::net::SocketAddr,
    files: Arc<Mutex<BTreeMap<String, String>>>,
    unchanged: Arc<Mutex<usize>>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server { address, files: Arc::default(), unchanged: Arc::default() };
        let serves = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let serves = serves.clone();
                // A client that goes is no fault.
                std::thread::spawn(move || drop(serves.answer(stream)));
            }
        });
        server
    }

    fn issuer(&self, name: &str) -> Issuer {
        let url = format!("http://{}/{name}", self.address);
        let every = Duration::from_millis(100);
        let revocations = Some(RevocationSource { url, every, age_max: Duration::from_secs(300) });
        let keys = if name == "house" { vec![public(1)] } else { Vec::new() };
        let prefixes = vec!["10.0.0.0/8".parse().unwrap()];
        Issuer { name: name.to_owned(), keys, prefixes, class: "guest".to_owned(), revocations }
    }

    fn put(&self, name: &str, text: &str) {
        self.files.lock().unwrap().insert(format!("/{name}"), text.to_owned());
    }

    fn unchanged(&self) -> usize {
        *self.unchanged.lock().unwrap()
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut bytes = [0; 4096];
        let length = stream.read(&mut bytes)?;
        let request = String::from_utf8_lossy(&bytes[..length]).to_lowercase();
        let path = request.split(' ').nth(1).unwrap_or_default();
        let file = self.files.lock().unwrap().get(path).cloned();
        match (path, file) {
            ("/stall", _) => std::thread::sleep(Duration::from_secs(60)),
            ("/moved", _) => {
                stream.write_all(b"HTTP/1.1 302 Found\r\nlocation: /house\r\ncontent-length: 0\r\n\r\n")?;
            }
            ("/endless", _) => {
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
                (0..16_384).try_for_each(|_| stream.write_all(&[b'a'; 65_536]))?;
            }
            (_, Some(text)) => {
                let etag = format!("\"{}\"", &text[text.len() - 8..].to_lowercase());
                if request.contains(&format!("if-none-match: {etag}")) {
                    *self.unchanged.lock().unwrap() += 1;
                    return stream.write_all(b"HTTP/1.1 304 Not Modified\r\n\r\n");
                }
                let head = format!("HTTP/1.1 200 OK\r\netag: {etag}\r\ncontent-length: {}\r\n\r\n", text.len());
                stream.write_all((head + &text).as_bytes())?;
            }
            (_, None) => stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")?,
        }
        Ok(())
    }
}
