// SPDX-License-Identifier: Apache-2.0
//! Who signs a request, where it goes, and sending it.

use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use ed25519_dalek::{Signer, SigningKey};
use ipnet::IpNet;
use netserv_authority::grant::user_of;
use netserv_model::api::{PathSpec, PostRequest, RequestResult};
use netserv_model::evidence::{AddressProof, Checklist};
use netserv_model::off_path::OffPath;
use netserv_model::request::ReturnStack;
use netserv_model::target::{Bound, Condition, Destinations, Scope, Target};
use netserv_model::{DomainName, NodeId, Nonce, Refusal, RefusalKind, SessionId, Signature, UnixTime, UserId};
use netserv_wire::nslp::{RequestBuilder, Unsigned};

use crate::exit::{Exit, Failure, OrFail};
use crate::output::Output;
use crate::units::parse_duration;
use crate::{grants, keys};
use netserv_api::Client;

/// How much longer than the node this program waits, so that the node's own answer comes first.
const ANSWER_SLACK: Duration = Duration::from_secs(5);

/// Where a request goes.
#[derive(Args)]
pub struct Route {
    /// Destination of the path that the request follows: an address or a name
    #[arg(long, value_name = "DEST", required_unless_present = "local")]
    pub to: Option<String>,
    #[command(flatten)]
    pub travel: Travel,
    /// Also ask nodes off the path, as SHAPE:HOPS. SHAPE is bubble (near the first node of the path), balloon (near
    /// the last one) or hose (near every node); HOPS is 1 to 4. Example: hose:1
    #[arg(long, value_name = "SHAPE", conflicts_with_all = ["local", "round_trip", "return_only"])]
    pub off_path: Option<OffPath>,
    /// Ask only the node of this machine
    #[arg(long, conflicts_with_all = ["to", "from"])]
    pub local: bool,
    #[command(flatten)]
    targeting: Targeting,
}

/// Which nodes of the path are meant.
#[derive(Args)]
struct Targeting {
    /// Nodes of the path that the request is for: all, first, last, or edge (first and last)
    #[arg(long, value_name = "SCOPE", default_value = "all", hide_default_value = true)]
    scope: Scope,
    /// Restrict the request to the nodes with these names, separated by commas
    #[arg(long = "node", value_name = "NAME", value_delimiter = ',')]
    nodes: Vec<NodeId>,
    /// Restrict the request to nodes of these domains, separated by commas. Operators name them in
    /// `signaling.domain`
    #[arg(long, value_name = "DOMAIN", value_delimiter = ',')]
    for_domain: Vec<DomainName>,
    /// Restrict the request to nodes that meet all of these conditions, separated by commas, such as
    /// flavour=wasm,block=kv>=1,memory>=64M,load<0.8
    #[arg(long, value_name = "CONDITION", value_delimiter = ',')]
    require: Vec<Condition>,
}

/// Puts into a request which nodes beside the path it is for.
pub fn widen(builder: RequestBuilder, off_path: Option<OffPath>) -> RequestBuilder {
    match off_path {
        Some(off_path) => builder.off_path(off_path),
        None => builder,
    }
}

/// How a request goes along its path.
#[derive(Clone, Args)]
pub struct Travel {
    /// Source of the flow whose path the request follows [default: the address that this node would use]
    #[arg(long, value_name = "SRC")]
    pub from: Option<IpAddr>,
    /// How long to wait for the response stack
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// Addresses or prefixes that the signed request's path may lead to, separated by commas [default: the address
    /// of --to; if the request returns, also --from, or any address without --from]
    #[arg(long, value_name = "PREFIX", value_delimiter = ',', value_parser = parse_destination)]
    pub for_path: Vec<IpNet>,
    /// Signaling session [default: for SETUP and REMOVE, the session of user, module and path; otherwise a new one]
    #[arg(long, value_name = "ID")]
    pub session: Option<SessionId>,
    /// Have the last node send the request back, and also show the nodes on the return path
    #[arg(long)]
    pub round_trip: bool,
    /// Have the last node send the request back, and address only the nodes on the return path
    #[arg(long, conflicts_with = "round_trip")]
    pub return_only: bool,
}

