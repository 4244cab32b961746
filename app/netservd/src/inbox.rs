// SPDX-License-Identifier: Apache-2.0
//! What waits for the control loop: a queue for each kind of sender, from which the loop takes in turn.
//!
//! Whoever can send most fills a queue of its own, and only it: a request of the API waits for one event of each other queue at
//! most, however many datagrams there are.

use std::task::{Context, Poll};

use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::limits::{CONNECTION_EVENTS_MAX, DATAGRAMS_WAITING_MAX, EVENTS_MAX};

/// The ways to the control loop.
#[derive(Clone)]
pub struct Ways<E> {
    /// For what the node's own threads, its clients and its programs do.
    pub events: Sender<E>,
    /// For what comes from the signaling network.
    pub signaling: SignalingWays<E>,
}

/// The ways for what comes from the signaling network. Senders wait while theirs is full.
#[derive(Clone)]
pub struct SignalingWays<E> {
    /// For datagrams, and ICMP errors about them: anybody can send those.
    pub datagrams: Sender<E>,
    /// For connections with peers and what comes by them.
    pub connections: Sender<E>,
    /// For the word that something was intercepted; it is enough if it is in there once.
    pub intercepted: Sender<E>,
}

/// All that waits for the control loop.
pub struct Inbox<E> {
    /// The node's own events first.
    queues: [Receiver<E>; 4],
    /// Which queue is asked first.
    turn: usize,
}

/// Makes the queues.
pub fn inbox<E>() -> (Ways<E>, Inbox<E>) {
    let (events, of_node) = mpsc::channel(EVENTS_MAX);
    let (datagrams, of_datagrams) = mpsc::channel(DATAGRAMS_WAITING_MAX);
    let (connections, of_connections) = mpsc::channel(CONNECTION_EVENTS_MAX);
    let (intercepted, of_intercepted) = mpsc::channel(1);
    let signaling = SignalingWays { datagrams, connections, intercepted };
    let queues = [of_node, of_datagrams, of_connections, of_intercepted];
    (Ways { events, signaling }, Inbox { queues, turn: 0 })
}

impl<E> Inbox<E> {
    /// Returns the next event, of the queue whose turn it is if there is one in it; nothing once nobody can send events of the
    /// node itself. Nothing is lost if the caller stops to wait.
    pub async fn next(&mut self) -> Option<E> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<E>> {
        for step in 0..self.queues.len() {
            let turn = (self.turn + step) % self.queues.len();
            match self.queues[turn].poll_recv(context) {
                Poll::Ready(Some(event)) => {
                    self.turn = turn + 1;
                    return Poll::Ready(Some(event));
                }
                Poll::Ready(None) if turn == 0 => return Poll::Ready(None),
                Poll::Ready(None) | Poll::Pending => {}
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    enum Sent {
        Api,
        Datagram,
        Connection(u32),
        Intercepted,
    }

    /// Method: queues of the network are filled until they take no more; then the API asks, and peers go on to fill them.
    #[tokio::test]
    async fn a_request_of_the_api_waits_for_one_event_of_each_other_queue_at_most() {
        let (ways, mut inbox) = inbox();
        assert_eq!(fill(&ways), [DATAGRAMS_WAITING_MAX, CONNECTION_EVENTS_MAX, 1]);
        for _ in 0..10 {
            ways.events.try_send(Sent::Api).unwrap();
            let mut before = 0;
            while inbox.next().await.unwrap() != Sent::Api {
                before += 1;
                fill(&ways);
            }
            assert!(before <= 3, "{before} events went before it");
        }
    }

    #[tokio::test]
    async fn queues_that_are_full_are_served_alike() {
        let (ways, mut inbox) = inbox();
        let mut taken = [0; 4];
        for _ in 0..400 {
            fill(&ways);
            // The queue may be full.
            let _ = ways.events.try_send(Sent::Api);
            let place = match inbox.next().await.unwrap() {
                Sent::Api => 0,
                Sent::Datagram => 1,
                Sent::Connection(_) => 2,
                Sent::Intercepted => 3,
            };
            taken[place] += 1;
        }
        assert_eq!(taken, [100; 4]);
    }

    #[tokio::test]
    async fn what_waits_is_taken_in_order_and_to_the_end() {
        let (ways, mut inbox) = inbox();
        assert!(inbox.next().now_or_never().is_none());
        for number in 0..3 {
            ways.signaling.connections.try_send(Sent::Connection(number)).unwrap();
        }
        for number in 0..3 {
            assert_eq!(inbox.next().await, Some(Sent::Connection(number)));
        }
        assert!(inbox.next().now_or_never().is_none());
        let Ways { events, signaling } = ways;
        drop(signaling);
        assert!(inbox.next().now_or_never().is_none(), "the node's own events are still to come");
        drop(events);
        assert!(inbox.next().await.is_none());
    }

    /// Returns how many datagrams, events of connections and words of interception found room.
    fn fill(ways: &Ways<Sent>) -> [usize; 3] {
        let SignalingWays { datagrams, connections, intercepted } = &ways.signaling;
        let many = |way: &Sender<Sent>, event: fn() -> Sent| std::iter::from_fn(|| way.try_send(event()).ok()).count();
        [
            many(datagrams, || Sent::Datagram),
            many(connections, || Sent::Connection(1)),
            many(intercepted, || Sent::Intercepted),
        ]
    }
}
