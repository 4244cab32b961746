// SPDX-License-Identifier: Apache-2.0
//! The calls, and what becomes of a request about one. What the packet part and kv have to know is asked for by
//! [`Relay::poll_change`] after each call.

pub mod call;
mod report;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use crate::limits::{BRANCHES_MAX, LIST_DEFAULT, LIST_MAX, NAME_BYTES_MAX, STREAMS_OF_ALL_MAX};
use crate::ng;
use crate::options::{self, Options};
use crate::sdp::{Media, Ports, Sdp};
use crate::settings::Settings;
use crate::table::{Counts, Entry};
use crate::value::{Dict, Value, has_word, int, text};
use call::{Call, Party, Stream};

/// What time it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds of a clock that never steps.
    pub ms: u64,
    /// Seconds since 1970.
    pub s: u64,
}

/// What others have to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A call is new, or another one than before.
    Put {
        /// The call.
        number: u32,
        /// What outlives the module.
        saved: Vec<u8>,
        /// What the packet part has to know.
        entries: Vec<Entry>,
    },
    /// A call is over.
    Gone {
        /// The call.
        number: u32,
        /// The ports that it had.
        ports: Vec<u16>,
    },
    /// These ports are of no call any more.
    Free(Vec<u16>),
}

/// Draws a number below another one, which nobody can guess.
pub type Draw = fn(usize) -> usize;

/// All calls.
#[derive(Debug)]
pub struct Relay {
    settings: Settings,
    addresses: Vec<IpAddr>,
    calls: BTreeMap<Vec<u8>, Call>,
    /// The Call-ID of each port for RTP.
    owners: BTreeMap<u16, Vec<u8>>,
    /// Ports for RTP that nobody has, the one that was used last at the end.
    free: VecDeque<u16>,
    /// Which of these is next.
    draw: Draw,
    next: u32,
    changes: VecDeque<Change>,
    totals: Totals,
}

/// What happened since the module began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls that were made.
    pub calls: u64,
    /// Calls that ended since nobody was heard.
    pub expired: u64,
    /// Packets of calls that ended.
    pub packets: u64,
    /// Octets of calls that ended.
    pub octets: u64,
}

/// Why a request is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Failure {
    /// The client is told so.
    Error(&'static str),
    /// The client asks for what the relay does not do.
    Unsupported(String),
    /// There is no room for another call: the client is to ask another relay.
    Full(&'static str),
}

/// What a `delete` ends.
enum Meant {
    /// The call.
    Call,
    /// One of its branches.
    Branch(Vec<u8>),
    /// An offer in the dialog that was not answered.
    Offer(Party),
}

impl From<&'static str> for Failure {
    fn from(reason: &'static str) -> Failure {
        Failure::Error(reason)
    }
}

impl Relay {
    /// Builds one without calls, which names these addresses.
    pub fn new(settings: Settings, addresses: Vec<IpAddr>, draw: Draw) -> Relay {
        let last = *settings.ports.end();
        let free = settings.ports.clone().step_by(2).filter(|port| *port < last).collect();
        let (calls, owners, changes) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Relay { settings, addresses, calls, owners, free, draw, next: 0, changes, totals: Totals::default() }
    }

    /// Returns how many calls there are.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns whether there is no call.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns what happened so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the next change that others have to know.
    pub fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// Has all calls told once more.
    pub fn tell_all(&mut self) {
        self.changes.extend(self.calls.iter().map(|(id, call)| put(id, call)));
    }

    /// Takes a call that outlived the module. One that does not fit is forgotten.
    pub fn restore(&mut self, number: u32, saved: &[u8], now: Now) {
        self.next = self.next.max(number.wrapping_add(1));
        let restored = Call::restore(number, saved, now.ms);
        let fits = |call: &Call| {
            let sides = call.all().filter(|stream| stream.is_relayed()).flat_map(|stream| &stream.sides);
            let known = sides.clone().all(|side| self.free.contains(&side.port));
            let ports: Vec<u16> = sides.map(|side| side.port).collect();
            known && ports.iter().enumerate().all(|(place, port)| !ports[..place].contains(port))
        };
        match restored.filter(|(id, call)| !self.calls.contains_key(id) && fits(call)) {
            Some((id, call)) => {
                let ports: Vec<u16> = call.all().flat_map(Stream::pairs).collect();
                self.free.retain(|port| !ports.contains(port));
                self.owners.extend(ports.into_iter().map(|port| (port, id.clone())));
                self.calls.insert(id, call);
            }
            None => self.changes.push_back(Change::Gone { number, ports: Vec::new() }),
        }
    }

