// SPDX-License-Identifier: Apache-2.0
//! Named counters for the node's metrics.

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Datagrams handed in.
    DatagramsReceived,
    /// Datagrams whose magic number is wrong.
    BadMagic,
    /// Messages that could not be read.
    Malformed,
    /// Datagrams that went on as they came.
    Passed,
    /// Datagrams that went on with one hop less, since their NSLP is not hosted here.
    Bypassed,
    /// Queries and Data in Q-mode that went on with one hop less, since their NSLP does not want this node to be the peer.
    Declined,
    /// Queries that an NSLP was asked about.
    QueriesHeld,
    /// Queries whose NSLP was not asked, since too many waited, or said nothing in time.
    QueriesUndecided,
    /// Datagrams for this node's NSLP that went on as they came, since the node has no address that their sender reaches.
    NoAddress,
    /// Queries answered.
    QueriesAnswered,
    /// Queries dropped by the limiter.
    QueriesLimited,
    /// Queries about flows that do not come from where they came.
    QueriesForeign,
    /// Queries and offenders that name an address to which nobody may send: unspecified, multicast, broadcast, loopback, or
    /// this node's own.
    Unanswerable,
    /// Datagrams dropped since there were too many to unproven addresses of one network.
    UnprovenLimited,
    /// Datagrams with Data that no routing state vouches for, dropped since there were too many.
    DataLimited,
    /// Queries of this node that came back to it.
    QueriesLooped,
    /// Queries sent, copies included.
    QueriesSent,
    /// Queries given up without an answer.
    QueriesUnanswered,
    /// ICMP errors that bring back no Query that waits for an answer.
    IcmpUnmatched,
    /// ICMP errors that say why a Query of this node does not get to its destination.
    IcmpHindered,
    /// Responses without a matching Query.
    ResponsesUnsolicited,
    /// Messages whose source is not the address that they name.
    SourceMismatch,
    /// Confirms accepted.
    ConfirmsAccepted,
    /// Confirms with a cookie that is not ours, or too old.
    CookiesRefused,
    /// Confirms that echo another stack proposal than ours.
    StacksRefused,
    /// Handshakes about flows about which the peer of the connection may not speak.
    FlowsForbidden,
    /// Routes refused because a table was full.
    RoutesRefused,
    /// Routes that ran out.
    RoutesExpired,
    /// NSLP messages delivered.
    DataDelivered,
    /// NSLP messages sent.
    DataSent,
    /// NSLP messages that could not be delivered.
    DataDropped,
    /// Data not sent, since it is not to leave the domain and the peer is outside.
    DataKeptInside,
    /// Error messages received.
    ErrorsReceived,
    /// Errors about lost state that were not believed, since they did not come over TLS as their peer's messages do.
    ErrorsDoubted,
    /// Error messages sent.
    ErrorsSent,
    /// Errors that were not sent, for there were too many.
    ErrorsLimited,
    /// Datagrams of this node dropped by the limiter.
    DatagramsLimited,
    /// Transmits dropped because nobody polled them.
    TransmitsDropped,
    /// Events dropped because nobody polled them.
    EventsDropped,
    /// Associations opened from here.
    AssociationsOpened,
    /// Associations opened by peers.
    AssociationsAccepted,
    /// Associations refused because a table was full.
    AssociationsRefused,
    /// Associations of peers ended before they were proven, in favour of newer ones.
    AssociationsEvicted,
    /// Associations that broke.
    AssociationsFailed,
    /// Handshakes that found an association to share.
    AssociationsReused,
    /// Messages other than NSLP messages that were lost, since their connection has too much that is not written.
    StreamsFull,
    /// Associations with TLS that opened, from here and by peers.
    AssociationsSecured,
}

