// SPDX-License-Identifier: Apache-2.0
//! Cookies (RFC 5971 §8.5): what proves that a peer receives at the address that it gives.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::time::Duration;

use hmac::{Hmac, Mac};
use netserv_model::Instant;
use netserv_wire::gist::{Cookie, Mri, Nli};
use rand::Rng;
use rand::rngs::StdRng;
use sha2::Sha256;

use crate::api::InterfaceId;
use crate::routing::RouteKey;

/// Makes and checks responder cookies without keeping anything per Query.
///
/// A cookie is `generation ‖ interface ‖ distance ‖ HMAC-SHA256(secret, …)`, the last cut to 15 bytes. The generation is
/// random, so that a flood of made-up cookies is dropped before anything is hashed. For a Query that NATs translated, the
/// address and the flow as they came out follow: its Confirm has them as they went in (RFC 5971 §7.2.2).
#[derive(Debug)]
pub(crate) struct CookieJar {
    current: Secret,
    previous: Option<Secret>,
    lifetime: Duration,
    since: Option<Instant>,
}

/// What a node wants to know of a Query when its Confirm comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// Where it arrived.
    pub(crate) interface: InterfaceId,
    /// IP hops that it took, if known.
    pub(crate) distance: Option<u8>,
    /// It was sent to its flow's destination.
    pub(crate) along_flow: bool,
}

impl Sealed {
    /// Returns where it arrived, with a bit for one that was not sent along its flow.
    fn place(self) -> u32 {
        self.interface.0 | if self.along_flow { 0 } else { OFF_FLOW }
    }
}

/// What a valid cookie says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) sealed: Sealed,
    /// The row that the Confirm makes.
    pub(crate) key: RouteKey,
    /// Where the peer is.
    pub(crate) address: IpAddr,
    /// The MRI of a peer beyond NATs, toward it.
    pub(crate) inside: Option<Mri>,
}

impl CookieJar {
    pub(crate) fn new(rng: &mut StdRng, lifetime: Duration) -> CookieJar {
        CookieJar { current: Secret::new(rng), previous: None, lifetime, since: None }
    }

    /// Returns the cookie for a Query of `nli`. `key` is the row that a Confirm would make, `inside` the MRI of a peer beyond
    /// NATs, toward it.
    pub(crate) fn seal(
        &mut self,
        now: Instant,
        rng: &mut StdRng,
        (key, inside): (&RouteKey, Option<&Mri>),
        nli: &Nli,
        sealed: Sealed,
    ) -> Cookie {
        self.roll(now, rng);
        let mut bytes = Vec::with_capacity(RESPONDER_COOKIE_BYTES);
        bytes.extend_from_slice(&self.current.generation.to_be_bytes());
        bytes.extend_from_slice(&sealed.place().to_be_bytes());
        bytes.push(sealed.distance.unwrap_or(NO_DISTANCE));
        let mac = self.current.mac((key, inside), (&nli.peer_identity, nli.address), sealed).finalize().into_bytes();
        bytes.extend_from_slice(&mac[..MAC_BYTES]);
        if inside.is_some() {
            match nli.address {
                IpAddr::V4(v4) => bytes.extend_from_slice(&v4.octets()),
                IpAddr::V6(v6) => bytes.extend_from_slice(&v6.octets()),
            }
            key.mri.emit_value(&mut bytes);
        }
        Cookie(bytes)
    }

    /// Returns whether a cookie has the form of one for a Query that NATs translated.
    pub(crate) fn is_beyond_nats(cookie: &Cookie) -> bool {
        cookie.0.len() > RESPONDER_COOKIE_BYTES
    }

    /// Returns what was sealed of the Query, if the cookie is one of ours for just this Confirm.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        rng: &mut StdRng,
        key: &RouteKey,
        nli: &Nli,
        cookie: &Cookie,
    ) -> Option<Opened> {
        self.roll(now, rng);
        let (generation, rest) = cookie.0.split_first_chunk()?;
        let (place, rest) = rest.split_first_chunk()?;
        let (distance, mac) = rest.split_first()?;
        let generation = u32::from_be_bytes(*generation);
        let place = u32::from_be_bytes(*place);
        let (interface, along_flow) = (InterfaceId(place & !OFF_FLOW), place & OFF_FLOW == 0);
        let distance = Some(*distance).filter(|distance| *distance != NO_DISTANCE);
        let sealed = Sealed { interface, distance, along_flow };
        let secret = [Some(&self.current), self.previous.as_ref()].into_iter().flatten();
        let secret = secret.into_iter().find(|secret| secret.generation == generation)?;
        let (mac, outside) = mac.split_first_chunk::<MAC_BYTES>()?;
        let opened = if outside.is_empty() {
            Opened { sealed, key: key.clone(), address: nli.address, inside: None }
        } else {
            let (address, mri) = outside_form(outside, key.mri.addresses()?.0.is_ipv4())?;
            Opened { sealed, key: RouteKey { mri, ..key.clone() }, address, inside: Some(key.mri.clone()) }
        };
        let whose = (nli.peer_identity.as_slice(), opened.address);
        secret.mac((&opened.key, opened.inside.as_ref()), whose, sealed).verify_truncated_left(mac).ok()?;
        Some(opened)
    }

    fn roll(&mut self, now: Instant, rng: &mut StdRng) {
        let since = *self.since.get_or_insert(now);
        let age = now.since(since);
        if age < self.lifetime {
            return;
        }
        let old = std::mem::replace(&mut self.current, Secret::new(rng));
        self.previous = (age < self.lifetime * 2).then_some(old);
        self.since = Some(now);
    }
}

