// SPDX-License-Identifier: Apache-2.0
//! What runs modules on this machine, of what the configuration wants.

use netserv_model::Flavour;
use netserv_model::policy::NodePolicy;
use netserv_model::request::Environment;

use super::jvm::{Jvm, OSGI_VERSION};
use crate::config::{Config, Role};

/// The flavours that the node runs, and what they run on.
#[derive(Clone, Debug, Default)]
pub struct Runtimes {
    /// The preferred one first.
    pub flavours: Vec<Flavour>,
    /// What OSGi modules run on, if they do.
    pub jvm: Option<Jvm>,
    /// Why a flavour that the configuration names is not among them.
    pub missing: Vec<String>,
}

impl Runtimes {
    /// Looks for what the configuration wants. A flavour that lacks something is left out.
    pub fn find(config: &Config) -> Runtimes {
        let mut found = Runtimes::default();
        if config.role == Role::Host {
            return found;
        }
        for flavour in &config.flavours {
            match flavour {
                Flavour::Wasm => found.flavours.push(Flavour::Wasm),
                Flavour::Osgi if !config.osgi.enabled => {}
                Flavour::Osgi => match Jvm::find(config) {
                    Ok(jvm) => {
                        found.flavours.push(Flavour::Osgi);
                        found.jvm = Some(jvm);
                    }
                    Err(missing) => found.missing.push(format!("OSGi modules: {missing}")),
                },
            }
        }
        found
    }

    /// Puts into a policy what modules may depend on, and what a PROBE shows.
    pub fn add_to(&self, policy: &mut NodePolicy) {
        policy.environments = self.flavours.iter().map(|flavour| self.environment(*flavour)).collect();
        if !self.flavours.contains(&Flavour::Wasm) {
            policy.blocks.remove("wasm");
        }
        if let Some(jvm) = &self.jvm {
            policy.blocks.insert("osgi".to_owned(), OSGI_VERSION);
            policy.blocks.insert("java".to_owned(), jvm.java);
        }
    }

    fn environment(&self, flavour: Flavour) -> Environment {
        let engine = match flavour {
            Flavour::Wasm => concat!("netserv-worker ", env!("CARGO_PKG_VERSION")).to_owned(),
            Flavour::Osgi => self.jvm.as_ref().map(|jvm| jvm.engine.clone()).unwrap_or_default(),
        };
        Environment { flavour, engine }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use netserv_container::JvmFiles;

    use super::*;

    #[test]
    fn a_policy_shows_what_there_is() {
        let [worker, java_home, host, archive] = ["w", "j", "h", "a"].map(PathBuf::from);
        let files = JvmFiles { worker, java_home, host, archive, name_servers: vec![] };
        let jvm = Jvm { files, java: 17, engine: "Felix on Java".to_owned() };
        let check = |flavours: &[Flavour], blocks: &[(&str, Option<u32>)], engines: &[&str]| {
            let jvm = flavours.contains(&Flavour::Osgi).then(|| jvm.clone());
            let runtimes = Runtimes { flavours: flavours.to_vec(), jvm, missing: vec![] };
            let mut policy = Config::default().policy(&|_| Vec::new()).unwrap();
            runtimes.add_to(&mut policy);
            for (name, version) in blocks {
                assert_eq!(policy.blocks.get(*name).copied(), *version, "{name}");
            }
            let shown: Vec<&str> = policy.environments.iter().map(|one| one.engine.as_str()).collect();
            assert_eq!(shown, engines);
        };
        let wasm = concat!("netserv-worker ", env!("CARGO_PKG_VERSION"));
        check(&[Flavour::Wasm], &[("wasm", Some(1)), ("osgi", None), ("java", None)], &[wasm]);
        let both = [("wasm", Some(1)), ("osgi", Some(8)), ("java", Some(17))];
        check(&[Flavour::Osgi, Flavour::Wasm], &both, &["Felix on Java", wasm]);
        check(&[Flavour::Osgi], &[("wasm", None), ("osgi", Some(8))], &["Felix on Java"]);
    }

    #[test]
    fn what_is_not_wanted_is_not_missed() {
        let mut config = Config::default();
        config.osgi.worker = "/nowhere/netserv-jvm".into();
        let found = Runtimes::find(&config);
        assert_eq!(found.flavours, [Flavour::Wasm]);
        assert!(found.missing[0].contains("/nowhere/netserv-jvm"), "{:?}", found.missing);
        config.osgi.enabled = false;
        assert!(Runtimes::find(&config).missing.is_empty());
        config.osgi.enabled = true;
        config.flavours = vec![Flavour::Wasm];
        assert!(Runtimes::find(&config).missing.is_empty());
        let host = Config { role: Role::Host, ..Config::default() };
        assert!(Runtimes::find(&host).flavours.is_empty());
    }
}
