// SPDX-License-Identifier: Apache-2.0
//! Packages of modules: fetched, checked, and made ready to run in the flavour that this node prefers.
//!
//! One thread knows who waits for what and whose turn it is; downloads and compilations block threads of their own, a
//! bounded number of them. Nobody waits for another user's slow server or slow code: users take turns, and code that is
//! quick to compile has a lane of its own.

pub mod code;
pub mod lanes;
mod schedule;
pub mod turns;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_container::{BuildLimits, Progress};
use netserv_model::request::StateSource;
use netserv_model::{Digest, Flavour, PublicKey, Refusal, RefusalKind, UserId};
use netserv_repository::{Compiled, Downloaded, FetchLimits, Part, Repository, Stored, is_whole, seal};

use code::{Compositions, code_path};

use crate::event::CodeParts;
use crate::machine::keeper::Keeper;

pub use schedule::{PackageRequest, start};

/// What fetches and compiles; clones share everything.
#[derive(Clone)]
pub struct Packages {
    /// The store.
    pub repository: Arc<Repository>,
    /// What a download may take.
    pub limits: FetchLimits,
    /// What the compiler may take for one package, in processor time of all its threads.
    pub compile_cpu_time: Duration,
    /// What tells one version of the worker from another; part of the names of compiled code.
    pub engine: String,
    /// Makes the compiler's containers.
    pub keeper: Arc<Keeper>,
    /// The flavours that this node runs, the preferred one first.
    pub flavours: Vec<Flavour>,
    /// Where code is that other nodes of this machine compiled, too.
    pub compiled: Option<Arc<Compiled>>,
    /// Where compositions of components are.
    pub compositions: Arc<Compositions>,
}

/// A package that is in the store, of which code may still have to be compiled.
#[derive(Clone)]
pub struct Ready {
    /// The package; it stays in the store while this is held.
    pub stored: Arc<Stored>,
    /// Which of its flavours this node takes.
    pub flavour: Flavour,
    /// Where the code is, or will be.
    pub parts: CodeParts,
    /// Wasm files, and where the code of each is to be.
    pub to_compile: Vec<(PathBuf, PathBuf)>,
    /// The state that the module is to begin with.
    pub state: Option<(Digest, Arc<Downloaded>)>,
}

impl Packages {
    /// Fetches and checks a package, and the state that its module is to begin with.
    ///
    /// # Errors
    /// Those of [`Packages::fetch`], or the state cannot be fetched.
    pub fn fetch_with(
        &self,
        user: &UserId,
        url: &str,
        digest: Digest,
        keys: &[PublicKey],
        state: Option<&StateSource>,
    ) -> Result<Ready, Refusal> {
        let ready = self.fetch(user, url, digest, keys)?;
        let Some(source) = state else { return Ok(ready) };
        let state = Some((source.digest, Arc::new(self.repository.fetch_state(user, source, &self.limits)?)));
        Ok(Ready { state, ..ready })
    }

    /// Fetches and checks a package.
    ///
    /// # Errors
    /// It cannot be fetched, is not signed by one of the keys, or has no flavour that this node runs.
    pub fn fetch(&self, user: &UserId, url: &str, digest: Digest, keys: &[PublicKey]) -> Result<Ready, Refusal> {
        // Before a download that would be for nothing.
        self.keeper.launcher()?;
        self.ready(Arc::new(self.repository.fetch(user, url, digest, keys, &self.limits)?))
    }

    fn ready(&self, stored: Arc<Stored>) -> Result<Ready, Refusal> {
        let flavour = self.choose(&stored)?;
        let path = |part: Part| stored.path(part).map(Path::to_owned);
        let mut parts = CodeParts { tls: path(Part::Tls), ..CodeParts::default() };
        let mut to_compile = Vec::new();
        match flavour {
            Flavour::Wasm => {
                parts.component = path(Part::Component);
                let wasm = [path(Part::Core), path(Part::Component)];
                let compiled = |wasm: &Option<PathBuf>| wasm.as_ref().map(|wasm| code_path(wasm, &self.engine));
                (parts.packet, parts.server) = (compiled(&wasm[0]), compiled(&wasm[1]));
                let all = wasm.into_iter().flatten().map(|wasm| (code_path(&wasm, &self.engine), wasm));
                to_compile.extend(all.filter(|(code, _)| !is_whole(code)).map(|(code, wasm)| (wasm, code)));
            }
            Flavour::Osgi => parts.packet = path(Part::Bundle),
        }
        Ok(Ready { stored, flavour, parts, to_compile, state: None })
    }

