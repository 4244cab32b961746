// SPDX-License-Identifier: Apache-2.0
//! Connections to one of several addresses of a name ("Happy Eyeballs", RFC 8305).

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use wasmtime_wasi_http::Error;

use crate::limits;

/// Addresses that another one of the same name was connected before. For [`limits::SLOW_TIME`] they are tried last.
#[derive(Debug, Default)]
pub struct SlowAddresses(Mutex<VecDeque<(SocketAddr, Instant)>>);

impl SlowAddresses {
    /// Connects to the address that answers first. The addresses are tried in turn, with IPv4 and IPv6 alternating; each has a head
    /// start of [`limits::HEAD_START_TIME`] before the next, which begins at once if it fails.
    ///
    /// # Errors
    /// Why the last one failed, or a timeout if one is still silent at `until`. Without addresses, the request is denied.
    pub async fn connect(&self, addresses: Vec<SocketAddr>, until: Instant) -> Result<TcpStream, Error> {
        let mut waiting = VecDeque::from(self.in_turn(addresses));
        let mut tried: Vec<SocketAddr> = Vec::new();
        let (mut attempts, mut next) = (JoinSet::new(), Instant::now());
        let mut last = Error::HttpRequestDenied;
        loop {
            if next <= Instant::now()
                && let Some(address) = waiting.pop_front()
            {
                attempts.spawn(async move { (address, TcpStream::connect(address).await) });
                tried.push(address);
                next = Instant::now() + limits::HEAD_START_TIME;
            }
            tokio::select! {
                Some(ended) = attempts.join_next() => match ended {
                    Ok((address, Ok(stream))) => {
                        self.learn(&tried, address);
                        return Ok(stream);
                    }
                    Ok((_, Err(error))) => (last, next) = (Error::Connect(error), Instant::now()),
                    Err(error) => last = Error::InternalError(Some(error.to_string())),
                },
                () = sleep_until(next), if !waiting.is_empty() => {}
                () = sleep_until(until), if !attempts.is_empty() => return Err(Error::ConnectionTimeout),
                else => return Err(last),
            }
        }
    }

    /// Returns the addresses in the order in which they are tried (RFC 8305 §4).
    fn in_turn(&self, addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
        let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
        let (first, second): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
        let ranked = |family: Vec<SocketAddr>| family.into_iter().enumerate();
        let mut all: Vec<(usize, SocketAddr)> = ranked(first).chain(ranked(second)).collect();
        let slow = self.slow();
        all.sort_by_key(|(rank, address)| (slow.contains(address), *rank));
        all.into_iter().map(|(_, address)| address).take(limits::EGRESS_ADDRESSES_MAX).collect()
    }

    fn slow(&self) -> Vec<SocketAddr> {
        let now = Instant::now();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, until)| *until > now);
        known.iter().map(|(address, _)| *address).collect()
    }

    /// Notes those that were `tried` before `answered` did.
    fn learn(&self, tried: &[SocketAddr], answered: SocketAddr) {
        let until = Instant::now() + limits::SLOW_TIME;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(address, _)| !tried.contains(address));
        known.extend(tried.iter().filter(|address| **address != answered).map(|address| (*address, until)));
        while known.len() > limits::SLOW_ADDRESSES_MAX {
            known.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const TIME: Duration = Duration::from_secs(8);

    #[test]
    fn a_silent_address_costs_the_next_one_a_head_start_once() {
        crate::thread::runtime().unwrap().block_on(async {
            let (silent, _connected) = silent().await;
            let good = TcpListener::bind("127.0.0.1:0").unwrap();
            let addresses = vec![silent, good.local_addr().unwrap()];
            let slow = SlowAddresses::default();
            for head_starts in [1, 0] {
                let begun = Instant::now();
                let stream = slow.connect(addresses.clone(), begun + TIME).await.unwrap();
                assert_eq!(stream.peer_addr().unwrap(), good.local_addr().unwrap());
                assert!(begun.elapsed() >= limits::HEAD_START_TIME * head_starts, "{:?}", begun.elapsed());
                assert!(begun.elapsed() < TIME / 2, "a share of the time: {:?}", begun.elapsed());
                assert_eq!(slow.in_turn(addresses.clone())[0], good.local_addr().unwrap());
            }
        });
    }

    #[test]
    fn the_last_error_counts_and_a_silent_one_is_a_timeout() {
        crate::thread::runtime().unwrap().block_on(async {
            let (silent, _connected) = silent().await;
            let refused = {
                let gone = TcpListener::bind("127.0.0.1:0").unwrap();
                gone.local_addr().unwrap()
            };
            let slow = SlowAddresses::default();
            let within = || Instant::now() + Duration::from_millis(500);
            assert!(matches!(slow.connect(vec![refused], within()).await, Err(Error::Connect(_))));
            for addresses in [vec![silent, refused], vec![refused, silent]] {
                assert!(matches!(slow.connect(addresses, within()).await, Err(Error::ConnectionTimeout)));
            }
            assert!(matches!(slow.connect(vec![], within()).await, Err(Error::HttpRequestDenied)));
        });
    }

    #[test]
    fn families_alternate_and_few_are_tried() {
        let slow = SlowAddresses::default();
        let addresses: Vec<SocketAddr> =
            ["[2001:db8::1]:80", "[2001:db8::2]:80", "[2001:db8::3]:80", "[2001:db8::4]:80", "192.0.2.1:80"]
                .map(|address| address.parse().unwrap())
                .into();
        let of = |places: [usize; 4]| places.map(|place| addresses[place]).to_vec();
        assert_eq!(slow.in_turn(addresses.clone()), of([0, 4, 1, 2]));
        slow.learn(&addresses[..1], addresses[4]);
        assert_eq!(slow.in_turn(addresses.clone()), of([4, 1, 2, 3]));
        slow.learn(&[addresses[4], addresses[0]], addresses[0]);
        assert_eq!(slow.in_turn(addresses.clone()), of([0, 1, 2, 3]), "what answers is slow no more");
    }

    #[test]
    fn few_slow_addresses_are_known() {
        let slow = SlowAddresses::default();
        let address = |port: usize| SocketAddr::from(([192, 0, 2, 1], u16::try_from(port).unwrap()));
        for port in 1..=limits::SLOW_ADDRESSES_MAX + 1 {
            slow.learn(&[address(port), address(9999)], address(9999));
        }
        assert_eq!(slow.slow().len(), limits::SLOW_ADDRESSES_MAX);
        assert!(!slow.slow().contains(&address(1)));
    }

    /// Returns an address that does not answer: more connections than a listener holds wait there to be taken.
    async fn silent() -> (SocketAddr, (TcpListener, Vec<TcpStream>)) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let (address, mut connected) = (listener.local_addr().unwrap(), Vec::new());
        while let Ok(stream) = timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
            connected.push(stream.unwrap());
        }
        (address, (listener, connected))
    }
}
