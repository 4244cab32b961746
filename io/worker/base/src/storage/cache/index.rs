// SPDX-License-Identifier: Apache-2.0
//! Which entries there are, whose, and in which order they were used.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use netserv_model::ModuleName;

use super::block::Head;
use super::entry::Entry;
use super::fill::Fill;
use super::scope::Scope;
use crate::storage::limits::CACHE_GONE_TIME_MIN;

/// The entries of all modules.
pub(super) struct Index {
    modules: BTreeMap<ModuleName, Part>,
    blocks: u32,
    /// What all entries take in memory.
    cost: u64,
    /// What they may take.
    cost_max: u64,
    /// Counts uses, so that each has its time.
    uses: u64,
}

/// What one module has.
#[derive(Default)]
struct Part {
    entries: BTreeMap<Arc<str>, (u64, Arc<Entry>)>,
    by_use: BTreeMap<u64, Arc<str>>,
    cost: u64,
    /// Blocks of its entries, and of those that it writes.
    blocks: u32,
    /// Blocks of entries that are gone, and that somebody reads still.
    gone_blocks: Arc<AtomicU32>,
    /// These entries, from the one that went first, and when that was.
    gone: VecDeque<(Instant, Weak<Entry>)>,
    /// The entries that it writes.
    fills: Vec<Arc<Fill>>,
    /// How many versions of the module are there.
    users: u32,
    is_purging: bool,
}

/// Where a walk through the entries is.
pub(super) struct Walk {
    module: Option<ModuleName>,
    /// The last use of that module's that it came by.
    used: u64,
    until: u64,
}

impl Index {
    /// Returns an index without entries, which may have so many blocks and take so many bytes of memory.
    pub(super) fn new(blocks: u32, cost_max: u64) -> Index {
        Index { modules: BTreeMap::new(), blocks, cost: 0, cost_max, uses: 0 }
    }

    /// Returns the bytes of memory that all entries count for.
    #[cfg(test)]
    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns the bytes of memory that entries may take.
    pub(super) fn cost_max(&self) -> u64 {
        self.cost_max
    }

    pub(super) fn join(&mut self, module: &ModuleName) {
        self.modules.entry(module.clone()).or_default().users += 1;
    }

    pub(super) fn leave(&mut self, module: &ModuleName) {
        if let Some(part) = self.modules.get_mut(module) {
            part.users -= 1;
        }
        self.modules.retain(|_, part| part.users > 0 || part.taken() > 0 || !part.fills.is_empty());
    }

    /// Returns the blocks that each module may have.
    pub(super) fn share(&self) -> u32 {
        let users = self.modules.values().filter(|part| part.users > 0).count();
        self.blocks / u32::try_from(users.max(1)).unwrap_or(u32::MAX)
    }

    pub(super) fn is_over_share(&self, module: &ModuleName) -> bool {
        self.modules.get(module).is_some_and(|part| part.taken() >= self.share())
    }

    pub(super) fn count(&mut self, module: &ModuleName, blocks: u32) {
        self.modules.entry(module.clone()).or_default().blocks += blocks;
    }

    /// Takes note of an entry that is being written. Returns whether it may be.
    pub(super) fn begin(&mut self, module: &ModuleName, fill: &Arc<Fill>, writers_max: usize) -> bool {
        let part = self.modules.entry(module.clone()).or_default();
        let is_room = part.fills.len() < writers_max;
        part.fills.extend(is_room.then(|| Arc::clone(fill)));
        is_room
    }

    /// Takes note that an entry is written, or was given up, and that its blocks are no longer the writer's.
    pub(super) fn end(&mut self, module: &ModuleName, fill: &Arc<Fill>, blocks: u32) {
        if let Some(part) = self.modules.get_mut(module) {
            part.fills.retain(|other| !Arc::ptr_eq(other, fill));
            part.blocks -= blocks;
        }
    }

    /// Returns the entry with a key that is being written, and that others may read meanwhile.
    pub(super) fn fill(&self, module: &ModuleName, key: &str) -> Option<Arc<Fill>> {
        let fills = &self.modules.get(module)?.fills;
        // Of several, the one that was begun last.
        fills.iter().rev().find(|fill| fill.is_for(key)).cloned()
    }

    /// Returns a walk through the entries that there are.
    pub(super) fn walk(&self) -> Walk {
        Walk { module: None, used: 0, until: self.uses }
    }

