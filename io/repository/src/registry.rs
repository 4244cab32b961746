// SPDX-License-Identifier: Apache-2.0
//! Packages in OCI registries: how they are named, and how a node gets one. [`crate::push`] puts them there.
//!
//! A registry keeps a package as it is: its image manifest under a tag, and each signature as a referrer of it. A
//! registry without the referrers API keeps the list of signatures under the tag `sha256-HEX` of the package's digest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Write;
use std::str::FromStr;
use std::time::Instant;

use netserv_model::{Digest, Refusal, RefusalKind};
use sha2::{Digest as _, Sha256};
use ureq::http::Uri;

use crate::archive::ArchiveWriter;
use crate::limits::{JSON_BYTES_MAX, LAYERS_MAX, SIGNATURES_MAX};
use crate::oci::{self, Descriptor, ImageIndex, ImageManifest, bad, digest_of};
use crate::room::{Digesting, not_kept};
use crate::source::{Answered, Ask, FetchLimits, Fetcher};

/// What URLs of packages in registries begin with.
pub const SCHEME: &str = "oci://";

/// A package in a registry: `oci://HOST[:PORT]/REPOSITORY:TAG`, or with `@sha256:…` in place of the tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The registry, with its port if it is not the usual one.
    pub host: String,
    /// The repository, such as `modules/net-monitor`.
    pub repository: String,
    /// The tag or the digest.
    pub tag: String,
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Reference, String> {
        let wrong = |what: &str| format!("`{}`: {what}; write oci://HOST[:PORT]/REPOSITORY:TAG", short(text));
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| wrong("does not begin with oci://"))?;
        let (host, path) = rest.split_once('/').ok_or_else(|| wrong("there is no repository"))?;
        let (repository, tag) = match path.split_once('@') {
            Some((repository, digest)) => {
                digest.parse::<Digest>().map_err(|_| wrong("the digest is not sha256:…"))?;
                (repository, digest)
            }
            None => path.split_once(':').ok_or_else(|| wrong("there is no tag"))?,
        };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
        if host.is_empty() || host.contains(['@', '?', '#', ' ']) {
            return Err(wrong("the host is missing or odd"));
        }
        let part = |part: &str| !part.is_empty() && part.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !repository.split('/').all(|one| part(one) && one.chars().all(plain)) {
            return Err(wrong("repositories have lower-case letters, digits and `._-` between slashes"));
        }
        let in_tag = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_tag = !tag.is_empty() && tag.len() <= 128 && !tag.starts_with(['.', '-']) && tag.chars().all(in_tag);
        if !is_tag && tag.parse::<Digest>().is_err() {
            return Err(wrong("tags have 1 to 128 letters, digits and `._-`"));
        }
        Ok(Reference { host: host.to_owned(), repository: repository.to_owned(), tag: tag.to_owned() })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.tag.contains(':') { '@' } else { ':' };
        write!(formatter, "{SCHEME}{}/{}{separator}{}", self.host, self.repository, self.tag)
    }
}

/// Returns the tag under which a registry without the referrers API keeps what refers to a manifest.
pub(crate) fn referrers_tag(digest: Digest) -> String {
    digest.to_string().replace(':', "-")
}

/// What a registry wants before it answers, from the header `www-authenticate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// A name and a password.
    Basic,
    /// A token that this URL gives.
    Bearer { url: String },
}

impl Challenge {
    /// Reads the header. Of several challenges the one for a token counts, wherever it stands (RFC 9110 §11.6.1).
    pub(crate) fn parse(header: &str) -> Option<Challenge> {
        let all = challenges(header);
        let named = |name: &'static str| all.iter().filter(move |(scheme, _)| scheme.eq_ignore_ascii_case(name));
        let bearer = named("bearer").find_map(|(_, parameters)| {
            let realm = parameters.get("realm")?;
            let wanted = ["service", "scope"].iter().filter_map(|key| Some((*key, parameters.get(*key)?)));
            let query: Vec<String> = wanted.map(|(key, value)| format!("{key}={}", percent_encode(value))).collect();
            let separator = if realm.contains('?') { '&' } else { '?' };
            Some(Challenge::Bearer { url: format!("{realm}{separator}{}", query.join("&")) })
        });
        bearer.or_else(|| named("basic").next().map(|_| Challenge::Basic))
    }
}

/// Reads a token from what the URL of a challenge gives.
pub(crate) fn token(body: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    let token = answer.get("token").or_else(|| answer.get("access_token"))?.as_str()?;
    (token.len() <= JSON_BYTES_MAX && token.bytes().all(|byte| byte.is_ascii_graphic())).then(|| token.to_owned())
}

