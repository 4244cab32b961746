// SPDX-License-Identifier: Apache-2.0
//! The store: a folder of checked packages, found by their digest.
//!
//! ```text
//! packages/sha256-<digest>/package.nsm    the package, checked again whenever it is used
//! packages/sha256-<digest>/signers.json   signatures by users' keys that were found good, one of each key
//! packages/sha256-<digest>/module.wasm    its WebAssembly core module, if it has one
//! packages/sha256-<digest>/component.wasm its WebAssembly component, if it has one
//! packages/sha256-<digest>/module.jar     its OSGi bundle, if it has one
//! packages/sha256-<digest>/tls.pem        its certificate and key, if it has them; for the owner only
//! tmp/                                    what is being written or removed; emptied when the store is opened
//! ```
//!
//! A package's folder appears and disappears by one rename. Nothing is synced to disk before: what a power cut leaves
//! broken is found by the check and fetched again. Files that others put into a package's folder leave with it, and are
//! not checked here.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use netserv_model::manifest::Manifest;
use netserv_model::{Digest, Flavour, PublicKey, Refusal, RefusalKind, UserId, share};

use crate::limits::{DOWNLOADS_BYTES_MAX, SIGNERS_BYTES_MAX, SIGNERS_MAX, STORE_BYTES_MAX};
use crate::oci::{self, SignatureDocument};
use crate::package::{Layout, Package, PackageSignature};
use crate::parts::Part;
use crate::room::{Room, not_kept};
use crate::source::{FetchLimits, Fetcher, IsOwn, Sources};

/// The file with users' signatures of a package.
const SIGNERS: &str = "signers.json";

/// How a repository gets and keeps its packages.
#[derive(Clone, Debug)]
pub struct Config {
    /// From where packages may come.
    pub sources: Sources,
    /// Which addresses are the node's own.
    pub is_own: IsOwn,
    /// Bytes that stored packages may take; the least recently used leave first, those in use never. Each user may have a share
    /// in use ([`netserv_model::share`]).
    pub store_bytes_max: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config { sources: Sources::default(), is_own: IsOwn::default(), store_bytes_max: STORE_BYTES_MAX }
    }
}

/// A package in the store, its digest and signature checked. It stays in the store while any clone of this is alive.
#[derive(Clone, Debug)]
pub struct Stored {
    /// What the package says of itself.
    pub manifest: Manifest,
    /// Where the parts of the package are. Files that are made from them may be put beside them.
    pub parts: BTreeMap<Part, PathBuf>,
    /// The flavours in which all is there that the manifest asks for, in order.
    pub flavours: Vec<Flavour>,
    /// The package's digest.
    pub digest: Digest,
    /// The key whose signature was found good.
    pub signer: PublicKey,
    /// Whether the package was in the store already.
    pub cached: bool,
    folder: PathBuf,
    _hold: Arc<Hold>,
}

impl Stored {
    /// Returns where the code of a flavour is that sees packets, if the package has it.
    pub fn code_path(&self, flavour: Flavour) -> Option<&Path> {
        self.path(flavour.into())
    }

    /// Returns where a part is, if the package has it.
    pub fn path(&self, part: Part) -> Option<&Path> {
        self.parts.get(&part).map(PathBuf::as_path)
    }

