// SPDX-License-Identifier: Apache-2.0
//! The channel of a module: topics, each with the last messages that were published, for any number of readers.
//!
//! It belongs to the module's name: versions that follow each other share it, as do all instances and both parts. A publisher
//! waits for nobody. A reader holds nothing but its place, so one that does not read costs nothing, and loses its place when
//! messages that it has not read give way to others.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use netserv_model::{ModuleName, Topic};
use tokio::sync::Notify;

use crate::clock;
use crate::compute::{Budget, Reserved};
use crate::limits::{
    CHANNEL_KEY_BYTES_MAX, CHANNEL_MESSAGE_BYTES_MAX, CHANNEL_MESSAGE_COST, CHANNEL_READ_BYTES_MAX,
    CHANNEL_SUBSCRIBERS_MAX, CHANNEL_TOPIC_BYTES_MAX, CHANNEL_TOPICS_MAX, CHANNELS_MEMORY_SHARE,
};

/// Why nothing was published, or nobody subscribed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// There are as many topics or subscribers as there may be, or the container has no memory left for messages.
    #[error("quota")]
    Quota,
    /// The message or its key is longer than it may be.
    #[error("too large")]
    TooLarge,
    /// The topic is none.
    #[error("invalid topic")]
    InvalidTopic,
    /// Messages behind the one that a reader names are lost, or that one never was.
    #[error("gone")]
    Gone,
}

/// A reader was so slow that messages which it had not read gave way to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reader fell behind: messages that it had not read gave way to others")]
pub struct Behind;

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the oldest message that is kept.
    Oldest,
    /// With the next one that is published.
    Newest,
    /// With the one behind that of a number.
    After(u64),
}

/// What a reader gets of each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The message, and nothing between two of them.
    Bytes,
    /// A line `id: NUMBER`, then the message.
    Events,
    /// The number as eight bytes, the length as four, both little-endian, then the message.
    Records,
}

/// The channels of all modules of a worker, by name.
#[derive(Debug)]
pub struct Channels {
    channels: BTreeMap<ModuleName, Weak<Channel>>,
    memory: Budget,
}

impl Channels {
    /// Returns channels whose messages take one part in [`CHANNELS_MEMORY_SHARE`] of a container of `memory_bytes` at most.
    pub fn new(memory_bytes: u64) -> Channels {
        let share = usize::try_from(memory_bytes / CHANNELS_MEMORY_SHARE).unwrap_or(usize::MAX);
        Channels { channels: BTreeMap::new(), memory: Budget::new(share) }
    }

    /// Returns a module's channel: that of the version before it, as long as that has it.
    pub fn open(&mut self, name: &ModuleName) -> Arc<Channel> {
        self.channels.retain(|_, channel| channel.strong_count() > 0);
        if let Some(channel) = self.channels.get(name).and_then(Weak::upgrade) {
            return channel;
        }
        let channel = Arc::new(Channel::new(self.memory.clone()));
        self.channels.insert(name.clone(), Arc::downgrade(&channel));
        channel
    }
}

/// The topics of one module.
pub struct Channel {
    state: Mutex<State>,
    /// Where the memory of messages comes from.
    memory: Budget,
    /// How many readers there may be.
    places: Budget,
}

#[derive(Default)]
struct State {
    topics: BTreeMap<Topic, Arc<Ring>>,
    /// Topics that were closed, and still have readers.
    closed: Vec<Weak<Ring>>,
}

impl Channel {
    fn new(memory: Budget) -> Channel {
        Channel { state: Mutex::default(), memory, places: Budget::new(CHANNEL_SUBSCRIBERS_MAX) }
    }

    /// Publishes a message, for which older ones of its topic give way. Returns its number, one above that of the message before it.
    /// The key of a message, which an empty one is not, replaces that of the same key for readers to come.
    ///
    /// # Errors
    /// [`ChannelError`] but for `Gone`; nothing was published.
    pub fn publish(&self, topic: &str, message: &[u8], key: Option<&[u8]>) -> Result<u64, ChannelError> {
        let key = key.filter(|key| !key.is_empty());
        if message.len() > CHANNEL_MESSAGE_BYTES_MAX || key.is_some_and(|key| key.len() > CHANNEL_KEY_BYTES_MAX) {
            return Err(ChannelError::TooLarge);
        }
        let mut state = self.lock();
        let ring = state.ring(topic, &self.memory)?;
        let mut published = ring.lock().push(message, key, &self.memory);
        if published.is_err() && state.forget_closed() {
            published = ring.lock().push(message, key, &self.memory);
        }
        drop(state);
        if published.is_ok() {
            ring.news.notify_waiters();
        }
        published
    }

