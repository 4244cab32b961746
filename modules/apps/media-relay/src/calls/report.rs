// SPDX-License-Identifier: Apache-2.0
//! What a client is told of a call, as rtpengine tells it.

use std::net::SocketAddr;

use super::call::{Call, Party, Side, Stream};
use crate::table::Counts;
use crate::value::{Dict, Value};

/// Returns what a query and the end of a call say.
pub fn call(call: &Call) -> Value {
    let mut tags = Dict::new();
    for party in [Party::Caller, Party::Callee] {
        if let Some(tag) = &call.tags[party as usize] {
            tags.insert(tag.clone(), party_of(call, party, tag));
        }
    }
    let totals =
        [0, 1].map(|place| sum(call.streams.iter().flat_map(|stream| &stream.sides).map(|side| &side.counts[place])));
    Value::dict([
        ("result", Value::text("ok")),
        ("created", Value::number(call.created_s)),
        ("last signal", Value::number(call.signalled_s)),
        ("tags", Value::Dict(tags)),
        ("totals", Value::dict([("RTP", stats(&totals[0])), ("RTCP", stats(&totals[1]))])),
    ])
}

/// Returns what all ports of streams counted.
pub fn sums<'a>(streams: impl Iterator<Item = &'a Stream>) -> Counts {
    sum(streams.flat_map(|stream| &stream.sides).flat_map(|side| &side.counts))
}

fn party_of(call: &Call, party: Party, tag: &[u8]) -> Value {
    let relayed = call.streams.iter().enumerate().filter(|(_, stream)| stream.is_relayed());
    let medias = relayed.map(|(place, stream)| media(place, stream, &stream.sides[party as usize])).collect();
    let mut value =
        vec![("created", Value::number(call.created_s)), ("medias", Value::List(medias)), ("tag", Value::text(tag))];
    if let Some(other) = &call.tags[party.other() as usize] {
        value.push(("in dialogue with", Value::text(other)));
    }
    Value::dict_of(value)
}

fn media(place: usize, stream: &Stream, side: &Side) -> Value {
    let streams = [0, 1].map(|offset| {
        let (counts, advertised) = (&side.counts[offset], side.peers[offset]);
        let port = side.port + u16::try_from(offset).expect("0 or 1");
        let mut value = vec![
            ("flags", Value::List(vec![Value::text(if offset == 0 { "RTP" } else { "RTCP" })])),
            ("local port", Value::number(port)),
            ("stats", stats(counts)),
        ];
        value.extend(counts.peer.or(advertised).map(|peer| ("endpoint", endpoint(peer))));
        value.extend(advertised.map(|peer| ("advertised endpoint", endpoint(peer))));
        value.extend(side.local.map(|local| ("local address", Value::text(local.to_string()))));
        Value::dict_of(value)
    });
    Value::dict([
        ("index", Value::number(place as u64 + 1)),
        ("type", Value::text(&stream.kind)),
        ("protocol", Value::text(&stream.protocol)),
        ("streams", Value::List(streams.to_vec())),
    ])
}

fn endpoint(end: SocketAddr) -> Value {
    Value::dict([
        ("family", Value::text(if end.is_ipv4() { "IPv4" } else { "IPv6" })),
        ("address", Value::text(end.ip().to_string())),
        ("port", Value::number(end.port())),
    ])
}

fn stats(counts: &Counts) -> Value {
    Value::dict([
        ("packets", Value::number(counts.packets)),
        ("bytes", Value::number(counts.octets)),
        ("errors", Value::number(counts.dropped)),
    ])
}

fn sum<'a>(counts: impl Iterator<Item = &'a Counts>) -> Counts {
    counts.fold(Counts::default(), |sum, one| Counts {
        packets: sum.packets + one.packets,
        octets: sum.octets + one.octets,
        dropped: sum.dropped + one.dropped,
        peer: None,
    })
}