    /// Returns up to `max` entries that a walk comes by next, of each module the least recently used first; none at its end.
    /// Those that are used or come meanwhile are left out or may come again.
    pub(super) fn page(&self, walk: &mut Walk, max: usize) -> Vec<Arc<Entry>> {
        let from = walk.module.as_ref().map_or(Bound::Unbounded, Bound::Included);
        for (module, part) in self.modules.range::<ModuleName, _>((from, Bound::Unbounded)) {
            let after = if walk.module.as_ref() == Some(module) { walk.used } else { 0 };
            let uses = part.by_use.range((Bound::Excluded(after), Bound::Included(walk.until))).take(max);
            let (used, page): (Vec<_>, Vec<_>) = uses
                .filter_map(|(used, key)| part.entries.get(key).map(|(_, entry)| (*used, Arc::clone(entry))))
                .unzip();
            if let Some(last) = used.last() {
                (walk.module, walk.used) = (Some(module.clone()), *last);
                return page;
            }
        }
        vec![]
    }

    /// Returns all entries with a key that are being written.
    pub(super) fn fills_of<'a>(&'a self, module: &ModuleName, key: &'a str) -> impl Iterator<Item = &'a Arc<Fill>> {
        let fills = self.modules.get(module).into_iter().flat_map(|part| &part.fills);
        fills.filter(move |fill| **fill.key() == *key)
    }

    pub(super) fn find(&mut self, module: &ModuleName, key: &str, use_it: bool) -> Option<Arc<Entry>> {
        let part = self.modules.get_mut(module)?;
        let (used, entry) = part.entries.get_mut(key)?;
        if use_it {
            self.uses += 1;
            let key = part.by_use.remove(used).unwrap_or_else(|| key.into());
            part.by_use.insert(self.uses, key);
            *used = self.uses;
        }
        Some(Arc::clone(entry))
    }

    /// Takes blocks off what a module has, which had them for an entry that it changed.
    pub(super) fn uncount(&mut self, module: &ModuleName, blocks: u32) {
        if let Some(part) = self.modules.get_mut(module) {
            part.blocks -= blocks;
        }
    }

    /// Returns up to `max` entries whose keys begin with `prefix`, in their order, from behind `after` on.
    pub(super) fn list(&self, module: &ModuleName, prefix: &str, after: Option<&str>, max: usize) -> Vec<Arc<Entry>> {
        let Some(part) = self.modules.get(module) else { return vec![] };
        let from = match after.filter(|after| *after >= prefix) {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(prefix),
        };
        let all = part.entries.range::<str, _>((from, Bound::Unbounded));
        let own = all.take_while(|(key, _)| key.starts_with(prefix)).take(max);
        own.map(|(_, (_, entry))| Arc::clone(entry)).collect()
    }

    /// Takes note that a module purges, which it does once at a time. Returns whether it may. What it writes in the scope
    /// is not kept.
    pub(super) fn begin_purge(&mut self, module: &ModuleName, scope: &Scope) -> bool {
        let part = self.modules.entry(module.clone()).or_default();
        let may = !std::mem::replace(&mut part.is_purging, true);
        if may {
            part.fills.iter().for_each(|fill| fill.purge(scope));
        }
        may
    }

    pub(super) fn end_purge(&mut self, module: &ModuleName) {
        if let Some(part) = self.modules.get_mut(module) {
            part.is_purging = false;
        }
    }

    /// Looks at `max` entries from behind `after` on. Removes and returns those that are in the scope, with the last key
    /// that was looked at; no key if there are no more.
    pub(super) fn purge(
        &mut self,
        module: &ModuleName,
        scope: &Scope,
        after: Option<&str>,
        max: usize,
    ) -> (Vec<Arc<Entry>>, Option<Arc<str>>) {
        let seen = self.list(module, scope.prefix(), after, max);
        let last = seen.last().filter(|_| seen.len() == max).map(|entry| Arc::clone(entry.key()));
        let gone: Vec<_> = seen.into_iter().filter(|entry| scope.has(entry)).collect();
        gone.iter().for_each(|entry| drop(self.remove(module, entry.key())));
        (gone, last)
    }

    /// Puts an entry in the place of an older one. Returns those that are gone: that one, and those that had to go since
    /// all of them took too much memory.
    pub(super) fn insert(&mut self, entry: Arc<Entry>) -> Vec<Arc<Entry>> {
        let (module, key) = (entry.head.module.clone(), entry.head.key.clone());
        let mut gone: Vec<Arc<Entry>> = self.remove(&module, &key).into_iter().collect();
        self.uses += 1;
        let part = self.modules.entry(module).or_default();
        part.blocks += entry.block_count();
        part.cost += entry.cost();
        self.cost += entry.cost();
        part.by_use.insert(self.uses, key.clone());
        part.entries.insert(key, (self.uses, entry));
        while self.cost > self.cost_max
            && let Some(entry) = self.evict_by(|part| Some(part.cost))
        {
            gone.push(entry);
        }
        gone
    }

