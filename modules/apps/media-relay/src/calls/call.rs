// SPDX-License-Identifier: Apache-2.0
//! One call: its two parties, and for each stream the ports that face them.

use std::net::{IpAddr, SocketAddr};

use crate::bencode;
use crate::limits::{BRANCHES_MAX, STREAMS_MAX};
use crate::options::Options;
use crate::sdp::{Media, Ports};
use crate::table::{self, Carries, Counts, Entry};
use crate::value::{Dict, Value, int, text};

/// What keys of calls in kv begin with.
pub const KEY: &[u8] = b"call/";

/// Returns the key of a call in kv.
pub fn key(number: u32) -> Vec<u8> {
    [KEY, format!("{number:08x}").as_bytes()].concat()
}

/// Returns the number of the call that has a key.
pub fn number_of(key: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(key.strip_prefix(KEY)?).ok()?, 16).ok()
}

/// One of the two parties: the one that offered first, or the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// Whose offer made the call.
    Caller,
    /// Whose answer it got.
    Callee,
}

impl Party {
    /// Returns the other one.
    pub fn other(self) -> Party {
        match self {
            Party::Caller => Party::Callee,
            Party::Callee => Party::Caller,
        }
    }
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number on this node, in kv.
    pub number: u32,
    /// The address that asked for it.
    pub source: IpAddr,
    /// The tags of caller and callee.
    pub tags: [Option<Vec<u8>>; 2],
    /// When it was made, in seconds since 1970.
    pub created_s: u64,
    /// When its signalling was last heard, likewise.
    pub signalled_s: u64,
    /// When media or signalling was last heard, on the monotonic clock.
    pub heard_ms: u64,
    /// There was an answer.
    pub is_answered: bool,
    /// The branches that it was forked to and that are not over, by what their offers said.
    pub branches: Vec<Vec<u8>>,
    /// What those of them answered that did, the newest last.
    pub answers: Vec<Answered>,
    /// The branch of the newest offer in the dialog of each party, until it is answered.
    pub offers: [Option<Vec<u8>>; 2],
    /// The streams, in the order of the descriptions.
    pub streams: Vec<Stream>,
    /// Streams of which an offer makes something else, with their places: they go on until there is an answer, and if there is none.
    pub former: Vec<(usize, Stream)>,
}

/// What the callee of a branch answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Empty if the answer named none.
    branch: Vec<u8>,
    tag: Vec<u8>,
    /// For each stream.
    said: Vec<Said>,
}

/// What a description said of a party.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Said {
    local: Option<IpAddr>,
    peers: [Option<SocketAddr>; 2],
    is_strict: bool,
    is_fixed: bool,
    is_still: bool,
}

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// `audio`, for example.
    pub kind: Vec<u8>,
    /// `RTP/AVP`, for example.
    pub protocol: Vec<u8>,
    /// What faces caller and callee.
    pub sides: [Side; 2],
}

/// What of a stream faces a party.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// The port for RTP, the next one being for RTCP; 0 if the stream has none.
    pub port: u16,
    /// The address that the party sends to.
    pub local: Option<IpAddr>,
    /// One of the other version of IP, which another branch was told.
    pub other_local: Option<IpAddr>,
    /// Where the party is, for RTP and RTCP.
    pub peers: [Option<SocketAddr>; 2],
    /// Grows with each description of the party.
    pub generation: u32,
    /// What it sends comes from one source, which stays.
    pub is_strict: bool,
    /// It is where its description says, wherever it sends from.
    pub is_fixed: bool,
    /// Its newest description is an offer that nobody has answered, and there was another one before.
    pub is_offered: bool,
    /// The party was told of the port.
    pub is_told: bool,
    /// The party has the stream rejected, or on hold: in one direction at most.
    pub is_still: bool,
    /// What came from the party, of RTP and RTCP.
    pub counts: [Counts; 2],
}

impl Side {
    /// Returns the ports that face the party; nothing if there are none.
    pub fn ports(&self) -> Option<Ports> {
        (self.port > 0).then(|| Ports { rtp: self.port, rtcp: self.port + 1 })
    }

    /// Takes note of the address that the party, or a branch of it, is told.
    pub fn tell(&mut self, local: IpAddr, is_fork: bool) {
        self.is_told = true;
        let known = self.local.replace(local).filter(|_| is_fork);
        let is_other = |known: &IpAddr| known.is_ipv6() != local.is_ipv6();
        self.other_local = known.filter(is_other).or(self.other_local.filter(|other| is_fork && is_other(other)));
    }