impl Counter {
    /// Every counter, in order.
    pub const ALL: [Counter; 47] = [
        Counter::DatagramsReceived,
        Counter::BadMagic,
        Counter::Malformed,
        Counter::Passed,
        Counter::Bypassed,
        Counter::Declined,
        Counter::QueriesHeld,
        Counter::QueriesUndecided,
        Counter::NoAddress,
        Counter::QueriesAnswered,
        Counter::QueriesLimited,
        Counter::QueriesForeign,
        Counter::Unanswerable,
        Counter::UnprovenLimited,
        Counter::DataLimited,
        Counter::QueriesLooped,
        Counter::QueriesSent,
        Counter::QueriesUnanswered,
        Counter::IcmpUnmatched,
        Counter::IcmpHindered,
        Counter::ResponsesUnsolicited,
        Counter::SourceMismatch,
        Counter::ConfirmsAccepted,
        Counter::CookiesRefused,
        Counter::StacksRefused,
        Counter::FlowsForbidden,
        Counter::RoutesRefused,
        Counter::RoutesExpired,
        Counter::DataDelivered,
        Counter::DataSent,
        Counter::DataDropped,
        Counter::DataKeptInside,
        Counter::ErrorsReceived,
        Counter::ErrorsDoubted,
        Counter::ErrorsSent,
        Counter::ErrorsLimited,
        Counter::DatagramsLimited,
        Counter::TransmitsDropped,
        Counter::EventsDropped,
        Counter::AssociationsOpened,
        Counter::AssociationsAccepted,
        Counter::AssociationsRefused,
        Counter::AssociationsEvicted,
        Counter::AssociationsFailed,
        Counter::AssociationsReused,
        Counter::StreamsFull,
        Counter::AssociationsSecured,
    ];

    /// Returns the counter's name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Counter::DatagramsReceived => "datagrams_received",
            Counter::BadMagic => "bad_magic",
            Counter::Malformed => "malformed",
            Counter::Passed => "passed",
            Counter::Bypassed => "bypassed",
            Counter::Declined => "declined",
            Counter::QueriesHeld => "queries_held",
            Counter::QueriesUndecided => "queries_undecided",
            Counter::NoAddress => "no_address",
            Counter::QueriesAnswered => "queries_answered",
            Counter::QueriesLimited => "queries_limited",
            Counter::QueriesForeign => "queries_foreign",
            Counter::Unanswerable => "unanswerable",
            Counter::UnprovenLimited => "unproven_limited",
            Counter::DataLimited => "data_limited",
            Counter::QueriesLooped => "queries_looped",
            Counter::QueriesSent => "queries_sent",
            Counter::QueriesUnanswered => "queries_unanswered",
            Counter::IcmpUnmatched => "icmp_unmatched",
            Counter::IcmpHindered => "icmp_hindered",
            Counter::ResponsesUnsolicited => "responses_unsolicited",
            Counter::SourceMismatch => "source_mismatch",
            Counter::ConfirmsAccepted => "confirms_accepted",
            Counter::CookiesRefused => "cookies_refused",
            Counter::StacksRefused => "stacks_refused",
            Counter::FlowsForbidden => "flows_forbidden",
            Counter::RoutesRefused => "routes_refused",
            Counter::RoutesExpired => "routes_expired",
            Counter::DataDelivered => "data_delivered",
            Counter::DataSent => "data_sent",
            Counter::DataDropped => "data_dropped",
            Counter::DataKeptInside => "data_kept_inside",
            Counter::ErrorsReceived => "errors_received",
            Counter::ErrorsDoubted => "errors_doubted",
            Counter::ErrorsSent => "errors_sent",
            Counter::ErrorsLimited => "errors_limited",
            Counter::DatagramsLimited => "datagrams_limited",
            Counter::TransmitsDropped => "transmits_dropped",
            Counter::EventsDropped => "events_dropped",
            Counter::AssociationsOpened => "associations_opened",
            Counter::AssociationsAccepted => "associations_accepted",
            Counter::AssociationsRefused => "associations_refused",
            Counter::AssociationsEvicted => "associations_evicted",
            Counter::AssociationsFailed => "associations_failed",
            Counter::AssociationsReused => "associations_reused",
            Counter::StreamsFull => "streams_full",
            Counter::AssociationsSecured => "associations_secured",
        }
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
