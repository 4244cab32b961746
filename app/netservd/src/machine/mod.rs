// SPDX-License-Identifier: Apache-2.0
//! What the machine has for a node, and what an earlier node left on it. Nothing here knows of events.

/// Writes a line to standard output, as [`say::line`].
macro_rules! say {
    ($($text:tt)*) => {
        $crate::machine::say::line(format_args!($($text)*))
    };
}

pub mod about;
pub mod doctor;
pub mod jvm;
pub mod keeper;
pub mod load;
pub mod maintenance;
pub mod notices;
pub mod own_addresses;
pub mod plane;
pub mod processor;
pub mod runtimes;
pub mod say;
pub mod session_secret;
pub mod state_dir;
pub mod sweep;
