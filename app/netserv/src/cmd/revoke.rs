// SPDX-License-Identifier: Apache-2.0
//! `netserv grant revoke`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use netserv_authority::chain::Chain;
use netserv_authority::digest_of_grant;
use netserv_authority::revocations::{Revocations, RevocationsError};
use netserv_model::{PublicKey, UnixTime};

use crate::exit::{Exit, Failure, OrFail};
use crate::output::Output;
use crate::request::now;
use crate::units::parse_duration;
use crate::{grants, keys, revocation_lists};

/// Revoke grants: write the next revocation list, which nodes fetch from the URL that their operators configured
///
/// Without grants and keys, the new list differs from the old one only in its time. Nodes reject a list that is
/// older than their operators allow, by default a day, so run this command several times a day.
#[derive(Args)]
pub struct Revoke {
    /// Files with grants to revoke: the last grant of each file. Grants that have ended are left out of the list
    #[arg(value_name = "FILE")]
    grants: Vec<PathBuf>,
    /// Keys to revoke, separated by commas. Grants to or by these keys become invalid
    #[arg(long = "user-key", value_name = "KEY", value_delimiter = ',')]
    user_keys: Vec<PublicKey>,
    /// File with the list; the command replaces it by the next list
    #[arg(long, value_name = "FILE")]
    list: PathBuf,
    /// Validity of the list, from now on
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_duration)]
    valid_for: Duration,
    /// Number of the list, if the previous list is lost [default: one more than the previous list, or 1]
    #[arg(long, value_name = "N")]
    number: Option<u64>,
    /// The file with your key [default: netserv/key.pem below $XDG_CONFIG_HOME]
    #[arg(long, value_name = "FILE", env = "NETSERV_KEY", hide_env_values = true)]
    key: Option<PathBuf>,
}

impl Revoke {
    /// Makes the next list.
    ///
    /// # Errors
    /// A key or file cannot be used, a grant is somebody else's, or the list is full.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let key = keys::read(&self.key.map_or_else(keys::default_path, Ok)?)?;
        let _lock = revocation_lists::lock(&self.list)?;
        let before = revocation_lists::read(&self.list)?;
        let own = [Some(keys::public(&key)), before.as_ref().map(|before| before.iss)];
        let next = next_number(before.as_ref(), self.number)?;
        let (grants, keys) = before.map(|before| (before.grants, before.keys)).unwrap_or_default();
        let (iat, exp) = (now().0 / 1000, (now() + self.valid_for).0 / 1000);
        let mut list = Revocations { iss: keys::public(&key), iat, exp, number: next, grants, keys };
        for file in &self.grants {
            let texts = grants::read(file)?;
            let chain =
                Chain::verify(&texts).or_fail(format!("grants in {}", file.display()), "name grants of yours")?;
            if !own.contains(&Some(chain.root().iss)) {
                let cause = format!("the first grant in {} is signed by {}", file.display(), chain.root().iss);
                return Err(Failure::new(cause, "take back grants of yours, with the key that signed them"));
            }
            let digest = digest_of_grant(texts.last().expect("a chain has grants"));
            if now() < chain.time().1 {
                list.grants.insert(digest);
            } else {
                output.note(format!("the grant in {} has ended, so the list need not name it", file.display()));
                list.grants.remove(&digest);
            }
        }
        list.keys.extend(self.user_keys);
        let fix = "take back keys of others, not your own, and give a --valid-for of a second or more; \
                   leave grants out that have ended, by naming their files";
        list.check().or_fail("cannot make this revocation list", fix)?;
        let text = list.clone().sign(&key);
        Revocations::verify(&text).or_fail("cannot make this revocation list", fix)?;
        revocation_lists::replace(&self.list, &text)?;
        output.note(format!("made {}; put it where nodes fetch it", self.list.display()));
        show(&list, output)
    }
}

/// Shows a list.
///
/// # Errors
/// It cannot be written as JSON.
pub fn show(list: &Revocations, output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(list)?;
        return Ok(Exit::Done);
    }
    let Revocations { iss, iat, exp, number, grants, keys } = list;
    output.line(format!("list       {number} of {iss}"));
    output.line(format!("  time     {} to {}", UnixTime::from_secs(*iat), UnixTime::from_secs(*exp)));
    grants.iter().for_each(|grant| output.line(format!("  grant    {grant}")));
    keys.iter().for_each(|key| output.line(format!("  key      {key}")));
    if grants.is_empty() && keys.is_empty() {
        output.line("  takes nothing back");
    }
    Ok(Exit::Done)
}

/// Checks a list as nodes do; its signature is good.
///
/// # Errors
/// It is of another issuer, or not good now.
pub fn check(list: &Revocations, issuer: Option<PublicKey>) -> Result<(), Failure> {
    if let Some(issuer) = issuer.filter(|issuer| *issuer != list.iss) {
        let cause = format!("the revocation list is signed by {}, not by {issuer}", list.iss);
        return Err(Failure::new(cause, revocation_lists::FIX));
    }
    let until = UnixTime::from_secs(list.exp);
    if now() >= until {
        let cause = format!("the revocation list was good until {until}");
        return Err(Failure::new(cause, "make the next one with `netserv grant revoke`"));
    }
    Ok(())
}

fn next_number(before: Option<&Revocations>, wanted: Option<u64>) -> Result<u64, Failure> {
    let before = before.map(|before| before.number);
    let least = before.map_or(Some(1), |before| before.checked_add(1));
    match (wanted, least) {
        (None, Some(least)) => Ok(least),
        (Some(wanted), Some(least)) if wanted >= least => Ok(wanted),
        (_, _) => {
            let in_force = before.unwrap_or_default();
            let error = RevocationsError::Older { number: wanted.unwrap_or(u64::MAX), in_force };
            Err(Failure::new(error.to_string(), "give a higher --number"))
        }
    }
}