    /// Takes what a description of the party says.
    pub fn take(&mut self, media: &Media<'_>, options: &Options) {
        if self.other_local.is_some_and(|other| other.is_ipv6() == media.is_v6) {
            std::mem::swap(&mut self.local, &mut self.other_local);
        }
        let (rtp, rtcp) = media.ends();
        // A party of the other version of IP cannot be reached from the port that it was told.
        let reachable = |end: &SocketAddr| self.local.is_none_or(|local| local.is_ipv4() == end.is_ipv4());
        self.peers = [rtp.filter(reachable), rtcp.filter(reachable)];
        (self.is_strict, self.is_fixed) = (options.is_strict, options.is_fixed);
        self.generation = self.generation.wrapping_add(1);
        self.is_still = media.port == 0 || media.is_still;
    }

    fn said(&self) -> Said {
        let Side { local, peers, is_strict, is_fixed, is_still, .. } = *self;
        Said { local, peers, is_strict, is_fixed, is_still }
    }

    /// Takes once more what an earlier description said.
    fn take_again(&mut self, earlier: &Said) {
        if earlier.local.is_some() && earlier.local == self.other_local {
            std::mem::swap(&mut self.local, &mut self.other_local);
        }
        self.peers = earlier.peers;
        (self.is_strict, self.is_fixed, self.is_still) = (earlier.is_strict, earlier.is_fixed, earlier.is_still);
        self.generation = self.generation.wrapping_add(1);
    }
}

impl Stream {
    /// Returns whether packets are relayed.
    pub fn is_relayed(&self) -> bool {
        self.sides[0].port > 0
    }

    /// Returns whether a description makes something else of it: what is under way to its ports is for none of another kind.
    pub fn is_other(&self, media: &Media<'_>) -> bool {
        self.is_relayed() && media.port > 0 && media.is_relayed && self.kind != media.kind
    }

    /// Returns the ports for RTP that it has.
    pub fn pairs(&self) -> impl Iterator<Item = u16> {
        self.sides.iter().map(|side| side.port).filter(|port| *port > 0)
    }

    /// Returns what the packet part has to know.
    fn entries(&self) -> impl Iterator<Item = Entry> {
        let is_rtp = self.protocol.to_ascii_uppercase().windows(4).any(|part| part == b"RTP/");
        let pairs = [(&self.sides[0], &self.sides[1]), (&self.sides[1], &self.sides[0])];
        pairs.into_iter().filter(|_| self.is_relayed()).flat_map(move |(own, other)| {
            [0, 1].map(|offset| {
                let carries = match offset {
                    _ if !is_rtp => Carries::Other,
                    0 => Carries::Rtp,
                    _ => Carries::Rtcp,
                };
                Entry {
                    port: own.port + offset,
                    out: other.port + offset,
                    generation: own.generation,
                    local: own.local.unwrap_or(IpAddr::from([0, 0, 0, 0])),
                    peer: own.peers[usize::from(offset)],
                    is_strict: own.is_strict,
                    is_fixed: own.is_fixed,
                    is_offered: own.is_offered,
                    is_early: !own.is_told,
                    carries,
                }
            })
        })
    }
}

impl Call {
    /// Returns what the packet part has to know.
    pub fn entries(&self) -> Vec<Entry> {
        self.all().flat_map(Stream::entries).collect()
    }

    /// Returns the streams, and those that were before.
    pub fn all(&self) -> impl Iterator<Item = &Stream> + Clone {
        self.streams.iter().chain(self.former.iter().map(|(_, stream)| stream))
    }

    /// Takes note of what the callee of a forked call has just answered. The answer may name no branch.
    pub fn note_answer(&mut self, branch: &[u8]) {
        let Some(tag) = self.tags[Party::Callee as usize].clone().filter(|_| !self.branches.is_empty()) else { return };
        let before = self.answers.iter().position(|known| known.tag == tag).map(|at| self.answers.remove(at));
        let branch = match self.branches.iter().find(|known| *known == branch) {
            Some(branch) => branch.clone(),
            None => before.map(|before| before.branch).unwrap_or_default(),
        };
        self.answers.retain(|known| branch.is_empty() || known.branch != branch);
        if self.answers.len() >= BRANCHES_MAX {
            self.answers.remove(0);
        }
        let said = self.streams.iter().map(|stream| stream.sides[Party::Callee as usize].said()).collect();
        self.answers.push(Answered { branch, tag, said });
    }

