// SPDX-License-Identifier: Apache-2.0
//! What waits for the control loop: a queue for each kind of sender, from which the loop takes in turn.
//!
//! Whoever can send most fills a queue of its own, and only it: a request of the API waits for one event of each other queue at
//! most, however many datagrams there are.

use std::task::{Context, Poll};

use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::event::Event;
use crate::limits::{CONNECTION_EVENTS_MAX, DATAGRAMS_WAITING_MAX, EVENTS_MAX};

/// The ways to the control loop.
#[derive(Clone)]
pub struct Ways {
    /// For what the node's own threads, its clients and its programs do.
    pub events: Sender<Event>,
    /// For what comes from the signaling network.
    pub signaling: SignalingWays,
}

/// The ways for what comes from the signaling network. Senders wait while theirs is full.
#[derive(Clone)]
pub struct SignalingWays {
    /// For datagrams, and ICMP errors about them: anybody can send those.
    pub datagrams: Sender<Event>,
    /// For connections with peers and what comes by them.
    pub connections: Sender<Event>,
    /// For the word that something was intercepted; it is enough if it is in there once.
    pub intercepted: Sender<Event>,
}

/// All that waits for the control loop.
pub struct Inbox {
    /// The node's own events first.
    queues: [Receiver<Event>; 4],
    /// Which queue is asked first.
    turn: usize,
}

/// Makes the queues.
pub fn inbox() -> (Ways, Inbox) {
    let (events, of_node) = mpsc::channel(EVENTS_MAX);
    let (datagrams, of_datagrams) = mpsc::channel(DATAGRAMS_WAITING_MAX);
    let (connections, of_connections) = mpsc::channel(CONNECTION_EVENTS_MAX);
    let (intercepted, of_intercepted) = mpsc::channel(1);
    let signaling = SignalingWays { datagrams, connections, intercepted };
    let queues = [of_node, of_datagrams, of_connections, of_intercepted];
    (Ways { events, signaling }, Inbox { queues, turn: 0 })
}

impl Inbox {
    /// Returns the next event, of the queue whose turn it is if there is one in it; nothing once nobody can send events of the
    /// node itself. Nothing is lost if the caller stops to wait.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
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
    use netserv_node::gist::{AssociationId, IcmpError, IcmpKind};
    use tokio::sync::oneshot;

    use super::*;
    use crate::event::{Call, SignalInput};

    /// Method: queues of the network are filled until they take no more; then the API asks, and peers go on to fill them.
    #[tokio::test]
    async fn a_request_of_the_api_waits_for_one_event_of_each_other_queue_at_most() {
        let (ways, mut inbox) = inbox();
        assert_eq!(fill(&ways), (DATAGRAMS_WAITING_MAX, CONNECTION_EVENTS_MAX, 1));
        for _ in 0..10 {
            ways.events.try_send(ask()).unwrap();
            let mut before = 0;
            while place(&inbox.next().await.unwrap()) != 0 {
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
            let _ = ways.events.try_send(ask());
            taken[place(&inbox.next().await.unwrap())] += 1;
        }
        assert_eq!(taken, [100; 4]);
    }

    #[tokio::test]
    async fn what_waits_is_taken_in_order_and_to_the_end() {
        let (ways, mut inbox) = inbox();
        assert!(inbox.next().now_or_never().is_none());
        for association in 0..3 {
            ways.signaling.connections.try_send(closed(association)).unwrap();
        }
        for expected in 0..3 {
            let Some(Event::Signal(SignalInput::Closed { association, .. })) = inbox.next().await else { panic!() };
            assert_eq!(association, AssociationId(expected));
        }
        assert!(inbox.next().now_or_never().is_none());
        let Ways { events, signaling } = ways;
        drop(signaling);
        assert!(inbox.next().now_or_never().is_none(), "the node's own events are still to come");
        drop(events);
        assert!(inbox.next().await.is_none());
    }

    /// Returns how many datagrams, events of connections and words of interception found room.
    fn fill(ways: &Ways) -> (usize, usize, usize) {
        let SignalingWays { datagrams, connections, intercepted } = &ways.signaling;
        let many =
            |way: &Sender<Event>, event: &dyn Fn() -> Event| std::iter::from_fn(|| way.try_send(event()).ok()).count();
        (many(datagrams, &datagram), many(connections, &|| closed(1)), many(intercepted, &|| Event::Intercepted))
    }

    /// Returns which queue an event is of, as these tests fill them.
    fn place(event: &Event) -> usize {
        let is_of = [
            matches!(event, Event::Api(_)),
            matches!(event, Event::Signal(SignalInput::Icmp(_))),
            matches!(event, Event::Signal(SignalInput::Closed { .. })),
            matches!(event, Event::Intercepted),
        ];
        is_of.iter().position(|is_it| *is_it).expect("nobody sends anything else")
    }

    fn ask() -> Event {
        Event::Api(Call::Node(oneshot::channel().0))
    }

    fn datagram() -> Event {
        let error = IcmpError { kind: IcmpKind::Port, reporter: None, quoted: Vec::new() };
        Event::Signal(SignalInput::Icmp(Box::new(error)))
    }

    fn closed(association: u64) -> Event {
        Event::Signal(SignalInput::Closed { association: AssociationId(association), error: None })
    }
}