/// Writes a package: the manifest, its config and layers, and the signatures, as a `.nsm` file.
pub(crate) fn fetch(
    fetcher: &Fetcher,
    url: &str,
    deadline: Instant,
    limits: &FetchLimits,
    out: &mut dyn Write,
) -> Result<(), Refusal> {
    let reference: Reference = url.parse().map_err(|error: String| Refusal::new(RefusalKind::BadUrl, error))?;
    let mut session = Session::open(fetcher, &reference, deadline, limits)?;
    let json = session.manifest(&reference.tag)?.ok_or_else(|| failed(format!("{reference} is not there")))?;
    let mut module = Descriptor::of(oci::IMAGE_MANIFEST, &json);
    if reference.tag.parse().is_ok_and(|digest: Digest| digest != module.digest) {
        return Err(failed(format!("{reference} has the digest {}", module.digest)));
    }
    let image: ImageManifest = oci::from_json("the image manifest", &json)?;
    if image.artifact_type.as_deref() != Some(oci::MODULE) {
        return Err(bad(format!("{reference} is no NetServ module")));
    }
    let mut package =
        Written { archive: ArchiveWriter::begin(out).map_err(|error| not_kept(&error))?, blobs: BTreeSet::new() };
    package.put(module.digest, &json)?;
    session.parts(&image, &mut package)?;
    let mut signatures = Vec::new();
    for digest in session.signatures(module.digest)? {
        let Some(json) = session.manifest(&digest.to_string())? else { continue };
        let signature: ImageManifest = oci::from_json("a signature's image manifest", &json)?;
        if signature.artifact_type.as_deref() != Some(oci::SIGNATURE) || digest_of(&json) != digest {
            return Err(bad(format!("{digest} is listed as a signature and is none")));
        }
        session.parts(&signature, &mut package)?;
        package.put(digest, &json)?;
        signatures.push(digest.to_string());
    }
    if !signatures.is_empty() {
        module.annotations.insert(oci::SIGNATURES.to_owned(), signatures.join(","));
    }
    let media_type = Some(oci::IMAGE_INDEX.to_owned());
    let index = oci::to_json(&ImageIndex { schema_version: 2, media_type, manifests: vec![module] });
    package.archive.end(&index).map_err(|error| not_kept(&error))
}

/// A package that is being written, and the blobs that it has.
struct Written<'a> {
    archive: ArchiveWriter<'a>,
    blobs: BTreeSet<Digest>,
}

impl Written<'_> {
    fn put(&mut self, digest: Digest, blob: &[u8]) -> Result<(), Refusal> {
        match self.blobs.insert(digest) {
            true => self.archive.blob(&digest, blob).map_err(|error| not_kept(&error)),
            false => Ok(()),
        }
    }
}

/// One registry while a package is fetched.
struct Session<'a> {
    fetcher: &'a Fetcher,
    /// The scheme and the host.
    base: String,
    repository: &'a str,
    authorization: Option<String>,
    deadline: Instant,
    limits: &'a FetchLimits,
    /// Bytes that may still come.
    left: u64,
}

