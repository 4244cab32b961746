// SPDX-License-Identifier: Apache-2.0
//! `netserv module sign`.

use std::path::PathBuf;

use clap::Args;
use netserv_model::{Digest, PublicKey};
use netserv_repository::package;

use super::files::{read_package, refused, write};
use super::inspect;
use crate::exit::{Exit, Failure};
use crate::keys;
use crate::output::Output;

/// Sign a package
///
/// Adds a signature. Existing signatures and the package's digest do not change.
#[derive(Args)]
pub struct Sign {
    /// The package
    #[arg(value_name = "FILE.nsm")]
    file: PathBuf,
    /// The key file [default: netserv/key.pem below $XDG_CONFIG_HOME]
    #[arg(long, value_name = "FILE", env = "NETSERV_KEY", hide_env_values = true)]
    key: Option<PathBuf>,
    /// Write the signed package here instead of over the file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Only show which key would sign which package
    #[arg(long)]
    dry_run: bool,
}

impl Sign {
    /// Signs the package.
    ///
    /// # Errors
    /// The package or the key cannot be used.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let key = keys::read(&self.key.map_or_else(keys::default_path, Ok)?)?;
        let mut package = read_package(&self.file)?;
        let public = keys::public(&key);
        if self.dry_run {
            return would_sign(public, package.digest(), output);
        }
        package::sign(&mut package, &key).map_err(|refusal| refused(&self.file, &refusal))?;
        let out = self.out.unwrap_or(self.file);
        write(&out, &package)?;
        inspect::show(&out, &package, output)
    }
}

fn would_sign(key: PublicKey, digest: Digest, output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(&serde_json::json!({ "would_sign": digest, "public": key }))?;
    } else {
        output.line(format!("would sign  {digest}\nwith        {key}"));
    }
    Ok(Exit::Done)
}