    /// Carries out a request.
    pub fn handle(&mut self, source: IpAddr, dict: &Dict, now: Now) -> Value {
        let dict = &options::normal(dict);
        let command = text(dict, "command");
        let done = match command {
            Some(b"ping") => Ok(Value::dict([("result", Value::text("pong"))])),
            Some(b"offer") => self.offer(source, dict, now),
            Some(b"answer") => self.answer(dict, now),
            Some(b"delete") => Ok(self.delete(dict)),
            Some(b"query") => self.query(dict),
            Some(b"list") => Ok(self.list(dict)),
            Some(b"statistics") => Ok(self.statistics()),
            Some(_) => Err("Unrecognized command".into()),
            None => Err("Dictionary contains no key \"command\"".into()),
        };
        match done {
            Ok(value) if !matches!(command, Some(b"offer" | b"answer" | b"ping")) => {
                warned(value, options::ignored(dict))
            }
            Ok(value) => value,
            Err(Failure::Error(reason)) => ng::error(reason),
            Err(Failure::Unsupported(reason)) => ng::error(&reason),
            Err(Failure::Full(why)) if has_word(dict, "supports", "load-limit") => {
                Value::dict([("result", Value::text("load limit")), ("message", Value::text(why))])
            }
            // Clients from before there was that result know these words.
            Err(Failure::Full(why)) => ng::error(why),
        }
    }

    /// Takes what the packet part counted at a port.
    pub fn counted(&mut self, port: u16, counts: Counts, now: Now) {
        let pair = port & !1;
        let Some(call) = self.owners.get(&pair).and_then(|id| self.calls.get_mut(id)) else { return };
        let former = call.former.iter_mut().map(|(_, stream)| stream);
        let sides = call.streams.iter_mut().chain(former).flat_map(|stream| &mut stream.sides);
        for side in sides.filter(|side| side.port == pair) {
            let known = &mut side.counts[usize::from(port & 1)];
            if counts.packets > known.packets {
                call.heard_ms = now.ms;
            }
            *known = counts;
        }
    }

    /// Ends calls of which nothing was heard for too long.
    pub fn expire(&mut self, now: Now) {
        let is_over = |call: &Call| now.ms.saturating_sub(call.heard_ms) >= call.patience_ms(&self.settings);
        let over: Vec<Vec<u8>> =
            self.calls.iter().filter(|(_, call)| is_over(call)).map(|(id, _)| id.clone()).collect();
        for id in over {
            self.end(&id);
            self.totals.expired += 1;
        }
    }