    /// Compiles files that are not compiled yet, as long as they may go on.
    ///
    /// # Errors
    /// They are no code, take more than the limits, or may not go on.
    pub fn compile(
        &self,
        files: &[(PathBuf, PathBuf)],
        limits: &BuildLimits,
        may_go_on: &mut dyn FnMut(&Progress<'_>) -> bool,
    ) -> Result<(), Refusal> {
        for (wasm, code) in files.iter().filter(|(_, code)| !is_whole(code)) {
            if std::fs::remove_file(code).is_ok() {
                tracing::warn!(file = %code.display(), "compiled code is damaged, it is compiled again");
            }
            if self.take_compiled(wasm, code) {
                continue;
            }
            let started = Instant::now();
            self.keeper.launcher()?.build(&[wasm], code, limits, may_go_on)?;
            seal(code)
                .map_err(|error| Refusal::new(RefusalKind::NodeFailed, format!("{}: {error}", code.display())))?;
            let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            tracing::info!(took_ms, file = ?wasm.file_name().unwrap_or_default(), "a package is compiled");
            if let Some(Err(error)) = self.compiled.as_ref().map(|compiled| compiled.keep(wasm, &self.engine, code)) {
                tracing::warn!(%error, "other nodes of this machine have to compile it as well");
            }
        }
        Ok(())
    }

    /// Takes code that a node of this machine has compiled. Returns whether there was any.
    fn take_compiled(&self, wasm: &Path, code: &Path) -> bool {
        let Some(compiled) = &self.compiled else { return false };
        compiled.take(wasm, &self.engine, code).unwrap_or_else(|error| {
            tracing::warn!(%error, "compiled code cannot be taken");
            false
        })
    }

    /// Composes components, the outermost first, as long as it may go on, and returns where the code of that is.
    ///
    /// # Errors
    /// They do not fit each other, take more than the limits, or may not go on.
    pub fn compose(
        &self,
        components: &[PathBuf],
        limits: &BuildLimits,
        may_go_on: &mut dyn FnMut(&Progress<'_>) -> bool,
    ) -> Result<PathBuf, Refusal> {
        let started = Instant::now();
        let code = self.compositions.new_path();
        let parts: Vec<&Path> = components.iter().map(PathBuf::as_path).collect();
        self.keeper.launcher()?.build(&parts, &code, limits, may_go_on)?;
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(parts = parts.len(), took_ms, "a service is composed");
        Ok(code)
    }

    /// Returns the first flavour of this node's in which the package is whole. A service, which has no code, is for the
    /// flavour of its parts.
    fn choose(&self, stored: &Stored) -> Result<Flavour, Refusal> {
        let fits = |flavour: &&Flavour| stored.manifest.service.is_some() || stored.flavours.contains(flavour);
        self.flavours.iter().find(fits).copied().ok_or_else(|| {
            let (has, runs) = (list(&stored.flavours), list(&self.flavours));
            Refusal::new(RefusalKind::NoFlavour, format!("the package has {has}, this node runs {runs}"))
        })
    }
}

fn list<'a>(flavours: impl IntoIterator<Item = &'a Flavour>) -> String {
    Flavour::list(flavours.into_iter().copied())
}

#[cfg(test)]
mod tests {
    use netserv_container::LauncherConfig;
    use netserv_repository::Sources;
    use netserv_repository::package::{self, SigningKey};

    use super::*;

