// SPDX-License-Identifier: Apache-2.0
//! Users whom no configuration names, and grants for them, by the command line.

use std::path::Path;

use anyhow::Result;
use netserv_authority::grant::user_of;
use netserv_model::UserId;
use netserv_model::api::RequestResult;

use crate::netns::Lab;
use crate::node::{LabUser, cli};

/// A user whom no configuration names.
pub struct Stranger {
    /// Its key.
    pub key: LabUser,
    /// Its name, which is the key's.
    pub user: UserId,
}

impl Stranger {
    /// Makes one with a new key.
    ///
    /// # Errors
    /// The key cannot be written.
    pub fn new(lab: &Lab, name: &str) -> Result<Stranger> {
        let key = lab.user(name, &[])?;
        let user = user_of(&key.public.parse()?);
        Ok(Stranger { key, user })
    }

    /// Signs a sample module, publishes it at the sender, and asks for it toward the receiver; `evidence` is in options of `netserv setup`.
    ///
    /// # Errors
    /// It is not built, or the nodes do not answer.
    pub fn set_up(&self, lab: &Lab, module: &str, filter: &str, evidence: &[&str]) -> Result<RequestResult> {
        let package = lab.package(module, &self.key)?;
        let (url, file, to) = (lab.publish("sender", &package)?, text(&package.path), lab.v4("receiver").to_string());
        self.request(lab, &["setup", &file, "--to", &to, "--url", &url, "--filter", filter], evidence)
    }

    /// Has the sender's host send a request.
    ///
    /// # Errors
    /// The nodes do not answer.
    pub fn request(&self, lab: &Lab, args: &[&str], evidence: &[&str]) -> Result<RequestResult> {
        lab.request("sender", &[args, &["--key", &text(&self.key.key)], evidence].concat())
    }

    /// Makes a proof by an address, which its web server confirms if its root is given.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn proof(&self, lab: &Lab, address: &str, web_root: Option<&Path>) -> Result<String> {
        let (out, key, root) = (new_file(lab, "proof")?, text(&self.key.key), web_root.map(text));
        let mut args = vec!["prove", "address", address, "--key", &key, "--out", &out];
        args.extend(root.iter().flat_map(|root| ["--web-root", root]));
        cli(&args)?;
        Ok(out)
    }

    /// Returns whether a node has a module of its.
    ///
    /// # Errors
    /// The node does not answer.
    pub fn is_on(&self, lab: &Lab, node: &str) -> Result<bool> {
        Ok(lab.modules(node)?.modules.iter().any(|status| status.user == self.user))
    }
}

/// Makes a grant in a new file, and returns its name; `from` is the grant that is passed on, and nothing for an issuer's own.
///
/// # Errors
/// It may not be made.
pub fn grant(lab: &Lab, by: &LabUser, to: &LabUser, from: Option<&str>, args: &[&str]) -> Result<String> {
    let (out, key) = (new_file(lab, "grant")?, text(&by.key));
    let made = from.map_or(vec!["grant", "issue"], |from| vec!["grant", "delegate", from]);
    cli(&[&made, &["--key", &key, "--to", &to.public, "--out", &out][..], args].concat())?;
    Ok(out)
}

/// Returns the name of a file that is not there yet.
fn new_file(lab: &Lab, kind: &str) -> Result<String> {
    let count = std::fs::read_dir(lab.dir())?.count();
    Ok(text(&lab.dir().join(format!("{count}.{kind}"))))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
