// SPDX-License-Identifier: Apache-2.0
//! Messages between the packet part and the server part of a module.
//!
//! Two queues, bounded in messages and in bytes. They belong to the module's name: messages that wait while a version
//! replaces another are had by the new one, in order. Nobody waits for the other side: who sends to a full queue is told
//! so.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use netserv_model::ModuleName;
use tokio::sync::Notify;

use crate::storage::limits::{MESSAGE_BYTES_MAX, MESSAGES_BYTES_MAX, MESSAGES_MAX};
use crate::wakeup::Wakeup;

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// As many as may wait, wait on the other side already.
    #[error("quota")]
    Quota,
    /// It is longer than a message may be.
    #[error("too large")]
    TooLarge,
    /// The module has no other part.
    #[error("no peer")]
    NoPeer,
}

/// The queues of all modules of a worker, by name.
#[derive(Debug, Default)]
pub struct Exchanges {
    exchanges: BTreeMap<ModuleName, Weak<Exchange>>,
    wake_packets: Option<Arc<Wakeup>>,
}

impl Exchanges {
    /// Returns queues that raise `wake_packets` when there is something for the thread that has packet parts.
    pub fn new(wake_packets: Arc<Wakeup>) -> Exchanges {
        Exchanges { exchanges: BTreeMap::new(), wake_packets: Some(wake_packets) }
    }

    /// Returns a module's queues: those of the version before it, as long as that has them.
    pub fn open(&mut self, name: &ModuleName) -> Arc<Exchange> {
        self.exchanges.retain(|_, exchange| exchange.strong_count() > 0);
        if let Some(exchange) = self.exchanges.get(name).and_then(Weak::upgrade) {
            return exchange;
        }
        let exchange = Arc::new(Exchange { wake_packets: self.wake_packets.clone(), ..Exchange::default() });
        self.exchanges.insert(name.clone(), Arc::downgrade(&exchange));
        exchange
    }
}

/// The two queues of one module.
#[derive(Default)]
pub struct Exchange {
    to_packets: Mutex<Queue>,
    to_server: Mutex<Queue>,
    /// Whether something was sent to the packet part since that was last told.
    is_news: AtomicBool,
    wake_packets: Option<Arc<Wakeup>>,
    wake_server: Notify,
}

impl Exchange {
    /// Says which parts the module has. Messages for one that it has not are forgotten.
    pub fn set_parts(&self, packets: bool, server: bool) {
        for (queue, is_there) in [(&self.to_packets, packets), (&self.to_server, server)] {
            let mut queue = lock(queue);
            queue.is_read = is_there;
            if !is_there {
                (queue.messages, queue.bytes) = (VecDeque::new(), 0);
            }
        }
    }

    /// Sends from the packet part to the server part.
    ///
    /// # Errors
    /// [`MessageError`]; nothing was sent.
    pub fn send_to_server(&self, message: &[u8]) -> Result<(), MessageError> {
        lock(&self.to_server).push(message)?;
        self.wake_server.notify_waiters();
        Ok(())
    }

    /// Sends from the server part to the packet part, and wakes its thread.
    ///
    /// # Errors
    /// [`MessageError`]; nothing was sent.
    pub fn send_to_packets(&self, message: &[u8]) -> Result<(), MessageError> {
        lock(&self.to_packets).push(message)?;
        if !self.is_news.swap(true, Ordering::AcqRel)
            && let Some(wake) = &self.wake_packets
        {
            wake.raise();
        }
        Ok(())
    }

    /// Hands the oldest message for the packet part to `take`, and forgets it unless `take` says no. Returns what `take`
    /// returned; nothing if there is no message.
    pub fn receive_for_packets<T>(&self, take: impl FnOnce(&[u8]) -> (bool, T)) -> Option<T> {
        let mut queue = lock(&self.to_packets);
        let (taken, result) = take(queue.messages.front()?);
        if taken {
            queue.pop();
        }
        Some(result)
    }

    /// Takes the oldest message for the server part.
    pub fn receive_for_server(&self) -> Option<Box<[u8]>> {
        lock(&self.to_server).pop()
    }

    /// Returns whether something was sent to the packet part since this was last asked.
    pub fn take_news(&self) -> bool {
        self.is_news.load(Ordering::Relaxed) && self.is_news.swap(false, Ordering::AcqRel)
    }

    /// Has the packet part told of messages that wait, as a new version must be.
    pub fn tell_again(&self) {
        let waiting = !lock(&self.to_packets).messages.is_empty();
        self.is_news.store(waiting, Ordering::Release);
    }