    #[test]
    fn the_first_flavour_that_package_and_node_have_is_taken() {
        use Flavour::{Osgi, Wasm};
        use Part::{Bundle, Component, Core};
        for (server, runs, has, taken) in [
            (false, &[Wasm, Osgi][..], &[Core, Bundle][..], Ok(Wasm)),
            (false, &[Osgi, Wasm], &[Core, Bundle], Ok(Osgi)),
            (false, &[Osgi, Wasm], &[Core], Ok(Wasm)),
            (false, &[Osgi], &[Core, Bundle], Ok(Osgi)),
            (false, &[Wasm], &[Bundle], Err("the package has osgi, this node runs wasm")),
            (false, &[], &[Core, Bundle], Err("the package has wasm, osgi, this node runs none")),
            (true, &[Wasm, Osgi], &[Core, Component, Bundle], Ok(Wasm)),
            (true, &[Wasm, Osgi], &[Core, Bundle], Ok(Osgi)),
            (true, &[Wasm], &[Core, Bundle], Err("the package has osgi, this node runs wasm")),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let packages = packages(dir.path(), runs);
            let stored = store(dir.path(), &packages, has, server);
            let chosen = packages.choose(&stored);
            match taken {
                Ok(taken) => assert_eq!(chosen, Ok(taken), "{runs:?} {has:?}"),
                Err(detail) => assert_eq!(chosen, Err(Refusal::new(RefusalKind::NoFlavour, detail))),
            }
        }
    }

    /// Goal: compiled code that the disk damaged is compiled again, and does not count as the module's fault.
    #[test]
    fn only_whole_code_is_not_compiled_again() {
        let dir = tempfile::tempdir().unwrap();
        let packages = packages(dir.path(), &[Flavour::Wasm]);
        let stored = Arc::new(store(dir.path(), &packages, &[Part::Core], false));
        let code = code_path(stored.path(Part::Core).unwrap(), &packages.engine);
        let wants_code = || packages.ready(Arc::clone(&stored)).unwrap().to_compile.iter().any(|(_, to)| *to == code);
        assert!(wants_code());
        std::fs::write(&code, "code").unwrap();
        seal(&code).unwrap();
        assert!(!wants_code());
        for damaged in ["", "code", "half of the code, then nothing of it any more"] {
            std::fs::write(&code, damaged).unwrap();
            assert!(wants_code(), "{damaged}");
        }
    }

    pub(super) fn packages(dir: &Path, flavours: &[Flavour]) -> Packages {
        let sources = Sources { file_roots: vec![dir.to_owned()], ..Sources::default() };
        let config = netserv_repository::Config { sources, ..netserv_repository::Config::default() };
        Packages {
            repository: Arc::new(Repository::open(&dir.join("packages"), config).unwrap()),
            limits: FetchLimits::default(),
            compile_cpu_time: Duration::from_secs(1),
            engine: "engine".to_owned(),
            // It is never asked for a launcher.
            keeper: Arc::new(Keeper::new(LauncherConfig::new("no-worker", dir, "no-instance"))),
            flavours: flavours.to_vec(),
            compiled: None,
            compositions: Arc::default(),
        }
    }

    pub(super) fn store(dir: &Path, packages: &Packages, parts: &[Part], server: bool) -> Stored {
        let server = if server { r#""server":{"listen":["tcp port 80"]},"# } else { "" };
        let manifest =
            format!(r#"{{"manifest":1,"name":"example.org/m","version":"1.0.0",{server}"packet":{{"abi":1}}}}"#);
        let manifest = netserv_repository::manifest::parse(manifest.as_bytes()).unwrap();
        let content = |part: &Part| match part {
            Part::Core => b"\0asm\x01\0\0\0".as_slice(),
            Part::Component => b"\0asm\x0d\0\x01\0",
            Part::Bundle => include_bytes!("../../../../../io/repository/tests/all/common/empty.jar"),
            Part::Tls => b"",
        };
        let parts: Vec<(Part, &[u8])> = parts.iter().map(|part| (*part, content(part))).collect();
        let mut package = package::build(manifest, &parts).unwrap();
        let key = SigningKey::from_bytes(&[1; 32]);
        package::sign(&mut package, &key).unwrap();
        std::fs::write(dir.join("m.nsm"), package.to_bytes()).unwrap();
        let keys = [PublicKey(key.verifying_key().to_bytes())];
        let url = format!("file://{}", dir.join("m.nsm").display());
        packages
            .repository
            .fetch(&"jane".parse().unwrap(), &url, package.digest(), &keys, &FetchLimits::default())
            .unwrap()
    }
}
