// SPDX-License-Identifier: Apache-2.0
//! A REMOVE for some nodes of a path leaves the module to the others.

use netserv_gist::{Notification, RouteStatus};
use netserv_model::target::Target;
use netserv_model::{Digest, Signature};

use super::follow::{NEW, OLD, UPSTREAM, held, installed};
use super::*;

fn target(nodes: &[&str]) -> Target {
    Target { nodes: nodes.iter().map(|name| name.parse().unwrap()).collect(), ..Target::default() }
}

fn signed(builder: RequestBuilder, nodes: &[&str], nonce: u8) -> String {
    let builder = builder.user(&"jane".parse().unwrap()).target(&target(nodes));
    let unsigned = builder.build(UnixTime(u64::from(nonce) * 1000), Nonce([nonce; 16])).unwrap();
    unsigned.with_signature(Signature([6; 64])).unwrap().as_str().to_owned()
}

fn setup(nodes: &[&str]) -> String {
    let module = "example.org/m@1.0.0".parse().unwrap();
    signed(RequestBuilder::setup(&module, "http://h/p", Digest([4; 32]), Duration::from_secs(600)), nodes, 1)
}

fn remove(nodes: &[&str]) -> String {
    signed(RequestBuilder::remove(&"example.org/m".parse().unwrap()), nodes, 2)
}

fn passed(node: &str) -> NodeReport {
    held(node, Outcome::NotTargeted { reason: "it is for other nodes".to_owned() })
}

fn none_here(node: &str) -> NodeReport {
    held(node, Outcome::Refused(Refusal::new(RefusalKind::NotInstalled, "there is none")))
}

impl Node {
    /// A request passes this node, `me`, and the next one.
    fn passes(&mut self, text: &str, nonce: u8, own: NodeReport, next: NodeReport) {
        self.receive_from(UPSTREAM, &flow(), text.as_bytes());
        let request = self.asked();
        self.sent();
        self.report(request, own);
        let answer = Response { entries: vec![next], ..response(nonce, &[]) };
        self.receive_from(OLD, &flow().inverted(), answer.emit().as_bytes());
        while self.nslp.poll_api_call().is_some() {}
    }

    /// GIST finds another next node, whereupon this node looks at the path.
    fn is_led_elsewhere(&mut self) {
        let kind = Notification::StatusChange(RouteStatus::Good(NEW));
        let event = Event::NetworkNotification { nslp_id: NSLP_ID, session: SESSION, mri: flow(), kind };
        self.at(60_000);
        self.nslp.handle_event(self.now, event);
        self.at(62_000);
    }

    /// Returns how often the node that came next before is told that the path leads elsewhere.
    fn tears_to_old(&mut self) -> usize {
        let is_tear = |call: &ApiCall| {
            let ApiCall::SendMessage { sii, data, .. } = call else { return false };
            *sii == Some(OLD) && matches!(Payload::parse(data), Ok(Payload::Tear(_)))
        };
        std::iter::from_fn(|| self.nslp.poll_api_call()).filter(is_tear).count()
    }
}

#[test]
fn a_lease_ends_with_the_last_node_that_holds_it() {
    let removed = || held("next", Outcome::Removed);
    let own_removed = || held("me", Outcome::Removed);
    for (of_setup, of_remove, own, next, left) in [
        // For the whole path, and for one node of it.
        (&[][..], &[][..], own_removed(), removed(), 0),
        (&[], &[], own_removed(), none_here("next"), 0),
        (&[], &["me"], own_removed(), passed("next"), 1),
        (&[], &["next"], passed("me"), removed(), 1),
        // What was for one node goes with it.
        (&["next"], &["next"], passed("me"), removed(), 0),
        (&["next"], &[], none_here("me"), removed(), 0),
        // One that refuses still has it.
        (
            &[],
            &["me", "next"],
            own_removed(),
            held("next", Outcome::Refused(Refusal::new(RefusalKind::QuotaExceeded, "busy"))),
            1,
        ),
    ] {
        let mut node = Node::new(|_| {});
        let own_setup = if of_setup.is_empty() { installed("me") } else { passed("me") };
        node.passes(&setup(of_setup), 1, own_setup, installed("next"));
        assert_eq!(node.nslp.state_counts().leases, 1);
        let said = format!("SETUP for {of_setup:?}, REMOVE for {of_remove:?}");
        node.passes(&remove(of_remove), 2, own, next);
        assert_eq!(node.nslp.state_counts().leases, left, "{said}");
    }
}

/// Goal: a node whose module a REMOVE took keeps following the path for the nodes after it.
#[test]
fn a_path_is_followed_for_the_nodes_that_still_have_the_module() {
    let mut node = Node::new(|_| {});
    node.passes(&setup(&[]), 1, installed("me"), installed("next"));
    node.passes(&remove(&["me"]), 2, held("me", Outcome::Removed), passed("next"));
    node.is_led_elsewhere();
    let request = node.asked();
    let (_, text) = node.sent_request().request();
    assert_eq!(text, setup(&[]));
    node.report(request, held("me", Outcome::Refused(Refusal::new(RefusalKind::Replayed, "a REMOVE came after it"))));
    let answer = Response { entries: vec![installed("new")], ..response(1, &[]) };
    node.receive_from(NEW, &flow().inverted(), answer.emit().as_bytes());
    assert_eq!(node.nslp.state_counts().leases, 1);
    let told = node.tears_to_old() > 0;
    assert!(told, "who had it next before is told");
}

/// Goal: the module of one node stays there though the path leads elsewhere, where nobody is to have it.
#[test]
fn a_path_on_which_nobody_has_the_module_is_not_followed() {
    let mut node = Node::new(|_| {});
    node.passes(&setup(&["next"]), 1, passed("me"), installed("next"));
    node.is_led_elsewhere();
    let request = node.asked();
    node.sent_request();
    node.report(request, passed("me"));
    let answer = Response { entries: vec![passed("new")], ..response(1, &[]) };
    node.receive_from(NEW, &flow().inverted(), answer.emit().as_bytes());
    assert_eq!((node.nslp.state_counts().leases, node.tears_to_old()), (0, 0));
}