#[derive(Debug)]
struct Secret {
    generation: u32,
    keyed: Hmac<Sha256>,
}

impl Secret {
    fn new(rng: &mut StdRng) -> Secret {
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let keyed = Hmac::new_from_slice(&key).expect("HMAC takes a key of any length");
        Secret { generation: rng.next_u32(), keyed }
    }

    fn mac(
        &self,
        (key, inside): (&RouteKey, Option<&Mri>),
        (identity, address): (&[u8], IpAddr),
        sealed: Sealed,
    ) -> Hmac<Sha256> {
        let mut hasher = MacHasher(self.keyed.clone());
        identity.hash(&mut hasher);
        address.hash(&mut hasher);
        key.hash(&mut hasher);
        inside.hash(&mut hasher);
        self.generation.hash(&mut hasher);
        sealed.place().hash(&mut hasher);
        sealed.distance.hash(&mut hasher);
        hasher.0
    }
}

/// Reads the address and the flow at the end of a cookie, of the IP version of the Confirm.
fn outside_form(bytes: &[u8], v4: bool) -> Option<(IpAddr, Mri)> {
    let (address, mri) = if v4 {
        let (octets, mri) = bytes.split_first_chunk::<4>()?;
        (IpAddr::from(*octets), mri)
    } else {
        let (octets, mri) = bytes.split_first_chunk::<16>()?;
        (IpAddr::from(*octets), mri)
    };
    Some((address, Mri::from_value(mri)?))
}

/// Feeds a value's `Hash` form, which has one reading only, to a MAC. Only this process ever reads the result.
struct MacHasher(Hmac<Sha256>);

impl Hasher for MacHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        unreachable!("the MAC is taken out whole")
    }
}

/// Whole words are left for the rest.
const MAC_BYTES: usize = 15;
const RESPONDER_COOKIE_BYTES: usize = 4 + 4 + 1 + MAC_BYTES;
/// No interface's number is as high: the kernel counts them in signed numbers.
const OFF_FLOW: u32 = 1 << 31;
/// Stands for a distance that is not known.
const NO_DISTANCE: u8 = u8::MAX;

#[cfg(test)]
mod tests {
    use netserv_model::SessionId;
    use netserv_wire::gist::{Mri, PathCoupled};
    use rand::SeedableRng;

    use super::*;
    use crate::routing::query_cookie;

    const SEALED: Sealed = Sealed { interface: InterfaceId(4), distance: Some(3), along_flow: true };

    fn setup() -> (CookieJar, StdRng, RouteKey, Nli) {
        let mut rng = StdRng::seed_from_u64(7);
        let jar = CookieJar::new(&mut rng, Duration::from_secs(300));
        let flow = PathCoupled::new([10, 0, 0, 1].into(), [10, 0, 1, 1].into()).unwrap();
        let key = RouteKey { session: SessionId([3; 16]), nslp_id: 33, mri: Mri::PathCoupled(flow) };
        let nli = Nli {
            peer_identity: vec![1, 2, 3],
            ip_ttl: 64,
            validity: Duration::from_secs(30),
            address: [10, 0, 0, 1].into(),
        };
        (jar, rng, key, nli)
    }

