// SPDX-License-Identifier: Apache-2.0
//! What this node says of the way to the next one.

use netserv_model::request::{Hop, HopProof};

use super::*;

/// What comes of the next node, which is at `10.0.0.9`.
fn answer(node: &mut Node, nonce: u8, entries: Vec<NodeReport>, change: impl FnOnce(&mut Event)) {
    let response = Response { entries, ..response(nonce, &[]) };
    let mut event = received(&flow().inverted(), 9, response.emit().as_bytes());
    change(&mut event);
    node.nslp.handle_event(node.now, event);
}

/// Returns the entries after this node's own of an answer of which GIST tells so.
fn told(entries: Vec<NodeReport>, change: impl FnOnce(&mut Event)) -> Vec<NodeReport> {
    let mut node = Node::new(|_| {});
    node.local(1, 1, path()).unwrap();
    let request = node.asked();
    node.sent_request();
    node.report(request, report("me", "0.0.0.0"));
    answer(&mut node, 1, entries, change);
    let mut nodes = node.result(1).nodes;
    let own = nodes.remove(0);
    assert_eq!((own.node.as_str(), own.hop), ("me", None));
    nodes
}

fn boast() -> Option<Hop> {
    let tls_name = Some("bank.example".to_owned());
    Some(Hop { rtt_us: Some(1), ip_hops: Some(1), proof: Some(HopProof::Tls), tls_name })
}

#[test]
fn an_entry_says_what_the_node_before_saw() {
    type Told = (bool, bool, Option<u64>, Option<u8>, Option<&'static str>);
    let check = |(reliable, secure, rtt_us, ip_distance, name): Told, expected: Hop| {
        let entries = vec![report("r1", "10.0.0.9"), NodeReport { hop: boast(), ..report("r2", "10.1.0.9") }];
        let nodes = told(entries, |event| {
            let Event::RecvMessage { attributes, provenance, ip_distance: distance, peer_name, .. } = event else {
                unreachable!()
            };
            *attributes = TransferAttributes { reliable, secure, inside: false };
            provenance.rtt = rtt_us.map(Duration::from_micros);
            (*distance, *peer_name) = (ip_distance, name.map(str::to_owned));
        });
        assert_eq!(nodes[0].hop, Some(expected));
        assert_eq!(nodes[1].hop, boast(), "what the next node saw is its word");
    };
    let hop = |proof, rtt_us, ip_hops, name: Option<&str>| Hop {
        rtt_us,
        ip_hops,
        proof: Some(proof),
        tls_name: name.map(str::to_owned),
    };
    check((true, false, Some(850), Some(0), None), hop(HopProof::Association, Some(850), Some(1), None));
    check((true, false, Some(0), Some(1), Some("n")), hop(HopProof::Association, Some(0), Some(2), None));
    check((true, true, None, Some(255), Some("n")), hop(HopProof::Tls, None, Some(255), Some("n")));
    check((true, true, None, None, None), hop(HopProof::Association, None, None, None));
    check((false, false, Some(9), None, None), hop(HopProof::ResponseCookie, Some(9), None, None));
}

/// Goal: nobody gets this node to say that it saw what it did not. Method: an entry that praises itself, at the peer's address
/// and at another one, as who leaves itself out or has two addresses would send it.
#[test]
fn what_a_node_says_of_the_way_to_itself_does_not_count() {
    let check = |address: &str, expected: Option<HopProof>| {
        let nodes = told(vec![NodeReport { hop: boast(), ..report("r1", address) }], |_| {});
        let hop = nodes[0].hop.as_ref();
        assert_eq!(hop.and_then(|hop| hop.proof), expected, "{address}");
        assert_eq!(hop.and_then(|hop| hop.tls_name.clone()), None);
    };
    check("10.0.0.9", Some(HopProof::Association));
    check("10.0.0.8", None);
}

#[test]
fn whoever_asked_gets_what_this_node_saw() {
    let mut node = Node::new(|_| {});
    node.receive(&flow(), 8, probe(1).as_bytes());
    let (request, _) = (node.asked(), node.sent_request());
    node.report(request, report("me", "0.0.0.0"));
    answer(&mut node, 1, vec![report("r1", "10.0.0.9"), report("r2", "10.1.0.9")], |_| {});
    let hops: Vec<_> =
        node.sent_response().entries.into_iter().map(|entry| entry.hop.and_then(|hop| hop.proof)).collect();
    assert_eq!(hops, [None, Some(HopProof::Association), None]);
}
