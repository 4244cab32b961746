// SPDX-License-Identifier: Apache-2.0
//! `netserv grant`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use ipnet::IpNet;
use netserv_authority::chain::Chain;
use netserv_authority::grant::{Grant as Claims, user_of};
use netserv_model::{PortRange, PublicKey, UnixTime, UserId};
use serde::Serialize;

use crate::cmd::revoke;
use crate::exit::{Exit, Failure, OrFail};
use crate::output::Output;
use crate::request::now;
use crate::units::parse_duration;
use crate::{grants, keys, revocation_lists};

/// Issue and check grants, which let other users run modules for some of your addresses on nodes whose operators
/// trust you
#[derive(Subcommand)]
pub enum Grant {
    /// Issue a grant. Nodes accept it if their operators list your key (`[[issuer]]`)
    Issue {
        #[command(flatten)]
        what: What,
        /// Start the grant this long before now, for nodes whose clocks are behind
        #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_duration)]
        backdate: Duration,
    },
    /// Pass on a part of your own grant to another key
    Delegate {
        /// The file with your grant
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        what: What,
    },
    Revoke(revoke::Revoke),
    /// Show the contents of grants or of a revocation list, without checking signatures
    Show {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Check the signatures, order and times of grants or of a revocation list, as nodes do
    Verify {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Key that must have signed the first grant, or the list
        #[arg(long, value_name = "KEY")]
        issuer: Option<PublicKey>,
    },
}

/// What is granted.
#[derive(Args)]
pub struct What {
    /// Key of the new holder, as `netserv key show` prints it
    #[arg(long, value_name = "KEY")]
    to: PublicKey,
    /// Prefixes, separated by commas; one end of each filter must lie in one of them [default: all prefixes of the
    /// grant before]
    #[arg(long = "prefix", value_name = "PREFIX", value_delimiter = ',')]
    prefixes: Vec<IpNet>,
    /// Ports that filters may name, separated by commas, such as 5060 or 16384-32767 [default: all ports of the
    /// grant before]
    #[arg(long = "port", value_name = "PORTS", value_delimiter = ',')]
    ports: Vec<PortRange>,
    /// Maximum number of modules on one node
    #[arg(long, value_name = "N")]
    modules_max: Option<u32>,
    /// How many times the grant may be passed on in a chain
    #[arg(long, value_name = "N", default_value_t = 0)]
    delegations: u8,
    /// Validity of the grant, from now on
    #[arg(long = "for", value_name = "TIME", default_value = "30d", value_parser = parse_duration)]
    time: Duration,
    /// The file with your key [default: netserv/key.pem below $XDG_CONFIG_HOME]
    #[arg(long, value_name = "FILE", env = "NETSERV_KEY", hide_env_values = true)]
    key: Option<PathBuf>,
    /// The file to make [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What `-j` shows of a chain.
#[derive(Serialize)]
struct Shown<'a> {
    /// The user by whose name the last key signs requests.
    user: UserId,
    grants: Vec<&'a Claims>,
}

const FIX: &str = "ask who gave you the grants for ones that hold";

impl Grant {
    /// Makes, shows or checks grants.
    ///
    /// # Errors
    /// A key or file cannot be used, or grants do not hold.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self {
            Grant::Issue { what, backdate } => {
                if what.prefixes.is_empty() {
                    let cause = "a grant is for prefixes, and none is named";
                    return Err(Failure::new(cause, "give --prefix").with_exit(Exit::Usage));
                }
                let from = UnixTime(now().0.saturating_sub(u64::try_from(backdate.as_millis()).unwrap_or(u64::MAX)));
                what.make(Vec::new(), None, from, output)
            }
            Grant::Delegate { file, what } => {
                let before = grants::read(&file)?;
                let chain = Chain::verify(&before).or_fail(format!("grants in {}", file.display()), FIX)?;
                what.make(before, Some(&chain), chain.time().0, output)
            }
            Grant::Revoke(revoke) => revoke.run(output),
            Grant::Show { file } => {
                if let Some(list) = revocation_lists::find(&file)? {
                    return revoke::show(&list, output);
                }
                let texts = grants::read(&file)?;
                let chain = Chain::parse(&texts).or_fail(format!("grants in {}", file.display()), FIX)?;
                show(&chain, output)
            }
            Grant::Verify { file, issuer } => {
                if let Some(list) =
                    revocation_lists::find(&file)?.map_or(Ok(None), |_| revocation_lists::read(&file))?
                {
                    revoke::check(&list, issuer)?;
                    return revoke::show(&list, output);
                }
                let texts = grants::read(&file)?;
                let chain = Chain::verify(&texts).or_fail(format!("grants in {}", file.display()), FIX)?;
                check(&chain, issuer)?;
                show(&chain, output)
            }
        }
    }
}

