// SPDX-License-Identifier: Apache-2.0
//! Puts packages where other tools for OCI artifacts find them: into registries and into image layouts in folders.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use netserv_model::{Digest, Refusal};
use ureq::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION};
use ureq::http::{Method, Request};

use crate::archive::Archive;
use crate::oci::{self, Descriptor, ImageIndex, ImageManifest};
use crate::package::Package;
use crate::registry::{Challenge, Reference, list_of_referrers, referrers_tag, token};
use crate::source::challenges;

/// How long one exchange with a registry may take.
const EXCHANGE_TIME_MAX: Duration = Duration::from_secs(120);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;
/// The annotation that gives an entry of an image layout a tag.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// How a registry is asked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Speaks `http` in place of `https`.
    pub plain_http: bool,
    /// What proves who asks; none for registries that everybody may write to.
    pub credentials: Option<Credentials>,
}

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Finds the credentials for a host in a file such as `~/.docker/config.json`, which skopeo and oras write too.
    ///
    /// # Errors
    /// The file is no such file.
    pub fn in_file(text: &str, host: &str) -> Result<Option<Credentials>, PushError> {
        let odd = |what: &str| PushError::CredentialsFile(what.to_owned());
        let file: serde_json::Value = serde_json::from_str(text).map_err(|error| odd(&error.to_string()))?;
        let Some(entry) = file.get("auths").and_then(|auths| auths.get(host)) else { return Ok(None) };
        let Some(auth) = entry.get("auth").and_then(serde_json::Value::as_str) else { return Ok(None) };
        let decoded = STANDARD.decode(auth).map_err(|_| odd("`auth` is not base64"))?;
        let decoded = String::from_utf8(decoded).map_err(|_| odd("`auth` is not text"))?;
        let (user, password) = decoded.split_once(':').ok_or_else(|| odd("`auth` is not NAME:PASSWORD"))?;
        Ok(Some(Credentials { user: user.to_owned(), password: password.to_owned() }))
    }

    fn header(&self) -> String {
        format!("Basic {}", STANDARD.encode(format!("{}:{}", self.user, self.password)))
    }
}

/// Why a package could not be put somewhere.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// Nobody answers, or not as a registry does.
    #[error("cannot reach {host}: {error}")]
    Unreachable {
        /// The registry.
        host: String,
        /// What happened.
        error: String,
    },
    /// The registry wants to know who asks.
    #[error("{host} does not let {who} write to {repository}")]
    NotAllowed {
        /// The registry.
        host: String,
        /// The repository.
        repository: String,
        /// Who asked.
        who: String,
    },
    /// The registry refused something.
    #[error("{host} answered {status} to {what}{detail}")]
    Refused {
        /// The registry.
        host: String,
        /// What was asked.
        what: String,
        /// The status.
        status: u16,
        /// What it said, after a colon; empty if nothing.
        detail: String,
    },
    /// The file with credentials is not understood.
    #[error("the file with credentials: {0}")]
    CredentialsFile(String),
    /// The package is not whole.
    #[error("{0}")]
    Package(#[from] Refusal),
    /// There is something else in the folder.
    #[error("{0} is not empty, and no OCI image layout")]
    NoLayout(PathBuf),
    /// A file of the folder cannot be read or written.
    #[error("{path}: {error}")]
    Folder {
        /// The file.
        path: PathBuf,
        /// What happened.
        error: io::Error,
    },
}

/// What was put somewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Pushed {
    /// Blobs and manifests that were sent or written.
    pub sent: usize,
    /// Blobs that were there already.
    pub present: usize,
    /// Bytes that were sent or written.
    pub bytes: u64,
    /// Signatures that went with the package.
    pub signatures: usize,
}

/// One of a package's manifests with its bytes.
struct Part {
    digest: Digest,
    json: Vec<u8>,
    image: ImageManifest,
}

/// A package as a registry wants it.
struct Parts {
    module: Part,
    signatures: Vec<Part>,
    blobs: BTreeMap<Digest, Vec<u8>>,
}

