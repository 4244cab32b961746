// SPDX-License-Identifier: Apache-2.0
//! `netserv prove`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use netserv_authority::chain::Chain;
use netserv_authority::grant::user_of;
use netserv_authority::{checklist, digest_of, digest_of_grant};
use netserv_model::evidence::AddressProof;
use netserv_model::{Digest, Nonce, UserId};
use netserv_repository::{WELL_KNOWN, url_of};
use serde::Serialize;

use crate::exit::{Exit, Failure, OrFail};
use crate::output::Output;
use crate::{grants, keys};

/// Make proofs of your addresses, for nodes that do not know you
#[derive(Subcommand)]
pub enum Prove {
    /// Make a proof that the web server at an address confirms, for nodes with `address-class`
    Address {
        /// Address of a web server that answers HTTP on port 80 or HTTPS on port 443
        #[arg(value_name = "ADDRESS")]
        address: IpAddr,
        /// The file with your key [default: netserv/key.pem below $XDG_CONFIG_HOME]
        #[arg(long, value_name = "FILE", env = "NETSERV_KEY", hide_env_values = true)]
        key: Option<PathBuf>,
        /// Root folder of the web server, into which the command puts the answer
        #[arg(long, value_name = "FOLDER")]
        web_root: Option<PathBuf>,
        /// File to create, for --proof
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Write the content of an RPKI Signed Checklist (RFC 9323) over a grant, which the holder of the prefixes
    /// signs, for nodes with `rpki-class`
    Rpki {
        /// File with the grant, or with a chain of grants; the holder vouches for the first one
        #[arg(value_name = "GRANT")]
        grant: PathBuf,
        /// File to create: the checklist's content in DER, to be signed
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

/// What `-j` shows of what is to be signed.
#[derive(Serialize)]
struct ToSign {
    /// The prefixes that the checklist and its certificate are for.
    prefixes: Vec<String>,
    /// The grant's digest.
    digest: Digest,
}

/// What `-j` shows of a proof by an address.
#[derive(Serialize)]
struct Shown {
    /// The user by whose name the key signs requests.
    user: UserId,
    /// Where nodes ask.
    url: String,
    /// What has to lie there.
    answer: Digest,
}

impl Prove {
    /// Makes a proof.
    ///
    /// # Errors
    /// A file cannot be used or made.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let (address, key, web_root, out) = match self {
            Prove::Address { address, key, web_root, out } => (address, key, web_root, out),
            Prove::Rpki { grant, out } => return to_sign(&grant, &out, output),
        };
        let key = keys::public(&keys::read(&key.map_or_else(keys::default_path, Ok)?)?);
        let mut random = [0; 16];
        keys::fill_random(&mut random)?;
        let proof = AddressProof { address: address.to_canonical(), key, random: Nonce(random) };
        let (user, answer) = (user_of(&key), digest_of(&proof));
        let url = url_of(proof.address, &user);
        if let Some(root) = web_root {
            let file = root.join(WELL_KNOWN.trim_start_matches('/')).join(user.as_str());
            let folder = file.parent().unwrap_or(&root);
            let put = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, format!("{answer}\n")));
            put.or_fail(format!("cannot write {}", file.display()), "name the folder that the web server shows")?;
            output.note(format!("made {}", file.display()));
        } else {
            output.note(format!("have the web server answer {url} with {answer}"));
        }
        grants::write_new(&out, &[proof.to_string()], 0o600)?;
        output.note(format!("made {}, which is secret until it is used", out.display()));
        if output.is_json() {
            output.json(&Shown { user, url, answer })?;
        }
        Ok(Exit::Done)
    }
}

/// Writes what a holder of prefixes is to sign.
fn to_sign(grant: &Path, out: &Path, output: &mut Output) -> Result<Exit, Failure> {
    let texts = grants::read(grant)?;
    let fix = "name a file that `netserv grant` made";
    let chain = Chain::verify(&texts).or_fail(format!("{} holds no chain of grants", grant.display()), fix)?;
    let (prefixes, digest) = (&chain.root().prefixes, digest_of_grant(&texts[0]));
    let made = OpenOptions::new().write(true).create_new(true).open(out);
    let written = made.and_then(|mut file| file.write_all(&checklist::content(prefixes, &digest)));
    written.or_fail(format!("cannot make {}", out.display()), "choose another file with --out")?;
    let prefixes: Vec<String> = prefixes.iter().map(ToString::to_string).collect();
    output.note(format!("made {}, for {} and {digest}", out.display(), prefixes.join(", ")));
    if output.is_json() {
        output.json(&ToSign { prefixes, digest })?;
    }
    Ok(Exit::Done)
}
