// SPDX-License-Identifier: Apache-2.0
//! What this machine lets containers' networks be.

use std::fs;

use netserv_model::Filter;

use super::error::NetworkError;
use super::matching::{Intercept, ListenerPorts, Permits};
use super::namespace::Inside;
use super::transparent::{prepare_inside, transparent};
use super::{firewall, sockets};
use crate::doctor::Check;
use crate::sys;

/// Looks at the machine: makes a namespace with a firewall and drops it again, and reads the switches for forwarding.
/// `versions` says which versions of IP (4, 6) containers are to have addresses of.
pub fn doctor(versions: &[u8]) -> Vec<Check> {
    let mut checks = vec![namespaces(), interception()];
    for version in versions {
        let on = forwarding(*version);
        checks.push(Check {
            what: if *version == 4 { "forwarding of IPv4" } else { "forwarding of IPv6" },
            ok: on,
            found: if on { "it is on".to_owned() } else { "it is off, so no packet reaches a container".to_owned() },
            fix: if *version == 4 { "sysctl net.ipv4.ip_forward=1" } else { "sysctl net.ipv6.conf.all.forwarding=1" },
        });
    }
    checks
}

/// Returns whether the kernel forwards packets of this version of IP (4 or 6) in this network namespace.
pub fn forwarding(version: u8) -> bool {
    let path = match version {
        4 => "/proc/sys/net/ipv4/ip_forward",
        _ => "/proc/sys/net/ipv6/conf/all/forwarding",
    };
    fs::read_to_string(path).is_ok_and(|text| text.trim() != "0")
}

fn namespaces() -> Check {
    let tried = try_out();
    Check {
        what: "networks of containers",
        ok: tried.is_ok(),
        found: tried.map_or_else(|error| error.to_string(), |()| "a namespace with a firewall works".to_owned()),
        fix: "run as root (CAP_SYS_ADMIN, CAP_NET_ADMIN) on Linux 5.10 or later with nf_tables, and /proc/sys/net writable",
    }
}

fn interception() -> Check {
    let tried = try_interception();
    Check {
        what: "interception of TCP",
        ok: tried.is_ok(),
        found: tried.map_or_else(|error| error.to_string(), |()| "transparent sockets and their rules work".to_owned()),
        fix: "run as root on a kernel with nft_tproxy, nft_socket and policy routing (CONFIG_NFT_TPROXY, CONFIG_NFT_SOCKET, \
              CONFIG_IP_MULTIPLE_TABLES); modules that intercept nothing do not need it",
    }
}

fn try_out() -> Result<(), NetworkError> {
    Ok(Inside::make()?.rules.carry_out(&firewall::new(&Permits::default()))?)
}

/// Tries all that interception needs in a namespace of its own.
fn try_interception() -> Result<(), NetworkError> {
    let any: Filter = "tcp port 80".parse().expect("our own filter is one");
    let ports = ListenerPorts { v4: Some(1), v6: Some(1) };
    let permits =
        Permits { intercepts: vec![Intercept { filter: any, ports: Some(ports), refuse: true }], ..Permits::default() };
    let trial = move || {
        sys::unshare(libc::CLONE_NEWNET).map_err(NetworkError::kernel("make a network namespace (needs root)"))?;
        prepare_inside(false)?;
        let rules = sockets::rules()?;
        rules.carry_out(&firewall::new(&permits))?;
        transparent(false).map(drop).map_err(NetworkError::kernel("make a transparent socket"))
    };
    let thread = std::thread::Builder::new().name("network".to_owned()).spawn(trial);
    let thread = thread.map_err(NetworkError::kernel("start a thread"))?;
    thread.join().map_err(|_| NetworkError::Spec("the thread that tries interception crashed".to_owned()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_is_looked_at_once_and_has_its_fix() {
        let checks = doctor(&[4, 6]);
        assert_eq!(checks.len(), 4);
        assert!(checks.iter().all(|check| !check.found.is_empty() && !check.fix.is_empty()), "{checks:?}");
        assert_eq!(checks[2].ok, forwarding(4));
        assert_eq!(doctor(&[6]).len(), 3);
        assert_eq!(checks[1].ok, rustix::process::geteuid().is_root(), "{checks:?}");
    }
}
