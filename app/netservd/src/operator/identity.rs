// SPDX-License-Identifier: Apache-2.0
//! The name and the key by which the node asks itself.

use anyhow::{Context, Result};
use ed25519_dalek::{Signer, SigningKey};
use netserv_model::{Nonce, PublicKey, Signature, UserId};
use netserv_wire::nslp::RequestBuilder;
use rand::TryRng;
use rand::rngs::SysRng;

use crate::logs::wall;

/// A user with a key that nobody else has.
pub struct Identity {
    /// The user's name.
    pub user: UserId,
    key: SigningKey,
}

impl Identity {
    /// Makes a key for a user.
    ///
    /// # Errors
    /// The system gives no random number.
    pub fn new(user: UserId) -> Result<Identity> {
        let mut secret = [0; 32];
        SysRng.try_fill_bytes(&mut secret).context("the system gives no random number")?;
        Ok(Identity { user, key: SigningKey::from_bytes(&secret) })
    }

    /// Returns the key by which signatures are checked.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.key.verifying_key().to_bytes())
    }

    /// Returns the text of a signed request.
    ///
    /// # Errors
    /// The request is longer than a message may be, or is none.
    pub fn sign(&self, builder: RequestBuilder) -> Result<String> {
        let mut nonce = [0; 16];
        SysRng.try_fill_bytes(&mut nonce).context("the system gives no random number")?;
        let unsigned = builder.user(&self.user).build(wall(), Nonce(nonce))?;
        let signature = Signature(self.key.sign(unsigned.canonical_bytes()).to_bytes());
        Ok(unsigned.with_signature(signature)?.as_str().to_owned())
    }
}