    /// Returns a new reader of a topic, which there is from here on.
    ///
    /// # Errors
    /// [`ChannelError`] but for `TooLarge`.
    pub fn subscribe(&self, topic: &str, start: Start, framing: Framing) -> Result<Reader, ChannelError> {
        let place = self.places.reserve(1).map_err(|_| ChannelError::Quota)?;
        let ring = self.lock().ring(topic, &self.memory)?;
        let state = ring.lock();
        let next = match start {
            Start::Oldest => state.lost,
            Start::Newest => state.next,
            Start::After(number) => {
                let known = number < state.next && number.checked_add(1).is_some_and(|next| next >= state.lost);
                if !known {
                    return Err(ChannelError::Gone);
                }
                number + 1
            }
        };
        let subscribed = state.next;
        drop(state);
        Ok(Reader { ring, framing, next, subscribed, begun: None, has_ended: false, _place: place })
    }

    /// Forgets a topic. Its readers get what they have not read yet, and then the end.
    pub fn close(&self, topic: &str) {
        let Ok(topic) = topic.parse::<Topic>() else { return };
        let mut state = self.lock();
        let Some(ring) = state.topics.remove(&topic) else { return };
        ring.lock().is_closed = true;
        state.closed.retain(|ring| ring.strong_count() > 0);
        state.closed.push(Arc::downgrade(&ring));
        drop(state);
        ring.news.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the ring of a topic, which is made if there is none.
    fn ring(&mut self, topic: &str, memory: &Budget) -> Result<Arc<Ring>, ChannelError> {
        let topic = topic.parse::<Topic>().map_err(|_| ChannelError::InvalidTopic)?;
        if let Some(ring) = self.topics.get(&topic) {
            return Ok(Arc::clone(ring));
        }
        if self.topics.len() >= CHANNEL_TOPICS_MAX {
            self.topics.retain(|_, ring| Arc::strong_count(ring) > 1 || !ring.lock().kept.is_empty());
        }
        if self.topics.len() >= CHANNEL_TOPICS_MAX {
            return Err(ChannelError::Quota);
        }
        let ring = Arc::new(Ring::new(memory)?);
        self.topics.insert(topic, Arc::clone(&ring));
        Ok(ring)
    }

    /// Forgets what readers of closed topics have not read. Returns whether there was any.
    fn forget_closed(&mut self) -> bool {
        let closed: Vec<Arc<Ring>> = self.closed.drain(..).filter_map(|ring| ring.upgrade()).collect();
        for ring in &closed {
            ring.lock().forget_all();
            ring.news.notify_waiters();
        }
        !closed.is_empty()
    }
}

impl Default for Channel {
    /// Returns the channel of a module under test, in a container with room for it.
    fn default() -> Channel {
        Channel::new(Budget::new(CHANNEL_TOPICS_MAX * CHANNEL_TOPIC_BYTES_MAX))
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Channel({} topics)", self.lock().topics.len())
    }
}

/// One topic: the last messages, and who waits for the next one.
struct Ring {
    state: Mutex<RingState>,
    news: Notify,
}

struct RingState {
    /// Messages by their numbers.
    kept: BTreeMap<u64, Message>,
    /// The number of the last message of each key.
    keys: BTreeMap<Arc<[u8]>, u64>,
    /// Messages whose key has a later one, in the order in which those came.
    replaced: VecDeque<u64>,
    bytes: usize,
    /// The number of the next message.
    next: u64,
    /// The number behind that of the last message that gave way and had not been replaced.
    lost: u64,
    is_closed: bool,
    memory: Reserved,
}

struct Message {
    bytes: Box<[u8]>,
    key: Option<Arc<[u8]>>,
    is_replaced: bool,
}

impl Ring {
    fn new(memory: &Budget) -> Result<Ring, ChannelError> {
        // By the clock, numbers of a worker that is started again are not taken for those of the one before.
        let first = clock::wall_ns() / 1000;
        let state = RingState {
            kept: BTreeMap::new(),
            keys: BTreeMap::new(),
            replaced: VecDeque::new(),
            bytes: 0,
            next: first,
            lost: first,
            is_closed: false,
            memory: memory.reserve(0).map_err(|_| ChannelError::Quota)?,
        };
        Ok(Ring { state: Mutex::new(state), news: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, RingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RingState {
    fn push(&mut self, message: &[u8], key: Option<&[u8]>, memory: &Budget) -> Result<u64, ChannelError> {
        let cost = cost(message.len(), key.map_or(0, <[u8]>::len));
        if cost > memory.left().saturating_add(self.bytes) {
            return Err(ChannelError::Quota);
        }
        if let Some(number) = key.and_then(|key| self.keys.get(key)).copied()
            && let Some(message) = self.kept.get_mut(&number)
        {
            message.is_replaced = true;
            self.replaced.push_back(number);
        }
        while self.bytes + cost > CHANNEL_TOPIC_BYTES_MAX || self.memory.resize(self.bytes + cost).is_err() {
            if !self.forget_one() {
                // Others took what was left.
                self.keys.clear();
                return Err(ChannelError::Quota);
            }
        }
        let (number, key) = (self.next, key.map(Arc::from));
        if let Some(key) = &key {
            self.keys.insert(Arc::clone(key), number);
        }
        self.kept.insert(number, Message { bytes: message.into(), key, is_replaced: false });
        self.bytes += cost;
        self.next += 1;
        Ok(number)
    }

    /// Has a message give way: the one that was replaced first, else the oldest. Returns whether there was one.
    fn forget_one(&mut self) -> bool {
        let number = self.replaced.pop_front().or_else(|| self.kept.keys().next().copied());
        let Some((number, message)) = number.and_then(|number| self.kept.remove_entry(&number)) else { return false };
        if !message.is_replaced {
            self.lost = number + 1;
            if let Some(key) = &message.key {
                self.keys.remove(key);
            }
        }
        self.bytes -= cost(message.bytes.len(), message.key.as_ref().map_or(0, |key| key.len()));
        true
    }

    fn forget_all(&mut self) {
        while self.forget_one() {}
        // Less is always there.
        let _ = self.memory.resize(0);
    }
}

fn cost(message_bytes: usize, key_bytes: usize) -> usize {
    message_bytes + key_bytes + CHANNEL_MESSAGE_COST
}

/// One reader of a topic.
pub struct Reader {
    ring: Arc<Ring>,
    framing: Framing,
    /// The number of the message that it gets next, if there is one.
    next: u64,
    /// What came before this number is left out if it was replaced.
    subscribed: u64,
    /// How many bytes it has of the message before `next`, if not all.
    begun: Option<usize>,
    has_ended: bool,
    /// One of those that the module may have.
    _place: Reserved,
}

impl Reader {
    /// Returns the next bytes, at most so many; none if there are none yet, nothing at the end.
    ///
    /// # Errors
    /// [`Behind`] once, and then the end.
    pub fn read(&mut self, most: usize) -> Result<Option<Bytes>, Behind> {
        if self.has_ended {
            return Ok(None);
        }
        let ring = Arc::clone(&self.ring);
        let state = ring.lock();
        if self.is_behind(&state) {
            self.has_ended = true;
            return Err(Behind);
        }
        let most = most.min(CHANNEL_READ_BYTES_MAX);
        let mut out = Vec::new();
        while out.len() < most {
            let Some((number, message, had)) = self.current(&state) else { break };
            let head = head(self.framing, number, message.bytes.len());
            let room = most - out.len();
            let rest_of_head = head.get(had..).unwrap_or(&[]);
            let begin = &rest_of_head[..rest_of_head.len().min(room)];
            let rest = message.bytes.get(had.saturating_sub(head.len())..).unwrap_or(&[]);
            let rest = &rest[..rest.len().min(room - begin.len())];
            out.extend_from_slice(begin);
            out.extend_from_slice(rest);
            let has = had + begin.len() + rest.len();
            self.next = number + 1;
            self.begun = (has < head.len() + message.bytes.len()).then_some(has);
        }
        let is_over = out.is_empty() && state.is_closed && self.current(&state).is_none();
        self.has_ended = is_over;
        Ok((!is_over).then(|| out.into()))
    }

    /// Waits until there is something to read, an error or the end.
    pub async fn ready(&self) {
        loop {
            let mut news = std::pin::pin!(self.ring.news.notified());
            news.as_mut().enable();
            if self.is_ready() {
                return;
            }
            news.await;
        }
    }

    fn is_ready(&self) -> bool {
        let state = self.ring.lock();
        self.has_ended || state.is_closed || self.is_behind(&state) || self.current(&state).is_some()
    }

    fn is_behind(&self, state: &RingState) -> bool {
        let lacks_rest = self.begun.is_some() && !state.kept.contains_key(&(self.next - 1));
        lacks_rest || self.next < state.lost
    }

    /// Returns the message that is to be read, with its number and how many bytes of it were read before.
    fn current<'a>(&self, state: &'a RingState) -> Option<(u64, &'a Message, usize)> {
        if let Some(had) = self.begun {
            let number = self.next - 1;
            return state.kept.get(&number).map(|message| (number, message, had));
        }
        let mut unread = state.kept.range(self.next..);
        let found = unread.find(|(number, message)| **number >= self.subscribed || !message.is_replaced);
        found.map(|(number, message)| (*number, message, 0))
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Reader(at {})", self.next)
    }
}

/// Returns what stands before a message.
fn head(framing: Framing, number: u64, length: usize) -> Vec<u8> {
    match framing {
        Framing::Bytes => Vec::new(),
        Framing::Events => format!("id: {number}\n").into_bytes(),
        Framing::Records => {
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            [&number.to_le_bytes()[..], &length.to_le_bytes()].concat()
        }
    }
}

#[cfg(test)]
mod tests;
