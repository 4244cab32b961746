// SPDX-License-Identifier: Apache-2.0
//! The operator as a user of the node: whose services run while a condition holds.
//!
//! The node alone knows the key of that user, which it makes at each start. What the user uses is charged to nobody.

mod identity;

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use netserv_api::OperatorServiceInfo;
use netserv_model::policy::{NodePolicy, OperatorPolicy};

use crate::config::services::{OPERATOR, Service};
use crate::config::{Config, User};
pub use identity::Identity;

/// The operator as a user of this node.
#[derive(Clone)]
pub struct Operator {
    identity: Arc<Identity>,
    services: Arc<[Service]>,
    told: Arc<Mutex<Vec<OperatorServiceInfo>>>,
}

impl Operator {
    /// Returns the operator of a node with a key of its own, which nobody else has.
    ///
    /// # Errors
    /// The system gives no random number.
    pub fn new(config: &Config) -> Result<Operator> {
        let identity = Identity::new(OPERATOR.parse().expect("the name is a constant"))?;
        Ok(Operator { identity: Arc::new(identity), services: config.services.clone().into(), told: Arc::default() })
    }

    /// Adds the operator to those whom a policy knows, if there are services.
    pub fn add_to(&self, policy: &mut NodePolicy) {
        if self.services.is_empty() {
            return;
        }
        let (user, key) = (self.identity.user.clone(), self.identity.public_key());
        let signers = self.services.iter().map(|service| service.signer).collect();
        policy.users.insert(user.clone(), User::operator(signers));
        policy.operator = Some(OperatorPolicy { user, key });
    }

    /// Returns by what the operator's requests are signed.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the services as they are in the configuration.
    pub fn configured(&self) -> &[Service] {
        &self.services
    }

    /// Returns the services with the present values of their conditions.
    pub fn services(&self) -> Vec<OperatorServiceInfo> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes what is told of the services.
    pub fn tell(&self, services: Vec<OperatorServiceInfo>) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = services;
    }
}
