// SPDX-License-Identifier: Apache-2.0
//! What listeners of a radio heard.

use std::process::Child;

use netserv_lab::listeners::Told;
use netserv_lab::netns::{Lab, program};
use netserv_lab::radio;

/// Waits for listeners, and decodes what they heard into a folder of the lab's.
pub fn heard(lab: &Lab, listeners: Child, folder: &str) -> Told {
    let told = radio::heard(listeners).unwrap();
    let sounds_ms = radio::decode(&lab.dir().join(folder)).unwrap();
    assert!(sounds_ms.len() >= told.served && program("netserv-lab").is_ok());
    let least_ms = sounds_ms.into_iter().min().unwrap_or(0);
    assert!(least_ms.abs_diff(told.heard_ms_least) < 200, "decoders hear {least_ms} ms: {told:?}");
    eprintln!("{folder}: {told:?}");
    told
}
