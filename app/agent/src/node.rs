// SPDX-License-Identifier: Apache-2.0
//! Signed requests to this machine's `netservd`.

use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use ed25519_dalek::pkcs8::DecodePrivateKey as _;
use ed25519_dalek::{Signer as _, SigningKey};
use netserv_api::{Client, Daemon, Error};
use netserv_model::api::{PathSpec, PostRequest, RequestResult};
use netserv_model::evidence::{Checklist, grants_in};
use netserv_model::target::Destinations;
use netserv_model::{Nonce, SessionId, Signature, UnixTime, UserId};
use netserv_wire::nslp::RequestBuilder;
use rand::TryRng as _;

use crate::access::{Fault, Want, Who, fault};
use crate::config::Config;
use crate::limits::{GRANT_FILE_BYTES_MAX, KEY_FILE_BYTES_MAX, REQUEST_TIME_MAX};

/// Returns a client of the node that serves a socket.
pub fn netservd(socket: &Path) -> Client {
    Client::new(socket, Daemon { name: "netservd", named_by: "`netservd` in the configuration" })
}

/// Returns what a client says, with what to do about it.
pub fn said(Error { cause, fix, .. }: Error) -> anyhow::Error {
    anyhow!("{cause}; {fix}")
}

/// The way to the node, with who signs.
pub struct NodeClient {
    client: Client,
    user: UserId,
    key: SigningKey,
    evidence: Evidence,
}

/// Files with what proves the user's rights to nodes that do not know it.
#[derive(Default)]
pub struct Evidence {
    grant: Option<PathBuf>,
    proof: Option<PathBuf>,
    checklist: Option<PathBuf>,
}

impl Evidence {
    /// Returns the files that a configuration names.
    pub fn of(config: &Config) -> Evidence {
        let Config { grant, proof, checklist, .. } = config;
        Evidence { grant: grant.clone(), proof: proof.clone(), checklist: checklist.clone() }
    }

    /// Adds what is in the files to a request.
    fn add_to(&self, request: RequestBuilder) -> Result<RequestBuilder> {
        let request = request.grants(&lines(self.grant.as_deref())?);
        let proof = lines(self.proof.as_deref())?.first().map(|proof| proof.parse()).transpose();
        let request = request.address_proof(proof.context("the proof is none that `netserv prove address` made")?);
        let Some(path) = &self.checklist else { return Ok(request) };
        let mut der = Vec::new();
        let file = File::open(path).and_then(|file| file.take(GRANT_FILE_BYTES_MAX).read_to_end(&mut der));
        file.with_context(|| format!("cannot read {}", path.display()))?;
        let checklist = Checklist::new(der).with_context(|| format!("{} holds no checklist", path.display()))?;
        Ok(request.checklist(Some(&checklist)))
    }
}

impl NodeClient {
    /// Returns the way to the node at a socket, for a user whose key is in a file.
    ///
    /// # Errors
    /// There is no key in the file.
    pub fn new(socket: &Path, user: &UserId, key: &Path) -> Result<NodeClient> {
        let mut pem = String::new();
        let file = File::open(key).and_then(|file| file.take(KEY_FILE_BYTES_MAX).read_to_string(&mut pem));
        file.map_err(|error| match fault(key, Want::Read, &Who::Agent) {
            Some(Fault { found, fix }) => anyhow!("cannot read the key: {found}; {fix}"),
            None => anyhow!("cannot read {}: {error}", key.display()),
        })?;
        let key = SigningKey::from_pkcs8_pem(&pem)
            .map_err(|_| anyhow!("{} is no Ed25519 key; make one with `netserv key new`", key.display()))?;
        Ok(NodeClient { client: netservd(socket), user: user.clone(), key, evidence: Evidence::default() })
    }

    /// Has requests bring the evidence in these files.
    #[must_use]
    pub fn with_evidence(self, evidence: Evidence) -> NodeClient {
        NodeClient { evidence, ..self }
    }

    /// Signs a request and sends it toward a client. It ends after [`REQUEST_TIME_MAX`] at the latest.
    ///
    /// # Errors
    /// The node cannot be reached, or refuses the call.
    pub async fn send(&self, request: RequestBuilder, to: IpAddr, session: Option<SessionId>) -> Result<RequestResult> {
        let destination = to.to_canonical();
        // What comes back follows a flow to an address of the node's, which it alone knows.
        let request = if request.comes_back() { request } else { request.along(&Destinations::one(destination)) };
        let message = self.sign(request)?;
        let timeout_ms = u64::try_from(REQUEST_TIME_MAX.as_millis()).unwrap_or(u64::MAX) / 2;
        let path = Some(PathSpec { destination, source: None });
        let post = PostRequest { message, path, session, timeout_ms };
        self.client.post("/v1/requests", &post, REQUEST_TIME_MAX).await.map_err(said)
    }

    fn sign(&self, request: RequestBuilder) -> Result<String> {
        let mut nonce = [0; 16];
        rand::rngs::SysRng.try_fill_bytes(&mut nonce)?;
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let created = UnixTime(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX));
        let refused = |refusal: netserv_model::Refusal| anyhow!("the request cannot be made: {refusal}");
        let request = self.evidence.add_to(request.user(&self.user))?;
        let unsigned = request.build(created, Nonce(nonce)).map_err(refused)?;
        let signature = Signature(self.key.sign(unsigned.canonical_bytes()).to_bytes());
        Ok(unsigned.with_signature(signature).map_err(refused)?.as_str().to_owned())
    }
}

/// Reads the lines of a file, if there is one, for each request: others renew them.
fn lines(path: Option<&Path>) -> Result<Vec<String>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let mut text = String::new();
    let file = File::open(path).and_then(|file| file.take(GRANT_FILE_BYTES_MAX).read_to_string(&mut text));
    file.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(grants_in(&text))
}