    /// Ends one of several branches, which may have answered by its tag alone. If its answer was the newest, that of the branch before counts
    /// again.
    pub fn end_branch(&mut self, branch: &[u8], tag: &[u8]) {
        self.branches.retain(|known| known != branch);
        let is_over = |known: &Answered| match known.branch.is_empty() {
            true => known.tag == tag,
            false => known.branch == branch,
        };
        let was_newest = self.answers.last().is_some_and(is_over);
        self.answers.retain(|known| !is_over(known));
        if !was_newest {
            return;
        }
        // If none is before it, the callee is unknown again: its tag would make a repeated `delete` one of the whole call.
        self.tags[Party::Callee as usize] = self.answers.last().map(|before| before.tag.clone());
        let Some(Answered { said, .. }) = self.answers.last() else { return };
        let callees = self.streams.iter_mut().map(|stream| &mut stream.sides[Party::Callee as usize]);
        callees.zip(said).for_each(|(side, earlier)| side.take_again(earlier));
    }

    /// Puts a stream aside whose place is for one of another kind. Returns one whose ports are free: no answer was for it.
    pub fn set_aside(&mut self, place: usize, kind: &[u8]) -> Option<Stream> {
        let stream = std::mem::take(&mut self.streams[place]);
        let Some(known) = self.former.iter().position(|(at, _)| *at == place) else {
            self.former.push((place, stream));
            return None;
        };
        if self.former[known].1.kind == kind {
            self.streams[place] = self.former.swap_remove(known).1;
        }
        Some(stream)
    }

    /// Returns whether the place of a stream had one of that kind before, which no answer has ended.
    pub fn has_former(&self, place: usize, kind: &[u8]) -> bool {
        self.former.iter().any(|(at, stream)| *at == place && stream.kind == kind)
    }

    /// Returns which party has a tag.
    pub fn party(&self, tag: &[u8]) -> Option<Party> {
        let has = |place: usize| self.tags[place].as_deref() == Some(tag);
        if has(0) {
            return Some(Party::Caller);
        }
        has(1).then_some(Party::Callee)
    }

    /// Returns whether each stream is on hold, so that nobody may be heard for long.
    pub fn is_still(&self) -> bool {
        let mut relayed = self.streams.iter().filter(|stream| stream.is_relayed());
        relayed.all(|stream| stream.sides.iter().any(|side| side.is_still))
    }

    /// Returns how long it may be without a sign of life.
    pub fn patience_ms(&self, settings: &crate::settings::Settings) -> u64 {
        1000 * match (self.is_answered, self.is_still()) {
            (false, _) => settings.offer_timeout_s,
            (true, true) => settings.silent_timeout_s,
            (true, false) => settings.timeout_s,
        }
    }

    /// Writes what outlives the module: the entries for the packet part, and the rest.
    pub fn save(&self, id: &[u8]) -> Vec<u8> {
        let tag = |place: usize| Value::text(self.tags[place].as_deref().unwrap_or_default());
        let side = |side: &Side| {
            let flags = Value::number(u32::from(side.is_still) + 2 * u32::from(side.local.is_some()));
            Value::List(
                [flags].into_iter().chain(side.other_local.map(|other| Value::text(other.to_string()))).collect(),
            )
        };
        let saved = |stream: &Stream| {
            Value::List(vec![
                Value::text(&stream.kind),
                Value::text(&stream.protocol),
                side(&stream.sides[0]),
                side(&stream.sides[1]),
            ])
        };
        let former = self.former.iter().map(|(place, stream)| Value::List(vec![Value::number(*place), saved(stream)]));
        let offers = self.offers.iter().map(|branch| Value::text(branch.as_deref().unwrap_or_default()));
        let value = Value::dict([
            ("answers", Value::List(self.answers.iter().map(Answered::save).collect())),
            ("answered", Value::number(u32::from(self.is_answered))),
            ("branches", Value::List(self.branches.iter().map(Value::text).collect())),
            ("created", Value::number(self.created_s)),
            ("entries", Value::Text(table::emit_entries(&self.entries()))),
            ("former", Value::List(former.collect())),
            ("id", Value::text(id)),
            ("offers", Value::List(offers.collect())),
            ("signalled", Value::number(self.signalled_s)),
            ("source", Value::text(self.source.to_string())),
            ("streams", Value::List(self.streams.iter().map(saved).collect())),
            ("tags", Value::List(vec![tag(0), tag(1)])),
        ]);
        let mut bytes = Vec::new();
        bencode::emit(&value, &mut bytes);
        bytes
    }

