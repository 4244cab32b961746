// SPDX-License-Identifier: Apache-2.0
//! Control messages to one instance of a module, and what it tells the requester of its SETUP.
//!
//! Each load has an inbox of its own: it begins with the last message of each topic from before, in order of their numbers. A
//! message is for each part that has an inbox; if one of them is full, no part gets it. Nobody waits for the other side.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netserv_model::control::{ControlMessage, MODULE_NOTIFY_BYTES_MAX, ModuleMessage, NotifyBucket};
use netserv_model::{Instant, Topic};
use netserv_wire::container::frames::TellVerdict;
use tokio::sync::Notify;

use crate::error::HostError;
use crate::limits::{CONTROL_MESSAGES_MAX, CONTROL_WAITING_BYTES_MAX};
use crate::wakeup::Wakeup;

/// What one instance of a module is told, and tells.
#[derive(Default)]
pub struct ControlPort {
    state: Mutex<State>,
    /// Whether something came for the packet part since that was last told.
    is_news: AtomicBool,
    /// Whether there is something for the node.
    has_notifies: AtomicBool,
    wake_packets: Option<Arc<Wakeup>>,
    wake_server: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The last message of each topic.
    last: BTreeMap<Topic, Arc<ControlMessage>>,
    /// Nothing while the packet part has no inbox.
    to_packets: Option<Queue>,
    /// Nothing while the server part has no inbox.
    to_server: Option<Queue>,
    /// The server part reads the last message of topics.
    reads_last: bool,
    /// How many messages came.
    told: u64,
    notifies: Vec<ModuleMessage>,
    left: NotifyBucket,
}

impl ControlPort {
    /// Returns the port of a module that is about to be loaded, with the messages from before. What is for the thread that has
    /// packet parts raises `wake`; without it, whoever calls sees to that.
    pub fn new(kept: Vec<ControlMessage>, wake: Option<Arc<Wakeup>>) -> ControlPort {
        let last = kept.into_iter().map(|message| (message.topic.clone(), Arc::new(message))).collect();
        let state = Mutex::new(State { last, ..State::default() });
        ControlPort { state, wake_packets: wake, ..ControlPort::default() }
    }

    /// Gives the packet part an inbox, before it starts.
    pub fn open_for_packets(&self) {
        let mut state = self.lock();
        let queue = Queue::of(&state.last);
        self.is_news.store(!queue.messages.is_empty(), Ordering::Release);
        state.to_packets = Some(queue);
    }

    /// Gives the server part what it imports, before it starts: an inbox, or the last message of topics.
    pub fn open_for_server(&self, inbox: bool, last: bool) {
        let mut state = self.lock();
        let queue = Queue::of(&state.last);
        state.to_server = inbox.then_some(queue);
        state.reads_last = last;
    }

    /// Puts a message into the module's inboxes, all or none.
    pub fn tell(&self, message: ControlMessage) -> TellVerdict {
        let mut state = self.lock();
        if !state.reads_last && state.to_packets.is_none() && state.to_server.is_none() {
            return TellVerdict::NoInbox;
        }
        let State { to_packets, to_server, .. } = &*state;
        if to_packets.iter().chain(to_server).any(|queue| !queue.has_room(&message)) {
            return TellVerdict::Full;
        }
        state.told += 1;
        let message = Arc::new(message);
        if let Some(queue) = &mut state.to_packets {
            queue.push(Arc::clone(&message));
            self.is_news.store(true, Ordering::Release);
        }
        if let Some(queue) = &mut state.to_server {
            queue.push(Arc::clone(&message));
        }
        state.last.insert(message.topic.clone(), message);
        drop(state);
        self.wake_server.notify_waiters();
        TellVerdict::Taken
    }

    /// Hands the oldest message for the packet part to `take`, and forgets it unless `take` says no. Returns what `take`
    /// returned; nothing if there is no message.
    pub fn receive_for_packets<T>(&self, take: impl FnOnce(&ControlMessage) -> (bool, T)) -> Option<T> {
        let mut state = self.lock();
        let queue = state.to_packets.as_mut()?;
        let (taken, result) = take(queue.messages.front()?);
        if taken {
            queue.pop();
        }
        Some(result)
    }

    /// Takes the oldest message for the server part.
    pub fn receive_for_server(&self) -> Option<Arc<ControlMessage>> {
        self.lock().to_server.as_mut()?.pop()
    }

    /// Returns how many messages came since the module was loaded.
    pub fn told(&self) -> u64 {
        self.lock().told
    }

    /// Returns whether no message came since there were `told` of them, and none waits for the server part.
    pub fn is_quiet_since(&self, told: u64) -> bool {
        let state = self.lock();
        state.told == told && state.to_server.as_ref().is_none_or(|queue| queue.messages.is_empty())
    }

    /// Returns the last message of a topic, also one from before the module was loaded.
    pub fn last(&self, topic: &str) -> Option<Arc<ControlMessage>> {
        let topic = topic.parse::<Topic>().ok()?;
        self.lock().last.get(&topic).cloned()
    }