/// Who signs.
#[derive(Args)]
pub struct Identity {
    /// User who signs the request [default: the login name]
    #[arg(long, value_name = "NAME", env = "NETSERV_USER", hide_env_values = true)]
    pub user: Option<UserId>,
    /// The user's key file [default: netserv/key.pem below $XDG_CONFIG_HOME]
    #[arg(long, value_name = "FILE", env = "NETSERV_KEY", hide_env_values = true)]
    pub key: Option<PathBuf>,
    /// File with grants for the key, for nodes that do not know the user. With it, --user defaults to the key's
    /// thumbprint
    #[arg(long, value_name = "FILE", env = "NETSERV_GRANT", hide_env_values = true)]
    pub grant: Option<PathBuf>,
    /// File made by `netserv prove address`, for nodes that do not know the user. With it, --user defaults to the
    /// key's thumbprint
    #[arg(long, value_name = "FILE", env = "NETSERV_PROOF", hide_env_values = true, conflicts_with = "grant")]
    pub proof: Option<PathBuf>,
    /// RPKI Signed Checklist (RFC 9323) over the first of the grants, signed by the holder of its prefixes
    #[arg(long, value_name = "FILE", env = "NETSERV_CHECKLIST", hide_env_values = true, requires = "grant")]
    pub checklist: Option<PathBuf>,
}

/// Where a signed request about a module goes, and who signs.
#[derive(Args)]
pub struct SignedRequest {
    #[command(flatten)]
    route: Route,
    #[command(flatten)]
    identity: Identity,
    /// Only ask the nodes what they would do
    #[arg(long)]
    dry_run: bool,
}

impl SignedRequest {
    /// Signs a request and sends it; people are told `what` it is.
    ///
    /// # Errors
    /// The request cannot be made or sent.
    pub async fn send(
        &self,
        client: &Client,
        output: &Output,
        builder: RequestBuilder,
        what: &str,
    ) -> Result<RequestResult, Failure> {
        let path = self.route.path()?;
        let travel = &self.route.travel;
        let builder = travel.bind(travel.shape(builder.target(&self.route.target())), path);
        let builder = if self.dry_run { builder.dry_run() } else { builder };
        let message = self.identity.account()?.sign(widen(builder, self.route.off_path))?;
        output.note(format!("{what} {}", self.route.shown()));
        travel.send(client, output, message, path).await
    }
}

/// A user with the key.
pub struct Account {
    user: UserId,
    key: SigningKey,
    grants: Vec<String>,
    proof: Option<AddressProof>,
    checklist: Option<Checklist>,
}

impl Route {
    /// Returns the path to take; `None` is this machine alone.
    ///
    /// # Errors
    /// The destination's name has no address.
    pub fn path(&self) -> Result<Option<PathSpec>, Failure> {
        self.to.as_deref().map(|to| self.travel.path_to(to)).transpose()
    }

    /// Returns the nodes that the request is for.
    pub fn target(&self) -> Target {
        let Targeting { scope, nodes, for_domain, require } = &self.targeting;
        Target { scope: *scope, nodes: nodes.clone(), domains: for_domain.clone(), require: require.clone() }
    }

    /// Returns for people where the request goes.
    pub fn shown(&self) -> String {
        self.to.as_ref().map_or("on this node".to_owned(), |to| format!("on the way to {to}"))
    }
}

