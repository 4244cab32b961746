// SPDX-License-Identifier: Apache-2.0
//! `netserv module push`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use netserv_repository::push::{self, Credentials, Options, PushError, Pushed};
use netserv_repository::registry::{self, Reference};
use serde::Serialize;

use super::files::read_package;
use crate::exit::{Exit, Failure, OrFail};
use crate::output::Output;
use crate::units::format_bytes;

/// The environment variables with a registry's name and password.
const ENVIRONMENT: [&str; 2] = ["NETSERV_REGISTRY_USER", "NETSERV_REGISTRY_PASSWORD"];

/// Push a package to an OCI registry, or to an image layout in a folder
///
/// Pushes the package's signatures as referrers of its manifest; the package's digest does not change. Nodes fetch
/// a package from a registry by the URL `oci://HOST[:PORT]/REPOSITORY:TAG`.
///
/// The name and password for the registry come from NETSERV_REGISTRY_USER and NETSERV_REGISTRY_PASSWORD, or from
/// the file that `docker login`, `skopeo login` and `oras login` write.
#[derive(Args)]
pub struct Push {
    /// The package
    #[arg(value_name = "FILE.nsm")]
    file: PathBuf,
    /// Destination: oci://HOST[:PORT]/REPOSITORY:TAG, or dir:PATH[:TAG]
    #[arg(value_name = "TO")]
    to: Target,
    /// Use HTTP for the registry instead of HTTPS
    #[arg(long)]
    plain_http: bool,
    /// File with credentials [default: $REGISTRY_AUTH_FILE, or config.json in $DOCKER_CONFIG or ~/.docker]
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Only show what the command would push, and where
    #[arg(long)]
    dry_run: bool,
}

/// Where a package is put.
#[derive(Clone, Debug)]
enum Target {
    Registry(Reference),
    Folder { path: PathBuf, tag: Option<String> },
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        if text.starts_with(registry::SCHEME) {
            return text.parse().map(Target::Registry);
        }
        let path = text
            .strip_prefix("dir:")
            .filter(|path| !path.is_empty())
            .ok_or_else(|| format!("`{text}` is neither oci://HOST[:PORT]/REPOSITORY:TAG nor dir:PATH[:TAG]"))?;
        match path.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => {
                Ok(Target::Folder { path: path.into(), tag: Some(tag.to_owned()) })
            }
            Some(_) | None => Ok(Target::Folder { path: path.into(), tag: None }),
        }
    }
}

/// What `-j` shows.
#[derive(Serialize)]
struct Shown {
    to: String,
    digest: String,
    #[serde(flatten)]
    pushed: Pushed,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

impl Push {
    /// Puts the package there.
    ///
    /// # Errors
    /// The package cannot be read, or the registry or the folder does not take it.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let package = read_package(&self.file)?;
        let version = package.manifest().version.to_string();
        let to = match &self.to {
            Target::Registry(reference) => reference.to_string(),
            Target::Folder { path, tag } => format!("{}:{}", path.display(), tag.as_ref().unwrap_or(&version)),
        };
        let digest = package.digest().to_string();
        if package.signatures().is_empty() {
            output.note("the package is not signed; nodes refuse it until `netserv module sign` and another push");
        }
        if let Target::Folder { path, .. } = &self.to {
            push::check_folder(path).map_err(|error| failure(&error, self.plain_http))?;
        }
        if self.dry_run {
            return show(&Shown { to, digest, pushed: Pushed::default(), dry_run: true }, output);
        }
        let pushed = match &self.to {
            Target::Registry(reference) => {
                let credentials = self.credentials(&reference.host)?;
                let options = Options { plain_http: self.plain_http, credentials };
                push::to_registry(&package, reference, &options).map_err(|error| failure(&error, self.plain_http))?
            }
            Target::Folder { path, tag } => push::to_folder(&package, path, tag.as_ref().unwrap_or(&version))
                .map_err(|error| failure(&error, self.plain_http))?,
        };
        show(&Shown { to, digest, pushed, dry_run: false }, output)
    }

    /// Finds the credentials for a registry: in the environment, then in a file.
    fn credentials(&self, host: &str) -> Result<Option<Credentials>, Failure> {
        if let [Ok(user), Ok(password)] = ENVIRONMENT.map(std::env::var) {
            return Ok(Some(Credentials { user, password }));
        }
        let Some(path) = self.credentials.clone().or_else(usual_file) else { return Ok(None) };
        let fix = "name the file that `docker login`, `skopeo login` or `oras login` wrote with --credentials";
        let text = std::fs::read_to_string(&path).or_fail(format!("cannot read {}", path.display()), fix)?;
        Credentials::in_file(&text, host).or_fail(path.display(), fix)
    }
}

/// Returns the file where other tools keep credentials, if there is one.
fn usual_file() -> Option<PathBuf> {
    let from = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let docker = from("DOCKER_CONFIG").or_else(|| Some(from("HOME")?.join(".docker")));
    let files = [from("REGISTRY_AUTH_FILE"), docker.map(|dir| dir.join("config.json"))];
    files.into_iter().flatten().find(|path| path.is_file())
}

fn show(shown: &Shown, output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(shown)?;
        return Ok(Exit::Done);
    }
    let Shown { to, digest, pushed, dry_run } = shown;
    if *dry_run {
        output.line(format!("would push  {digest}\nto          {to}"));
        return Ok(Exit::Done);
    }
    output.line(format!("pushed      {to}"));
    output.line(format!("digest      {digest} (the package's, for --digest)"));
    let there = match pushed.present {
        0 => String::new(),
        present => format!(", {present} were there already"),
    };
    output.line(format!("sent        {} parts, {}{there}", pushed.sent, format_bytes(pushed.bytes)));
    output.line(format!("signatures  {}", pushed.signatures));
    Ok(Exit::Done)
}

fn failure(error: &PushError, plain_http: bool) -> Failure {
    let fix = match error {
        PushError::Unreachable { .. } if plain_http => "check the host and the port, and that the registry runs",
        PushError::Unreachable { .. } => "check the host and the port; give --plain-http if the registry has no TLS",
        PushError::NotAllowed { .. } => {
            "log in with `docker login`, or set NETSERV_REGISTRY_USER and NETSERV_REGISTRY_PASSWORD"
        }
        PushError::Refused { .. } => "look at the registry's log; it must take OCI artifacts (OCI 1.0 or later)",
        PushError::CredentialsFile(_) => "name another file with --credentials",
        PushError::Package(_) => "build the package anew with `netserv module build`",
        PushError::NoLayout(_) | PushError::Folder { .. } => {
            "name a folder with an OCI image layout, an empty or a new one, that you may write to"
        }
    };
    Failure::new(error.to_string(), fix)
}