    /// Waits until there is a message for the server part. It may be gone by the time that one takes it, where several
    /// instances wait.
    pub async fn wait_for_server(&self) {
        loop {
            let mut news = std::pin::pin!(self.wake_server.notified());
            news.as_mut().enable();
            if self.lock().to_server.as_ref().is_some_and(|queue| !queue.messages.is_empty()) {
                return;
            }
            news.await;
        }
    }

    /// Returns whether something came for the packet part since this was last asked.
    pub fn take_news(&self) -> bool {
        self.is_news.load(Ordering::Relaxed) && self.is_news.swap(false, Ordering::AcqRel)
    }

    /// Takes what the module tells the requester of its SETUP.
    ///
    /// # Errors
    /// `Invalid` for a topic that is none, `TooLarge`, or `Quota` if there were too many of late; nothing goes out.
    pub fn notify(&self, now: Instant, topic: &str, body: &[u8]) -> Result<(), HostError> {
        let topic = topic.parse().map_err(|_| HostError::Invalid)?;
        if body.len() > MODULE_NOTIFY_BYTES_MAX {
            return Err(HostError::TooLarge);
        }
        let mut state = self.lock();
        // A node that does not read has as many as one module may send in a minute.
        if state.notifies.len() >= CONTROL_MESSAGES_MAX || !state.left.take(now) {
            return Err(HostError::Quota);
        }
        state.notifies.push(ModuleMessage { topic, body: body.to_vec() });
        drop(state);
        self.has_notifies.store(true, Ordering::Release);
        if let Some(wake) = &self.wake_packets {
            wake.raise();
        }
        Ok(())
    }

    /// Takes what is to go to the node, in order.
    pub fn take_notifies(&self) -> Vec<ModuleMessage> {
        if !self.has_notifies.load(Ordering::Relaxed) || !self.has_notifies.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut self.lock().notifies)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ControlPort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ControlPort({} topics)", self.lock().last.len())
    }
}

/// Returns a message as modules get it that take bytes: number, length of the topic, topic, body.
pub fn layout(message: &ControlMessage) -> Vec<u8> {
    let topic = message.topic.as_str().as_bytes();
    let length = u16::try_from(topic.len()).expect("a topic is short");
    [&message.seq.to_le_bytes()[..], &length.to_le_bytes(), topic, &message.body].concat()
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Arc<ControlMessage>>,
    bytes: usize,
}

impl Queue {
    fn of(last: &BTreeMap<Topic, Arc<ControlMessage>>) -> Queue {
        let mut kept: Vec<Arc<ControlMessage>> = last.values().cloned().collect();
        kept.sort_by_key(|message| message.seq);
        let mut queue = Queue::default();
        kept.into_iter().for_each(|message| queue.push(message));
        queue
    }

    fn has_room(&self, message: &ControlMessage) -> bool {
        self.messages.len() < CONTROL_MESSAGES_MAX && self.bytes + weight(message) <= CONTROL_WAITING_BYTES_MAX
    }

    fn push(&mut self, message: Arc<ControlMessage>) {
        self.bytes += weight(&message);
        self.messages.push_back(message);
    }

    fn pop(&mut self) -> Option<Arc<ControlMessage>> {
        let message = self.messages.pop_front()?;
        self.bytes -= weight(&message);
        Some(message)
    }
}