impl Travel {
    /// Returns the path to a destination.
    ///
    /// # Errors
    /// The destination's name has no address.
    pub fn path_to(&self, destination: &str) -> Result<PathSpec, Failure> {
        let unknown = "give an address, or a name that this machine resolves";
        let doing = format!("no address for `{destination}`");
        let addresses = match destination.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => {
                let found = (destination, 0).to_socket_addrs().or_fail(&doing, unknown)?;
                found.map(|address| address.ip()).collect()
            }
        };
        let fits = |address: &&IpAddr| self.from.is_none_or(|from| from.is_ipv4() == address.is_ipv4());
        let destination = addresses.iter().find(fits).copied();
        let mixed = || Failure::new(format!("{doing} of the IP version of --from"), "give both in one IP version");
        Ok(PathSpec { destination: destination.ok_or_else(mixed)?, source: self.from })
    }

    /// Posts a message and waits for the response stack.
    ///
    /// # Errors
    /// The node cannot be reached or refuses the call.
    pub async fn send(
        &self,
        client: &Client,
        output: &Output,
        message: String,
        path: Option<PathSpec>,
    ) -> Result<RequestResult, Failure> {
        output.detail(message.trim_end());
        let timeout_ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        let request = PostRequest { message, path, session: self.session, timeout_ms };
        let time_max = self.timeout.saturating_add(ANSWER_SLACK);
        let posted = client.post("/v1/requests", &request, time_max);
        let mut result: RequestResult = output.waiting("waiting for the response stack", posted).await?;
        if (self.round_trip || self.return_only) && result.returned.is_none() {
            let refusal = Refusal::new(RefusalKind::NoNode, "no node sent the request back");
            result.returned = Some(ReturnStack { incomplete: Some(refusal), ..ReturnStack::default() });
        }
        Ok(result)
    }

    /// Adds to a request that will be signed that it is for this path alone.
    pub fn bind(&self, builder: RequestBuilder, path: Option<PathSpec>) -> RequestBuilder {
        builder.along(&self.destinations(path))
    }

    /// Adds to a request how it travels.
    pub fn shape(&self, builder: RequestBuilder) -> RequestBuilder {
        match (self.round_trip, self.return_only) {
            (_, true) => builder.return_only(),
            (true, false) => builder.and_return(),
            (false, false) => builder,
        }
    }

    /// Returns where the flows lead that a request may follow.
    fn destinations(&self, path: Option<PathSpec>) -> Destinations {
        let comes_back = self.round_trip || self.return_only;
        match path {
            Some(_) if !self.for_path.is_empty() => Destinations(self.for_path.clone()),
            Some(PathSpec { destination, source: Some(source) }) if comes_back => {
                Destinations([destination, source].map(|end| IpNet::from(end.to_canonical())).to_vec())
            }
            // The way back leads to an address that the node alone knows.
            Some(PathSpec { destination, .. }) if !comes_back => Destinations::one(destination),
            Some(_) | None => Destinations::default(),
        }
    }
}

impl Identity {
    /// Returns the user with the key.
    ///
    /// # Errors
    /// There is no usable user name or key.
    pub fn account(&self) -> Result<Account, Failure> {
        let key = keys::read(&self.key_file()?)?;
        let grants = self.grant.as_deref().map(grants::read).transpose()?.unwrap_or_default();
        let proof = self.proof.as_deref().map(grants::read_proof).transpose()?;
        let checklist = self.checklist.as_deref().map(grants::read_checklist).transpose()?;
        let is_stranger = !grants.is_empty() || proof.is_some();
        let user = match &self.user {
            None if is_stranger => user_of(&keys::public(&key)),
            Some(_) | None => self.user()?,
        };
        Ok(Account { user, key, grants, proof, checklist })
    }

    /// Returns the user with the key, or nothing if none was named and there is no key in the usual place.
    ///
    /// # Errors
    /// What was named cannot be used.
    pub fn account_if_any(&self) -> Result<Option<Account>, Failure> {
        let named = self.user.is_some() || self.key.is_some() || self.grant.is_some() || self.proof.is_some();
        let usual = || keys::default_path().is_ok_and(|path| path.exists());
        if named || usual() { self.account().map(Some) } else { Ok(None) }
    }

    fn user(&self) -> Result<UserId, Failure> {
        let login = || std::env::var("USER").ok().and_then(|name| name.parse().ok());
        let missing = || Failure::new("no user name: the login name is none", "give --user or NETSERV_USER");
        self.user.clone().or_else(login).ok_or_else(|| missing().with_exit(Exit::Usage))
    }

    fn key_file(&self) -> Result<PathBuf, Failure> {
        self.key.clone().map_or_else(keys::default_path, Ok)
    }
}

impl Account {
    /// Builds and signs a message.
    ///
    /// # Errors
    /// The request is longer than a message may be, or is none.
    pub fn sign(&self, builder: RequestBuilder) -> Result<String, Failure> {
        let builder = builder.user(&self.user).grants(&self.grants).address_proof(self.proof);
        let unsigned = build(builder.checklist(self.checklist.as_ref()))?;
        let signature = Signature(self.key.sign(unsigned.canonical_bytes()).to_bytes());
        let message = unsigned.with_signature(signature).or_fail("cannot build the request", BAD_REQUEST_FIX)?;
        Ok(message.as_str().to_owned())
    }
}

/// Builds a message that nobody signs.
///
/// # Errors
/// The request is longer than a message may be, or is none.
pub fn anonymous(builder: RequestBuilder) -> Result<String, Failure> {
    Ok(build(builder)?.into_message().as_str().to_owned())
}

