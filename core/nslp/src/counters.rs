// SPDX-License-Identifier: Apache-2.0
//! What is counted.

netserv_model::counts! {
    /// Counts since the node started.
    #[derive(Copy)]
    pub struct Counters {
        /// Requests of local clients.
        requests_local = "requests_local",
        /// Requests of peers, duplicates not counted.
        requests_received = "requests_received",
        /// Requests that were there before.
        requests_duplicate = "requests_duplicate",
        /// Requests refused because too many are pending.
        requests_over_limit = "requests_over_limit",
        /// Requests answered early, since others' had no room: the slowest of whoever had the most.
        requests_displaced = "requests_displaced",
        /// Requests from outside of the domain that its operator does not take.
        requests_not_taken = "requests_not_taken",
        /// Requests that follow another path than their users named, as copies do.
        requests_misdirected = "requests_misdirected",
        /// Requests that were not let out of the domain.
        requests_kept_inside = "requests_kept_inside",
        /// Requests sent again after a connection broke.
        requests_resent = "requests_resent",
        /// Copies of requests that were sent by datagram to a node that takes no connections.
        requests_retransmitted = "requests_retransmitted",
        /// Exchanges answered because their time ran out.
        requests_timed_out = "requests_timed_out",
        /// Responses of the next node that completed an exchange.
        responses_received = "responses_received",
        /// Responses that came too late, or that nobody waits for.
        responses_late = "responses_late",
        /// Responses that did not get to the previous node.
        responses_lost = "responses_lost",
        /// Controller's reports that came too late.
        reports_late = "reports_late",
        /// Messages that are no good request or response.
        messages_bad = "messages_bad",
        /// Messages that GIST could not vouch for, or that travel the wrong way.
        messages_unexpected = "messages_unexpected",
        /// Texts of which some parts never came.
        assemblies_lost = "assemblies_lost",
        /// SETUPs sent again to look at their path.
        paths_looked_at = "paths_looked_at",
        /// Paths that were found to lead to another node.
        paths_moved = "paths_moved",
        /// Leases whose path is not followed, since there are too many.
        leases_over_limit = "leases_over_limit",
        /// Leases that ended early and were forgotten for later ones, so that news of nodes further on are dropped.
        ended_over_limit = "ended_over_limit",
        /// Requests sent to nodes off the path.
        copies_sent = "copies_sent",
        /// Requests that came to this node off their path.
        copies_received = "copies_received",
        /// Neighbours that were not asked, since there were too many messages to nodes off paths.
        copies_over_limit = "copies_over_limit",
        /// TEARs that went to a node that the path left.
        tears_sent = "tears_sent",
        /// TEARs that ended a lease here.
        tears_received = "tears_received",
        /// Requests sent back to their requesters, as the last node.
        returns_sent = "returns_sent",
        /// Requests that were not sent back, since there were too many.
        returns_over_limit = "returns_over_limit",
        /// Requests that are not sent back, since nobody who is believed saw that their flow's source asked.
        returns_not_taken = "returns_not_taken",
        /// Previous nodes that were asked whether their path still leads here.
        questions_sent = "questions_sent",
        /// Leases whose previous nodes were asked later, since there were too many questions.
        questions_over_limit = "questions_over_limit",
        /// News for requesters that were sent or passed on.
        news_sent = "news_sent",
        /// News for requesters that were too many, or about nothing that is here.
        news_dropped = "news_dropped",
    }
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
    /// Leases that ended before their time, kept for news of nodes further on.
    pub ended: usize,
}
