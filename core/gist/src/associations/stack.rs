// SPDX-License-Identifier: Apache-2.0
//! Which protocols carry an association (RFC 5971 §5.7): TCP as it is, or with TLS on top.

use std::time::Duration;

use netserv_wire::gist::{PROTOCOL_FORWARDS_TCP, PROTOCOL_TLS, ProtocolOption, StackConfiguration, StackProposal};

use crate::api::{TlsPolicy, TransferAttributes};
use crate::limits;

/// The protocols of one association; the greater one protects better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stack {
    /// TCP as it is.
    Plain,
    /// TLS over TCP.
    Tls,
}

/// Where a node listens, for each stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) plain: u16,
    pub(crate) tls: u16,
}

impl Stack {
    /// Returns the stack as a profile has it, from top to bottom.
    fn profile(self) -> &'static [u8] {
        match self {
            Stack::Plain => &[PROTOCOL_FORWARDS_TCP],
            Stack::Tls => &[PROTOCOL_TLS, PROTOCOL_FORWARDS_TCP],
        }
    }

    fn port(self, ports: Ports) -> u16 {
        match self {
            Stack::Plain => ports.plain,
            Stack::Tls => ports.tls,
        }
    }
}

impl TlsPolicy {
    /// Returns the stacks that it allows, most wanted first.
    pub(crate) fn stacks(self) -> &'static [Stack] {
        match self {
            TlsPolicy::Off => &[Stack::Plain],
            TlsPolicy::Offered => &[Stack::Tls, Stack::Plain],
            TlsPolicy::Required => &[Stack::Tls],
        }
    }
}

impl TransferAttributes {
    /// Returns the least stack that a message may go over, if it goes over a connection.
    pub(crate) fn least_stack(self) -> Stack {
        if self.secure { Stack::Tls } else { Stack::Plain }
    }
}

/// Returns the stacks of a policy that are as good as one, most wanted first.
pub(crate) fn at_least(least: Stack, policy: TlsPolicy) -> &'static [Stack] {
    let stacks = policy.stacks();
    // The better ones stand first.
    let end = stacks.iter().position(|stack| *stack < least).unwrap_or(stacks.len());
    &stacks[..end]
}

/// Returns the proposal of stacks, most wanted first. In Responses they are those of the policy, whatever the Query has,
/// so that the echo in a Confirm can be checked without keeping anything (RFC 5971 §8.6).
pub(crate) fn proposal(stacks: &[Stack]) -> StackProposal {
    StackProposal { profiles: stacks.iter().map(|stack| stack.profile().to_vec()).collect() }
}

/// Returns the configuration that goes with [`proposal`]; a Response gives the ports to connect to. TLS has no option of
/// its own (RFC 5971 §5.7.3).
pub(crate) fn configuration(stacks: &[Stack], hold_time: Duration, ports: Option<Ports>) -> StackConfiguration {
    let option = |(profile, stack): (u8, &Stack)| ProtocolOption {
        protocol: PROTOCOL_FORWARDS_TCP,
        profile,
        port: ports.map(|ports| stack.port(ports)),
        forbidden: false,
    };
    StackConfiguration { hold_time, options: (1..=u8::MAX).zip(stacks).map(option).collect() }
}

/// Returns the short form that the first Confirm on an association has.
pub(crate) fn hold_only(hold_time: Duration) -> StackConfiguration {
    StackConfiguration { hold_time, options: Vec::new() }
}

/// Returns whether a stack is as good as one that the peer proposes: it may be better than asked for.
pub(crate) fn will_do(stack: Stack, proposal: &StackProposal) -> bool {
    [Stack::Plain, Stack::Tls].into_iter().any(|asked| asked <= stack && profiles(proposal, asked).next().is_some())
}

/// Returns the first of the stacks that a Response offers so that this node can use it, with the port.
pub(crate) fn choose(
    stacks: &[Stack],
    proposal: &StackProposal,
    configuration: &StackConfiguration,
) -> Option<(Stack, u16)> {
    if proposal.profiles.len() > limits::STACK_PROFILES_MAX {
        return None;
    }
    let offered = |stack| profiles(proposal, stack).find_map(|profile| port(stack, configuration, profile));
    stacks.iter().find_map(|&stack| Some((stack, offered(stack)?)))
}

