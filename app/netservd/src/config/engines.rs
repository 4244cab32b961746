// SPDX-License-Identifier: Apache-2.0
//! The engines' settings, as the configuration has them.

use std::net::IpAddr;
use std::time::Duration;

use netserv_node::gist;
use netserv_node::{ApplicationConfig, NodeConfig};

use super::Config;
use super::role::Role;

/// Returns the settings of a node with this identity and these addresses.
pub fn node(config: &Config, identity: &[u8; 16], own_addresses: Vec<IpAddr>) -> NodeConfig {
    NodeConfig { gist: gist(config, identity), nslp: nslp(config, own_addresses), applications: applications(config) }
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
    gist.routes_max = config.signaling.routes_max;
    gist.routes_per_site_max = config.signaling.routes_max / 2;
    gist.associations_max = config.signaling.associations_max;
    gist.associations_per_peer_max = config.signaling.associations_per_peer_max;
    gist.refreshes_per_second = config.signaling.refreshes_per_second;
    if config.signaling.state_without_confirm {
        gist.policy = gist::ResponderPolicy::Immediate;
    }
    gist
}

fn applications(config: &Config) -> ApplicationConfig {
    let signaling = &config.signaling;
    ApplicationConfig { router_alert: signaling.router_alert, nslps: signaling.applications.named() }
}

fn nslp(config: &Config, own_addresses: Vec<IpAddr>) -> netserv_node::nslp::Config {
    let mut nslp = netserv_node::nslp::Config::new(config.node.clone(), config.signaling.nslp_id);
    nslp.host_only = config.role == Role::Host;
    nslp.own_addresses = own_addresses;
    nslp.beside.clone_from(&config.signaling.neighbours);
    nslp.leases_max = config.signaling.leases_max;
    nslp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_sessions_can_be_configured() {
        let text = "[signaling]\nroutes-max = 2000000\nleases-max = 1000000\nassociations-max = 4096\n\
                    associations-per-peer-max = 64\nrefreshes-per-second = 20000";
        let large = node(&Config::parse(text).unwrap(), &[1; 16], Vec::new());
        assert_eq!((large.gist.routes_max, large.gist.routes_per_site_max), (2_000_000, 1_000_000));
        assert_eq!((large.gist.associations_max, large.gist.associations_per_peer_max), (4096, 64));
        assert_eq!((large.gist.refreshes_per_second, large.nslp.leases_max), (20_000, 1_000_000));
        let default = node(&Config::default(), &[1; 16], Vec::new());
        assert_eq!(default.gist.routes_max, gist::limits::ROUTES_MAX);
        assert_eq!(default.nslp.leases_max, netserv_node::nslp::limits::LEASES_MAX);
    }
}