    /// Returns the package's folder; files that are put there leave with it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// A store of packages with a way to fill it. All calls block; share it behind an [`Arc`]. One per node and folder.
#[derive(Debug)]
pub struct Repository {
    packages: PathBuf,
    pub(crate) tmp: PathBuf,
    bytes_max: u64,
    pub(crate) fetcher: Fetcher,
    /// Disk space of downloads.
    pub(crate) downloads: Arc<Room>,
    /// Held while a package is in memory.
    unpacking: Mutex<()>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// When each stored package was last used, as a count.
    used: BTreeMap<Digest, u64>,
    /// How often each digest is held by whom.
    holds: BTreeMap<Digest, BTreeMap<UserId, usize>>,
    /// Bytes of stored packages with all that lies beside them, as they were last counted.
    sizes: BTreeMap<Digest, u64>,
    uses: u64,
}

impl Repository {
    /// Opens or makes the store, and removes what a crash left half done.
    ///
    /// # Errors
    /// The folder cannot be made, read or tidied.
    pub fn open(dir: &Path, config: Config) -> io::Result<Repository> {
        let (packages, tmp) = (dir.join("packages"), dir.join("tmp"));
        if tmp.exists() {
            fs::remove_dir_all(&tmp)?;
        }
        fs::create_dir_all(&packages)?;
        fs::create_dir_all(&tmp)?;
        let state = State::load(&packages)?;
        let fetcher = Fetcher::new(config.sources, config.is_own);
        let (downloads, bytes_max) = (Room::new(DOWNLOADS_BYTES_MAX), config.store_bytes_max);
        let state = Arc::new(Mutex::new(state));
        Ok(Repository { packages, tmp, bytes_max, fetcher, downloads, unpacking: Mutex::new(()), state })
    }

    /// Returns the package with this digest, signed by one of the user's `keys`, from the store or else from the URL.
    ///
    /// A package that is in the store but has no signature by any of `keys` is fetched too: the copy at the URL may
    /// have one. It is kept for this user, whatever signatures other users' copies have.
    ///
    /// # Errors
    /// A refusal of kind `bad-url`, `fetch-failed`, `package-too-large`, `bad-package`, `digest-mismatch`,
    /// `module-unsigned`, `bad-manifest`, `no-flavour`, `quota-exceeded` (the user has its share of the store in use, or
    /// the store is full of packages in use) or `node-failed` (the store cannot be written).
    pub fn fetch(
        &self,
        user: &UserId,
        url: &str,
        digest: Digest,
        keys: &[PublicKey],
        limits: &FetchLimits,
    ) -> Result<Stored, Refusal> {
        let was_held = self.state().is_held_by(digest, user);
        let hold = Arc::new(Hold::new(&self.state, digest, user));
        if let Some(stored) = self.fetch_stored(&hold, keys, was_held)? {
            return Ok(stored);
        }
        let (mut download, _) = self.download(user, url, limits)?;
        let _alone = self.unpacking();
        let layout = Layout::read(&download.read().map_err(|error| not_kept(&error))?)?;
        drop(download);
        if layout.digest() != digest {
            let detail = format!("the package's image manifest is {}, the request says {digest}", layout.digest());
            return Err(Refusal::new(RefusalKind::DigestMismatch, detail));
        }
        let signature = layout.verify(keys)?;
        let package = layout.into_package()?;
        self.store(&package, user)?;
        self.keep_signature(digest, signature).map_err(|error| not_written(&error))?;
        Ok(self.stored(&package, signature.key, false, hold))
    }

    fn fetch_stored(&self, hold: &Arc<Hold>, keys: &[PublicKey], was_held: bool) -> Result<Option<Stored>, Refusal> {
        let (digest, user) = (hold.digest, &hold.user);
        let _alone = self.unpacking();
        let Some(layout) = self.stored_layout(digest) else { return Ok(None) };
        let signature = layout.verify(keys).ok().or_else(|| self.signature_by(digest, keys));
        let Some(signature) = signature else { return Ok(None) };
        let package = layout.into_package()?;
        self.restore_code(&package)?;
        let size = self.size(digest);
        let mut state = self.state();
        state.sizes.insert(digest, size);
        // What it has in use already stays.
        if !was_held {
            state.check_share(user, digest, size, self.bytes_max)?;
        }
        state.touch(digest);
        drop(state);
        let _ = self.mark_used(digest);
        Ok(Some(self.stored(&package, signature.key, true, Arc::clone(hold))))
    }

    /// Returns the good signature of a stored package by one of these keys, of those that are kept beside it.
    fn signature_by(&self, digest: Digest, keys: &[PublicKey]) -> Option<PackageSignature> {
        let kept = self.signatures(digest).into_iter();
        kept.filter(|signature| keys.contains(&signature.key)).find(|signature| signature.is_good(digest))
    }

