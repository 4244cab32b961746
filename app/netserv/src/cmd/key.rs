// SPDX-License-Identifier: Apache-2.0
//! `netserv key`.

use std::path::PathBuf;

use clap::Subcommand;
use netserv_model::PublicKey;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::keys;
use crate::output::Output;

/// Make and show keys
#[derive(Subcommand)]
pub enum Key {
    /// Make an Ed25519 key in a new file (PKCS#8 PEM, mode 0600)
    New {
        /// The file [default: netserv/key.pem below $XDG_CONFIG_HOME]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Only show which file the command would create
        #[arg(long)]
        dry_run: bool,
    },
    /// Show a key's public half, in the form that node operators need
    Show {
        /// The file [default: netserv/key.pem below $XDG_CONFIG_HOME]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// What `-j` shows of a key.
#[derive(Serialize)]
struct Shown {
    file: PathBuf,
    /// Nothing in a dry run.
    public: Option<PublicKey>,
}

impl Key {
    /// Makes or shows a key.
    ///
    /// # Errors
    /// The file cannot be made or used.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self {
            Key::New { out, dry_run } => {
                let file = out.map_or_else(keys::default_path, Ok)?;
                let public = if dry_run { would_make(&file, output)? } else { make(&file, output)? };
                show(&Shown { file, public }, output)
            }
            Key::Show { file } => {
                let file = file.map_or_else(keys::default_path, Ok)?;
                let key = keys::read(&file)?;
                show(&Shown { file, public: Some(keys::public(&key)) }, output)
            }
        }
    }
}

fn make(file: &std::path::Path, output: &Output) -> Result<Option<PublicKey>, Failure> {
    let key = keys::generate()?;
    keys::write_new(file, &key)?;
    output.note(format!("made {}; give this line to node operators, or to who issues grants:", file.display()));
    Ok(Some(keys::public(&key)))
}

fn would_make(file: &std::path::Path, output: &Output) -> Result<Option<PublicKey>, Failure> {
    if file.symlink_metadata().is_ok() {
        return Err(keys::exists(file));
    }
    output.note(format!("would make {}", file.display()));
    Ok(None)
}

fn show(shown: &Shown, output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(shown)?;
    } else if let Some(public) = shown.public {
        output.line(public);
    }
    Ok(Exit::Done)
}