    fn offer(&mut self, source: IpAddr, dict: &Dict, now: Now) -> Result<Value, Failure> {
        let id = name(dict, "call-id", "No call-id in message")?;
        let tag = name(dict, "from-tag", "No from-tag in message")?;
        let (sdp, own, options) = self.description(dict, id)?;
        let party = match self.calls.get(id) {
            Some(call) => call.party(tag).ok_or("The from-tag is of no party of this call")?,
            None => self.may_begin(source).map(|()| Party::Caller)?,
        };
        // An offer in a dialog has a branch of its own, and makes none: the call is one of those that there are.
        let is_fork = text(dict, "to-tag").is_none_or(<[u8]>::is_empty);
        let branch = text(dict, "via-branch").filter(|branch| is_fork && !branch.is_empty());
        let branches = self.calls.get(id).map_or(&[][..], |call| &call.branches);
        let new_branch = branch.filter(|branch| !branches.iter().any(|known| known == branch));
        if new_branch.is_some_and(|branch| !fits(branch) || branches.len() >= BRANCHES_MAX) {
            return Err("The via-branch is too long, or one too many".into());
        }
        let locals = self.locals(dict, (&sdp, &own), id, party)?;
        let streams = self.calls.get(id).map_or(&[][..], |call| &call.streams);
        let of_all: usize = self.calls.values().map(|call| call.streams.len()).sum();
        if of_all + sdp.media.len().saturating_sub(streams.len()) > STREAMS_OF_ALL_MAX {
            return Err(Failure::Full(TOO_MANY));
        }
        let other = |place: usize| streams.get(place).is_some_and(|stream| stream.is_other(&sdp.media[place]));
        let others: Vec<usize> = (0..sdp.media.len()).filter(|place| other(*place)).collect();
        let has_former = |place, kind| self.calls.get(id).is_some_and(|call| call.has_former(place, kind));
        let has_port = |place: usize| match others.contains(&place) {
            true => has_former(place, sdp.media[place].kind),
            false => streams.get(place).is_some_and(Stream::is_relayed),
        };
        let wants = |place: usize| sdp.media[place].is_relayed && sdp.media[place].port > 0 && !has_port(place);
        let new: Vec<usize> = (0..sdp.media.len()).filter(|place| wants(*place)).collect();
        if new.len() * 2 > self.free.len() {
            // Another relay may take a call that is new; the one that this relay has stays whole.
            return Err(if streams.is_empty() {
                Failure::Full("Ran out of ports")
            } else {
                "Ran out of ports for a further stream".into()
            });
        }
        let pairs: Vec<[u16; 2]> = new.iter().map(|_| [(); 2].map(|()| self.pair())).collect();
        self.owners.extend(pairs.iter().flatten().map(|port| (*port, id.to_vec())));
        if !self.calls.contains_key(id) {
            self.begin(id, tag, source, now);
        }
        let call = self.calls.get_mut(id).expect("it is there");
        if let Some(other) = text(dict, "to-tag").filter(|other| party == Party::Caller && fits(other)) {
            call.tags[1].get_or_insert_with(|| other.to_vec());
        }
        call.branches.extend(new_branch.map(<[u8]>::to_vec));
        call.offers[party as usize] =
            text(dict, "via-branch").filter(|name| !is_fork && fits(name)).map(<[u8]>::to_vec);
        call.streams.resize(call.streams.len().max(sdp.media.len()), Stream::default());
        let free: Vec<Stream> =
            others.into_iter().filter_map(|place| call.set_aside(place, sdp.media[place].kind)).collect();
        for (place, ports) in new.into_iter().zip(pairs) {
            call.streams[place].sides[0].port = ports[0];
            call.streams[place].sides[1].port = ports[1];
        }
        for (stream, media) in call.streams.iter_mut().zip(&sdp.media) {
            if media.port > 0 || !stream.is_relayed() {
                (stream.kind, stream.protocol) = (media.kind.to_vec(), media.protocol.to_vec());
            }
            if stream.is_relayed() {
                stream.sides[party as usize].local = Some(locals[0]);
                stream.sides[party.other() as usize].tell(locals[1], is_fork);
            }
        }
        take(call, party, (&sdp, &own), &options, now);
        let is_again = call.is_answered;
        call.streams.iter_mut().for_each(|stream| stream.sides[party as usize].is_offered = is_again);
        self.changes.push_back(put(id, call));
        let described = described(call, party.other(), &sdp, locals[1], &options);
        self.release(&free);
        Ok(described)
    }

    fn answer(&mut self, dict: &Dict, now: Now) -> Result<Value, Failure> {
        let id = name(dict, "call-id", "No call-id in message")?;
        let offerer = name(dict, "from-tag", "No from-tag in message")?;
        let tag = name(dict, "to-tag", "No to-tag in message")?;
        let (sdp, own, options) = self.description(dict, id)?;
        let call = self.calls.get(id).ok_or("Unknown call-id")?;
        let party = call.party(offerer).ok_or("The from-tag is of no party of this call")?.other();
        if call.tags[party.other() as usize].as_deref() == Some(tag) {
            return Err("The tags are of one party".into());
        }
        let locals = self.locals(dict, (&sdp, &own), id, party)?;
        let call = self.calls.get_mut(id).expect("it was there");
        // Of a call that was forked the last one that answers counts.
        call.tags[party as usize] = Some(tag.to_vec());
        for stream in call.streams.iter_mut().filter(|stream| stream.is_relayed()) {
            let offerer = &mut stream.sides[party.other() as usize];
            (offerer.local, offerer.is_told) = (Some(locals[1]), true);
            // What it offered counts from here on.
            offerer.generation = offerer.generation.wrapping_add(1);
        }
        take(call, party, (&sdp, &own), &options, now);
        call.streams.iter_mut().flat_map(|stream| &mut stream.sides).for_each(|side| side.is_offered = false);
        call.is_answered = true;
        call.offers[party.other() as usize] = None;
        if party == Party::Callee {
            call.note_answer(text(dict, "via-branch").unwrap_or_default());
        }
        let former: Vec<Stream> = call.former.drain(..).map(|(_, stream)| stream).collect();
        self.changes.push_back(put(id, call));
        let described = described(call, party.other(), &sdp, locals[1], &options);
        self.release(&former);
        Ok(described)
    }