    /// Returns the signatures that are kept beside a package; none if the file is broken.
    fn signatures(&self, digest: Digest) -> Vec<PackageSignature> {
        let file = File::open(self.folder(digest).join(SIGNERS)).map(|file| file.take(SIGNERS_BYTES_MAX));
        let documents: Vec<SignatureDocument> =
            file.ok().and_then(|file| serde_json::from_reader(io::BufReader::new(file)).ok()).unwrap_or_default();
        documents.into_iter().map(|SignatureDocument { key, signature }| PackageSignature { key, signature }).collect()
    }

    /// Keeps a user's good signature beside the package: what others add to their copies takes it away from nobody.
    fn keep_signature(&self, digest: Digest, signature: PackageSignature) -> io::Result<()> {
        let mut kept = self.signatures(digest);
        if kept.iter().any(|one| one.key == signature.key) {
            return Ok(());
        }
        kept.push(signature);
        // Only operators' users are here, of whom those have gone that signed first.
        kept.drain(..kept.len().saturating_sub(SIGNERS_MAX));
        let documents =
            kept.into_iter().map(|PackageSignature { key, signature }| SignatureDocument { key, signature });
        let json = serde_json::to_vec(&documents.collect::<Vec<_>>()).map_err(io::Error::other)?;
        self.replace_file(&self.folder(digest).join(SIGNERS), &json)
    }

    /// Keeps a package from leaving for a user, until [`Repository::unpin`] was called as often.
    pub fn pin(&self, user: &UserId, digest: Digest) {
        self.state().hold(digest, user);
    }

    /// Takes back one [`Repository::pin`].
    pub fn unpin(&self, user: &UserId, digest: Digest) {
        self.state().release(digest, user);
    }

    /// Returns the digests in the store.
    pub fn digests(&self) -> Vec<Digest> {
        self.state().used.keys().copied().collect()
    }

    fn stored(&self, package: &Package, signer: PublicKey, cached: bool, hold: Arc<Hold>) -> Stored {
        let digest = package.digest();
        let folder = self.folder(digest);
        let parts = package.parts().into_keys().map(|part| (part, folder.join(part.file_name()))).collect();
        let (manifest, flavours) = (package.manifest().clone(), package.flavours());
        Stored { manifest, parts, flavours, digest, signer, cached, folder, _hold: hold }
    }

    /// Reads a package from the store; one that is broken is removed.
    fn stored_layout(&self, digest: Digest) -> Option<Layout> {
        if !self.state().used.contains_key(&digest) {
            return None;
        }
        let bytes = fs::read(self.folder(digest).join("package.nsm"));
        let layout = bytes.ok().and_then(|bytes| Layout::read(&bytes).ok());
        if let Some(layout) = layout.filter(|layout| layout.digest() == digest) {
            return Some(layout);
        }
        tracing::warn!(%digest, "a stored package is broken, it is fetched again");
        let mut state = self.state();
        if let Err(error) = self.remove(&mut state, digest) {
            tracing::warn!(%digest, %error, "a broken package cannot be removed");
        }
        None
    }

    /// Writes the code beside its package once more if it is not what the package holds.
    fn restore_code(&self, package: &Package) -> Result<(), Refusal> {
        let folder = self.folder(package.digest());
        for (part, content) in parts(package)? {
            let path = folder.join(part.file_name());
            if !fs::read(&path).is_ok_and(|stored| stored == content) {
                self.replace_file(&path, content).map_err(|error| not_written(&error))?;
            }
        }
        Ok(())
    }

