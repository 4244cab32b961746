// SPDX-License-Identifier: Apache-2.0
//! `netserv prove`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Subcommand;
use netserv_authority::digest_of;
use netserv_authority::grant::user_of;
use netserv_model::evidence::AddressProof;
use netserv_model::{Digest, Nonce, UserId};
use netserv_repository::{WELL_KNOWN, url_of};
use serde::Serialize;

use crate::exit::{Exit, Failure, OrFail};
use crate::output::Output;
use crate::{grants, keys};

/// Prove to nodes that do not know you that an address is yours
#[derive(Subcommand)]
pub enum Prove {
    /// Make a proof that the web server at an address has to confirm, for nodes with `address-class`
    Address {
        /// The address, which answers by HTTP on port 80 or by HTTPS on port 443
        #[arg(value_name = "ADDRESS")]
        address: IpAddr,
        /// The file with your key [default: netserv/key.pem below $XDG_CONFIG_HOME]
        #[arg(long, value_name = "FILE", env = "NETSERV_KEY", hide_env_values = true)]
        key: Option<PathBuf>,
        /// The folder that the web server shows at `/`: put the answer there
        #[arg(long, value_name = "FOLDER")]
        web_root: Option<PathBuf>,
        /// The file to make, for --proof
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

/// What `-j` shows of a proof.
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
        let Prove::Address { address, key, web_root, out } = self;
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