impl Parts {
    fn of(package: &Package) -> Result<Parts, Refusal> {
        let Archive { blobs, .. } = Archive::read(&package.to_bytes())?;
        let (mut module, mut signatures) = (None, Vec::new());
        for (digest, json) in &blobs {
            // Blobs that are no manifests are config and layers of those that are.
            let Ok(image) = oci::from_json::<ImageManifest>("a manifest", json) else { continue };
            let part = Part { digest: *digest, json: json.clone(), image };
            if *digest == package.digest() {
                module = Some(part);
            } else if part.image.artifact_type.as_deref() == Some(oci::SIGNATURE) {
                signatures.push(part);
            }
        }
        let module = module.ok_or_else(|| oci::bad("the package has no image manifest"))?;
        Ok(Parts { module, signatures, blobs })
    }

    fn blob(&self, descriptor: &Descriptor) -> Result<&[u8], Refusal> {
        let missing = || oci::bad(format!("blob {} is missing", descriptor.digest));
        self.blobs.get(&descriptor.digest).map(Vec::as_slice).ok_or_else(missing)
    }
}

impl Part {
    fn descriptor(&self) -> Descriptor {
        let artifact_type = self.image.artifact_type.clone();
        Descriptor { artifact_type, ..Descriptor::of(oci::IMAGE_MANIFEST, &self.json) }
    }
}

/// Puts a package with its signatures into a registry. What is there already is not sent again.
///
/// # Errors
/// The registry does not answer, or refuses.
pub fn to_registry(package: &Package, reference: &Reference, options: &Options) -> Result<Pushed, PushError> {
    let parts = Parts::of(package)?;
    let mut session = Session::new(reference, options);
    session.manifest(&parts, &parts.module, &reference.tag)?;
    for signature in &parts.signatures {
        session.manifest(&parts, signature, &signature.digest.to_string())?;
    }
    session.list_signatures(&parts)?;
    session.pushed.signatures = parts.signatures.len();
    Ok(session.pushed)
}

/// Looks whether a folder takes packages: it is an image layout, empty, or not there.
///
/// # Errors
/// It holds something else, or cannot be read.
pub fn check_folder(folder: &Path) -> Result<(), PushError> {
    let failed = |path: &Path, error| PushError::Folder { path: path.to_owned(), error };
    let marker = folder.join("oci-layout");
    match std::fs::read(&marker) {
        Ok(bytes) => return oci::check_layout(&bytes).map_err(|odd| failed(&marker, io::Error::other(odd.detail))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(&marker, error)),
    }
    match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().map_or(Ok(()), |_| Err(PushError::NoLayout(folder.to_owned()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(folder, error)),
    }
}

/// Puts a package with its signatures into an image layout in a folder, under a tag. What else is in the layout stays.
///
/// # Errors
/// The folder holds something else, or cannot be written.
pub fn to_folder(package: &Package, folder: &Path, tag: &str) -> Result<Pushed, PushError> {
    check_folder(folder)?;
    let parts = Parts::of(package)?;
    let index_path = folder.join("index.json");
    let mut index = match std::fs::read(&index_path) {
        Ok(bytes) => oci::from_json::<ImageIndex>("index.json", &bytes).map_err(|refusal| PushError::Folder {
            path: index_path.clone(),
            error: io::Error::other(refusal.detail),
        })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let media_type = Some(oci::IMAGE_INDEX.to_owned());
            ImageIndex { schema_version: 2, media_type, manifests: Vec::new() }
        }
        Err(error) => return Err(PushError::Folder { path: index_path, error }),
    };
    let mut pushed = Pushed { signatures: parts.signatures.len(), ..Pushed::default() };
    for (digest, blob) in &parts.blobs {
        let name = digest.to_string().replace(':', "/");
        write_new(&folder.join("blobs").join(name), blob, &mut pushed)?;
    }
    let mut module = parts.module.descriptor();
    module.annotations.insert(REF_NAME.to_owned(), tag.to_owned());
    let new: Vec<Descriptor> = [module].into_iter().chain(parts.signatures.iter().map(Part::descriptor)).collect();
    let stays = |entry: &Descriptor| {
        let is_tagged = entry.annotations.get(REF_NAME).is_some_and(|name| name == tag);
        !is_tagged && new.iter().all(|one| one.digest != entry.digest || entry.annotations.contains_key(REF_NAME))
    };
    index.manifests.retain(stays);
    index.manifests.extend(new);
    write_new(&folder.join("oci-layout"), oci::LAYOUT.as_bytes(), &mut Pushed::default())?;
    let written = std::fs::write(folder.join("index.json.part"), oci::to_json(&index))
        .and_then(|()| std::fs::rename(folder.join("index.json.part"), &index_path));
    written.map_err(|error| PushError::Folder { path: index_path, error })?;
    Ok(pushed)
}