    fn store(&self, package: &Package, user: &UserId) -> Result<(), Refusal> {
        let (parts, bytes, digest) = (parts(package)?, package.to_bytes(), package.digest());
        let mut state = self.state();
        if state.used.contains_key(&digest) {
            // Whoever uses it keeps what was made from it.
            drop(state);
            return self.restore_code(package);
        }
        let length = parts.values().fold(bytes.len(), |sum, part| sum.saturating_add(part.len()));
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        state.check_share(user, digest, length, self.bytes_max)?;
        self.make_room(&mut state, length)?;
        self.write_package(digest, &bytes, &parts).map_err(|error| not_written(&error))?;
        state.sizes.insert(digest, length);
        state.touch(digest);
        Ok(())
    }

    fn write_package(&self, digest: Digest, bytes: &[u8], parts: &BTreeMap<Part, &[u8]>) -> io::Result<()> {
        fault::point()?;
        let folder = tempfile::Builder::new().prefix("new-").tempdir_in(&self.tmp)?;
        fault::point()?;
        write_private(&folder.path().join("package.nsm"), bytes)?;
        fault::point()?;
        for (part, content) in parts {
            write_private(&folder.path().join(part.file_name()), content)?;
            fault::point()?;
        }
        fs::rename(folder.path(), self.folder(digest))
    }