impl<'a> Session<'a> {
    /// Finds out how the registry speaks: by `https` where the operator allows that, else by `http`.
    fn open(
        fetcher: &'a Fetcher,
        reference: &'a Reference,
        deadline: Instant,
        limits: &'a FetchLimits,
    ) -> Result<Session<'a>, Refusal> {
        let schemes = fetcher.schemes();
        let mut outcome = Err(Refusal::new(RefusalKind::BadUrl, "the node fetches neither `https:` nor `http:`"));
        for scheme in &schemes {
            let base = format!("{scheme}://{}", reference.host);
            let repository = &reference.repository;
            let left = limits.bytes;
            let session = Session { fetcher, base, repository, authorization: None, deadline, limits, left };
            if schemes.len() == 1 {
                return Ok(session);
            }
            let mut body = Vec::new();
            match session.ask(&format!("{}/v2/", session.base), "application/json", JSON_ROOM, &mut body) {
                // A token for this URL would be for no repository, or for a made-up one: what is wanted of the package, its own URLs say.
                Ok(_) => return Ok(session),
                // What the operator does not allow stays so with the other scheme.
                Err(refusal) if refusal.kind == RefusalKind::BadUrl => return Err(refusal),
                Err(refusal) => outcome = outcome.or(Err(refusal)),
            }
        }
        outcome
    }

    /// Returns a manifest by tag or digest, if there is one.
    fn manifest(&mut self, tag: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let path = format!("/v2/{}/manifests/{tag}", self.repository);
        let accept = format!("{}, {}", oci::IMAGE_MANIFEST, oci::IMAGE_INDEX);
        self.get(&path, &accept, JSON_ROOM)
    }

    /// Gets the config and the layers of a manifest.
    fn parts(&mut self, image: &ImageManifest, package: &mut Written<'_>) -> Result<(), Refusal> {
        if image.layers.len() > LAYERS_MAX {
            return Err(bad(format!("{} layers, at most {LAYERS_MAX}", image.layers.len())));
        }
        for part in image.layers.iter().chain([&image.config]) {
            if !package.blobs.insert(part.digest) {
                continue;
            }
            if part.size > self.left {
                let detail = format!("more than {} bytes", self.limits.bytes);
                return Err(Refusal::new(RefusalKind::PackageTooLarge, detail));
            }
            let path = format!("/v2/{}/blobs/{}", self.repository, part.digest);
            let mut digest = Sha256::new();
            package.archive.blob_from(
                &part.digest,
                part.size,
                |error| not_kept(&error),
                |out| {
                    let mut out = Digesting { out, digest: &mut digest };
                    match self.get_into(&path, "*/*", part.size, &mut out)? {
                        true => Ok(()),
                        false => Err(failed(format!("blob {} is not there", part.digest))),
                    }
                },
            )?;
            if Digest(digest.finalize().into()) != part.digest {
                return Err(failed(format!("blob {} has another content than its name says", part.digest)));
            }
            self.left = self.left.saturating_sub(part.size);
        }
        Ok(())
    }

    /// Lists the signatures of a package, by the API for that or by the tag that stands in for it.
    fn signatures(&mut self, module: Digest) -> Result<Vec<Digest>, Refusal> {
        let path = format!("/v2/{}/referrers/{module}", self.repository);
        let mut body = Vec::new();
        let listed = match self.status_of(&path, oci::IMAGE_INDEX, JSON_ROOM, &mut body)? {
            // A registry without the API may answer with a page for people.
            200..=299 => list_of_referrers(&body).ok(),
            400..=499 => None,
            status => return Err(failed(format!("the registry answered {status}"))),
        };
        self.left = self.left.saturating_sub(u64::try_from(body.len()).unwrap_or(u64::MAX));
        let index = match listed {
            Some(index) => index,
            None => match self.manifest(&referrers_tag(module))? {
                Some(json) => list_of_referrers(&json)?,
                None => return Ok(Vec::new()),
            },
        };
        let is_signature = |entry: &&Descriptor| entry.artifact_type.as_deref() == Some(oci::SIGNATURE);
        Ok(index.manifests.iter().filter(is_signature).take(SIGNATURES_MAX).map(|entry| entry.digest).collect())
    }

    /// Returns what is at a path; nothing if the registry says that there is nothing.
    fn get(&mut self, path: &str, accept: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Refusal> {
        let mut body = Vec::new();
        let is_there = self.get_into(path, accept, bytes_max, &mut body)?;
        self.left = self.left.saturating_sub(u64::try_from(body.len()).unwrap_or(u64::MAX));
        Ok(is_there.then_some(body))
    }

    /// Writes what is at a path; returns false if the registry says that there is nothing.
    fn get_into(&mut self, path: &str, accept: &str, bytes_max: u64, out: &mut dyn Write) -> Result<bool, Refusal> {
        match self.status_of(path, accept, bytes_max, out)? {
            200..=299 => Ok(true),
            404 => Ok(false),
            401 | 403 => Err(failed("the registry does not give the package to everybody")),
            status => Err(failed(format!("the registry answered {status}"))),
        }
    }

    /// Writes what is at a path, with a new token if the registry wants one: a token is for some paths, and for some time.
    fn status_of(&mut self, path: &str, accept: &str, bytes_max: u64, out: &mut dyn Write) -> Result<u16, Refusal> {
        let url = format!("{}{path}", self.base);
        let answered = self.ask(&url, accept, bytes_max, out)?;
        if answered.status != 401 {
            return Ok(answered.status);
        }
        self.authorize(answered.challenge.as_deref())?;
        Ok(self.ask(&url, accept, bytes_max, out)?.status)
    }

    fn ask(&self, url: &str, accept: &str, bytes_max: u64, out: &mut dyn Write) -> Result<Answered, Refusal> {
        let uri: Uri = url.parse().map_err(|error| Refusal::new(RefusalKind::BadUrl, format!("{error}")))?;
        let limits = FetchLimits { bytes: bytes_max.min(self.left), ..*self.limits };
        let authorization = self.authorization.as_deref();
        self.fetcher.follow(
            Ask { uri, accept: Some(accept), authorization, if_none_match: None },
            self.deadline,
            &limits,
            out,
        )
    }

    /// Gets a token for everybody; the URL that gives it is checked as every URL is.
    fn authorize(&mut self, challenge: Option<&str>) -> Result<(), Refusal> {
        let Some(Challenge::Bearer { url }) = challenge.and_then(Challenge::parse) else {
            return Err(failed("the registry wants a name and a password, which a node has not"));
        };
        let mut body = Vec::new();
        self.authorization = None;
        let answered = self.ask(&url, "application/json", JSON_ROOM, &mut body)?;
        let token = token(&body).filter(|_| answered.status == 200);
        let token = token.ok_or_else(|| failed("the registry does not give a token to everybody"))?;
        self.authorization = Some(format!("Bearer {token}"));
        Ok(())
    }
}

