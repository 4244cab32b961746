// SPDX-License-Identifier: Apache-2.0
//! `netserv:hash/digest`.

use netserv_worker_base::compute::hash::{self, Hasher};
use wasmtime::component::{HasSelf, Linker, Resource};

use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../../wit/deps/netserv-hash",
        inline: "package netserv:host-hash; world host { import netserv:hash/digest@1.0.0; }",
        with: { "netserv:hash/digest.hasher": netserv_worker_base::compute::hash::Hasher },
        imports: { default: trappable },
    });
}

use bindings::netserv::hash::digest::{self as wit, Algorithm, Error};

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn digest(&mut self, algorithm: Algorithm, bytes: Vec<u8>) -> wasmtime::Result<Result<Vec<u8>, Error>> {
        Ok(hash::Algorithm::from(algorithm).digest(&bytes).map_err(|_| Error::TooLarge))
    }
}

impl wit::HostHasher for ServerState {
    fn new(&mut self, algorithm: Algorithm) -> wasmtime::Result<Resource<Hasher>> {
        Ok(self.table.push(Hasher::new(algorithm.into()))?)
    }

    fn update(&mut self, hasher: Resource<Hasher>, bytes: Vec<u8>) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.table.get_mut(&hasher)?.update(&bytes).map_err(|_| Error::TooLarge))
    }

    fn digest(&mut self, hasher: Resource<Hasher>) -> wasmtime::Result<Vec<u8>> {
        Ok(self.table.get(&hasher)?.clone().finish())
    }

    fn drop(&mut self, hasher: Resource<Hasher>) -> wasmtime::Result<()> {
        self.table.delete(hasher)?;
        Ok(())
    }
}

impl From<Algorithm> for hash::Algorithm {
    fn from(algorithm: Algorithm) -> hash::Algorithm {
        match algorithm {
            Algorithm::Sha1 => hash::Algorithm::Sha1,
            Algorithm::Sha256 => hash::Algorithm::Sha256,
            Algorithm::Sha512 => hash::Algorithm::Sha512,
            Algorithm::Md5 => hash::Algorithm::Md5,
            Algorithm::Crc32 => hash::Algorithm::Crc32,
            Algorithm::Xxh3 => hash::Algorithm::Xxh3,
        }
    }
}