    fn replace_file(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        fault::point()?;
        let mut file = tempfile::NamedTempFile::new_in(&self.tmp)?;
        fault::point()?;
        io::Write::write_all(&mut file, content)?;
        fault::point()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Removes the least recently used packages until there is room for another.
    fn make_room(&self, state: &mut State, wanted: u64) -> Result<(), Refusal> {
        state.sizes = state.used.keys().map(|digest| (*digest, self.size(*digest))).collect();
        let mut taken: u64 = state.sizes.values().sum();
        while taken.saturating_add(wanted) > self.bytes_max {
            let free = state.used.iter().filter(|(digest, _)| !state.holds.contains_key(digest));
            let Some(oldest) = free.min_by_key(|(_, used)| **used).map(|(digest, _)| *digest) else {
                let detail = format!("{wanted} bytes do not fit into the store of {} bytes", self.bytes_max);
                return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
            };
            let size = state.sizes.get(&oldest).copied().unwrap_or(0);
            self.remove(state, oldest).map_err(|error| not_written(&error))?;
            taken = taken.saturating_sub(size);
        }
        Ok(())
    }

    fn remove(&self, state: &mut State, digest: Digest) -> io::Result<()> {
        fault::point()?;
        let grave = tempfile::Builder::new().prefix("old-").tempdir_in(&self.tmp)?;
        fault::point()?;
        fs::rename(self.folder(digest), grave.path().join("package"))?;
        state.used.remove(&digest);
        state.sizes.remove(&digest);
        fault::point()?;
        grave.close()
    }

    fn mark_used(&self, digest: Digest) -> io::Result<()> {
        File::options().append(true).open(self.folder(digest).join("package.nsm"))?.set_modified(SystemTime::now())
    }

    fn size(&self, digest: Digest) -> u64 {
        let files = fs::read_dir(self.folder(digest)).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    fn folder(&self, digest: Digest) -> PathBuf {
        self.packages.join(digest.to_string().replace(':', "-"))
    }

    fn unpacking(&self) -> MutexGuard<'_, ()> {
        self.unpacking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn load(packages: &Path) -> io::Result<State> {
        let mut found: Vec<(SystemTime, Digest)> = Vec::new();
        for entry in fs::read_dir(packages)? {
            let entry = entry?;
            let name = entry.file_name();
            let digest = name.to_str().and_then(|name| name.replacen('-', ":", 1).parse().ok());
            let modified = entry.path().join("package.nsm").metadata().and_then(|metadata| metadata.modified());
            if let (Some(digest), Ok(modified)) = (digest, modified) {
                found.push((modified, digest));
            } else if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        found.sort_unstable();
        let mut state = State::default();
        found.into_iter().for_each(|(_, digest)| state.touch(digest));
        Ok(state)
    }

    fn touch(&mut self, digest: Digest) {
        self.uses += 1;
        self.used.insert(digest, self.uses);
    }

    fn hold(&mut self, digest: Digest, user: &UserId) {
        *self.holds.entry(digest).or_default().entry(user.clone()).or_default() += 1;
    }

    fn release(&mut self, digest: Digest, user: &UserId) {
        let Some(holders) = self.holds.get_mut(&digest) else { return };
        if let Some(count) = holders.get_mut(user) {
            *count -= 1;
            if *count == 0 {
                holders.remove(user);
            }
        }
        if holders.is_empty() {
            self.holds.remove(&digest);
        }
    }

    fn is_held_by(&self, digest: Digest, user: &UserId) -> bool {
        self.holds.get(&digest).is_some_and(|holders| holders.contains_key(user))
    }

    /// Checks that a user has no more than its share of the store in use with a package of so many bytes. One alone needs room only.
    fn check_share(&self, user: &UserId, digest: Digest, bytes: u64, all: u64) -> Result<(), Refusal> {
        let size = |(digest, _): (&Digest, _)| self.sizes.get(digest).copied().unwrap_or(0);
        let others = || self.holds.iter().filter(|(other, _)| **other != digest);
        let own: u64 = others().filter(|(_, holders)| holders.contains_key(user)).map(size).sum();
        let held: u64 = others().map(size).sum();
        if own == 0 || share::is_fair(own.saturating_add(bytes), held.saturating_add(bytes), all) {
            return Ok(());
        }
        let detail = format!(
            "{bytes} bytes are beyond the user's share of the store: it has {own} in use, all users {held} of {all}"
        );
        Err(Refusal::new(RefusalKind::QuotaExceeded, detail))
    }
}

/// Keeps a package in the store as long as it lives.
#[derive(Debug)]
struct Hold {
    state: Arc<Mutex<State>>,
    digest: Digest,
    user: UserId,
}

impl Hold {
    fn new(state: &Arc<Mutex<State>>, digest: Digest, user: &UserId) -> Hold {
        state.lock().unwrap_or_else(PoisonError::into_inner).hold(digest, user);
        Hold { state: Arc::clone(state), digest, user: user.clone() }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).release(self.digest, &self.user);
    }
}

/// Returns the parts of a package, which has code or is a service.
fn parts(package: &Package) -> Result<BTreeMap<Part, &[u8]>, Refusal> {
    let parts = package.parts();
    if package.manifest().service.is_none() && !parts.keys().any(|part| part.is_code()) {
        let types: Vec<String> = package.summary().flavours.into_iter().map(|(flavour, _)| flavour).collect();
        let known = [oci::WASM, oci::JAR].join(" and no ");
        let detail = format!("the package has [{}], no {known}", types.join(", "));
        return Err(Refusal::new(RefusalKind::NoFlavour, detail));
    }
    Ok(parts)
}

/// Writes a file that only its owner reads: a package may hold the key of a certificate.
fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, content)
}

fn not_written(error: &io::Error) -> Refusal {
    Refusal::new(RefusalKind::NodeFailed, format!("the package store cannot be written: {error}"))
}

/// Lets tests make the n-th step of a write fail.
mod fault {
    #[cfg(test)]
    thread_local! {
        pub(super) static FAIL_AT: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    /// A step that may fail.
    #[cfg_attr(not(test), expect(clippy::unnecessary_wraps, reason = "it fails only in tests"))]
    pub(super) fn point() -> std::io::Result<()> {
        #[cfg(test)]
        {
            let left = FAIL_AT.get();
            FAIL_AT.set(left.saturating_sub(1));
            if left == 1 {
                return Err(std::io::Error::other("made to fail"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;

    use super::*;
    use crate::{manifest, package};

    const MANIFEST: &str = r#"{"manifest":1,"name":"example.org/m","version":"1.0.0","packet":{"abi":1}}"#;

    /// Makes the n-th step of storing, evicting and repairing fail, for every n: the refusal names the node, nothing
    /// half done is taken for a package, and the next attempt works.
    #[test]
    fn a_store_survives_a_failure_at_every_step() {
        for scenario in [fresh, evicting, repairing, signing_again] {
            let mut failures = 0;
            for n in 1.. {
                let dir = tempfile::tempdir().unwrap();
                let (first, second) = (package(1, "1.0.0"), package(1, "1.0.1"));
                fs::write(dir.path().join("first"), first.to_bytes()).unwrap();
                fs::write(dir.path().join("second"), second.to_bytes()).unwrap();
                let wanted = scenario(dir.path(), &first, &second);
                let repository = open(dir.path());
                fault::FAIL_AT.set(n);
                let result = get(&repository, dir.path(), &wanted);
                let reached = fault::FAIL_AT.replace(0) == 0;
                if let Err(refusal) = &result {
                    assert_eq!(refusal.kind, RefusalKind::NodeFailed, "{}", refusal.detail);
                    failures += 1;
                }
                drop(result);
                let again = get(&repository, dir.path(), &wanted).unwrap();
                for flavour in Flavour::ALL {
                    let path = again.code_path(flavour).unwrap();
                    assert_eq!(fs::read(path).unwrap(), wanted.code(flavour).unwrap());
                }
                let reopened = open(dir.path());
                assert_eq!(fs::read_dir(dir.path().join("store/tmp")).unwrap().count(), 0);
                assert!(get(&reopened, dir.path(), &wanted).unwrap().cached);
                if !reached {
                    break;
                }
            }
            assert!(failures > 1, "no step failed");
        }
    }

    fn fresh(_: &Path, first: &Package, _: &Package) -> Package {
        first.clone()
    }

    fn evicting(dir: &Path, first: &Package, second: &Package) -> Package {
        get(&open(dir), dir, first).unwrap();
        second.clone()
    }

    fn repairing(dir: &Path, first: &Package, _: &Package) -> Package {
        let stored = get(&open(dir), dir, first).unwrap();
        for path in stored.parts.values() {
            fs::write(path, b"broken").unwrap();
        }
        first.clone()
    }

    fn signing_again(dir: &Path, first: &Package, _: &Package) -> Package {
        let other = package(2, "1.0.0");
        fs::write(dir.join("first"), other.to_bytes()).unwrap();
        let digest = first.digest();
        let url = format!("file://{}", dir.join("first").display());
        open(dir).fetch(&user(), &url, digest, &[public(2)], &FetchLimits::default()).unwrap();
        fs::write(dir.join("first"), first.to_bytes()).unwrap();
        first.clone()
    }

    fn package(key: u8, version: &str) -> Package {
        let manifest = manifest::parse(MANIFEST.replace("1.0.0", version).as_bytes()).unwrap();
        let wasm = [b"\0asm".as_slice(), &[0; 6_000]].concat();
        let jar = crate::bundle::tests::jar("Bundle-SymbolicName: m\r\n");
        let mut package = package::build(manifest, &[(Flavour::Wasm, &wasm), (Flavour::Osgi, &jar)]).unwrap();
        package::sign(&mut package, &SigningKey::from_bytes(&[key; 32])).unwrap();
        package
    }

    fn public(key: u8) -> PublicKey {
        PublicKey(SigningKey::from_bytes(&[key; 32]).verifying_key().to_bytes())
    }

    fn user() -> UserId {
        "jane".parse().unwrap()
    }

    /// Opens a store with room for one package beside those that are in use.
    fn open(dir: &Path) -> Repository {
        let sources = Sources { file_roots: vec![dir.to_owned()], ..Sources::default() };
        Repository::open(&dir.join("store"), Config { sources, store_bytes_max: 40_000, ..Config::default() }).unwrap()
    }

    fn get(repository: &Repository, dir: &Path, package: &Package) -> Result<Stored, Refusal> {
        let name = if package.manifest().version.patch == 0 { "first" } else { "second" };
        let url = format!("file://{}", dir.join(name).display());
        repository.fetch(&user(), &url, package.digest(), &[public(1)], &FetchLimits::default())
    }
}
