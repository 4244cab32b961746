// SPDX-License-Identifier: Apache-2.0
//! Revocation lists of issuers: each is asked for from time to time, and put into force.

use std::collections::BTreeMap;
use std::time::Duration;

use netserv_authority::revocations::Revocations;
use netserv_model::api::{RevocationInfo, RevocationListInfo};
use netserv_model::effect::{Command, EffectId, EffectOutcome, Job, ListAnswer, Notice, StoreJob, StoredList};
use netserv_model::policy::{Issuer, RevocationSource};
use netserv_model::{Instant, Refusal, RefusalKind};
use sha2::{Digest as _, Sha256};

use crate::cx::Cx;
use crate::cx::effects::{Purpose, why_not};
use crate::cx::timers::Timer;
use crate::limits::{LIST_ANSWER_TIME_MAX, LIST_JITTER_PART};

/// What is known of asking for lists, by the operator's names for the issuers.
#[derive(Debug, Default)]
pub(crate) struct Revoking {
    by_issuer: BTreeMap<String, Asked>,
}

#[derive(Debug)]
struct Asked {
    url: String,
    /// What the server calls the list in force.
    etag: Option<String>,
    /// The effect that asks, and since when.
    open: Option<(EffectId, Instant)>,
    /// How often it was asked for.
    count: u64,
    /// When that last brought a list that is good, or that no other is there.
    good: Option<Instant>,
    failures: u64,
    failure: Option<Refusal>,
}

impl Revoking {
    /// Takes note of whose lists the policy wants; those that are missing are asked for at once. Until there is an answer, users who have
    /// rights keep them.
    pub(crate) fn set_policy(&mut self, cx: &mut Cx) {
        let Cx { policy, authority, timers, .. } = cx;
        let is_wanted = |issuer: &Issuer| issuer.revocations.as_ref().filter(|_| !policy.host_only).cloned();
        let wanted: BTreeMap<&str, RevocationSource> =
            policy.issuers.iter().filter_map(|issuer| Some((issuer.name.as_str(), is_wanted(issuer)?))).collect();
        self.by_issuer.retain(|issuer, asked| {
            let stays = wanted.get(issuer.as_str()).is_some_and(|source| source.url == asked.url);
            if !stays {
                timers.cancel(&Timer::List(issuer.clone()));
            }
            stays
        });
        for (issuer, RevocationSource { url, .. }) in wanted {
            let is_new = !self.by_issuer.contains_key(issuer);
            let asked = self.by_issuer.entry(issuer.to_owned()).or_insert_with(|| Asked::at(url));
            if is_new || authority.list_of(issuer).is_none() {
                // What is under way asks for another version than that of a list that is dropped.
                if asked.etag.take().is_some() {
                    asked.open = None;
                }
                authority.set_awaited(issuer, true);
                timers.set_not_after(Timer::List(issuer.to_owned()), cx.now.instant);
            }
        }
    }

    /// Asks for an issuer's list, and sees to it that it is asked for again.
    pub(crate) fn ask(&mut self, cx: &mut Cx, issuer: &str) {
        let (Some(asked), Some(source)) = (self.by_issuer.get_mut(issuer), source(cx, issuer)) else { return };
        asked.count += 1;
        let wait = jittered(source.every, &[cx.policy.node.as_str(), issuer, &asked.count.to_string()]);
        cx.timers.set(Timer::List(issuer.to_owned()), cx.now.instant + wait);
        match asked.open {
            None => {
                let job = Job::AskList { url: source.url, etag: asked.etag.clone() };
                asked.open = Some((cx.start_node_effect(job, Purpose::List(issuer.to_owned())), cx.now.instant));
            }
            Some((_, since)) if cx.now.instant.since(since) < LIST_ANSWER_TIME_MAX => {}
            Some(_) => {
                cx.authority.set_awaited(issuer, false);
                asked.failed(cx, issuer, Refusal::new(RefusalKind::FetchFailed, "the server does not answer"));
            }
        }
    }

