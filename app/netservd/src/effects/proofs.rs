// SPDX-License-Identifier: Apache-2.0
//! What addresses say of users, and who is behind checklists: each question is answered on a thread of its own. The controller bounds
//! how many there are at one time.

use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use netserv_model::effect::EffectOutcome;
use netserv_model::evidence::Checklist;
use netserv_model::policy::AddressTls;
use netserv_model::{Digest, Refusal, RefusalKind, UserId};
use netserv_repository::AddressAsker;
use netserv_rpki::{Cache, Invalid};
use tokio::sync::Semaphore;

use super::ticket::Ticket;
use crate::limits::{CACHE_READERS_AGAIN_MAX, CACHE_READERS_AT_A_TIME, CACHE_READERS_MAX, CACHE_TURN_TIME_MAX};
use crate::logs::wall;

/// Asks an address what it says of a user.
pub fn ask(asker: &Arc<AddressAsker>, (address, user, tls): (IpAddr, UserId, AddressTls), ticket: Ticket) {
    let asker = Arc::clone(asker);
    ticket.answer_apart("proof", move || asker.ask(address, &user, tls).map(EffectOutcome::Vouched));
}

/// Finds holders of addresses by the RPKI.
#[derive(Clone)]
pub struct Holders {
    cache: Arc<Cache>,
    /// Threads of requests. The controller gives up a question after a while; a disk that hangs does not.
    requests: Arc<Semaphore>,
    /// Threads that look again at what rights depend on.
    again: Arc<Semaphore>,
    turns: Arc<Turns>,
}

/// A checklist that has to name a grant. Rights may depend on it already.
pub struct Asked {
    pub checklist: Checklist,
    pub grant: Digest,
    pub is_again: bool,
}

impl Holders {
    /// By the operator's cache.
    pub fn new(cache: Cache) -> Holders {
        let places = |most| Arc::new(Semaphore::new(most));
        let (requests, again) = (places(CACHE_READERS_MAX), places(CACHE_READERS_AGAIN_MAX));
        Holders { cache: Arc::new(cache), requests, again, turns: Arc::default() }
    }

    /// Finds out who is behind a checklist. Requests take turns, and rights that are looked at again do not wait for these. Refused with
    /// [`RefusalKind::FetchFailed`] if there are too many threads, or a request's turn does not come in time.
    pub fn find(&self, Asked { checklist, grant, is_again }: Asked, ticket: Ticket) {
        let places = if is_again { &self.again } else { &self.requests };
        let Ok(place) = Arc::clone(places).try_acquire_owned() else {
            return ticket.refuse(too_slow());
        };
        let (cache, turns) = (Arc::clone(&self.cache), Arc::clone(&self.turns));
        ticket.answer_apart("proof", move || {
            let _place = place;
            let found = if is_again {
                cache.check_again(checklist.der(), &grant, wall())
            } else {
                let _turn = turns.take().ok_or_else(too_slow)?;
                cache.check(checklist.der(), &grant, wall())
            };
            let refusal = |invalid: Invalid| {
                let kind = if invalid.may_pass() { RefusalKind::FetchFailed } else { RefusalKind::BadProof };
                Refusal::new(kind, format!("checklist: {invalid}"))
            };
            found.map(EffectOutcome::Held).map_err(refusal)
        });
    }
}

/// The threads of requests that read the cache, so that they leave processors to others.
#[derive(Default)]
struct Turns {
    taken: Mutex<usize>,
    given_back: Condvar,
}

impl Turns {
    /// Waits for a turn, which ends when the result is dropped; nothing if it does not come in time.
    fn take(&self) -> Option<Turn<'_>> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |taken: &mut usize| *taken >= CACHE_READERS_AT_A_TIME;
        let waited = self.given_back.wait_timeout_while(taken, CACHE_TURN_TIME_MAX, is_full);
        let (mut taken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        (!timeout.timed_out()).then(|| {
            *taken += 1;
            Turn(self)
        })
    }
}

struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.given_back.notify_one();
    }
}

fn too_slow() -> Refusal {
    let why = "too many threads read the node's cache of the RPKI, or they take too long; its disk may hang";
    Refusal::new(RefusalKind::FetchFailed, why)
}

