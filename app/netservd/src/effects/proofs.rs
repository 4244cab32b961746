// SPDX-License-Identifier: Apache-2.0
//! What addresses say of users, and who is behind checklists: each question is answered on a thread of its own. The controller bounds
//! how many there are at one time.

use std::net::IpAddr;
use std::sync::Arc;

use netserv_model::effect::EffectOutcome;
use netserv_model::evidence::Checklist;
use netserv_model::policy::AddressTls;
use netserv_model::{Digest, Refusal, RefusalKind, UserId};
use netserv_repository::Asker;
use netserv_rpki::{Cache, Invalid};
use tokio::sync::Semaphore;

use super::ticket::Ticket;
use crate::limits::CACHE_READERS_MAX;
use crate::logs::wall;

/// Asks an address what it says of a user.
pub fn ask(asker: &Arc<Asker>, (address, user, tls): (IpAddr, UserId, AddressTls), ticket: Ticket) {
    let asker = Arc::clone(asker);
    ticket.answer_apart("proof", move || asker.ask(address, &user, tls).map(EffectOutcome::Vouched));
}

/// Finds holders of addresses by the RPKI.
#[derive(Clone)]
pub struct Holders {
    cache: Arc<Cache>,
    /// Threads that may read the cache at one time. The controller gives up a question after a while; a disk that hangs does not.
    places: Arc<Semaphore>,
}

impl Holders {
    /// By the operator's cache.
    pub fn new(cache: Cache) -> Holders {
        Holders { cache: Arc::new(cache), places: Arc::new(Semaphore::new(CACHE_READERS_MAX)) }
    }

    /// Finds out who is behind a checklist that has to name a grant. Refused with [`RefusalKind::FetchFailed`] while as many threads
    /// as may read the cache do.
    pub fn find(&self, checklist: Checklist, grant: Digest, ticket: Ticket) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let why = format!("{CACHE_READERS_MAX} threads read the node's cache of the RPKI; its disk may hang");
            return ticket.refuse(Refusal::new(RefusalKind::FetchFailed, why));
        };
        let cache = Arc::clone(&self.cache);
        ticket.answer_apart("proof", move || {
            let _place = place;
            let found = cache.check(checklist.der(), &grant, wall());
            let refusal = |invalid: Invalid| {
                let kind = if invalid.may_pass() { RefusalKind::FetchFailed } else { RefusalKind::BadProof };
                Refusal::new(kind, format!("checklist: {invalid}"))
            };
            found.map(EffectOutcome::Held).map_err(refusal)
        });
    }
}

/// Finds out who is behind a checklist, by the operator's cache if there is one.
pub fn find_holder(holders: Option<&Holders>, checklist: Checklist, grant: Digest, ticket: Ticket) {
    match holders {
        Some(holders) => holders.find(checklist, grant, ticket),
        None => ticket.refuse(Refusal::new(RefusalKind::BadProof, "the node has no cache of the RPKI")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use netserv_model::effect::EffectId;
    use tokio::sync::mpsc::unbounded_channel;

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
        let (answers, mut inbox) = unbounded_channel();
        let mut find = || {
            let checklist = Checklist::new(vec![0; 64]).unwrap();
            holders.find(checklist, Digest([1; 32]), Ticket::new(EffectId(1), answers.clone()));
            let EffectOutcome::Refused(refusal) = inbox.blocking_recv().unwrap().outcome else { panic!("it is found") };
            refusal
        };
        let hanging = holders.places.try_acquire_many(u32::try_from(CACHE_READERS_MAX).unwrap()).unwrap();
        let refusal = find();
        assert_eq!(refusal.kind, RefusalKind::FetchFailed, "it may pass");
        assert!(refusal.detail.contains("its disk may hang"), "{refusal:?}");
        drop(hanging);
        assert_eq!(find().kind, RefusalKind::BadProof, "it is read");
    }
}
