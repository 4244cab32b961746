// SPDX-License-Identifier: Apache-2.0
//! Whether a manifest makes sense, whoever wrote it.

use std::collections::BTreeSet;

use super::{Drain, Manifest, Resource};
use crate::limits::{CHAIN_PARTS_MAX, CHAIN_PARTS_MIN, TLS_NAMES_MAX};
use crate::limits::{FILTERS_PER_MODULE_MAX, PROPERTIES_PER_MODULE_MAX, PROPERTY_BYTES_MAX};
use crate::{Filter, ModuleName, Protocol, Refusal, RefusalKind};

/// Characters of a name from outside that a message shows.
const SHOWN_CHARS_MAX: usize = 40;

impl Manifest {
    /// Checks what the types alone do not hold: that there is something to run, and the bounds.
    ///
    /// # Errors
    /// A refusal of kind `bad-manifest` that names the key.
    pub fn check(&self) -> Result<(), Refusal> {
        match &self.service {
            Some(_) => self.check_service()?,
            None if self.packet.is_none() && self.server.is_none() => {
                return Err(bad("there is neither [packet] nor [server], so the module would do nothing"));
            }
            None => {}
        }
        bounded("filters", self.filters())?;
        self.check_parallel()?;
        self.check_listen()?;
        self.check_intercept()?;
        self.check_intercept_tls()?;
        self.check_drain()?;
        self.check_needs()?;
        self.check_properties()?;
        self.check_requires()
    }

    fn check_parallel(&self) -> Result<(), Refusal> {
        match &self.packet {
            Some(packet) if packet.parallel && packet.abi == 0 => Err(bad(
                "packet.parallel without packet.abi: only WebAssembly code can run as several instances; leave `parallel` \
                 out, or package WebAssembly code and name its ABI",
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn check_listen(&self) -> Result<(), Refusal> {
        bounded("entries of server.listen", self.listen())?;
        let odd = |filter: &&Filter| {
            let elsewhere = filter.destination().is_some() || filter.source_ports().is_some();
            elsewhere || filter.opens_only() || filter.destination_ports().is_none()
        };
        match self.listen().iter().find(odd) {
            Some(filter) => {
                Err(bad(format!("server.listen has `{filter}`; write a protocol and a port, as `tcp port 80`")))
            }
            None => Ok(()),
        }
    }

    fn check_intercept(&self) -> Result<(), Refusal> {
        bounded("entries of server.intercept", self.intercept())?;
        match self.intercept().iter().find(|filter| !filter.is_of_connections()) {
            Some(filter) => Err(bad(format!(
                "server.intercept has `{filter}`; write `tcp` and a port, as `tcp dst PREFIX port 80`"
            ))),
            None => Ok(()),
        }
    }

    fn check_intercept_tls(&self) -> Result<(), Refusal> {
        let names = self.intercept_tls();
        if names.len() > TLS_NAMES_MAX {
            return Err(bad(format!("{} entries of server.intercept-tls, at most {TLS_NAMES_MAX}", names.len())));
        }
        if let Some(name) = names.iter().find(|name| !is_host_name(name)) {
            let shown: String = name.chars().take(SHOWN_CHARS_MAX).collect();
            return Err(bad(format!(
                "server.intercept-tls has `{shown}`; write a name as TLS clients send it, such as `www.example.org`"
            )));
        }
        let (tls, intercepts) = (self.server.as_ref().is_some_and(|server| server.tls), !self.intercept().is_empty());
        match names.is_empty() || (tls && intercepts) {
            true => Ok(()),
            false => Err(bad(
                "server.intercept-tls without both server.tls and server.intercept: name the certificate that has the \
                 names, and the connections",
            )),
        }
    }

    fn check_drain(&self) -> Result<(), Refusal> {
        match self.drain() {
            Drain::Splice if self.intercept().is_empty() => Err(bad(
                "server.drain = \"splice\" without server.intercept: only connections that have a server of their own \
                 can go on without the module",
            )),
            Drain::Finish if self.intercept().is_empty() => Err(bad(
                "server.drain = \"finish\" without server.intercept: it is of connections that the module takes over",
            )),
            Drain::Finish if self.listen().iter().any(|filter| filter.protocol() == Protocol::Udp) => Err(bad(
                "server.drain = \"finish\" with a port of UDP in server.listen: only connections can come to an end",
            )),
            Drain::Close | Drain::Splice | Drain::Finish => Ok(()),
        }
    }

    fn check_needs(&self) -> Result<(), Refusal> {
        let limits = self.limits.amounts();
        let over = |(resource, amount): &(&Resource, &u64)| limits.get(resource).is_some_and(|limit| limit < *amount);
        match self.needs.iter().find(over) {
            Some((resource, amount)) => {
                let limit = limits[resource];
                Err(bad(format!("needs.{resource} is {amount}, and limits.{resource} only {limit}")))
            }
            None => Ok(()),
        }
    }

    fn check_service(&self) -> Result<(), Refusal> {
        if self.packet.is_some() {
            return Err(bad("[service] and [packet]: the packet parts of a service are its modules'"));
        }
        let chain = self.chain();
        if !(CHAIN_PARTS_MIN..=CHAIN_PARTS_MAX).contains(&chain.len()) {
            let count = chain.len();
            return Err(bad(format!(
                "{count} parts in service.chain, {CHAIN_PARTS_MIN} to {CHAIN_PARTS_MAX} make one"
            )));
        }
        let mut seen: BTreeSet<&ModuleName> = BTreeSet::from([&self.name]);
        match chain.iter().find(|part| !seen.insert(&part.name)) {
            Some(part) if part.name == self.name => {
                Err(bad(format!("service.chain has the service {} itself", part.name)))
            }
            Some(part) => Err(bad(format!("service.chain has {} twice", part.name))),
            None => Ok(()),
        }
    }

    /// A manifest that names less than it uses would be taken, and misunderstood, by nodes that do not know the rest.
    fn check_requires(&self) -> Result<(), Refusal> {
        match self.used_features().difference(&self.requires).next() {
            Some(feature) => Err(bad(format!("`requires` lacks `{feature}`, which the manifest uses"))),
            None => Ok(()),
        }
    }

    fn check_properties(&self) -> Result<(), Refusal> {
        if self.properties.len() > PROPERTIES_PER_MODULE_MAX {
            return Err(bad(format!("{} properties, at most {PROPERTIES_PER_MODULE_MAX}", self.properties.len())));
        }
        let too_long = |(key, value): &(&String, &String)| key.len() + value.len() > PROPERTY_BYTES_MAX;
        match self.properties.iter().find(too_long) {
            Some((key, _)) => {
                let key: String = key.chars().take(SHOWN_CHARS_MAX).collect();
                Err(bad(format!("property `{key}` is longer than {PROPERTY_BYTES_MAX} bytes")))
            }
            None => Ok(()),
        }
    }
}

/// Returns whether TLS clients can ask for a name so: labels of letters, digits, `-` and `_` (RFC 6066 §3).
fn is_host_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.chars().all(is_letter);
    name.len() <= 253 && name.split('.').all(is_label)
}

fn bounded<T>(what: &str, filters: &[T]) -> Result<(), Refusal> {
    match filters.len() {
        0..=FILTERS_PER_MODULE_MAX => Ok(()),
        count => Err(bad(format!("{count} {what}, at most {FILTERS_PER_MODULE_MAX}"))),
    }
}

fn bad(detail: impl AsRef<str>) -> Refusal {
    Refusal::new(RefusalKind::BadManifest, detail)
}