    #[test]
    fn a_cookie_holds_for_its_own_handshake_only() {
        let (mut jar, mut rng, key, nli) = setup();
        let now = Instant::from_millis(1000);
        let cookie = jar.seal(now, &mut rng, (&key, None), &nli, SEALED);
        let opened = Opened { sealed: SEALED, key: key.clone(), address: nli.address, inside: None };
        assert_eq!(jar.open(now, &mut rng, &key, &nli, &cookie), Some(opened));

        let mut other = key.clone();
        other.session.0[0] ^= 1;
        assert_eq!(jar.open(now, &mut rng, &other, &nli, &cookie), None, "session");
        let mut other = key.clone();
        other.nslp_id += 1;
        assert_eq!(jar.open(now, &mut rng, &other, &nli, &cookie), None, "NSLP");
        let other = RouteKey { mri: key.mri.inverted(), ..key.clone() };
        assert_eq!(jar.open(now, &mut rng, &other, &nli, &cookie), None, "MRI");
        let other = Nli { peer_identity: vec![1, 2], ..nli.clone() };
        assert_eq!(jar.open(now, &mut rng, &key, &other, &cookie), None, "identity");
        let other = Nli { address: [10, 0, 0, 2].into(), ..nli.clone() };
        assert_eq!(jar.open(now, &mut rng, &key, &other, &cookie), None, "address");
        for byte in 0..cookie.0.len() {
            let mut other = cookie.clone();
            other.0[byte] ^= 0x80;
            assert_eq!(jar.open(now, &mut rng, &key, &nli, &other), None, "byte {byte}");
        }
        for length in 0..cookie.0.len() {
            let other = Cookie(cookie.0[..length].to_vec());
            assert_eq!(jar.open(now, &mut rng, &key, &nli, &other), None, "length {length}");
        }
    }

    #[test]
    fn a_cookie_remembers_whether_the_query_was_sent_along_its_flow() {
        let (mut jar, mut rng, key, nli) = setup();
        let now = Instant::from_millis(1000);
        for along_flow in [true, false] {
            let sealed = Sealed { along_flow, ..SEALED };
            let cookie = jar.seal(now, &mut rng, (&key, None), &nli, sealed);
            assert_eq!(jar.open(now, &mut rng, &key, &nli, &cookie).unwrap().sealed, sealed);
        }
    }

    /// Goal: the Confirm of a peer beyond a NAT, which says what the NAT found, makes the row that the NAT's words describe.
    #[test]
    fn a_cookie_remembers_what_nats_made_of_a_query() {
        let (mut jar, mut rng, inside, nli) = setup();
        let now = Instant::from_millis(1000);
        let flow = PathCoupled::new([198, 51, 100, 1].into(), [10, 0, 1, 1].into()).unwrap();
        let key = RouteKey { mri: Mri::PathCoupled(flow), ..inside.clone() };
        let outside = Nli { address: [198, 51, 100, 1].into(), ..nli.clone() };
        let cookie = jar.seal(now, &mut rng, (&key, Some(&inside.mri)), &outside, SEALED);
        assert!(CookieJar::is_beyond_nats(&cookie));
        let address = outside.address;
        let opened = Opened { sealed: SEALED, key, address, inside: Some(inside.mri.clone()) };
        assert_eq!(jar.open(now, &mut rng, &inside, &nli, &cookie), Some(opened));

        let other = RouteKey { mri: inside.mri.inverted(), ..inside.clone() };
        assert_eq!(jar.open(now, &mut rng, &other, &nli, &cookie), None, "another flow inside");
        let other = Nli { peer_identity: vec![1, 2], ..nli.clone() };
        assert_eq!(jar.open(now, &mut rng, &inside, &other, &cookie), None, "identity");
        for byte in 0..cookie.0.len() {
            let mut other = cookie.clone();
            other.0[byte] ^= 0x01;
            let opened = jar.open(now, &mut rng, &inside, &nli, &other);
            // A bit that the MRI does not use changes nothing.
            assert!(opened.is_none_or(|opened| opened.key != inside && opened.address == address), "byte {byte}");
        }
        for length in 0..cookie.0.len() {
            let other = Cookie(cookie.0[..length].to_vec());
            assert_eq!(jar.open(now, &mut rng, &inside, &nli, &other), None, "length {length}");
        }
    }

    #[test]
    fn a_cookie_outlives_one_secret_and_not_two() {
        let (mut jar, mut rng, key, nli) = setup();
        let at = Instant::from_millis;
        let cookie = jar.seal(at(0), &mut rng, (&key, None), &nli, SEALED);
        assert!(jar.open(at(299_999), &mut rng, &key, &nli, &cookie).is_some());
        assert!(jar.open(at(300_000), &mut rng, &key, &nli, &cookie).is_some());
        assert_ne!(jar.seal(at(300_000), &mut rng, (&key, None), &nli, SEALED), cookie);
        assert!(jar.open(at(599_999), &mut rng, &key, &nli, &cookie).is_some());
        assert!(jar.open(at(600_000), &mut rng, &key, &nli, &cookie).is_none());
    }

    #[test]
    fn a_secret_that_nobody_used_for_long_is_forgotten_at_once() {
        let (mut jar, mut rng, key, nli) = setup();
        let cookie = jar.seal(Instant::from_millis(0), &mut rng, (&key, None), &nli, SEALED);
        assert!(jar.open(Instant::from_millis(600_000), &mut rng, &key, &nli, &cookie).is_none());
    }

    #[test]
    fn query_cookies_differ() {
        let (_, mut rng, _, _) = setup();
        assert_ne!(query_cookie(&mut rng), query_cookie(&mut rng));
    }
}
