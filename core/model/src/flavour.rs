// SPDX-License-Identifier: Apache-2.0
//! The forms in which a module's code comes.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ParseIdError;

/// A form of a module's code, and with it the kind of worker that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Flavour {
    /// WebAssembly.
    Wasm,
    /// An OSGi bundle on a Java virtual machine.
    Osgi,
}

impl Flavour {
    /// Every flavour, in the order in which workers of one user see a packet.
    pub const ALL: [Flavour; 2] = [Flavour::Wasm, Flavour::Osgi];

    /// Returns the name in configurations, manifests and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Flavour::Wasm => "wasm",
            Flavour::Osgi => "osgi",
        }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Flavour {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Flavour, ParseIdError> {
        let known = Flavour::ALL.into_iter().find(|flavour| flavour.as_str() == text);
        known.ok_or_else(|| ParseIdError::new(text, "a flavour (wasm or osgi)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_one_name() {
        for flavour in Flavour::ALL {
            assert_eq!(flavour.to_string().parse(), Ok(flavour));
        }
        assert!("java".parse::<Flavour>().is_err());
        assert!(Flavour::Wasm < Flavour::Osgi);
    }
}