/// Reads what lists the signatures of a package among what else refers to it.
pub(crate) fn list_of_referrers(json: &[u8]) -> Result<ImageIndex, Refusal> {
    oci::from_json("the list of referrers", json)
}

/// Reads challenges: schemes, each with its parameters, whose names are in lower case.
fn challenges(header: &str) -> Vec<(&str, BTreeMap<String, String>)> {
    let mut found: Vec<(&str, BTreeMap<String, String>)> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let (word, after) = rest.split_at(rest.find(|c| !is_token(c)).unwrap_or(rest.len()));
        if word.is_empty() {
            return found;
        }
        rest = after;
        let Some(text) = after.trim_start().strip_prefix('=') else {
            found.push((word, BTreeMap::new()));
            continue;
        };
        let Some((_, parameters)) = found.last_mut() else { return found };
        let (value, after) = value(text.trim_start());
        parameters.insert(word.to_ascii_lowercase(), value);
        rest = after;
    }
}

/// Reads a parameter's value, in quotes or without. Returns what follows, too.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, after) = text.split_at(text.find([',', ' ', '\t']).unwrap_or(text.len()));
        return (value.to_owned(), after);
    };
    let (mut value, mut chars) = (String::new(), quoted.chars());
    while let Some(c) = chars.next().filter(|c| *c != '"') {
        value.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    (value, chars.as_str())
}

/// RFC 9110 §5.6.2.
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

fn percent_encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:/,".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn failed(detail: impl AsRef<str>) -> Refusal {
    Refusal::new(RefusalKind::FetchFailed, detail)
}

fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Bytes of a document that are read.
const JSON_ROOM: u64 = JSON_BYTES_MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_and_written() {
        let digest = format!("sha256:{}", "9f".repeat(32));
        for good in [
            "oci://registry.example/monitor:1.2.0".to_owned(),
            "oci://localhost:5000/a/b-c/d_e.f:latest".to_owned(),
            "oci://[2001:db8::1]:5000/a:1".to_owned(),
            format!("oci://registry.example/monitor@{digest}"),
        ] {
            assert_eq!(good.parse::<Reference>().unwrap().to_string(), good);
        }
        for (wrong, why) in [
            ("docker://a/b:c", "oci://"),
            ("oci://host", "no repository"),
            ("oci://host/", "no tag"),
            ("oci://host/a", "no tag"),
            ("oci:///a:1", "host"),
            ("oci://user@host/a:1", "host"),
            ("oci://host/A:1", "lower-case"),
            ("oci://host/a//b:1", "lower-case"),
            ("oci://host/../a:1", "lower-case"),
            ("oci://host/a:b/c", "tags"),
            ("oci://host/a:", "tags"),
            ("oci://host/a@sha256:12", "digest"),
        ] {
            let error = wrong.parse::<Reference>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn challenges_say_where_a_token_is() {
        let header =
            r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull""#;
        let url = "https://auth.example/token?service=registry.example&scope=repository:a/b:pull".to_owned();
        assert_eq!(Challenge::parse(header), Some(Challenge::Bearer { url }));
        assert_eq!(Challenge::parse("Basic realm=\"x\""), Some(Challenge::Basic));
        for same in [
            r#"Bearer realm="https://auth.example/token", service=registry.example , scope=repository:a/b:pull"#,
            r#"Basic realm="x, Bearer", Bearer Realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull""#,
            r#"bearer error=insufficient_scope,scope="repository:a/b:pull",service="registry\.example",realm="https://auth.example/token", Basic"#,
        ] {
            assert_eq!(Challenge::parse(same), Challenge::parse(header), "{same}");
        }
        for odd in ["", ",", "=", "Bearer =", "Bearer realm", "Bearer realm=\"", "Basic=x", "Bearer realm=\"x\\", "é"]
        {
            // None of them ends anything.
            let _ = Challenge::parse(odd);
        }
        assert_eq!(Challenge::parse("Bearer service=\"x\""), None);
        assert_eq!(Challenge::parse("Negotiate"), None);
        assert_eq!(token(br#"{"token":"abc"}"#), Some("abc".to_owned()));
        assert_eq!(token(br#"{"access_token":"a b"}"#), None, "a token with a space would be two");
    }
}
