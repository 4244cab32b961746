// SPDX-License-Identifier: Apache-2.0
//! The `.nsm` package: an OCI image layout in one tar file.
//!
//! ```text
//! oci-layout
//! index.json                  one entry: the module, with its signatures in annotation `org.netserv.signatures`
//! blobs/sha256/<digest>       image manifest, artifact type application/vnd.netserv.module.v1
//! blobs/sha256/…                config: the manifest, application/vnd.netserv.manifest.v1+json
//! blobs/sha256/…                one layer per part: application/wasm (a core module, a component or one of each),
//!                               application/java-archive, application/x-pem-file (certificates, then their key)
//! blobs/sha256/…              image manifest, artifact type application/vnd.netserv.signature.v1, whose `subject` is
//!                             the module's image manifest
//! blobs/sha256/…                config: {}
//! blobs/sha256/…                layer: {"key":"ed25519:…","signature":"ed25519:…"}
//! ```
//!
//! The digest of a package is that of the module's image manifest, whatever signatures are beside it. A signature is
//! the Ed25519 signature of the text [`signed_text`] returns: a first line that says what is signed, so that no
//! signature made for anything else fits, then the digest.

use std::collections::{BTreeMap, BTreeSet};

/// A key that packages are signed with.
pub use ed25519_dalek::SigningKey;
use ed25519_dalek::{Signer as _, VerifyingKey};
use netserv_model::limits::PACKAGE_BYTES_MAX;
use netserv_model::manifest::Manifest;
use netserv_model::{Digest, Flavour, ModuleRef, PublicKey, Refusal, RefusalKind, Signature};
use serde::Serialize;

use crate::archive::Archive;
use crate::limits::{LAYERS_MAX, SIGNATURES_MAX};
use crate::oci::{self, Descriptor, ImageIndex, ImageManifest, SignatureDocument, bad};
use crate::parts::{self, Part};
use crate::{limits, manifest};

/// A package whose parts are all there and have the digests that they are named by.
#[derive(Clone, Debug)]
pub struct Package {
    manifest: Manifest,
    layout: Layout,
}

/// One signature of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackageSignature {
    /// Who says that it signed.
    pub key: PublicKey,
    /// The signature over [`signed_text`].
    pub signature: Signature,
}

/// What a package is, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The module's name and version.
    pub module: ModuleRef,
    /// The digest for `digest:` in a SETUP.
    pub digest: Digest,
    /// One line for people.
    pub description: String,
    /// The media type of each layer, with its bytes.
    pub flavours: Vec<(String, u64)>,
    /// The parts that are known here, with their bytes.
    pub parts: Vec<(Part, u64)>,
    /// The keys whose signatures are good.
    pub signed_by: Vec<PublicKey>,
    /// Signatures that do not fit the package.
    pub bad_signatures: usize,
}

/// Builds a package without signatures from its manifest and its parts, in whatever order; the same input gives the
/// same bytes. A flavour stands for its code that sees packets.
///
/// # Errors
/// The manifest makes no sense, there is no code, a part is there twice, is not what it should be or is missing for
/// what the manifest says, or the package would be too large.
pub fn build<P: Into<Part> + Copy>(manifest: Manifest, parts: &[(P, &[u8])]) -> Result<Package, Refusal> {
    let config = manifest::to_json(&manifest)?;
    let known: BTreeMap<Part, &[u8]> = parts.iter().map(|(part, content)| ((*part).into(), *content)).collect();
    if manifest.service.is_none() && !known.keys().any(|part| part.is_code()) {
        return Err(Refusal::new(RefusalKind::NoFlavour, "there is no code to package"));
    }
    if known.len() < parts.len() {
        return Err(bad("one part is there twice"));
    }
    parts::check(&manifest, &known)?;
    let bytes = known.values().fold(config.len(), |sum, part| sum.saturating_add(part.len()));
    let room = PACKAGE_BYTES_MAX - limits::FRAME_BYTES_MAX;
    if u64::try_from(bytes).is_ok_and(|bytes| bytes > room) {
        let detail = format!("manifest and code have {bytes} bytes, a package takes at most {room}");
        return Err(Refusal::new(RefusalKind::PackageTooLarge, detail));
    }
    Ok(Package { layout: Layout::new(&manifest, config, &known), manifest })
}

/// Reads a package; its signatures are not checked.
///
/// # Errors
/// The bytes are no package.
pub fn read(bytes: &[u8]) -> Result<Package, Refusal> {
    Layout::read(bytes)?.into_package()
}