    /// Reads what [`Call::save`] wrote, with the Call-ID.
    pub fn restore(number: u32, bytes: &[u8], now_ms: u64) -> Option<(Vec<u8>, Call)> {
        let value = bencode::parse(bytes)?;
        let dict = value.as_dict()?;
        let seconds = |name: &str| int(dict, name).and_then(|seconds| u64::try_from(seconds).ok());
        let [caller, callee] = dict.get(&b"tags"[..])?.as_list()? else { return None };
        let tag = |value: &Value| value.as_text().filter(|tag| !tag.is_empty()).map(<[u8]>::to_vec);
        let mut entries = table::parse_entries(text(dict, "entries")?)?.into_iter();
        let saved = dict.get(&b"streams"[..])?.as_list()?.iter().take(STREAMS_MAX);
        let streams = saved.map(|saved| restore_stream(saved, &mut entries)).collect::<Option<Vec<_>>>()?;
        let list = |name: &[u8]| dict.get(name).and_then(Value::as_list).unwrap_or_default();
        let former = list(b"former").iter().take(STREAMS_MAX).map(|saved| {
            let [place, stream] = saved.as_list()? else { return None };
            let place = usize::try_from(place.as_int()?).ok().filter(|place| *place < streams.len())?;
            Some((place, restore_stream(stream, &mut entries)?))
        });
        let former = former.collect::<Option<Vec<_>>>()?;
        let answers = list(b"answers").iter().take(BRANCHES_MAX).map(Answered::restore).collect::<Option<Vec<_>>>()?;
        let offers = [0, 1].map(|party| list(b"offers").get(party).and_then(tag));
        let call = Call {
            number,
            source: std::str::from_utf8(text(dict, "source")?).ok()?.parse().ok()?,
            tags: [tag(caller), tag(callee)],
            created_s: seconds("created")?,
            signalled_s: seconds("signalled")?,
            heard_ms: now_ms,
            is_answered: int(dict, "answered")? != 0,
            branches: list(b"branches").iter().filter_map(tag).take(BRANCHES_MAX).collect(),
            answers,
            offers,
            streams,
            former,
        };
        Some((text(dict, "id")?.to_vec(), call))
    }

    /// Returns the entries that are in what [`Call::save`] wrote.
    pub fn saved_entries(bytes: &[u8]) -> Option<Vec<Entry>> {
        let value = bencode::parse(bytes)?;
        let dict: &Dict = value.as_dict()?;
        table::parse_entries(text(dict, "entries")?)
    }
}

impl Answered {
    fn save(&self) -> Value {
        let said = self.said.iter().map(|said| {
            let flags = [said.is_strict, said.is_fixed, said.is_still].map(u8::from);
            let mut bytes = vec![flags[0] | flags[1] << 1 | flags[2] << 2];
            let local = said.local.map(|local| SocketAddr::new(local, 0));
            [local].iter().chain(&said.peers).for_each(|end| table::emit_end(*end, &mut bytes));
            Value::Text(bytes)
        });
        Value::List(vec![Value::text(&self.branch), Value::text(&self.tag), Value::List(said.collect())])
    }

    fn restore(value: &Value) -> Option<Answered> {
        let [branch, tag, said] = value.as_list()? else { return None };
        let restored = |value: &Value| {
            let mut bytes = value.as_text()?;
            let [flags] = table::take(&mut bytes)?;
            let mut end = || table::take_end(&mut bytes);
            let (local, peers) = (end()?.map(|local| local.ip()), [end()?, end()?]);
            let [is_strict, is_fixed, is_still] = [0, 1, 2].map(|bit| flags >> bit & 1 != 0);
            Some(Said { local, peers, is_strict, is_fixed, is_still })
        };
        let said = said.as_list()?.iter().take(STREAMS_MAX).map(restored).collect::<Option<Vec<_>>>()?;
        Some(Answered { branch: branch.as_text()?.to_vec(), tag: tag.as_text()?.to_vec(), said })
    }
}

/// Four entries belong to each stream that is relayed: RTP and RTCP of the caller's side, then of the callee's.
fn restore_stream(saved: &Value, entries: &mut impl Iterator<Item = Entry>) -> Option<Stream> {
    let [kind, protocol, sides @ ..] = saved.as_list()? else { return None };
    let mut stream =
        Stream { kind: kind.as_text()?.to_vec(), protocol: protocol.as_text()?.to_vec(), ..Stream::default() };
    for (side, saved) in stream.sides.iter_mut().zip(sides) {
        let [flags, other_local @ ..] = saved.as_list()? else { return None };
        let flags = flags.as_int()?;
        side.is_still = flags & 1 != 0;
        side.other_local = match other_local.first() {
            Some(other) => Some(std::str::from_utf8(other.as_text()?).ok()?.parse().ok()?),
            None => None,
        };
        if flags & 2 == 0 {
            continue;
        }
        let (rtp, rtcp) = (entries.next()?, entries.next()?);
        side.port = rtp.port;
        side.local = Some(rtp.local);
        side.peers = [rtp.peer, rtcp.peer];
        (side.generation, side.is_offered, side.is_told) = (rtp.generation, rtp.is_offered, !rtp.is_early);
        (side.is_strict, side.is_fixed) = (rtp.is_strict, rtp.is_fixed);
    }
    Some(stream)
}
