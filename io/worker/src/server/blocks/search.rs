// SPDX-License-Identifier: Apache-2.0
//! `netserv:search/search`, the block `match`.

use wasmtime::component::{HasSelf, Linker, Resource};

use crate::compute::search::{self, Patterns};
use crate::error::HostError;
use crate::limits;
use crate::server::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "package netserv:host-search; world host { import netserv:search/search@1.0.0; }",
        with: { "netserv:search/search.patterns": crate::compute::search::Patterns },
        imports: { default: trappable },
    });
}

use bindings::netserv::search::search::{self as wit, Error, Hit};

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
    ) -> wasmtime::Result<Result<Resource<Patterns>, Error>> {
        if self.blocks.compute.pattern_sets >= limits::PATTERN_SETS_MAX {
            return Ok(Err(Error::Quota));
        }
        let patterns = match Patterns::compile(&patterns, ignore_ascii_case) {
            Ok(patterns) => patterns,
            Err(error) => return Ok(Err(error.into())),
        };
        let memory_bytes = self.blocks.compute.pattern_bytes + patterns.memory_bytes();
        if memory_bytes > limits::PATTERNS_MEMORY_BYTES_MAX {
            return Ok(Err(Error::Quota));
        }
        let patterns = self.table.push(patterns)?;
        self.blocks.compute.pattern_sets += 1;
        self.blocks.compute.pattern_bytes = memory_bytes;
        Ok(Ok(patterns))
    }

    fn is_match(&mut self, patterns: Resource<Patterns>, haystack: Vec<u8>) -> wasmtime::Result<Result<bool, Error>> {
        Ok(self.table.get(&patterns)?.is_match(&haystack).map_err(Error::from))
    }

    fn find(
        &mut self,
        patterns: Resource<Patterns>,
        haystack: Vec<u8>,
        max: u32,
    ) -> wasmtime::Result<Result<Vec<Hit>, Error>> {
        let hits = self.table.get(&patterns)?.find(&haystack).map_err(Error::from);
        let hit = |hit: search::Hit| Hit { pattern: hit.pattern, start: hit.start, end: hit.end };
        Ok(hits.map(|hits| hits.take(max as usize).map(hit).collect()))
    }

    fn drop(&mut self, patterns: Resource<Patterns>) -> wasmtime::Result<()> {
        let patterns = self.table.delete(patterns)?;
        self.blocks.compute.pattern_sets -= 1;
        self.blocks.compute.pattern_bytes -= patterns.memory_bytes();
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