    /// Takes what came of asking for an issuer's list. Rights may be others than before.
    pub(crate) fn listed(&mut self, cx: &mut Cx, issuer: &str, id: EffectId, outcome: EffectOutcome) {
        let Some(asked) = self.by_issuer.get_mut(issuer).filter(|asked| asked.open.is_some_and(|open| open.0 == id))
        else {
            return;
        };
        asked.open = None;
        cx.authority.set_awaited(issuer, false);
        let before = number_of(cx, issuer);
        let taken = if let EffectOutcome::Listed(answer) = outcome {
            answer.map_or_else(|| Ok(asked.etag.clone()), |answer| take(cx, issuer, answer))
        } else {
            Err(why_not(outcome))
        };
        let result = taken.and_then(|etag| check_good(cx, issuer).map(|()| etag));
        if number_of(cx, issuer) != before || result.is_ok() && asked.failure.is_some() {
            say_listed(cx, issuer);
        }
        match result {
            Ok(etag) => (asked.etag, asked.good, asked.failure) = (etag, Some(cx.now.instant), None),
            Err(refusal) => asked.failed(cx, issuer, refusal),
        }
    }

    /// Returns what is known of all lists.
    pub(crate) fn report(&self, cx: &Cx, now: Instant) -> Vec<RevocationInfo> {
        let info = |(issuer, asked): (&String, &Asked)| RevocationInfo {
            issuer: issuer.clone(),
            list: cx.authority.list_of(issuer).zip(source(cx, issuer)).map(|(list, source)| RevocationListInfo {
                number: list.number,
                made: list.made(),
                until: list.until(source.age_max),
                grants: list.grants.len(),
                keys: list.keys.len(),
            }),
            asked_s: asked.good.map(|good| now.since(good).as_secs()),
            failures: asked.failures,
            failure: asked.failure.as_ref().map(ToString::to_string),
        };
        self.by_issuer.iter().map(info).collect()
    }
}

impl Asked {
    fn at(url: String) -> Asked {
        Asked { url, etag: None, open: None, count: 0, good: None, failures: 0, failure: None }
    }

    /// Counts a failure, and says it unless it is the one of last time.
    fn failed(&mut self, cx: &mut Cx, issuer: &str, refusal: Refusal) {
        self.failures += 1;
        self.etag = None;
        if self.failure.as_ref() != Some(&refusal) {
            cx.say(Command::Notify(Notice::NotListed { issuer: issuer.to_owned(), refusal: refusal.clone() }));
        }
        self.failure = Some(refusal);
    }
}

/// Puts a list into force, and has it kept, if it is another one than before; returns what the server calls it. That is nothing for another list: servers make
/// it of the file's time in seconds, in which yet another list may come (RFC 9110 §8.8.1).
fn take(cx: &mut Cx, issuer: &str, ListAnswer { text, etag }: ListAnswer) -> Result<Option<String>, Refusal> {
    let text = text.trim().to_owned();
    let is_other = cx.authority.set_list(&cx.policy, issuer, &text);
    if !is_other.map_err(|error| Refusal::new(RefusalKind::BadProof, error.to_string()))? {
        return Ok(etag);
    }
    let list = StoredList { issuer: issuer.to_owned(), text };
    cx.start_node_effect(Job::Store(StoreJob::PutList(Box::new(list))), Purpose::KeepList(issuer.to_owned()));
    Ok(None)
}

/// Checks that the list of an issuer is there and good.
fn check_good(cx: &Cx, issuer: &str) -> Result<(), Refusal> {
    let list = cx.authority.list_of(issuer).zip(source(cx, issuer));
    let why = match list.map(|(list, source)| (list.number, list.until(source.age_max))) {
        None => "there is no revocation list".to_owned(),
        Some((number, until)) if until <= cx.now.wall => format!("revocation list {number} was good until {until}"),
        Some(_) => return Ok(()),
    };
    Err(Refusal::new(RefusalKind::BadProof, why))
}

fn say_listed(cx: &mut Cx, issuer: &str) {
    let Some(list) = cx.authority.list_of(issuer) else { return };
    let (number, made) = (list.number, Revocations::made(list));
    cx.say(Command::Notify(Notice::Listed { issuer: issuer.to_owned(), number, made }));
}

fn number_of(cx: &Cx, issuer: &str) -> Option<u64> {
    cx.authority.list_of(issuer).map(|list| list.number)
}

fn source(cx: &Cx, issuer: &str) -> Option<RevocationSource> {
    cx.policy.issuers.iter().find(|known| known.name == issuer)?.revocations.clone()
}

/// Returns a time that is a little shorter, by a part that differs from node to node and from time to time.
fn jittered(time: Duration, of: &[&str]) -> Duration {
    let part = u32::from(Sha256::digest(of.join(" "))[0]);
    time - time / LIST_JITTER_PART * part / 255
}