    fn delete(&mut self, dict: &Dict) -> Value {
        let warning = |why: &str| Value::dict([("result", Value::text("ok")), ("warning", Value::text(why))]);
        match self.meant(dict) {
            Some((id, Meant::Call)) => report::call(&self.end(&id).expect("it is there")),
            Some((id, Meant::Branch(branch))) => {
                let call = self.calls.get_mut(&id).expect("it is there");
                call.end_branch(&branch, text(dict, "to-tag").unwrap_or_default());
                self.changes.push_back(put(&id, call));
                warning("Other branches of the call go on")
            }
            Some((id, Meant::Offer(party))) => {
                let call = self.calls.get_mut(&id).expect("it is there");
                call.offers[party as usize] = None;
                self.changes.push_back(put(&id, call));
                warning("Only that offer is deleted")
            }
            None if has_word(dict, "flags", "fatal") => ng::error(NOTHING_TO_DELETE),
            None => warning(NOTHING_TO_DELETE),
        }
    }

    /// Returns the call that is to be deleted, or of which a part is.
    fn meant(&self, dict: &Dict) -> Option<(Vec<u8>, Meant)> {
        let id = text(dict, "call-id")?;
        let call = self.calls.get(id)?;
        let tag = |name: &str| text(dict, name).filter(|tag| !tag.is_empty());
        let is_of = |name: &str| tag(name).is_none_or(|tag| call.party(tag).is_some());
        // The tag of whoever has not answered is known to the client alone.
        let has_tags = is_of("from-tag") && (call.tags[1].is_none() || is_of("to-tag"));
        let is_dialog = has_tags && tag("from-tag").is_some() && tag("to-tag").is_some() && call.tags[1].is_some();
        let has_offered = |branch: &[u8], party: Party| call.offers[party as usize].as_deref() == Some(branch);
        let meant = match text(dict, "via-branch").filter(|branch| !branch.is_empty()) {
            Some(branch) if call.branches.iter().any(|known| known == branch) => is_of("from-tag")
                .then(|| if call.branches.len() > 1 { Meant::Branch(branch.to_vec()) } else { Meant::Call }),
            // RFC 6337 §3.4: a re-INVITE that fails leaves the session as it was. That of a BYE is another branch.
            Some(branch) if has_tags && has_offered(branch, Party::Caller) => Some(Meant::Offer(Party::Caller)),
            Some(branch) if has_tags && has_offered(branch, Party::Callee) => Some(Meant::Offer(Party::Callee)),
            // A request in the dialog has a branch of its own.
            Some(_) => (has_tags && (call.branches.is_empty() || is_dialog)).then_some(Meant::Call),
            None => has_tags.then_some(Meant::Call),
        };
        meant.map(|meant| (id.to_vec(), meant))
    }

    fn query(&self, dict: &Dict) -> Result<Value, Failure> {
        let id = name(dict, "call-id", "No call-id in message")?;
        Ok(report::call(self.calls.get(id).ok_or("Unknown call-id")?))
    }

    fn list(&self, dict: &Dict) -> Value {
        let most = int(dict, "limit").map_or(LIST_DEFAULT, |most| usize::try_from(most).unwrap_or(0).min(LIST_MAX));
        let calls = self.calls.keys().take(most).map(Value::text).collect();
        Value::dict([("result", Value::text("ok")), ("calls", Value::List(calls))])
    }

