// SPDX-License-Identifier: Apache-2.0
//! `netserv:crypto/crypto`.

use netserv_worker_base::compute::crypto;
use netserv_worker_base::error::HostError;
use netserv_worker_base::sys;
use wasmtime::component::{HasSelf, Linker};

use crate::limits::CRYPTO_RANDOM_BYTES_MAX;
use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../../wit/deps/netserv-crypto",
        inline: "package netserv:host-crypto; world host { import netserv:crypto/crypto@1.0.0; }",
        imports: { default: trappable },
    });
}

use bindings::netserv::crypto::crypto::{self as wit, Cipher, Error};

type Bytes = wasmtime::Result<Result<Vec<u8>, Error>>;

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn hmac_sha256(&mut self, key: Vec<u8>, message: Vec<u8>) -> Bytes {
        Ok(crypto::hmac_sha256(&key, &message).map_err(Error::from))
    }

    fn hmac_sha512(&mut self, key: Vec<u8>, message: Vec<u8>) -> Bytes {
        Ok(crypto::hmac_sha512(&key, &message).map_err(Error::from))
    }

    fn equal(&mut self, a: Vec<u8>, b: Vec<u8>) -> wasmtime::Result<bool> {
        Ok(crypto::equal(&a, &b))
    }

    fn verify_ed25519(
        &mut self,
        key: Vec<u8>,
        message: Vec<u8>,
        signature: Vec<u8>,
    ) -> wasmtime::Result<Result<bool, Error>> {
        Ok(crypto::verify_ed25519(&key, &message, &signature).map_err(Error::from))
    }

    fn seal(&mut self, cipher: Cipher, key: Vec<u8>, nonce: Vec<u8>, message: Vec<u8>, associated: Vec<u8>) -> Bytes {
        Ok(crypto::seal(cipher.into(), &key, &nonce, &message, &associated).map_err(Error::from))
    }

    fn open(&mut self, cipher: Cipher, key: Vec<u8>, nonce: Vec<u8>, sealed: Vec<u8>, associated: Vec<u8>) -> Bytes {
        Ok(crypto::open(cipher.into(), &key, &nonce, &sealed, &associated).map_err(Error::from))
    }

    fn random(&mut self, length: u32) -> wasmtime::Result<Vec<u8>> {
        let mut bytes = vec![0; (length as usize).min(CRYPTO_RANDOM_BYTES_MAX)];
        sys::random(&mut bytes);
        Ok(bytes)
    }
}

impl From<Cipher> for crypto::Cipher {
    fn from(cipher: Cipher) -> crypto::Cipher {
        match cipher {
            Cipher::Chacha20Poly1305 => crypto::Cipher::ChaCha20Poly1305,
            Cipher::Aes256Gcm => crypto::Cipher::Aes256Gcm,
        }
    }
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Error {
        match error {
            HostError::NotFound => Error::Forged,
            HostError::TooLarge | HostError::Quota => Error::TooLarge,
            HostError::Invalid | HostError::BadAddress => Error::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use wasmtime_wasi::p2::bindings::random::random::Host as Random;

    use super::*;
    use crate::blocks::testing::state;
    use crate::limits::SERVER_RANDOM_BYTES_MAX;
    use crate::module::Shared;

    #[test]
    fn a_call_gives_only_so_many_random_bytes() {
        let mut state = state(Shared::for_tests);
        let most = u32::try_from(CRYPTO_RANDOM_BYTES_MAX).unwrap();
        for (wanted, given) in [(0, 0), (most, most), (most + 1, most), (u32::MAX, most)] {
            let bytes = wit::Host::random(&mut state, wanted).unwrap();
            assert_eq!(bytes.len(), given as usize);
            assert!(given == 0 || bytes[bytes.len() - 32..] != [0; 32], "all of them are");
        }
        let random = state.wasi.random();
        assert!(Random::get_random_bytes(random, SERVER_RANDOM_BYTES_MAX).is_ok());
        assert!(Random::get_random_bytes(random, SERVER_RANDOM_BYTES_MAX + 1).is_err());
    }
}
