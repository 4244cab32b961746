// SPDX-License-Identifier: Apache-2.0
//! The engines' settings, as the configuration has them.

use std::net::IpAddr;
use std::time::Duration;

use netserv_node::NodeConfig;
use netserv_node::gist;

use super::Config;
use super::role::Role;

/// Returns the settings of a node with this identity and these addresses.
pub fn node(config: &Config, identity: &[u8; 16], own_addresses: Vec<IpAddr>) -> NodeConfig {
    NodeConfig { gist: gist(config, identity), nslp: nslp(config, own_addresses) }
}

fn gist(config: &Config, identity: &[u8; 16]) -> gist::Config {
    let mut gist = gist::Config::new(identity.to_vec());
    gist.hosted.insert(config.signaling.nslp_id, config.signaling.router_alert);
    gist.tcp_port = config.signaling.tcp_port;
    let tls = &config.signaling.tls;
    gist.tls = match (tls.is_on(), tls.require) {
        (false, _) => gist::TlsPolicy::Off,
        (true, false) => gist::TlsPolicy::Offered,
        (true, true) => gist::TlsPolicy::Required,
    };
    gist.tls_port = tls.port;
    gist.query_budget = Duration::from_millis(config.signaling.last_node_timeout_ms);
    if config.signaling.state_without_confirm {
        gist.policy = gist::ResponderPolicy::Immediate;
    }
    gist
}

fn nslp(config: &Config, own_addresses: Vec<IpAddr>) -> netserv_node::nslp::Config {
    let mut nslp = netserv_node::nslp::Config::new(config.node.clone(), config.signaling.nslp_id);
    nslp.host_only = config.role == Role::Host;
    nslp.own_addresses = own_addresses;
    nslp
}