fn weight(message: &ControlMessage) -> usize {
    message.body.len() + message.topic.as_str().len()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netserv_model::control::{CONTROL_BYTES_MAX, MODULE_NOTIFIES_BURST_MAX};

    use super::*;

    #[test]
    fn a_message_goes_to_each_part_that_has_an_inbox_and_no_other() {
        for (packets, inbox, last, verdict) in [
            (false, false, false, TellVerdict::NoInbox),
            (true, false, false, TellVerdict::Taken),
            (false, true, false, TellVerdict::Taken),
            (false, false, true, TellVerdict::Taken),
            (true, true, true, TellVerdict::Taken),
        ] {
            let port = port(&[]);
            if packets {
                port.open_for_packets();
            }
            port.open_for_server(inbox, last);
            assert_eq!(port.tell(message("a", 1, 1)), verdict);
            let told = u64::from(verdict == TellVerdict::Taken);
            assert_eq!((port.told(), port.is_quiet_since(told)), (told, !inbox));
            assert!(!port.is_quiet_since(told + 1));
            assert_eq!((received(&port), port.take_news()), (packets.then_some(1), packets));
            assert_eq!(port.receive_for_server().map(|message| message.seq), inbox.then_some(1));
            assert_eq!((received(&port), port.receive_for_server()), (None, None));
            assert!(port.is_quiet_since(told), "nothing waits");
        }
    }

    #[test]
    fn each_instance_begins_with_the_last_of_each_topic_in_order() {
        let port = port(&[("b", 7), ("a", 9), ("c", 2)]);
        port.open_for_packets();
        port.open_for_server(true, true);
        assert!(port.take_news(), "the packet part is told of those that wait");
        port.tell(message("a", 10, 1));
        let packets: Vec<u64> = std::iter::from_fn(|| received(&port)).collect();
        let server: Vec<u64> = std::iter::from_fn(|| port.receive_for_server()).map(|message| message.seq).collect();
        assert_eq!((&packets[..], &server[..]), (&[2, 7, 9, 10][..], &[2, 7, 9, 10][..]));
        let last = |topic: &str| port.last(topic).map(|message| message.seq);
        assert_eq!([last("a"), last("b"), last("d"), last("no topic")], [Some(10), Some(7), None, None]);
    }

    #[test]
    fn messages_that_nobody_reads_and_their_bytes_are_bounded() {
        let port = port(&[]);
        port.open_for_packets();
        port.open_for_server(true, false);
        for seq in 0..CONTROL_MESSAGES_MAX as u64 {
            assert_eq!(port.tell(message("a", seq, 0)), TellVerdict::Taken);
        }
        assert_eq!(port.tell(message("b", 100, 0)), TellVerdict::Full);
        assert_eq!(port.last("b"), None, "no part has it");
        // It takes the slower part to have room.
        assert_eq!(received(&port), Some(0));
        assert_eq!(port.tell(message("b", 100, 0)), TellVerdict::Full);
        assert!(port.receive_for_server().is_some());
        assert_eq!(port.tell(message("b", 100, 0)), TellVerdict::Taken);
        // One byte of topic each.
        let large = self::port(&[]);
        large.open_for_packets();
        let fit = CONTROL_WAITING_BYTES_MAX / (CONTROL_BYTES_MAX + 1);
        for seq in 0..fit as u64 {
            assert_eq!(large.tell(message("a", seq, CONTROL_BYTES_MAX)), TellVerdict::Taken);
        }
        assert_eq!(large.tell(message("a", 100, CONTROL_BYTES_MAX)), TellVerdict::Full);
    }

    #[test]
    fn who_reads_only_the_last_of_a_topic_is_never_full() {
        let port = port(&[]);
        port.open_for_server(false, true);
        for seq in 0..1000 {
            assert_eq!(port.tell(message("a", seq, CONTROL_BYTES_MAX)), TellVerdict::Taken);
        }
        assert_eq!(port.last("a").map(|message| message.seq), Some(999));
    }

    #[test]
    fn a_message_that_was_not_taken_stays_the_first() {
        let port = port(&[("a", 1)]);
        port.open_for_packets();
        assert_eq!(port.receive_for_packets(|message| (false, message.seq)), Some(1));
        assert_eq!(received(&port), Some(1));
    }

    #[test]
    fn what_a_module_says_is_bounded_in_number_and_size() {
        let port = port(&[]);
        let at = |ms: u64| Instant::from_millis(5000 + ms);
        assert_eq!(port.notify(at(0), "no topic", b""), Err(HostError::Invalid));
        assert_eq!(port.notify(at(0), "a", &[0; MODULE_NOTIFY_BYTES_MAX + 1]), Err(HostError::TooLarge));
        for _ in 0..MODULE_NOTIFIES_BURST_MAX {
            assert_eq!(port.notify(at(0), "a", &[0; MODULE_NOTIFY_BYTES_MAX]), Ok(()));
        }
        assert_eq!(port.notify(at(999), "a", b""), Err(HostError::Quota));
        assert_eq!(port.notify(at(1000), "b", b"last"), Ok(()));
        assert_eq!(port.notify(at(1000), "a", b""), Err(HostError::Quota));
        let told = port.take_notifies();
        assert_eq!((told.len(), &told[5].body[..]), (6, &b"last"[..]));
        assert!(port.take_notifies().is_empty());
        // Nobody takes them.
        let taken = (2..1000).filter(|second| port.notify(at(second * 1000), "a", b"").is_ok()).count();
        assert_eq!(taken, CONTROL_MESSAGES_MAX);
    }

    #[test]
    fn the_server_part_waits_until_there_is_a_message() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let port = Arc::new(port(&[]));
        port.open_for_server(true, false);
        let sender = Arc::clone(&port);
        runtime.block_on(async move {
            let mut waiting = std::pin::pin!(port.wait_for_server());
            let early = tokio::time::timeout(Duration::from_millis(5), waiting.as_mut()).await;
            assert!(early.is_err(), "there is no message yet");
            let thread = std::thread::spawn(move || sender.tell(message("a", 1, 1)));
            tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("it is woken");
            assert_eq!(thread.join().unwrap(), TellVerdict::Taken);
        });
    }

    fn port(kept: &[(&str, u64)]) -> ControlPort {
        let kept = kept.iter().map(|(topic, seq)| message(topic, *seq, 3)).collect();
        ControlPort::new(kept, Some(Arc::new(Wakeup::new().unwrap())))
    }

    fn message(topic: &str, seq: u64, bytes: usize) -> ControlMessage {
        ControlMessage { topic: topic.parse().unwrap(), seq, body: vec![7; bytes] }
    }

    fn received(port: &ControlPort) -> Option<u64> {
        port.receive_for_packets(|message| (true, message.seq))
    }
}
