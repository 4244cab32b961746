// SPDX-License-Identifier: Apache-2.0
//! What the tests of `nfqueue` share, over one lane or several.

use netserv_plane::{DriverConfig, DriverError};
use netserv_plane_nfqueue as nfqueue;

use crate::common::Chain;
use crate::common::contract::{self, ROUTER};
use crate::common::lanes::{InLanes, Lanes};

/// All lanes of the driver.
pub(crate) type Nfqueue = Lanes<nfqueue::Nfqueue>;

impl InLanes for nfqueue::Nfqueue {
    fn open_lanes(config: &DriverConfig, lanes: usize) -> Result<Vec<nfqueue::Nfqueue>, DriverError> {
        nfqueue::Nfqueue::open_lanes(config, lanes)
    }
}

pub(crate) fn config(instance: &str) -> DriverConfig {
    DriverConfig::new(instance)
}

pub(crate) fn open(instance: &str, filters: &[&str]) -> Nfqueue {
    contract::with_filters(Nfqueue::open(&config(instance)).unwrap(), filters)
}

pub(crate) fn rules(chain: &Chain) -> String {
    rules_of(chain, ROUTER)
}

/// Returns our rules in a namespace.
pub(crate) fn rules_of(chain: &Chain, k: usize) -> String {
    let all = chain.run(k, &["nft", "list", "ruleset"]);
    let tables = all.split_inclusive("\n}\n").filter(|table| table.lines().any(|line| line.contains(" netserv-")));
    tables.collect()
}

/// Returns whether it is a rule that leads to a queue.
pub(crate) fn leads_to_queue(rule: &str) -> bool {
    rule.contains("NFQUEUE") || rule.contains(" queue ")
}
