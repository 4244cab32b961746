// SPDX-License-Identifier: Apache-2.0
//! What is counted.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the node started.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Returns every counter with its name.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }
    };
}

counters! {
    /// Requests of local clients.
    requests_local,
    /// Requests of peers, duplicates not counted.
    requests_received,
    /// Requests that were there before.
    requests_duplicate,
    /// Requests refused because too many are pending.
    requests_over_limit,
    /// Requests answered early, since others' had no room: the slowest of whoever had the most.
    requests_displaced,
    /// Requests from outside of the domain that its operator does not take.
    requests_not_taken,
    /// Requests that were not let out of the domain.
    requests_kept_inside,
    /// Requests sent again after a connection broke.
    requests_resent,
    /// Copies of requests that were sent by datagram to a node that takes no connections.
    requests_retransmitted,
    /// Exchanges answered because their time ran out.
    requests_timed_out,
    /// Responses of the next node that completed an exchange.
    responses_received,
    /// Responses that came too late, or that nobody waits for.
    responses_late,
    /// Responses that did not get to the previous node.
    responses_lost,
    /// Controller's reports that came too late.
    reports_late,
    /// Messages that are no good request or response.
    messages_bad,
    /// Messages that GIST could not vouch for, or that travel the wrong way.
    messages_unexpected,
    /// Texts of which some parts never came.
    assemblies_lost,
    /// SETUPs sent again to look at their path.
    paths_looked_at,
    /// Paths that were found to lead to another node.
    paths_moved,
    /// Leases whose path is not followed, since there are too many.
    leases_over_limit,
    /// Requests sent to nodes off the path.
    copies_sent,
    /// Requests that came to this node off their path.
    copies_received,
    /// Neighbours that were not asked, since there were too many messages to nodes off paths.
    copies_over_limit,
    /// TEARs that went to a node that the path left.
    tears_sent,
    /// TEARs that ended a lease here.
    tears_received,
    /// Requests sent back to their requesters, as the last node.
    returns_sent,
    /// Requests that were not sent back, since there were too many.
    returns_over_limit,
    /// Requests that are not sent back, since nobody who is believed saw that their flow's source asked.
    returns_not_taken,
    /// Previous nodes that were asked whether their path still leads here.
    questions_sent,
    /// Leases whose previous nodes were asked later, since there were too many questions.
    questions_over_limit,
    /// News for requesters that were sent or passed on.
    news_sent,
    /// News for requesters that were too many, or about nothing that is here.
    news_dropped,
}

/// How much state there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCounts {
    /// Exchanges that are not answered yet.
    pub pending: usize,
    /// Exchanges kept for duplicates.
    pub finished: usize,
    /// Sessions with an exchange.
    pub sessions: usize,
    /// Texts of which some parts are still to come.
    pub assemblies: usize,
    /// Leases whose paths are followed.
    pub leases: usize,
}