    pub(super) fn remove(&mut self, module: &ModuleName, key: &str) -> Option<Arc<Entry>> {
        let part = self.modules.get_mut(module)?;
        let (used, entry) = part.entries.remove(key)?;
        part.by_use.remove(&used);
        part.blocks -= entry.block_count();
        part.cost -= entry.cost();
        self.cost -= entry.cost();
        Some(entry)
    }

    /// Removes this very entry, if it is there.
    pub(super) fn remove_one(&mut self, entry: &Entry) -> Option<Arc<Entry>> {
        let Head { module, key, .. } = &entry.head;
        self.find(module, key, false).filter(|there| there.number == entry.number)?;
        self.remove(module, key)
    }

    /// Puts a revision of an entry in the place of this very one. Returns those that are gone as [`Index::insert`] does;
    /// nothing if it is not there.
    pub(super) fn revise(&mut self, old: &Entry, new: Arc<Entry>) -> Option<Vec<Arc<Entry>>> {
        self.remove_one(old).map(|_| self.insert(new))
    }

    /// Removes the entry that has to go so that a module gets a block: its own least recently used one, or one of
    /// whoever is furthest over the share, nobody's first. Nothing if there is none.
    pub(super) fn evict_for(&mut self, module: &ModuleName) -> Option<Arc<Entry>> {
        if self.is_over_share(module) {
            return self.evict_from(module);
        }
        let share = self.share();
        self.evict_by(|part| Some(u64::from(part.taken())).filter(|_| part.is_over(share)))
    }

    /// Removes an entry as [`Index::evict_for`] does; of whoever has most, if nobody over the share has any.
    pub(super) fn evict_any_for(&mut self, module: &ModuleName) -> Option<Arc<Entry>> {
        if self.is_over_share(module) { None } else { self.evict_by(|part| Some(u64::from(part.taken()))) }
    }

    /// Removes the least recently used entry of whoever has most of something, nobody's first.
    fn evict_by(&mut self, amount: impl Fn(&Part) -> Option<u64>) -> Option<Arc<Entry>> {
        let evictable = self.modules.iter().filter(|(_, part)| !part.entries.is_empty());
        let most = evictable.filter_map(|(name, part)| Some((part.users == 0, amount(part)?, name))).max()?;
        self.evict_from(&most.2.clone())
    }

    /// Takes note that an entry is gone, which is written down. It counts for its module for as long as somebody reads it.
    pub(super) fn note_gone(&mut self, entry: &Arc<Entry>, is_revised: bool, now: Instant) {
        if !entry.is_read() {
            return;
        }
        let part = self.modules.entry(entry.head.module.clone()).or_default();
        entry.count_as_gone(&part.gone_blocks, is_revised);
        part.gone.retain(|(_, entry)| entry.strong_count() > 0);
        part.gone.push_back((now, Arc::downgrade(entry)));
    }

    /// Cuts those who read the entry that went first, for a block that a module wants: one of its own, or of whoever is furthest over
    /// the share. Returns whether there was one that is gone for long.
    pub(super) fn cut_for(&mut self, module: &ModuleName, now: Instant) -> bool {
        let share = self.share();
        let part = match self.is_over_share(module) {
            true => self.modules.get_mut(module),
            false => {
                let over = self.modules.values_mut().filter(|part| part.is_over(share) && !part.gone.is_empty());
                over.max_by_key(|part| (part.users == 0, part.taken()))
            }
        };
        let Some(part) = part else { return false };
        while let Some((_, entry)) = part.gone.pop_front_if(|(at, _)| *at + CACHE_GONE_TIME_MIN <= now) {
            if let Some(entry) = entry.upgrade() {
                entry.cut();
                return true;
            }
        }
        false
    }

    fn evict_from(&mut self, module: &ModuleName) -> Option<Arc<Entry>> {
        let key = Arc::clone(self.modules.get(module)?.by_use.first_key_value()?.1);
        self.remove(module, &key)
    }
}

impl Part {
    /// Returns the blocks that it has, with those that only readers have.
    fn taken(&self) -> u32 {
        self.blocks + self.gone_blocks.load(Ordering::Relaxed)
    }

    fn is_over(&self, share: u32) -> bool {
        self.users == 0 || self.taken() > share
    }
}