/// Reads where a flow leads: an address or a prefix.
fn parse_destination(text: &str) -> Result<IpNet, String> {
    match format!("to={text}").parse() {
        Ok(Bound::To(prefix)) => Ok(prefix),
        Ok(Bound::Domain(_)) | Err(_) => Err("neither an address nor a prefix".to_owned()),
    }
}

const BAD_REQUEST_FIX: &str = "give fewer or shorter filters and properties, and a URL without spaces";

fn build(builder: RequestBuilder) -> Result<Unsigned, Failure> {
    let mut nonce = [0; 16];
    keys::fill_random(&mut nonce)?;
    builder.build(now(), Nonce(nonce)).or_fail("cannot build the request", BAD_REQUEST_FIX)
}

/// Returns the time.
pub fn now() -> UnixTime {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixTime(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::Verifier;
    use netserv_model::request::Ask;
    use netserv_wire::nslp::Message;

    use super::*;

    #[test]
    fn the_signature_covers_the_canonical_form() {
        let key = keys::generate().unwrap();
        let account = Account {
            user: "janedoe".parse().unwrap(),
            key: key.clone(),
            grants: vec!["a.b.c".to_owned()],
            proof: None,
            checklist: None,
        };
        let text = account.sign(RequestBuilder::probe(&[Ask::Policy])).unwrap();
        let message = Message::parse(text.as_bytes()).unwrap();
        let signature = ed25519_dalek::Signature::from_bytes(&message.signature().unwrap().0);
        assert!(key.verifying_key().verify(message.canonical().as_bytes(), &signature).is_ok());
        assert_eq!(message.user().unwrap().as_str(), "janedoe");
        assert_eq!(message.request(SessionId([0; 16])).grants, ["a.b.c"]);
        let again = Message::parse(account.sign(RequestBuilder::probe(&[])).unwrap().as_bytes()).unwrap();
        assert_ne!(again.nonce(), message.nonce());
    }

    #[test]
    fn a_request_that_no_node_would_take_is_refused_here() {
        let failure = anonymous(RequestBuilder::probe(&[]).header("x", &"y".repeat(9000))).unwrap_err();
        assert!(failure.cause.starts_with("cannot build the request"), "{failure:?}");
    }

    /// Goal: what is signed names the path. Method: each way to travel, and the text of its request.
    #[test]
    fn a_request_names_its_path() {
        let path = |source: Option<&str>| {
            let source = source.map(|text| text.parse().unwrap());
            Some(PathSpec { destination: "203.0.113.9".parse().unwrap(), source })
        };
        let travel = |for_path: &[&str], round_trip, return_only| Travel {
            from: None,
            timeout: Duration::ZERO,
            for_path: for_path.iter().map(|text| parse_destination(text).unwrap()).collect(),
            session: None,
            round_trip,
            return_only,
        };
        for (travel, path, named) in [
            (travel(&[], false, false), path(None), "203.0.113.9"),
            (travel(&[], false, false), path(Some("192.0.2.1")), "203.0.113.9"),
            (travel(&[], false, false), None, ""),
            (travel(&[], true, false), path(None), ""),
            (travel(&[], true, false), path(Some("192.0.2.1")), "203.0.113.9, 192.0.2.1"),
            (travel(&[], false, true), path(Some("192.0.2.1")), "203.0.113.9, 192.0.2.1"),
            (travel(&["203.0.113.0/24", "10.0.0.1"], true, false), path(None), "203.0.113.0/24, 10.0.0.1"),
        ] {
            let text = anonymous(travel.bind(RequestBuilder::probe(&[]), path)).unwrap();
            assert_eq!(Message::parse(text.as_bytes()).unwrap().destinations().to_string(), named, "{text}");
        }
        assert!(parse_destination("host.example").is_err());
    }

    #[test]
    fn destinations_are_addresses_or_names() {
        let travel = |from: Option<&str>| Travel {
            from: from.map(|text| text.parse().unwrap()),
            timeout: Duration::ZERO,
            for_path: Vec::new(),
            session: None,
            round_trip: false,
            return_only: false,
        };
        let path = travel(Some("2001:db8::2")).path_to("2001:db8::1").unwrap();
        assert_eq!(path.destination.to_string(), "2001:db8::1");
        assert!(travel(Some("10.0.0.1")).path_to("2001:db8::1").unwrap_err().cause.contains("IP version"));
        assert!(travel(Some("127.0.0.1")).path_to("localhost").unwrap().destination.is_ipv4());
        assert!(travel(None).path_to("no such name").unwrap_err().cause.contains("no address"));
    }
}