fn write_new(path: &Path, bytes: &[u8], pushed: &mut Pushed) -> Result<(), PushError> {
    let failed = |error| PushError::Folder { path: path.to_owned(), error };
    if path.exists() {
        pushed.present += 1;
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let partial = path.with_extension("part");
    std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path)).map_err(failed)?;
    pushed.count(bytes);
    Ok(())
}

impl Pushed {
    fn count(&mut self, bytes: &[u8]) {
        self.sent += 1;
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    }
}

/// One registry while a package is put there.
struct Session<'a> {
    agent: ureq::Agent,
    reference: &'a Reference,
    /// The scheme and the host.
    base: String,
    credentials: Option<&'a Credentials>,
    authorization: Option<String>,
    pushed: Pushed,
}

/// What is asked of a registry.
struct Ask<'a> {
    method: Method,
    url: String,
    media_type: &'a str,
    body: Option<&'a [u8]>,
}

/// What a registry answered.
struct Answer {
    status: u16,
    location: Option<String>,
    challenge: Option<String>,
    body: Vec<u8>,
}

impl<'a> Session<'a> {
    fn new(reference: &'a Reference, options: &'a Options) -> Session<'a> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(EXCHANGE_TIME_MAX))
            .user_agent(concat!("netserv/", env!("CARGO_PKG_VERSION")));
        let scheme = if options.plain_http { "http" } else { "https" };
        Session {
            agent: config.build().into(),
            reference,
            base: format!("{scheme}://{}", reference.host),
            credentials: options.credentials.as_ref(),
            authorization: None,
            pushed: Pushed::default(),
        }
    }

    /// Puts a manifest there after what it names.
    fn manifest(&mut self, parts: &Parts, part: &Part, tag: &str) -> Result<(), PushError> {
        for descriptor in part.image.layers.iter().chain([&part.image.config]) {
            self.blob(descriptor.digest, parts.blob(descriptor)?)?;
        }
        self.put_manifest(tag, oci::IMAGE_MANIFEST, &part.json)
    }

    fn put_manifest(&mut self, tag: &str, media_type: &str, json: &[u8]) -> Result<(), PushError> {
        let url = self.url(&format!("manifests/{tag}"));
        let answer = self.ask(&Ask { method: Method::PUT, url, media_type, body: Some(json) })?;
        self.expect(answer, &[201], "the manifest")?;
        self.pushed.count(json);
        Ok(())
    }

    fn blob(&mut self, digest: Digest, blob: &[u8]) -> Result<(), PushError> {
        let url = self.url(&format!("blobs/{digest}"));
        if self.ask(&Ask { method: Method::HEAD, url, media_type: "", body: None })?.status == 200 {
            self.pushed.present += 1;
            return Ok(());
        }
        let url = self.url("blobs/uploads/");
        let begun = self.ask(&Ask { method: Method::POST, url, media_type: "", body: Some(&[]) })?;
        let begun = self.expect(begun, &[202], "the begin of an upload")?;
        let location = begun.location.ok_or_else(|| self.unreachable("an upload without a location"))?;
        let location = if location.starts_with('/') { format!("{}{location}", self.base) } else { location };
        let separator = if location.contains('?') { '&' } else { '?' };
        let url = format!("{location}{separator}digest={digest}");
        let ask = Ask { method: Method::PUT, url, media_type: "application/octet-stream", body: Some(blob) };
        let answer = self.ask(&ask)?;
        self.expect(answer, &[201], "a blob")?;
        self.pushed.count(blob);
        Ok(())
    }

    /// Lists the signatures under a tag, where the registry does not do so by itself.
    fn list_signatures(&mut self, parts: &Parts) -> Result<(), PushError> {
        if parts.signatures.is_empty() {
            return Ok(());
        }
        let new: Vec<Descriptor> = parts.signatures.iter().map(Part::descriptor).collect();
        let url = self.url(&format!("referrers/{}", parts.module.digest));
        let answer = self.ask(&Ask { method: Method::GET, url, media_type: "", body: None })?;
        // Some registries without the API answer 200 all the same.
        let listed = list_of_referrers(&answer.body).map_or_else(|_| Vec::new(), |index| index.manifests);
        if answer.status == 200 && new.iter().all(|one| listed.iter().any(|entry| entry.digest == one.digest)) {
            return Ok(());
        }
        let tag = referrers_tag(parts.module.digest);
        let url = self.url(&format!("manifests/{tag}"));
        let listed = self.ask(&Ask { method: Method::GET, url, media_type: "", body: None })?;
        let mut manifests = match listed.status {
            200 => list_of_referrers(&listed.body)?.manifests,
            _ => Vec::new(),
        };
        manifests.retain(|entry| new.iter().all(|one| one.digest != entry.digest));
        manifests.extend(new);
        let media_type = Some(oci::IMAGE_INDEX.to_owned());
        let json = oci::to_json(&ImageIndex { schema_version: 2, media_type, manifests });
        self.put_manifest(&tag, oci::IMAGE_INDEX, &json)
    }

    fn url(&self, path: &str) -> String {
        format!("{}/v2/{}/{path}", self.base, self.reference.repository)
    }

    /// Asks, and asks again with what the registry wants for it.
    fn ask(&mut self, ask: &Ask<'_>) -> Result<Answer, PushError> {
        let answer = self.exchange(ask, self.authorization.as_deref())?;
        if answer.status != 401 {
            return Ok(answer);
        }
        self.authorization = self.authorize(answer.challenge.as_deref())?;
        self.exchange(ask, self.authorization.as_deref())
    }

    fn authorize(&self, challenge: Option<&str>) -> Result<Option<String>, PushError> {
        let own = self.credentials.map(Credentials::header);
        match challenge.and_then(Challenge::parse) {
            Some(Challenge::Basic) => Ok(own),
            Some(Challenge::Bearer { url }) => {
                let answer =
                    self.exchange(&Ask { method: Method::GET, url, media_type: "", body: None }, own.as_deref())?;
                Ok(token(&answer.body).filter(|_| answer.status == 200).map(|token| format!("Bearer {token}")))
            }
            None => Ok(None),
        }
    }

    fn exchange(&self, ask: &Ask<'_>, authorization: Option<&str>) -> Result<Answer, PushError> {
        let accept = format!("{}, {}, */*", oci::IMAGE_MANIFEST, oci::IMAGE_INDEX);
        let mut request = Request::builder().method(&ask.method).uri(&ask.url).header(ACCEPT, accept);
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if !ask.media_type.is_empty() {
            request = request.header(CONTENT_TYPE, ask.media_type);
        }
        let answered = match ask.body {
            Some(body) => request.body(body).map(|request| self.agent.run(request)),
            None => request.body(()).map(|request| self.agent.run(request)),
        };
        let answered = answered.map_err(|error| self.unreachable(error))?.map_err(|error| self.unreachable(error))?;
        let header = |name| answered.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (status, location, challenge) = (answered.status().as_u16(), header(LOCATION), challenges(&answered));
        let body = answered.into_body().into_with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let body = body.map_err(|error| self.unreachable(error))?;
        Ok(Answer { status, location, challenge, body })
    }

    fn expect(&self, answer: Answer, wanted: &[u16], what: &str) -> Result<Answer, PushError> {
        if wanted.contains(&answer.status) {
            return Ok(answer);
        }
        let host = self.reference.host.clone();
        if [401, 403].contains(&answer.status) {
            let who = self.credentials.map_or_else(|| "strangers".to_owned(), |one| format!("`{}`", one.user));
            return Err(PushError::NotAllowed { host, repository: self.reference.repository.clone(), who });
        }
        let said: Option<serde_json::Value> = serde_json::from_slice(&answer.body).ok();
        let said = said.as_ref().and_then(|said| said["errors"][0]["message"].as_str());
        let detail = said.map(|said| format!(": {}", said.chars().take(200).collect::<String>())).unwrap_or_default();
        Err(PushError::Refused { host, what: what.to_owned(), status: answer.status, detail })
    }

    fn unreachable(&self, error: impl std::fmt::Display) -> PushError {
        PushError::Unreachable { host: self.reference.host.clone(), error: error.to_string() }
    }
}
