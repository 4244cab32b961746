// SPDX-License-Identifier: Apache-2.0
//! How much one module may use of what a node grants only so much of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

words! {
    serde
    /// Something that a node grants only so much of.
    pub enum Resource {
        /// Bits that the user's containers send, and receive, in a second.
        BitsPerSecond = "bits-per-second",
        /// Bytes of one HTTP request's body.
        BodyBytes = "body-bytes",
        /// Bytes on disk of the cache that the user's modules of one flavour share.
        CacheBytes = "cache-bytes",
        /// Milliseconds that one batch, timer or start may take.
        CallMs = "call-ms",
        /// The module's connections at a time.
        Connections = "connections",
        /// The module's counters.
        Counters = "counters",
        /// Processor time of the user's container, in thousandths of one core.
        CpuPermille = "cpu-permille",
        /// Bytes in the writable directory of the user's container.
        DiskBytes = "disk-bytes",
        /// Bytes of the module's kv state.
        KvBytes = "kv-bytes",
        /// Entries of the module's kv state.
        KvEntries = "kv-entries",
        /// The module's memory in bytes.
        MemoryBytes = "memory-bytes",
        /// Packets that the user's containers send, and receive, in a second.
        PacketsPerSecond = "packets-per-second",
        /// Milliseconds that one HTTP request may take.
        RequestMs = "request-ms",
        /// The module's HTTP requests at a time.
        Requests = "requests",
        /// The module's timers.
        Timers = "timers",
    }
}

/// So much of each resource.
pub type Amounts = BTreeMap<Resource, u64>;

/// Declares the limits of a module: the name, the type and the default of each, and the resource that it limits.
macro_rules! module_limits {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$of:meta])* $field:ident: $kind:ty = $default:expr, $resource:ident;)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        pub struct $name {
            $($(#[$of])* pub $field: $kind,)+
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)+ }
            }
        }

        impl $name {
            /// Returns the limits by their names.
            pub fn amounts(&self) -> Amounts {
                [$((Resource::$resource, self.$field.into()),)+].into()
            }

            /// Returns the limits, each as high as the module needs it.
            #[must_use]
            pub fn raised_to(self, needs: &Amounts) -> $name {
                let need = |resource| needs.get(&resource).copied().unwrap_or(0);
                $name { $($field: self.$field.max(need(Resource::$resource).try_into().unwrap_or(<$kind>::MAX)),)+ }
            }

            /// Returns the limits, none of them above another one.
            #[must_use]
            pub fn lowered_to(self, granted: &$name) -> $name {
                $name { $($field: self.$field.min(granted.$field),)+ }
            }
        }

        /// The limits as packages have them: those of later versions are read over.
        #[derive(Deserialize)]
        #[serde(remote = "ModuleLimits", rename_all = "kebab-case", default = "ModuleLimits::default")]
        struct Packaged {
            $($field: $kind,)+
        }

        /// The limits as an operator sets them: those that are not there are as [`ModuleLimits::ceiling`] has them.
        #[derive(Deserialize)]
        #[serde(remote = "ModuleLimits", deny_unknown_fields, rename_all = "kebab-case")]
        #[serde(default = "ModuleLimits::ceiling")]
        struct Ceiling {
            $($field: $kind,)+
        }
    };
}

module_limits! {
    /// What one module may use.
    pub struct ModuleLimits {
        /// Memory in bytes: the linear memory of WebAssembly code, of each instance that serves an HTTP request, too; a
        /// bundle shares the heap of its JVM, which has so much.
        memory_bytes: u64 = 4 * 1024 * 1024, MemoryBytes;
        /// Entries of kv state.
        kv_entries: u32 = 65_536, KvEntries;
        /// Bytes of kv state, keys and values together.
        kv_bytes: u64 = 4 * 1024 * 1024, KvBytes;
        /// Timers at a time.
        timers: u32 = 64, Timers;
        /// Counters.
        counters: u32 = 1024, Counters;
        /// Milliseconds that one batch, timer or start may take before the module counts as stalled.
        call_ms: u32 = 500, CallMs;
        /// Milliseconds that one HTTP request may take, from its head to the end of the response.
        request_ms: u32 = 10_000, RequestMs;
        /// HTTP requests at a time.
        requests: u32 = 64, Requests;
        /// Connections at a time, at ports of its own and intercepted.
        connections: u32 = 8192, Connections;
        /// Bytes of one HTTP request's body.
        body_bytes: u64 = 16 * 1024 * 1024, BodyBytes;
    }
}

impl ModuleLimits {
    /// Returns the highest limits of a module for whose user the operator says nothing: twice what a manifest gets by
    /// default, so that a plain module never meets the ceiling. A cache that fetches a page has time for a server that
    /// takes a minute, as long as other proxies wait.
    #[must_use]
    pub fn ceiling() -> ModuleLimits {
        let default = ModuleLimits::default();
        let (memory_bytes, call_ms) = (2 * default.memory_bytes, 2 * default.call_ms);
        ModuleLimits { memory_bytes, call_ms, request_ms: REQUEST_MS_MAX, ..default }
    }

    /// Reads limits of which keys that are not there are those of [`ModuleLimits::ceiling`].
    ///
    /// # Errors
    /// A key is unknown, or its value is none.
    pub fn deserialize_ceiling<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ModuleLimits, D::Error> {
        Ceiling::deserialize(deserializer)
    }
}

/// Reads the limits of a package.
pub(super) fn packaged<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ModuleLimits, D::Error> {
    Packaged::deserialize(deserializer)
}

/// Milliseconds that a request may take by default if its module asks for so many: a minute, and what the module does besides.
const REQUEST_MS_MAX: u32 = 70_000;

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
        let limits = ModuleLimits::default();
        let written: BTreeMap<String, u64> = serde_json::from_value(serde_json::to_value(limits).unwrap()).unwrap();
        let named = limits.amounts().into_iter().map(|(resource, amount)| (resource.to_string(), amount));
        assert_eq!(named.collect::<BTreeMap<_, _>>(), written);
        for resource in Resource::ALL {
            assert_eq!(serde_json::to_value(resource).unwrap(), resource.as_str());
        }
    }
}