    fn statistics(&self) -> Value {
        let (packets, octets) = self
            .calls
            .values()
            .map(|call| report::sums(call.all()))
            .fold((self.totals.packets, self.totals.octets), |(packets, octets), counts| {
                (packets + counts.packets, octets + counts.octets)
            });
        let current = Value::dict([("sessionstotal", Value::number(self.calls.len() as u64))]);
        let total = Value::dict([
            ("managedsessions", Value::number(self.totals.calls)),
            ("relayedbytes", Value::number(octets)),
            ("relayedpackets", Value::number(packets)),
            ("timeoutsessions", Value::number(self.totals.expired)),
        ]);
        let statistics = Value::dict([("currentstatistics", current), ("totalstatistics", total)]);
        Value::dict([("result", Value::text("ok")), ("statistics", statistics)])
    }

    fn may_begin(&self, source: IpAddr) -> Result<(), Failure> {
        let of_source = self.calls.values().filter(|call| call.source == source).count();
        let is_full = self.calls.len() >= self.settings.calls || of_source >= self.settings.calls_per_source;
        if is_full { Err(Failure::Full(TOO_MANY)) } else { Ok(()) }
    }

    fn begin(&mut self, id: &[u8], tag: &[u8], source: IpAddr, now: Now) {
        let call = Call {
            number: self.next,
            source,
            tags: [Some(tag.to_vec()), None],
            created_s: now.s,
            signalled_s: now.s,
            heard_ms: now.ms,
            is_answered: false,
            branches: Vec::new(),
            answers: Vec::new(),
            offers: [None, None],
            streams: Vec::new(),
            former: Vec::new(),
        };
        self.next = self.next.wrapping_add(1);
        self.totals.calls += 1;
        self.calls.insert(id.to_vec(), call);
    }

    fn end(&mut self, id: &[u8]) -> Option<Call> {
        let call = self.calls.remove(id)?;
        let streams: Vec<Stream> = call.all().cloned().collect();
        let ports = self.take_ports(&streams);
        self.changes.push_back(Change::Gone { number: call.number, ports });
        Some(call)
    }

    /// Frees the ports of streams that a call has no more.
    fn release(&mut self, streams: &[Stream]) {
        let ports = self.take_ports(streams);
        if !ports.is_empty() {
            self.changes.push_back(Change::Free(ports));
        }
    }

    /// Returns the ports of streams, which are free, and keeps what these counted.
    fn take_ports(&mut self, streams: &[Stream]) -> Vec<u16> {
        let sums = report::sums(streams.iter());
        self.totals.packets += sums.packets;
        self.totals.octets += sums.octets;
        let pairs: Vec<u16> = streams.iter().flat_map(Stream::pairs).collect();
        pairs.iter().for_each(|pair| _ = self.owners.remove(pair));
        self.free.extend(&pairs);
        pairs.into_iter().flat_map(|pair| [pair, pair + 1]).collect()
    }

    /// Takes any free pair of ports but those that were used last: who does not know it is not to guess it by another one.
    fn pair(&mut self) -> u16 {
        let drawn = (self.draw)((self.free.len() - self.free.len().div_ceil(4)).max(1));
        self.free.swap(0, drawn);
        self.free.pop_front().expect("they were counted")
    }