/// Adds a signature; a second one by the same key changes nothing.
///
/// # Errors
/// The package has as many signatures as it may have.
pub fn sign(package: &mut Package, key: &SigningKey) -> Result<(), Refusal> {
    let digest = package.digest();
    let signature = Signature(key.sign(signed_text(digest).as_bytes()).to_bytes());
    package.layout.add_signature(PackageSignature { key: PublicKey(key.verifying_key().to_bytes()), signature })
}

/// Returns the key among `keys` that signed the package.
///
/// # Errors
/// A refusal of kind `module-unsigned`, if there is none.
pub fn verify(package: &Package, keys: &[PublicKey]) -> Result<PublicKey, Refusal> {
    package.layout.verify(keys).map(|good| good.key)
}

/// Returns what the signature of a package covers: `netserv module signature v1`, a line end, its digest, a line end.
pub fn signed_text(digest: Digest) -> String {
    format!("netserv module signature v1\n{digest}\n")
}

impl Package {
    /// Returns the digest, which does not depend on the signatures.
    pub fn digest(&self) -> Digest {
        self.layout.module.digest
    }

    /// Returns what the package says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the keys of the manifest that this version reads over, by their paths.
    pub fn unknown_keys(&self) -> Vec<String> {
        self.layout.config().map(manifest::unknown_keys).unwrap_or_default()
    }

    /// Returns the code of a flavour that sees packets, if the package has it.
    pub fn code(&self, flavour: Flavour) -> Option<&[u8]> {
        self.part(flavour.into())
    }

    /// Returns a part, if the package has it.
    pub fn part(&self, part: Part) -> Option<&[u8]> {
        self.layout.parts().get(&part).copied()
    }

    /// Returns the parts that the package has.
    pub fn parts(&self) -> BTreeMap<Part, &[u8]> {
        self.layout.parts()
    }

    /// Returns the flavours in which the package has all that its manifest asks for, in order; none for a service.
    pub fn flavours(&self) -> Vec<Flavour> {
        parts::flavours(&self.manifest, |part| self.part(part).is_some())
    }

    /// Returns the signatures, unchecked.
    pub fn signatures(&self) -> &BTreeSet<PackageSignature> {
        &self.layout.signatures
    }

    /// Returns what the package is.
    pub fn summary(&self) -> Summary {
        let flavour = |layer: &Descriptor| (layer.media_type.clone(), layer.size);
        let (good, bad): (Vec<&PackageSignature>, Vec<&PackageSignature>) =
            self.layout.signatures.iter().partition(|signature| signature.is_good(self.digest()));
        Summary {
            module: self.manifest.module(),
            digest: self.digest(),
            description: self.manifest.description.clone(),
            flavours: self.layout.image.layers.iter().map(flavour).collect(),
            parts: self.parts().into_iter().map(|(part, content)| (part, length(content))).collect(),
            signed_by: good.iter().map(|signature| signature.key).collect(),
            bad_signatures: bad.len(),
        }
    }

    /// Returns the `.nsm` file; the same package gives the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.layout.to_bytes()
    }
}

impl PackageSignature {
    /// Returns whether the signature fits its key and a digest.
    pub fn is_good(&self, digest: Digest) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&self.signature.0);
        let key = VerifyingKey::from_bytes(&self.key.0);
        key.is_ok_and(|key| key.verify_strict(signed_text(digest).as_bytes(), &signature).is_ok())
    }
}

/// A package as far as its signatures can be checked: its manifest was not looked at.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    module: Descriptor,
    image: ImageManifest,
    signatures: BTreeSet<PackageSignature>,
    /// The module's image manifest, its config and its layers.
    blobs: BTreeMap<Digest, Vec<u8>>,
}

