// SPDX-License-Identifier: Apache-2.0
//! `netserv:search/search`, the block `match`.

use netserv_worker_base::compute::Reserved;
use netserv_worker_base::compute::search::{self, Patterns};
use netserv_worker_base::error::HostError;
use netserv_worker_base::limits;
use wasmtime::component::{HasSelf, Linker, Resource};

use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../../wit/deps/netserv-search",
        inline: "package netserv:host-search; world host { import netserv:search/search@1.0.0; }",
        with: { "netserv:search/search.patterns": crate::blocks::search::PatternSet },
        imports: { default: trappable },
    });
}

use bindings::netserv::search::search::{self as wit, Error, Hit};

/// A set of patterns of an instance.
pub struct PatternSet {
    patterns: Patterns,
    _memory: Reserved,
}

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn find(&mut self, haystack: Vec<u8>, needle: Vec<u8>) -> wasmtime::Result<Result<Option<u32>, Error>> {
        Ok(match search::find(&haystack, &needle) {
            Ok(at) => u32::try_from(at).map(Some).map_err(|_| Error::TooLarge),
            Err(HostError::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        })
    }
}

impl wit::HostPatterns for ServerState {
    fn compile(
        &mut self,
        patterns: Vec<Vec<u8>>,
        ignore_ascii_case: bool,
    ) -> wasmtime::Result<Result<Resource<PatternSet>, Error>> {
        if self.blocks.compute.pattern_sets >= limits::PATTERN_SETS_MAX {
            return Ok(Err(Error::Quota));
        }
        let compiled = Patterns::compile(&patterns, ignore_ascii_case).and_then(|patterns| {
            let memory = self.module.pattern_memory.reserve(patterns.memory_bytes())?;
            Ok(PatternSet { patterns, _memory: memory })
        });
        match compiled {
            Ok(set) => {
                let set = self.table.push(set)?;
                self.blocks.compute.pattern_sets += 1;
                Ok(Ok(set))
            }
            Err(error) => Ok(Err(error.into())),
        }
    }

    fn is_match(&mut self, set: Resource<PatternSet>, haystack: Vec<u8>) -> wasmtime::Result<Result<bool, Error>> {
        Ok(self.table.get(&set)?.patterns.is_match(&haystack).map_err(Error::from))
    }

    fn find(
        &mut self,
        set: Resource<PatternSet>,
        haystack: Vec<u8>,
        max: u32,
    ) -> wasmtime::Result<Result<Vec<Hit>, Error>> {
        let hits = self.table.get(&set)?.patterns.find(&haystack).map_err(Error::from);
        let hit = |hit: search::Hit| Hit { pattern: hit.pattern, start: hit.start, end: hit.end };
        Ok(hits.map(|hits| hits.take(max as usize).map(hit).collect()))
    }

    fn drop(&mut self, set: Resource<PatternSet>) -> wasmtime::Result<()> {
        self.table.delete(set)?;
        self.blocks.compute.pattern_sets -= 1;
        Ok(())
    }
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Error {
        match error {
            HostError::Quota => Error::Quota,
            HostError::TooLarge => Error::TooLarge,
            HostError::Invalid | HostError::NotFound | HostError::BadAddress => Error::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wit::HostPatterns as _;

    use super::*;
    use crate::blocks::testing::state;
    use crate::egress::Egress;
    use crate::module::Shared;
    use crate::state::Sockets;

    #[test]
    fn patterns_of_all_instances_of_a_module_count_together() {
        let first = state(Shared::for_tests);
        let module = Arc::clone(&first.module);
        let mut instances = vec![first];
        let (mut sets, mut full) = (0, false);
        while !full {
            let mut instance = ServerState::new(&module, Sockets::None, Egress::new(&module));
            for _ in 0..limits::PATTERN_SETS_MAX {
                match instance.compile(large(), true).unwrap() {
                    Ok(_) => sets += 1,
                    Err(error) => full = matches!(error, Error::Quota),
                }
            }
            assert!(matches!(instance.compile(large(), true).unwrap(), Err(Error::Quota)), "it has all that it may");
            instances.push(instance);
            assert!(instances.len() < 64, "{sets} large sets");
        }
        assert!(sets > 0);
        let mut other = ServerState::new(&module, Sockets::None, Egress::new(&module));
        assert!(matches!(other.compile(large(), true).unwrap(), Err(Error::Quota)));
        drop(instances);
        let set = other.compile(large(), true).unwrap().unwrap();
        wit::HostPatterns::drop(&mut other, set).unwrap();
        drop(other);
        assert!(module.pattern_memory.reserve(limits::PATTERNS_MEMORY_BYTES_MAX).is_ok(), "nothing is left");
    }

    /// Returns as many bytes of patterns as a set may have, hardly any of which begin alike.
    fn large() -> Vec<Vec<u8>> {
        let pattern = |number: usize| format!("{number:0>8}").repeat(limits::PATTERN_BYTES_MAX / 8).into_bytes();
        (0..limits::PATTERNS_BYTES_MAX / limits::PATTERN_BYTES_MAX).map(pattern).collect()
    }
}