    /// Reads the description of a request, which of its streams come from the relay itself, and what else is asked.
    fn description<'a>(&self, dict: &'a Dict, id: &[u8]) -> Result<(Sdp<'a>, Vec<bool>, Options), Failure> {
        let body = text(dict, "sdp").ok_or("No SDP body in message")?;
        let mut sdp = Sdp::parse(body).map_err(|error| Failure::Error(error.reason()))?;
        let own = self.own(id, &sdp);
        let options = Options::read(dict, &sdp, &self.addresses);
        options.check().map_err(Failure::Unsupported)?;
        if let Some(source) = options.source {
            sdp.lead_to(source, &own);
        }
        Ok((sdp, own, options))
    }

    /// Returns which streams lead to the relay's own ports of the call: a call that passes the relay once more, by one Call-ID.
    fn own(&self, id: &[u8], sdp: &Sdp<'_>) -> Vec<bool> {
        let is_own = |media: &Media<'_>| {
            let is_here = media.address.is_some_and(|address| self.addresses.contains(&address));
            is_here && self.owners.get(&media.port).is_some_and(|owner| owner == id)
        };
        sdp.media.iter().map(is_own).collect()
    }

    /// Returns the addresses that face a party and the other one.
    fn locals(
        &self,
        dict: &Dict,
        (sdp, own): (&Sdp<'_>, &[bool]),
        id: &[u8],
        party: Party,
    ) -> Result<[IpAddr; 2], Failure> {
        let call = self.calls.get(id);
        let mut streams =
            sdp.media.iter().zip(own).filter(|(media, is_own)| media.is_relayed && media.port > 0 && !**is_own);
        let own_v6 = streams.next().map(|(media, _)| media.is_v6);
        let known = |party: Party| call?.streams.iter().find_map(|stream| stream.sides[party as usize].local);
        let own = match (known(party), own_v6) {
            (Some(known), Some(is_v6)) if known.is_ipv6() != is_v6 => self.address(is_v6)?,
            (Some(known), _) => known,
            (None, is_v6) => self.address(is_v6.unwrap_or(false))?,
        };
        let wanted = match text(dict, "address-family") {
            Some(b"IP4" | b"ip4" | b"inet") => Some(false),
            Some(b"IP6" | b"ip6" | b"inet6") => Some(true),
            Some(_) => return Err("Unknown address family".into()),
            None => None,
        };
        // It is one of the relay's own, else the request was refused.
        let named = text(dict, "media-address").and_then(|address| std::str::from_utf8(address).ok()?.parse().ok());
        let other = match (named, known(party.other()), wanted) {
            (Some(named), ..) => named,
            (None, Some(known), wanted) if wanted.is_none_or(|is_v6| known.is_ipv6() == is_v6) => known,
            (None, _, wanted) => self.address(wanted.unwrap_or(own.is_ipv6()))?,
        };
        Ok([own, other])
    }

    fn address(&self, is_v6: bool) -> Result<IpAddr, Failure> {
        let found = self.addresses.iter().find(|address| address.is_ipv6() == is_v6).copied();
        found.ok_or(Failure::Error("The relay has no address of this family"))
    }
}

/// Takes what a party's description says, but for streams that come from the relay itself: where the party is was said before.
fn take(call: &mut Call, party: Party, (sdp, own): (&Sdp<'_>, &[bool]), options: &Options, now: Now) {
    let described = call.streams.iter_mut().zip(&sdp.media).zip(own);
    for ((stream, media), _) in described.filter(|((stream, _), is_own)| stream.is_relayed() && !**is_own) {
        stream.sides[party as usize].take(media, options);
    }
    (call.signalled_s, call.heard_ms) = (now.s, now.ms);
}

/// Returns the answer with a description that leads to the ports which face a party.
fn described(call: &Call, to: Party, sdp: &Sdp<'_>, local: IpAddr, options: &Options) -> Value {
    let ports: Vec<Option<Ports>> = sdp
        .media
        .iter()
        .enumerate()
        .map(|(place, media)| {
            let ports = call.streams.get(place)?.sides[to as usize].ports().filter(|_| media.port > 0)?;
            // RTCP that was to come to RTP's own port still is.
            let is_one = media.rtcp.is_some_and(|(rtcp, _)| media.has_mux && rtcp == media.port);
            Some(if is_one { Ports { rtcp: ports.rtp, ..ports } } else { ports })
        })
        .collect();
    let written = sdp.rewrite(local, &ports, options.replaces_origin);
    warned(Value::dict([("result", Value::text("ok")), ("sdp", Value::Text(written))]), options.warning())
}

/// Returns an answer with a warning, behind the one that it has.
fn warned(value: Value, warning: Option<String>) -> Value {
    match (value, warning) {
        (Value::Dict(mut dict), Some(warning)) => {
            let known = text(&dict, "warning").map(|known| [known, b"; "].concat()).unwrap_or_default();
            dict.insert(b"warning".to_vec(), Value::Text([known, warning.into_bytes()].concat()));
            Value::Dict(dict)
        }
        (value, _) => value,
    }
}

fn name<'a>(dict: &'a Dict, key: &str, missing: &'static str) -> Result<&'a [u8], Failure> {
    let name = text(dict, key).filter(|name| !name.is_empty()).ok_or(missing)?;
    if fits(name) { Ok(name) } else { Err("A call-id or tag is too long".into()) }
}

fn fits(name: &[u8]) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
}

fn put(id: &[u8], call: &Call) -> Change {
    Change::Put { number: call.number, saved: call.save(id), entries: call.entries() }
}

const TOO_MANY: &str = "Parallel session limit reached";
const NOTHING_TO_DELETE: &str = "Call-ID not found or tags didn't match";

#[cfg(test)]
mod tests;