impl Layout {
    fn new(manifest: &Manifest, config: Vec<u8>, parts: &BTreeMap<Part, &[u8]>) -> Layout {
        let image = ImageManifest {
            schema_version: 2,
            media_type: Some(oci::IMAGE_MANIFEST.to_owned()),
            artifact_type: Some(oci::MODULE.to_owned()),
            config: Descriptor::of(oci::MODULE_CONFIG, &config),
            layers: parts.iter().map(|(part, content)| Descriptor::of(part.media_type(), content)).collect(),
            subject: None,
            annotations: BTreeMap::from([
                ("org.opencontainers.image.title".to_owned(), manifest.name.to_string()),
                ("org.opencontainers.image.version".to_owned(), manifest.version.to_string()),
            ]),
        };
        let json = oci::to_json(&image);
        let module = Descriptor::of(oci::IMAGE_MANIFEST, &json);
        let blobs = [(module.digest, json), (image.config.digest, config)];
        let mut blobs = BTreeMap::from(blobs);
        blobs.extend(image.layers.iter().zip(parts.values()).map(|(layer, part)| (layer.digest, part.to_vec())));
        Layout { module, image, signatures: BTreeSet::new(), blobs }
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Layout, Refusal> {
        let mut archive = Archive::read(bytes)?;
        let index: ImageIndex = oci::from_json("index.json", &archive.index)?;
        let (module, image) = the_module(&index, &archive)?;
        let mut signatures = BTreeSet::new();
        for digest in signature_digests(&index, &module, &archive)? {
            signatures.insert(read_signature(&archive, digest, &module)?);
        }
        let mut blobs = BTreeMap::new();
        for descriptor in image.layers.iter().chain([&image.config, &module]) {
            let blob = checked_blob(&archive, descriptor)?.to_vec();
            blobs.insert(descriptor.digest, blob);
        }
        archive.blobs.clear();
        Ok(Layout { module: Descriptor { annotations: BTreeMap::new(), ..module }, image, signatures, blobs })
    }

    pub(crate) fn digest(&self) -> Digest {
        self.module.digest
    }

    pub(crate) fn verify(&self, keys: &[PublicKey]) -> Result<PackageSignature, Refusal> {
        let known = |signature: &&PackageSignature| keys.contains(&signature.key);
        let mut signatures = self.signatures.iter().filter(known);
        if let Some(good) = signatures.clone().find(|signature| signature.is_good(self.digest())) {
            return Ok(*good);
        }
        let detail = match signatures.next() {
            Some(wrong) => format!("the signature by {} does not fit {}", wrong.key, self.digest()),
            None => format!("none of the user's {} keys is among its {} signers", keys.len(), self.signatures.len()),
        };
        Err(Refusal::new(RefusalKind::ModuleUnsigned, detail))
    }

    pub(crate) fn into_package(self) -> Result<Package, Refusal> {
        let config = self.config().ok_or_else(|| bad("the manifest is missing"))?;
        let manifest = manifest::parse(config)?;
        let parts = self.parts();
        if parts.len() < self.known_layers().count() {
            return Err(bad("one part is there twice"));
        }
        parts::check(&manifest, &parts)?;
        Ok(Package { manifest, layout: self })
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut blobs = self.blobs.clone();
        let mut digests = BTreeSet::new();
        for signature in &self.signatures {
            digests.insert(self.write_signature(signature, &mut blobs).to_string());
        }
        let mut module = self.module.clone();
        if !digests.is_empty() {
            let list = digests.into_iter().collect::<Vec<_>>().join(",");
            module.annotations.insert(oci::SIGNATURES.to_owned(), list);
        }
        module.artifact_type = Some(oci::MODULE.to_owned());
        let media_type = Some(oci::IMAGE_INDEX.to_owned());
        let index = oci::to_json(&ImageIndex { schema_version: 2, media_type, manifests: vec![module] });
        Archive { index, blobs }.to_bytes()
    }

    fn parts(&self) -> BTreeMap<Part, &[u8]> {
        self.known_layers().collect()
    }

    /// Returns the layers that are known here; a part may be there twice.
    fn known_layers(&self) -> impl Iterator<Item = (Part, &[u8])> {
        self.image.layers.iter().filter_map(|layer| {
            let content = self.blobs.get(&layer.digest)?.as_slice();
            Some((Part::of_layer(&layer.media_type, content)?, content))
        })
    }

    fn config(&self) -> Option<&[u8]> {
        self.blobs.get(&self.image.config.digest).map(Vec::as_slice)
    }

    fn add_signature(&mut self, signature: PackageSignature) -> Result<(), Refusal> {
        if !self.signatures.contains(&signature) && self.signatures.len() >= SIGNATURES_MAX {
            let detail = format!("the package has {SIGNATURES_MAX} signatures already");
            return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        self.signatures.insert(signature);
        Ok(())
    }

    fn write_signature(&self, signature: &PackageSignature, blobs: &mut BTreeMap<Digest, Vec<u8>>) -> Digest {
        let empty = b"{}".to_vec();
        let document = SignatureDocument { key: signature.key, signature: signature.signature };
        let layer = oci::to_json(&document);
        let mut subject = Descriptor { annotations: BTreeMap::new(), ..self.module.clone() };
        subject.artifact_type = None;
        let referrer = ImageManifest {
            schema_version: 2,
            media_type: Some(oci::IMAGE_MANIFEST.to_owned()),
            artifact_type: Some(oci::SIGNATURE.to_owned()),
            config: Descriptor::of(oci::EMPTY, &empty),
            layers: vec![Descriptor::of(oci::SIGNATURE_LAYER, &layer)],
            subject: Some(subject),
            annotations: BTreeMap::new(),
        };
        let json = oci::to_json(&referrer);
        let digest = oci::digest_of(&json);
        blobs.insert(referrer.config.digest, empty);
        blobs.insert(referrer.layers[0].digest, layer);
        blobs.insert(digest, json);
        digest
    }
}

/// Finds the one module among the entries of the index.
fn the_module(index: &ImageIndex, archive: &Archive) -> Result<(Descriptor, ImageManifest), Refusal> {
    let mut modules = Vec::new();
    for entry in index.manifests.iter().filter(|entry| entry.media_type == oci::IMAGE_MANIFEST) {
        let image: ImageManifest = oci::from_json("an image manifest", checked_blob(archive, entry)?)?;
        if image.artifact_type.as_deref() == Some(oci::MODULE) {
            modules.push((entry.clone(), image));
        }
    }
    let count = modules.len();
    let (Some((module, image)), 1) = (modules.pop(), count) else {
        return Err(bad(format!("{count} NetServ modules in the layout, there must be one")));
    };
    if image.schema_version != 2 {
        return Err(bad(format!("the module's image manifest has schema version {}", image.schema_version)));
    }
    if image.config.media_type != oci::MODULE_CONFIG {
        let is: String = image.config.media_type.chars().take(80).collect();
        return Err(bad(format!("the module's manifest is of type {is}, understood is {}", oci::MODULE_CONFIG)));
    }
    if image.config.size > u64::try_from(limits::MANIFEST_BYTES_MAX).unwrap_or(u64::MAX) {
        return Err(bad(format!("the manifest has {} bytes", image.config.size)));
    }
    if image.layers.len() > LAYERS_MAX {
        return Err(bad(format!("{} layers, at most {LAYERS_MAX}", image.layers.len())));
    }
    // Only what is told apart by its content may be there more often.
    let others = || image.layers.iter().map(|layer| layer.media_type.as_str()).filter(|kind| *kind != oci::WASM);
    let types: BTreeSet<&str> = others().collect();
    if types.len() != others().count() {
        return Err(bad("one part is there twice"));
    }
    Ok((module, image))
}

/// Lists the signatures: those of the annotation, and index entries that say they are some.
fn signature_digests(index: &ImageIndex, module: &Descriptor, archive: &Archive) -> Result<BTreeSet<Digest>, Refusal> {
    let listed = module.annotations.get(oci::SIGNATURES).map(String::as_str).unwrap_or_default();
    let mut digests = BTreeSet::new();
    for digest in listed.split(',').filter(|digest| !digest.is_empty()).take(SIGNATURES_MAX + 1) {
        digests.insert(digest.parse().map_err(|error| bad(format!("{}: {error}", oci::SIGNATURES)))?);
    }
    for entry in index.manifests.iter().filter(|entry| entry.digest != module.digest) {
        let image = archive.blobs.get(&entry.digest).and_then(|blob| oci::from_json::<ImageManifest>("", blob).ok());
        if image.is_some_and(|image| image.artifact_type.as_deref() == Some(oci::SIGNATURE)) {
            digests.insert(entry.digest);
        }
    }
    if digests.len() > SIGNATURES_MAX {
        return Err(bad(format!("more than {SIGNATURES_MAX} signatures")));
    }
    Ok(digests)
}

fn read_signature(archive: &Archive, digest: Digest, module: &Descriptor) -> Result<PackageSignature, Refusal> {
    let json = archive.blobs.get(&digest).ok_or_else(|| bad(format!("signature {digest} is missing")))?;
    let referrer: ImageManifest = oci::from_json("a signature's image manifest", json)?;
    if referrer.artifact_type.as_deref() != Some(oci::SIGNATURE) {
        return Err(bad(format!("{digest} is listed as a signature and is none")));
    }
    if referrer.subject.as_ref().map(|subject| subject.digest) != Some(module.digest) {
        return Err(bad(format!("signature {digest} is of something else")));
    }
    let [layer] = referrer.layers.as_slice() else { return Err(bad(format!("signature {digest} has not one layer"))) };
    let SignatureDocument { key, signature } = oci::from_json("a signature", checked_blob(archive, layer)?)?;
    Ok(PackageSignature { key, signature })
}

fn length(content: &[u8]) -> u64 {
    u64::try_from(content.len()).unwrap_or(u64::MAX)
}

fn checked_blob<'a>(archive: &'a Archive, descriptor: &Descriptor) -> Result<&'a [u8], Refusal> {
    let missing = || bad(format!("blob {} is missing", descriptor.digest));
    let blob = archive.blobs.get(&descriptor.digest).ok_or_else(missing)?;
    if u64::try_from(blob.len()) != Ok(descriptor.size) {
        return Err(bad(format!("blob {} has {} bytes, {} expected", descriptor.digest, blob.len(), descriptor.size)));
    }
    Ok(blob)
}
