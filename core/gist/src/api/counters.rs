// SPDX-License-Identifier: Apache-2.0
//! Named counters for the node's metrics.

netserv_model::words! {
    /// What is counted.
    pub enum Counter {
        /// Datagrams handed in.
        DatagramsReceived = "datagrams_received",
        /// Datagrams whose magic number is wrong.
        BadMagic = "bad_magic",
        /// Messages that could not be read.
        Malformed = "malformed",
        /// Datagrams that went on as they came.
        Passed = "passed",
        /// Datagrams that went on with one hop less, since their NSLP is not hosted here.
        Bypassed = "bypassed",
        /// Queries and Data in Q-mode that went on with one hop less, since their NSLP does not want this node to be the peer.
        Declined = "declined",
        /// Queries that an NSLP was asked about.
        QueriesHeld = "queries_held",
        /// Queries whose NSLP was not asked, since too many waited, or said nothing in time.
        QueriesUndecided = "queries_undecided",
        /// Datagrams for this node's NSLP that went on as they came, since the node has no address that their sender reaches.
        NoAddress = "no_address",
        /// Queries answered.
        QueriesAnswered = "queries_answered",
        /// Queries dropped by the limiter.
        QueriesLimited = "queries_limited",
        /// Queries about flows that do not come from where they came.
        QueriesForeign = "queries_foreign",
        /// Queries and offenders that name an address to which nobody may send: unspecified, multicast, broadcast, loopback, or
        /// this node's own.
        Unanswerable = "unanswerable",
        /// Datagrams dropped since there were too many to unproven addresses of one network.
        UnprovenLimited = "unproven_limited",
        /// Datagrams with Data that no routing state vouches for, dropped since there were too many.
        DataLimited = "data_limited",
        /// Queries of this node that came back to it.
        QueriesLooped = "queries_looped",
        /// Queries sent, copies included.
        QueriesSent = "queries_sent",
        /// Queries given up without an answer.
        QueriesUnanswered = "queries_unanswered",
        /// ICMP errors that bring back no Query that waits for an answer.
        IcmpUnmatched = "icmp_unmatched",
        /// ICMP errors that say why a Query of this node does not get to its destination.
        IcmpHindered = "icmp_hindered",
        /// Responses without a matching Query.
        ResponsesUnsolicited = "responses_unsolicited",
        /// Messages whose source is not the address that they name.
        SourceMismatch = "source_mismatch",
        /// Confirms accepted.
        ConfirmsAccepted = "confirms_accepted",
        /// Confirms with a cookie that is not ours, or too old.
        CookiesRefused = "cookies_refused",
        /// Confirms that echo another stack proposal than ours.
        StacksRefused = "stacks_refused",
        /// Handshakes about flows about which the peer of the connection may not speak.
        FlowsForbidden = "flows_forbidden",
        /// Routes refused because a table was full.
        RoutesRefused = "routes_refused",
        /// Routes that ran out.
        RoutesExpired = "routes_expired",
        /// NSLP messages delivered.
        DataDelivered = "data_delivered",
        /// NSLP messages sent.
        DataSent = "data_sent",
        /// NSLP messages that could not be delivered.
        DataDropped = "data_dropped",
        /// Data not sent, since it is not to leave the domain and the peer is outside.
        DataKeptInside = "data_kept_inside",
        /// Error messages received.
        ErrorsReceived = "errors_received",
        /// Errors about lost state that were not believed, since they did not come over TLS as their peer's messages do.
        ErrorsDoubted = "errors_doubted",
        /// Error messages sent.
        ErrorsSent = "errors_sent",
        /// Errors that were not sent, for there were too many.
        ErrorsLimited = "errors_limited",
        /// Datagrams of this node dropped by the limiter.
        DatagramsLimited = "datagrams_limited",
        /// Transmits dropped because nobody polled them.
        TransmitsDropped = "transmits_dropped",
        /// Events dropped because nobody polled them.
        EventsDropped = "events_dropped",
        /// Associations opened from here.
        AssociationsOpened = "associations_opened",
        /// Associations opened by peers.
        AssociationsAccepted = "associations_accepted",
        /// Associations refused because a table was full.
        AssociationsRefused = "associations_refused",
        /// Associations of peers ended before they were proven, in favour of newer ones.
        AssociationsEvicted = "associations_evicted",
        /// Associations that broke.
        AssociationsFailed = "associations_failed",
        /// Handshakes that found an association to share.
        AssociationsReused = "associations_reused",
        /// Messages other than NSLP messages that were lost, since their connection has too much that is not written.
        StreamsFull = "streams_full",
        /// Associations with TLS that opened, from here and by peers.
        AssociationsSecured = "associations_secured",
    }
}

/// The counters of one engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Counters {
    /// Returns one counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Returns all counters with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Counter::ALL.into_iter().map(|counter| (counter.as_str(), self.get(counter)))
    }

    pub(crate) fn add(&mut self, counter: Counter) {
        self.0[counter as usize] += 1;
    }
}

impl Default for Counters {
    fn default() -> Counters {
        Counters([0; Counter::ALL.len()])
    }
}

/// How much state there is at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCounts {
    /// Rows toward peers that this node queried, handshakes under way included.
    pub querying: usize,
    /// Rows toward peers that queried this node.
    pub responding: usize,
    /// Messaging associations.
    pub associations: usize,
    /// Peers that have a handle.
    pub peers: usize,
    /// Bytes of messages that wait.
    pub pending_bytes: usize,
}