    /// Waits until there is a message for the server part. It may be gone by the time that one takes it, where several
    /// instances wait.
    pub async fn wait_for_server(&self) {
        loop {
            let mut news = std::pin::pin!(self.wake_server.notified());
            news.as_mut().enable();
            if !lock(&self.to_server).messages.is_empty() {
                return;
            }
            news.await;
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = |queue| lock(queue).messages.len();
        write!(out, "Exchange({} to packets, {} to server)", waiting(&self.to_packets), waiting(&self.to_server))
    }
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Whether the module has the part that reads them.
    is_read: bool,
}

impl Queue {
    fn push(&mut self, message: &[u8]) -> Result<(), MessageError> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(MessageError::TooLarge);
        }
        if !self.is_read {
            return Err(MessageError::NoPeer);
        }
        if self.messages.len() >= MESSAGES_MAX || self.bytes + message.len() > MESSAGES_BYTES_MAX {
            return Err(MessageError::Quota);
        }
        self.bytes += message.len();
        self.messages.push_back(message.into());
        Ok(())
    }

    fn pop(&mut self) -> Option<Box<[u8]>> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn messages_arrive_in_order_and_one_at_a_time() {
        let exchange = both();
        for text in ["one", "", "three"] {
            exchange.send_to_server(text.as_bytes()).unwrap();
            exchange.send_to_packets(text.as_bytes()).unwrap();
        }
        for text in ["one", "", "three"] {
            assert_eq!(exchange.receive_for_server().as_deref(), Some(text.as_bytes()));
            assert_eq!(received(&exchange), Some(text.to_owned()));
        }
        assert_eq!((exchange.receive_for_server(), received(&exchange)), (None, None));
    }

    #[test]
    fn a_message_that_was_not_taken_stays_the_first() {
        let exchange = both();
        exchange.send_to_packets(b"one").unwrap();
        exchange.send_to_packets(b"two").unwrap();
        assert_eq!(exchange.receive_for_packets(|message| (false, message.len())), Some(3));
        assert_eq!(received(&exchange), Some("one".to_owned()));
    }

    #[test]
    fn messages_and_their_bytes_are_bounded_in_each_direction() {
        type Send = fn(&Exchange, &[u8]) -> Result<(), MessageError>;
        for send in [Exchange::send_to_server as Send, Exchange::send_to_packets] {
            let exchange = both();
            (0..MESSAGES_MAX).for_each(|_| send(&exchange, b"x").unwrap());
            assert_eq!(send(&exchange, b""), Err(MessageError::Quota));
            let exchange = both();
            let longest = vec![0; MESSAGE_BYTES_MAX];
            (0..MESSAGES_BYTES_MAX / MESSAGE_BYTES_MAX).for_each(|_| send(&exchange, &longest).unwrap());
            assert_eq!(send(&exchange, b"x"), Err(MessageError::Quota));
            assert_eq!(send(&exchange, b""), Ok(()));
            assert_eq!(send(&both(), &[0; MESSAGE_BYTES_MAX + 1]), Err(MessageError::TooLarge));
        }
    }

    #[test]
    fn a_full_queue_takes_more_when_it_is_read() {
        let exchange = both();
        (0..MESSAGES_MAX).for_each(|_| exchange.send_to_packets(&[0; 256]).unwrap());
        assert_eq!(exchange.send_to_packets(b"x"), Err(MessageError::Quota));
        assert!(received(&exchange).is_some());
        assert_eq!(exchange.send_to_packets(&[0; 257]), Err(MessageError::Quota));
        assert_eq!(exchange.send_to_packets(&[0; 256]), Ok(()));
    }

    #[test]
    fn nothing_is_sent_to_a_part_that_the_module_has_not() {
        let exchange = Exchange::default();
        assert_eq!(exchange.send_to_server(b"x"), Err(MessageError::NoPeer));
        exchange.set_parts(true, true);
        exchange.send_to_server(b"x").unwrap();
        exchange.send_to_packets(b"x").unwrap();
        exchange.set_parts(true, false);
        assert_eq!(exchange.send_to_server(b"x"), Err(MessageError::NoPeer));
        assert_eq!(exchange.receive_for_server(), None);
        assert!(received(&exchange).is_some());
    }

    #[test]
    fn waiting_messages_survive_a_replacement_and_no_removal() {
        let mut exchanges = Exchanges::default();
        let name = "example.org/a".parse().unwrap();
        let before = exchanges.open(&name);
        before.set_parts(true, true);
        before.send_to_packets(b"1").unwrap();
        assert!(before.take_news());
        let after = exchanges.open(&name);
        after.set_parts(true, true);
        after.tell_again();
        drop(before);
        after.send_to_packets(b"2").unwrap();
        assert!(after.take_news());
        assert_eq!((received(&after), received(&after)), (Some("1".into()), Some("2".into())));
        after.send_to_packets(b"3").unwrap();
        drop(after);
        assert_eq!(received(&exchanges.open(&name)), None);
        assert_eq!(exchanges.exchanges.len(), 1);
    }

    #[test]
    fn the_packet_part_is_woken_once_for_all_that_is_new() {
        let wake = Arc::new(Wakeup::new().unwrap());
        let exchange = Exchanges::new(Arc::clone(&wake)).open(&"example.org/a".parse().unwrap());
        exchange.set_parts(true, true);
        assert!(!is_raised(&wake) && !exchange.take_news());
        exchange.send_to_packets(b"1").unwrap();
        exchange.send_to_packets(b"2").unwrap();
        assert!(is_raised(&wake) && exchange.take_news() && !exchange.take_news());
        wake.clear().unwrap();
        exchange.send_to_packets(b"3").unwrap();
        assert!(is_raised(&wake) && exchange.take_news());
    }

    #[test]
    fn the_server_part_waits_until_there_is_a_message() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let exchange = Arc::new(both());
        let sender = Arc::clone(&exchange);
        runtime.block_on(async move {
            let mut waiting = std::pin::pin!(exchange.wait_for_server());
            let early = tokio::time::timeout(Duration::from_millis(5), waiting.as_mut()).await;
            assert!(early.is_err(), "there is no message yet");
            let thread = std::thread::spawn(move || sender.send_to_server(b"x"));
            tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("it is woken");
            thread.join().unwrap().unwrap();
            tokio::time::timeout(Duration::from_secs(10), exchange.wait_for_server()).await.expect("it still waits");
        });
    }

    fn both() -> Exchange {
        let exchange = Exchange::default();
        exchange.set_parts(true, true);
        exchange
    }

    fn received(exchange: &Exchange) -> Option<String> {
        exchange.receive_for_packets(|message| (true, String::from_utf8(message.to_vec()).unwrap()))
    }

    fn is_raised(wake: &Wakeup) -> bool {
        let mut fds = [rustix::event::PollFd::new(wake, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&rustix::time::Timespec::default())).unwrap() == 1
    }
}
