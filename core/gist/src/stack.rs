// SPDX-License-Identifier: Apache-2.0
//! Which protocols carry an association (RFC 5971 §5.7.1): TCP, as it is.

use std::time::Duration;

use netserv_wire::gist::{PROTOCOL_FORWARDS_TCP, ProtocolOption, StackConfiguration, StackProposal};

use crate::limits;

/// Returns the stacks that this node offers, in Queries and Responses alike. Fixed by policy, so that the echo in a
/// Confirm can be checked without keeping anything (RFC 5971 §8.6).
pub(crate) fn proposal() -> StackProposal {
    StackProposal { profiles: vec![PLAIN_TCP.to_vec()] }
}

/// Returns the configuration that goes with [`proposal`]; a Response gives the port to connect to.
pub(crate) fn configuration(hold_time: Duration, port: Option<u16>) -> StackConfiguration {
    let option = ProtocolOption { protocol: PROTOCOL_FORWARDS_TCP, profile: 1, port, forbidden: false };
    StackConfiguration { hold_time, options: vec![option] }
}

/// Returns the short form that the first Confirm on an association has.
pub(crate) fn hold_only(hold_time: Duration) -> StackConfiguration {
    StackConfiguration { hold_time, options: Vec::new() }
}

/// Returns whether plain TCP is among the stacks that will do for the peer.
pub(crate) fn takes_plain_tcp(proposal: &StackProposal) -> bool {
    plain_tcp_profiles(proposal).next().is_some()
}

/// Returns the port for the first profile of a Response that this node can use.
pub(crate) fn choose(proposal: &StackProposal, configuration: &StackConfiguration) -> Option<u16> {
    if proposal.profiles.len() > limits::STACK_PROFILES_MAX {
        return None;
    }
    plain_tcp_profiles(proposal).find_map(|profile| port(configuration, profile))
}

/// Returns the port for one profile: an option of its own goes before one for all profiles.
fn port(configuration: &StackConfiguration, profile: u8) -> Option<u16> {
    let tcp = || configuration.options.iter().filter(|option| option.protocol == PROTOCOL_FORWARDS_TCP);
    let option = tcp().find(|option| option.profile == profile).or_else(|| tcp().find(|option| option.profile == 0))?;
    option.port.filter(|&port| !option.forbidden && port != 0)
}

/// Returns the numbers, from 1, of the profiles that are TCP and nothing else.
fn plain_tcp_profiles(proposal: &StackProposal) -> impl Iterator<Item = u8> + '_ {
    (1..=u8::MAX).zip(&proposal.profiles).filter(|(_, profile)| ***profile == PLAIN_TCP).map(|(number, _)| number)
}

const PLAIN_TCP: [u8; 1] = [PROTOCOL_FORWARDS_TCP];

#[cfg(test)]
mod tests {
    use netserv_wire::gist::PROTOCOL_TLS;

    use super::*;

    fn check(profiles: &[&[u8]], options: &[(u8, u8, Option<u16>, bool)], expected: Option<u16>) {
        let proposal = StackProposal { profiles: profiles.iter().map(|profile| profile.to_vec()).collect() };
        let options = options.iter().map(|&(protocol, profile, port, forbidden)| ProtocolOption {
            protocol,
            profile,
            port,
            forbidden,
        });
        let configuration = StackConfiguration { hold_time: Duration::from_secs(30), options: options.collect() };
        assert_eq!(choose(&proposal, &configuration), expected);
    }

    const TCP: u8 = PROTOCOL_FORWARDS_TCP;

    #[test]
    fn plain_tcp_is_chosen_wherever_it_stands() {
        check(
            &[&[TCP], &[PROTOCOL_TLS, TCP]],
            &[(TCP, 1, Some(30000), false), (TCP, 2, Some(30001), false)],
            Some(30000),
        );
        check(
            &[&[PROTOCOL_TLS, TCP], &[TCP]],
            &[(TCP, 1, Some(30001), false), (TCP, 2, Some(30000), false)],
            Some(30000),
        );
        check(&[&[TCP]], &[(TCP, 0, Some(7), false)], Some(7));
        check(&[&[TCP]], &[(TCP, 0, Some(7), false), (TCP, 1, Some(8), false)], Some(8));
    }

    #[test]
    fn what_cannot_be_used_is_not_chosen() {
        check(&[&[PROTOCOL_TLS, TCP]], &[(TCP, 1, Some(30001), false)], None);
        check(&[&[TCP]], &[(TCP, 1, Some(30000), true)], None);
        check(&[&[TCP]], &[(TCP, 1, None, false)], None);
        check(&[&[TCP]], &[(TCP, 1, Some(0), false)], None);
        check(&[&[TCP]], &[], None);
        check(&[], &[(TCP, 0, Some(7), false)], None);
    }

    #[test]
    fn our_own_offer_can_be_used() {
        let hold = Duration::from_secs(30);
        assert_eq!(choose(&proposal(), &configuration(hold, Some(30000))), Some(30000));
        assert!(takes_plain_tcp(&proposal()));
        assert!(hold_only(hold).options.is_empty());
    }
}
