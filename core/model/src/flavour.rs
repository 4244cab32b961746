// SPDX-License-Identifier: Apache-2.0
//! Flavours of code, and the processes that run them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::UserId;
use crate::ids::ParseIdError;

words! {
    serde
    /// A kind of code that a package may hold. Where several workers see a packet, they do so in this order.
    pub enum Flavour {
        /// A WebAssembly module.
        Wasm = "wasm",
        /// An OSGi bundle, which runs on a JVM.
        Osgi = "osgi",
    }
}

impl Flavour {
    /// Returns the words of some flavours, as `wasm, osgi`, or `none`.
    pub fn list(flavours: impl IntoIterator<Item = Flavour>) -> String {
        let words: Vec<&str> = flavours.into_iter().map(Flavour::as_str).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    }
}

impl FromStr for Flavour {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Flavour, ParseIdError> {
        Flavour::from_word(text).ok_or_else(|| ParseIdError::new(text, "a flavour (wasm or osgi)"))
    }
}

/// Names one worker: the process that runs all modules of one flavour for one user, in that user's container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId {
    /// Whose container it is in.
    pub user: UserId,
    /// What it runs.
    pub flavour: Flavour,
}

impl WorkerId {
    /// Names a user's worker of a flavour.
    pub fn new(user: UserId, flavour: Flavour) -> WorkerId {
        WorkerId { user, flavour }
    }
}

impl fmt::Display for WorkerId {
    /// Writes `janedoe (osgi)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.user, self.flavour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavours_have_one_spelling() {
        for flavour in Flavour::ALL {
            assert_eq!(flavour.to_string().parse::<Flavour>().unwrap(), flavour);
            assert_eq!(serde_json::to_string(&flavour).unwrap(), format!("\"{flavour}\""));
        }
        for bad in ["", "Wasm", "jar", "osgi "] {
            assert!(bad.parse::<Flavour>().is_err(), "{bad}");
        }
        assert_eq!(Flavour::list(Flavour::ALL), "wasm, osgi");
        assert_eq!(Flavour::list([]), "none");
    }

    #[test]
    fn wasm_comes_before_osgi() {
        let worker = |flavour| WorkerId::new("jane".parse().unwrap(), flavour);
        assert!(worker(Flavour::Wasm) < worker(Flavour::Osgi));
        assert_eq!(worker(Flavour::Osgi).to_string(), "jane (osgi)");
    }
}