/// Returns the port for one profile: an option of its own goes before one for all profiles.
fn port(stack: Stack, configuration: &StackConfiguration, profile: u8) -> Option<u16> {
    let option = |protocol| {
        let options = || configuration.options.iter().filter(move |option| option.protocol == protocol);
        options().find(|option| option.profile == profile).or_else(|| options().find(|option| option.profile == 0))
    };
    if stack.profile().iter().any(|protocol| option(*protocol).is_some_and(|option| option.forbidden)) {
        return None;
    }
    option(PROTOCOL_FORWARDS_TCP)?.port.filter(|&port| port != 0)
}

/// Returns the numbers, from 1, of the profiles that are a stack.
fn profiles(proposal: &StackProposal, stack: Stack) -> impl Iterator<Item = u8> + '_ {
    let is_it = move |(_, profile): &(u8, &Vec<u8>)| **profile == stack.profile();
    (1..=u8::MAX).zip(&proposal.profiles).filter(is_it).map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Options = [(u8, u8, Option<u16>, bool)];

    fn check(policy: TlsPolicy, profiles: &[&[u8]], options: &Options, expected: Option<(Stack, u16)>) {
        let proposal = StackProposal { profiles: profiles.iter().map(|profile| profile.to_vec()).collect() };
        let options = options.iter().map(|&(protocol, profile, port, forbidden)| ProtocolOption {
            protocol,
            profile,
            port,
            forbidden,
        });
        let configuration = StackConfiguration { hold_time: Duration::from_secs(30), options: options.collect() };
        assert_eq!(choose(policy.stacks(), &proposal, &configuration), expected, "{policy:?} {proposal:?}");
    }

    const TCP: u8 = PROTOCOL_FORWARDS_TCP;
    const TLS: u8 = PROTOCOL_TLS;
    const BOTH: &Options = &[(TCP, 1, Some(30000), false), (TCP, 2, Some(30001), false)];
    use TlsPolicy::{Off, Offered, Required};

    #[test]
    fn plain_tcp_is_chosen_wherever_it_stands() {
        check(Off, &[&[TCP], &[TLS, TCP]], BOTH, Some((Stack::Plain, 30000)));
        check(Off, &[&[TLS, TCP], &[TCP]], BOTH, Some((Stack::Plain, 30001)));
        check(Off, &[&[TCP]], &[(TCP, 0, Some(7), false)], Some((Stack::Plain, 7)));
        check(Off, &[&[TCP]], &[(TCP, 0, Some(7), false), (TCP, 1, Some(8), false)], Some((Stack::Plain, 8)));
    }

    #[test]
    fn tls_is_chosen_wherever_it_stands_and_may_be_chosen() {
        for policy in [Offered, Required] {
            check(policy, &[&[TCP], &[TLS, TCP]], BOTH, Some((Stack::Tls, 30001)));
            check(policy, &[&[TLS, TCP], &[TCP]], BOTH, Some((Stack::Tls, 30000)));
        }
        check(Offered, &[&[TCP]], BOTH, Some((Stack::Plain, 30000)));
        check(Required, &[&[TCP]], BOTH, None);
        check(Required, &[&[TCP, TLS]], BOTH, None);
        let forbidden = &[(TCP, 0, Some(7), false), (TLS, 1, None, true)];
        check(Offered, &[&[TLS, TCP], &[TCP]], forbidden, Some((Stack::Plain, 7)));
        check(Required, &[&[TLS, TCP], &[TCP]], forbidden, None);
    }

    #[test]
    fn what_cannot_be_used_is_not_chosen() {
        check(Off, &[&[TLS, TCP]], &[(TCP, 1, Some(30001), false)], None);
        check(Off, &[&[TCP]], &[(TCP, 1, Some(30000), true)], None);
        check(Off, &[&[TCP]], &[(TCP, 1, None, false)], None);
        check(Off, &[&[TCP]], &[(TCP, 1, Some(0), false)], None);
        check(Off, &[&[TCP]], &[], None);
        check(Off, &[], &[(TCP, 0, Some(7), false)], None);
    }

    #[test]
    fn our_own_offer_can_be_used() {
        let (hold, ports) = (Duration::from_secs(30), Ports { plain: 30_000, tls: 30_001 });
        for (policy, port) in [(Off, 30_000), (Offered, 30_001), (Required, 30_001)] {
            let (stacks, best) = (policy.stacks(), policy.stacks()[0]);
            let (proposal, configuration) = (proposal(stacks), configuration(stacks, hold, Some(ports)));
            assert!(configuration.fits(&proposal));
            assert_eq!(choose(stacks, &proposal, &configuration), Some((best, port)));
            assert!(will_do(Stack::Tls, &proposal));
            assert_eq!(will_do(Stack::Plain, &proposal), policy != Required);
        }
        assert!(hold_only(hold).options.is_empty());
    }
}
