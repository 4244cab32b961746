// SPDX-License-Identifier: Apache-2.0
//! The limits of one module as amounts of resources.

use super::{Amounts, ModuleLimits, Resource};

impl ModuleLimits {
    /// Returns the limits by their names.
    pub fn amounts(&self) -> Amounts {
        let ModuleLimits { memory_bytes, kv_entries, kv_bytes, timers, counters, .. } = *self;
        let ModuleLimits { call_ms, request_ms, requests, connections, body_bytes, .. } = *self;
        [
            (Resource::MemoryBytes, memory_bytes),
            (Resource::KvEntries, kv_entries.into()),
            (Resource::KvBytes, kv_bytes),
            (Resource::Timers, timers.into()),
            (Resource::Counters, counters.into()),
            (Resource::CallMs, call_ms.into()),
            (Resource::RequestMs, request_ms.into()),
            (Resource::Requests, requests.into()),
            (Resource::Connections, connections.into()),
            (Resource::BodyBytes, body_bytes),
        ]
        .into()
    }

    /// Returns the limits, each as high as the module needs it.
    #[must_use]
    pub fn raised_to(self, needs: &Amounts) -> ModuleLimits {
        let need = |resource| needs.get(&resource).copied().unwrap_or(0);
        let small = |limit: u32, resource| limit.max(u32::try_from(need(resource)).unwrap_or(u32::MAX));
        ModuleLimits {
            memory_bytes: self.memory_bytes.max(need(Resource::MemoryBytes)),
            kv_entries: small(self.kv_entries, Resource::KvEntries),
            kv_bytes: self.kv_bytes.max(need(Resource::KvBytes)),
            timers: small(self.timers, Resource::Timers),
            counters: small(self.counters, Resource::Counters),
            call_ms: small(self.call_ms, Resource::CallMs),
            request_ms: small(self.request_ms, Resource::RequestMs),
            requests: small(self.requests, Resource::Requests),
            connections: small(self.connections, Resource::Connections),
            body_bytes: self.body_bytes.max(need(Resource::BodyBytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_raised_to_what_is_needed_and_never_lowered() {
        let plain = ModuleLimits::default();
        assert_eq!(plain.raised_to(&Amounts::new()), plain);
        let all = plain.amounts();
        let more: Amounts = all.iter().map(|(resource, amount)| (*resource, amount + 1)).collect();
        assert_eq!(plain.raised_to(&more).amounts(), more);
        let less: Amounts = all.iter().map(|(resource, amount)| (*resource, amount / 2)).collect();
        assert_eq!(plain.raised_to(&less), plain);
        let most = [(Resource::Timers, u64::MAX)].into();
        assert_eq!(plain.raised_to(&most).timers, u32::MAX);
    }

    #[test]
    fn names_are_those_that_are_written() {
        let amounts = ModuleLimits::default().amounts();
        assert_eq!(amounts.len(), 10);
        let others = [Resource::BitsPerSecond, Resource::CacheBytes, Resource::CpuPermille, Resource::DiskBytes];
        for resource in amounts.keys().chain(&others).chain([&Resource::PacketsPerSecond]) {
            assert_eq!(serde_json::to_value(resource).unwrap(), resource.as_str());
        }
    }
}