impl What {
    fn make(
        self,
        mut texts: Vec<String>,
        before: Option<&Chain>,
        from: UnixTime,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let key = keys::read(&self.key.map_or_else(keys::default_path, Ok)?)?;
        let last = before.map(Chain::last);
        let or_all_of = |given: Vec<IpNet>| match (given.is_empty(), last) {
            (true, Some(last)) => last.prefixes.clone(),
            (true, None) | (false, _) => given,
        };
        let ports = match (self.ports.is_empty(), last) {
            (true, Some(last)) => last.ports.clone(),
            (true, None) | (false, _) => self.ports,
        };
        let wanted = (now() + self.time).0.div_ceil(1000);
        let exp = last.map_or(wanted, |last| wanted.min(last.exp));
        let claims = Claims {
            iss: keys::public(&key),
            sub: self.to,
            nbf: from.0 / 1000,
            exp,
            prefixes: or_all_of(self.prefixes),
            ports,
            modules_max: self.modules_max,
            delegations: self.delegations,
        };
        texts.push(claims.sign(&key));
        let fix = "keep within the grant before (`netserv grant show`), and sign with the key that it is for";
        let chain = Chain::verify(&texts).or_fail("cannot make this grant", fix)?;
        if self.time < Duration::from_secs(1) || now() >= chain.time().1 {
            return Err(Failure::new("the grant would have ended", "give a longer --for, and a grant that holds"));
        }
        match &self.out {
            Some(file) => {
                grants::write_new(file, &texts, 0o644)?;
                output.note(format!("made {}: {}", file.display(), chain.last()));
            }
            None => texts.iter().for_each(|text| output.line(text)),
        }
        Ok(Exit::Done)
    }
}

fn check(chain: &Chain, issuer: Option<PublicKey>) -> Result<(), Failure> {
    let root = chain.root().iss;
    if let Some(issuer) = issuer.filter(|issuer| *issuer != root) {
        return Err(Failure::new(format!("the first grant is signed by {root}, not by {issuer}"), FIX));
    }
    let ((from, until), now) = (chain.time(), now());
    if now < from {
        return Err(Failure::new(format!("the grant begins at {from}, it is {now} here"), "wait, or set the clock"));
    }
    if now >= until {
        return Err(Failure::new(format!("the grant ended at {until}"), FIX));
    }
    Ok(())
}

fn show(chain: &Chain, output: &mut Output) -> Result<Exit, Failure> {
    let user = user_of(&chain.last().sub);
    if output.is_json() {
        output.json(&Shown { user, grants: chain.grants().collect() })?;
        return Ok(Exit::Done);
    }
    output.line(format!("user       {user}"));
    for Claims { iss, sub, prefixes, ports, modules_max, delegations, nbf, exp } in chain.grants() {
        let list = |items: Vec<String>, none: &str| match items.is_empty() {
            true => none.to_owned(),
            false => items.join(", "),
        };
        output.line(format!("from       {iss}"));
        output.line(format!("  to       {sub}"));
        output.line(format!("  prefixes {}", list(prefixes.iter().map(ToString::to_string).collect(), "none")));
        output.line(format!("  ports    {}", list(ports.iter().map(ToString::to_string).collect(), "all")));
        output.line(format!("  time     {} to {}", UnixTime::from_secs(*nbf), UnixTime::from_secs(*exp)));
        let modules = modules_max.map_or("as many as the node lets".to_owned(), |most| most.to_string());
        output.line(format!("  modules  {modules}"));
        output.line(format!("  delegations left: {delegations}"));
    }
    Ok(Exit::Done)
}