/// Finds out who is behind a checklist, by the operator's cache if there is one.
pub fn find_holder(holders: Option<&Holders>, asked: Asked, ticket: Ticket) {
    match holders {
        Some(holders) => holders.find(asked, ticket),
        None => ticket.refuse(Refusal::new(RefusalKind::BadProof, "the node has no cache of the RPKI")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use netserv_model::effect::EffectId;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::super::ticket::Answer;
    use super::*;
    use crate::config::Rpki;

    /// A locator of nobody's anchor.
    const TAL: &str = "rsync://rpki.example.org/repository/ta.cer\n\n\
                       MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEM3C8l2IHbcagHvks0G8riP2u\
                       WeNszTpFLiuCJK+Xp97i0i7AIs2QEtZmu0lyDoYIBxIWHjhrr8ddwWwil2cgoQ==\n";

    fn rpki(folder: &Path) -> Rpki {
        let tal = folder.join("lab.tal");
        std::fs::write(&tal, TAL).unwrap();
        Rpki { cache: folder.to_owned(), tals: vec![tal], ..Rpki::default() }
    }

    #[test]
    fn the_operator_names_the_file_of_the_relying_partys_runs() {
        let folder = tempfile::tempdir().unwrap();
        let names_file = |rpki: Rpki| format!("{:?}", rpki.open().unwrap().unwrap()).contains("results.csv");
        assert!(!names_file(rpki(folder.path())));
        assert!(names_file(Rpki { stamp: folder.path().join("results.csv"), ..rpki(folder.path()) }));
    }

    /// Goal: threads that hang on the disk of the RPKI's cache are bounded, however often the controller asks.
    #[test]
    fn only_so_many_threads_read_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let holders = Holders::new(rpki(folder.path()).open().unwrap().unwrap());
        for (is_again, places) in [(false, &holders.requests), (true, &holders.again)] {
            let most = u32::try_from(places.available_permits()).unwrap();
            let hanging = places.try_acquire_many(most).unwrap();
            let refusal = refused(&mut find(&holders, is_again));
            assert_eq!(refusal.kind, RefusalKind::FetchFailed, "it may pass");
            assert!(refusal.detail.contains("its disk may hang"), "{refusal:?}");
            assert_eq!(refused(&mut find(&holders, !is_again)).kind, RefusalKind::BadProof, "the others have places");
            drop(hanging);
            assert_eq!(refused(&mut find(&holders, is_again)).kind, RefusalKind::BadProof, "it is read");
        }
    }

    /// Goal: rights that are looked at again do not wait for strangers, however much these have the node read. Method: as many requests as
    /// may are checked, and do not end; others wait.
    #[test]
    fn rights_are_looked_at_again_beside_requests_that_wait() {
        let folder = tempfile::tempdir().unwrap();
        let holders = Holders::new(rpki(folder.path()).open().unwrap().unwrap());
        let slow: Vec<_> = (0..CACHE_READERS_AT_A_TIME).map(|_| holders.turns.take().unwrap()).collect();
        let mut waiting: Vec<_> = (0..CACHE_READERS_MAX).map(|_| find(&holders, false)).collect();
        assert_eq!(refused(&mut find(&holders, true)).kind, RefusalKind::BadProof);
        assert!(waiting.iter_mut().all(|inbox| inbox.try_recv().is_err()));
        drop(slow);
        assert!(waiting.iter_mut().all(|inbox| refused(inbox).kind == RefusalKind::BadProof));
    }

    /// Has a checklist looked at that is none.
    fn find(holders: &Holders, is_again: bool) -> UnboundedReceiver<Answer> {
        let (answers, inbox) = unbounded_channel();
        let (checklist, grant) = (Checklist::new(vec![0; 64]).unwrap(), Digest([1; 32]));
        holders.find(Asked { checklist, grant, is_again }, Ticket::new(EffectId(1), answers));
        inbox
    }

    fn refused(inbox: &mut UnboundedReceiver<Answer>) -> Refusal {
        let EffectOutcome::Refused(refusal) = inbox.blocking_recv().unwrap().outcome else { panic!("it is found") };
        refusal
    }
}
