// SPDX-License-Identifier: Apache-2.0
//! Keys that live as long as the tree.

use std::sync::Arc;

use rpki::crypto::softsigner::{KeyId, SoftSigner};
use rpki::crypto::{PublicKey, PublicKeyFormat, RpkiSignatureAlgorithm, Signer as _};

/// The keys of a tree. Its copies share them.
#[derive(Clone)]
pub(crate) struct Keys {
    pub(crate) signer: Arc<SoftSigner>,
    /// That of all signed objects: making keys takes the longest.
    pub(crate) objects: KeyId,
}

impl Keys {
    pub(crate) fn new() -> Keys {
        let signer = SoftSigner::new();
        let objects = make(&signer);
        Keys { signer: Arc::new(signer), objects }
    }

    pub(crate) fn make(&self) -> KeyId {
        make(&self.signer)
    }

    pub(crate) fn public(&self, key: KeyId) -> PublicKey {
        self.signer.get_key_info(&key).expect("the signer has its keys")
    }

    pub(crate) fn sign(&self, key: KeyId, bytes: &[u8]) -> Vec<u8> {
        let signature = self.signer.sign(&key, RpkiSignatureAlgorithm::default(), bytes);
        signature.expect("the signer signs").value().to_vec()
    }
}

fn make(signer: &SoftSigner) -> KeyId {
    signer.create_key(PublicKeyFormat::Rsa).expect("the signer makes keys")
}
