// SPDX-License-Identifier: Apache-2.0
//! Named bounds of the daemon's own; those that others share are in `netserv_model::limits`.

use std::ops::RangeInclusive;
use std::time::Duration;

use netserv_model::limits::SERVER_STOP_TIME_MAX;

/// Events of the node's own threads, clients and programs that wait for the control loop, or for the thread of workers; senders
/// wait for room.
pub const EVENTS_MAX: usize = 4096;
/// Datagrams of signaling, and ICMP errors about them, that wait for the control loop; further ones wait in the socket, and are
/// lost if there is no room.
pub const DATAGRAMS_WAITING_MAX: usize = 256;
/// Events of connections with signaling peers that wait for the control loop, with 64 KiB at most in each; what peers send
/// beyond waits in their connections.
pub const CONNECTION_EVENTS_MAX: usize = 256;
/// How long a signaling peer may take no byte of what waits for it; then its connection is cut.
pub const STREAM_STALL_TIME: Duration = Duration::from_secs(30);
/// How long a signaling connection that is to be closed may take to send the rest.
pub const STREAM_CLOSE_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes that the kernel takes for a signaling connection before it sends them; it keeps about twice as many in mind.
pub const STREAM_SEND_BUFFER_BYTES: u32 = 128 * 1024;
/// Packets of one trace that wait to be told of; further ones are counted and lost.
pub const TRACED_WAITING_MAX: usize = 1024;
/// Bytes that are told of one packet.
pub const TRACE_BYTES_MAX: usize = 2048;
/// How long a trace runs at most.
pub const TRACE_TIME_MAX: Duration = Duration::from_secs(3600);
/// Lines of one trace that wait for its client to read them, beside what the kernel holds.
pub const TRACE_LINES_WAITING_MAX: usize = 64;
/// News for requesters that are kept for `GET /v1/events`; older ones are forgotten.
pub const EVENTS_KEPT_MAX: usize = 1024;
/// News that go to one client at a time.
pub const EVENTS_BATCH: usize = 64;
/// Clients that follow the news at a time, fewer than the API's clients; further ones are refused.
pub const EVENT_FOLLOWERS_MAX: usize = 64;
/// How long a client that follows the news may take to read a batch; a slower one is cut off.
pub const EVENT_READ_TIME_MAX: Duration = Duration::from_secs(30);
/// Processor time that code may take to compile, unless the operator says otherwise.
pub const COMPILE_CPU_TIME: Duration = Duration::from_secs(60);
/// Seconds of processor time for that at most.
pub const COMPILE_CPU_S_MAX: u64 = 3600;
/// How many times its processor time a compilation may take: a machine that is busy does not make code slow.
pub const BUILD_TIME_PER_CPU_TIME: u32 = 10;
/// Compilations in the quick lane at a time, one of each user: they share the processors. In the two others there is one.
pub const QUICK_COMPILES_MAX: usize = 16;
/// Processor time that code may take to compile in the quick lane; then it goes to the middle one.
pub const QUICK_COMPILE_CPU_TIME: Duration = Duration::from_millis(500);
/// Memory that it may take there; with more, it begins anew in the middle one.
pub const QUICK_COMPILE_MEMORY_BYTES: u64 = 128 * 1024 * 1024;
/// A compiler that waits for so long has as much of its lane's time as one that works for a moment.
pub const BUILD_WAIT_PER_CPU_TIME: u32 = 40;
/// Processor time that code may take to compile in the middle lane; then it goes to the slow one.
pub const MIDDLE_COMPILE_CPU_TIME: Duration = Duration::from_secs(2);
/// After this time, what a user's code took to compile counts half.
pub const SPENT_HALF_LIFE: Duration = Duration::from_secs(60);
/// Compilations of one user that keep their place though nobody waits for them any more; the one that was given up first goes.
pub const ABANDONED_BUILDS_PER_USER_MAX: usize = 16;
/// How long they keep it.
pub const ABANDONED_BUILD_TIME: Duration = Duration::from_secs(600);
/// Downloads under way; further ones wait for their turn, but the first of each user.
pub const FETCHES_MAX: usize = 64;
/// With those of users who have one: one for each request that the node works on.
pub const FETCHES_OF_ALL_MAX: usize = netserv_model::limits::REQUESTS_PENDING_MAX;
/// Downloads of one user under way.
pub const FETCHES_PER_USER_MAX: usize = 4;
/// Packages whose code can be found without asking the store again; when there are more, those not in use are forgotten
/// and a new SETUP fetches them from the store.
pub const CODE_PATHS_MAX: usize = 4096;
/// Media jobs that wait for their turn; further ones are refused.
pub const MEDIA_WAITING_MAX: usize = 64;
/// Media jobs of one user that wait, for each that it may have at a time.
pub const MEDIA_WAITING_PER_JOB_MAX: usize = 4;
/// How long a media job waits for its turn before it is refused.
pub const MEDIA_WAITING_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a media job may take less than so small a part of a processor, before it may have to give way to another user's that waits.
pub const MEDIA_SLOW_TIME: Duration = Duration::from_secs(5);
/// The part is one of so many.
pub const MEDIA_WORK_SHARE: u32 = 10;
/// Frames to one worker that wait for it to read others; one that has more of them is killed.
pub const FRAMES_UNSENT_MAX: usize = 64;
/// States of modules that are about to be loaded; with one more, the first goes of the user with the most. A module whose state gave
/// way before it is loaded is refused.
pub const STATES_HELD_MAX: usize = 64;
/// Of one user; with one more, its first goes.
pub const STATES_HELD_PER_USER_MAX: usize = 4;
/// How long a worker may take to write a module's state and to say that it has.
pub const STATE_SAY_TIME_MAX: Duration = Duration::from_secs(20);
/// Control messages to the modules of one worker of which it has not said whether they are in an inbox; further ones are refused.
pub const TELLS_UNANSWERED_MAX: usize = 64;
/// Messages of the modules of one worker that go to the controller within a second: a burst of each of them.
pub const NOTIFIES_PER_WORKER_MAX: u32 = 320;
/// How long a worker without room for frames is left alone.
pub const SEND_PAUSE: Duration = Duration::from_millis(50);
/// How long a worker may take to write what its modules keep, when it is told to end.
pub const END_WAIT: Duration = Duration::from_secs(1);
/// How long one with server modules may take, whose requests end before.
pub const SERVER_END_WAIT: Duration = SERVER_STOP_TIME_MAX.saturating_add(END_WAIT);
/// How long the network of a worker with server modules outlives it: the kernel still has the ends of answers.
pub const NETWORK_REST: Duration = Duration::from_secs(1);
/// Frames taken from one worker at a time, before other events have their turn.
pub const FRAMES_BATCH: usize = 256;
/// Frames read of one that has ended, more than its socket holds.
pub const FRAMES_LAST: usize = 16 * FRAMES_BATCH;
/// Lines of one container that go into the log in a second.
pub const LOG_LINES_PER_CONTAINER_MAX: u32 = 1000;
/// Compositions of services' parts that the node remembers; over it, it forgets all and composes anew what it needs.
pub const COMPOSITIONS_MAX: usize = 128;
/// How long the flows of an interception that ended still lead to the container, for the ends of its connections: longer
/// than a worker takes to end them.
pub const INTERCEPT_REST: Duration = Duration::from_secs(8);
/// Batches of sockets for intercepted connections that a container gets at once, of
/// [`DESCRIPTORS_MAX`](netserv_wire::container::frames::DESCRIPTORS_MAX) each.
pub const SOCKET_BATCHES_BURST: f64 = 192.0;
/// Such batches per second in the long run.
pub const SOCKET_BATCHES_PER_SECOND: f64 = 64.0;
/// How long a change of filters waits for all packet threads to know it, if somebody goes on with what modules saw until then.
pub const LANES_ANSWER_TIME_MAX: Duration = Duration::from_millis(100);
/// Filters of packets that each user may have although others have many: beyond these, all together have half of the node's.
pub const FILTERS_EACH: usize = 16;
/// Changes of filters that wait and are made as one change of the forwarding plane.
pub const FILTER_CHANGES_BATCH: usize = 64;
/// Runs of modules and workers whose last count was not read; over it, none begins.
pub const METERED_MAX: usize = 1 << 18;
/// Networks that are gone and whose last count was not read; over it, none is made.
pub const METERED_NETWORKS_MAX: usize = 1 << 14;
/// Connections of programs that are NSLPs, or want to be; further ones are turned away.
pub const APPLICATION_CONNECTIONS_MAX: usize = 16;
/// Bytes of one line of such a program: a message of the greatest size in hex, and the rest.
pub const APPLICATION_LINE_BYTES_MAX: usize = 40 * 1024;
/// Calls of one program in a second; its further lines wait in its socket.
pub const APPLICATION_CALLS_PER_SECOND: u32 = 500;
/// Calls that it may have saved up.
pub const APPLICATION_CALLS_BURST: u32 = 100;
/// Calls that a call counts for that may look at every route of a program.
pub const APPLICATION_WIDE_CALL: u32 = 25;
/// Malformed lines that a program may have sent more than good ones; with one more its connection ends.
pub const APPLICATION_MALFORMED_MAX: u32 = 32;
/// Events that wait for a program to read them, beside what the kernel holds; with one more its connection ends.
pub const APPLICATION_EVENTS_MAX: usize = 1024;
/// How long a program may take to register, once it has connected.
pub const APPLICATION_REGISTER_WAIT: Duration = Duration::from_secs(5);
/// How long one line may wait for a program to read others.
pub const APPLICATION_WRITE_WAIT: Duration = Duration::from_secs(10);
/// Bytes of a file with certificates or a key for signaling over TLS.
pub const TLS_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Names of who may be a signaling peer.
pub const PEERS_MAX: usize = 4096;
/// Prefixes of flows in one entry of that list.
pub const PEER_FLOWS_MAX: usize = 64;
/// Rules of which nodes next to this one are inside of the domain.
pub const NEIGHBOURS_MAX: usize = 1024;
/// How long a TLS handshake with a signaling peer may take, once TCP has connected.
pub const TLS_HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(3);
/// TLS handshakes under way with peers that connected, for each version of IP; one more ends the oldest.
pub const TLS_HANDSHAKES_MAX: usize = 128;
/// TLS handshakes under way with one IPv4 address or IPv6 network (64 bits) that connected; one more ends its oldest.
pub const TLS_HANDSHAKES_PER_PEER_MAX: usize = 8;
/// The shortest time between two warnings about TLS handshakes that failed; all are counted.
pub const TLS_WARNING_INTERVAL: Duration = Duration::from_secs(5);
/// Records that wait and are written in one transaction.
pub const STORE_BATCH: usize = 64;
/// How often conditions of the operator's services are looked at.
pub const CONDITIONS_INTERVAL: Duration = Duration::from_millis(100);
/// Looks of which the rate of a condition is made, the first and the last counted.
pub const RATE_LOOKS: usize = 4;
/// Services of the operator's.
pub const SERVICES_MAX: usize = 16;
/// Conditions of one service.
pub const SERVICE_CONDITIONS_MAX: usize = 8;
/// Seconds for which a service may stay after its conditions are over.
pub const SERVICE_HOLD_S_MAX: u64 = 86_400;
/// The lease of an operator's service, which is renewed after half of it; what the node's restart leaves behind ends by it.
pub const SERVICE_LEASE: Duration = Duration::from_secs(120);
/// How often it is looked whether the package of a service is still there.
pub const PACKAGE_LOOK: Duration = Duration::from_secs(600);
/// How long a service that is refused waits until it is asked for again; twice as long each further time, up to the longest.
pub const SERVICE_RETRY_FIRST: Duration = Duration::from_secs(1);
/// The longest such wait.
pub const SERVICE_RETRY_MAX: Duration = Duration::from_secs(60);
/// Entries that wait for the thread that writes the audit log; further ones are lost and counted.
pub const AUDIT_WAITING_MAX: usize = 4096;
/// Entries that are written before they are made sure on the disk.
pub const AUDIT_BATCH: usize = 256;
/// How long the thread waits before it tries again to write what could not be written, and how often it looks what was left out.
pub const AUDIT_LOOK: Duration = Duration::from_secs(1);
/// Bytes of one file of the audit log, unless the operator says otherwise.
pub const AUDIT_FILE_BYTES: u64 = 8 * 1024 * 1024;
/// The least that the operator may say.
pub const AUDIT_FILE_BYTES_MIN: u64 = 64 * 1024;
/// The most.
pub const AUDIT_FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Files of the audit log, unless the operator says otherwise; the oldest is deleted for a new one.
pub const AUDIT_FILES: usize = 8;
/// The least that the operator may say.
pub const AUDIT_FILES_MIN: usize = 2;
/// The most.
pub const AUDIT_FILES_MAX: usize = 256;
/// Sessions of which the audit log knows by what evidence they last asked; over it, all are forgotten, and each has one line more.
pub const AUDIT_SESSIONS_MAX: usize = 4096;
/// Clients that read the audit log at a time; further ones are refused.
pub const AUDIT_READERS_MAX: usize = 8;
/// Addresses of containers that are chosen again after all others only, since users let go of them; the oldest is like others then.
pub const ADDRESSES_RESTING_MAX: usize = 1024;
/// Threads that check requests' checklists, or wait for their turn: one for each question of the controller's. It gives a question up
/// after 8 s, which a hanging disk does not. Further questions are refused.
pub const CACHE_READERS_MAX: usize = 64;
/// Of these, the threads that read the cache of the RPKI at a time: a holder may publish so much that a check takes a processor for a while.
pub const CACHE_READERS_AT_A_TIME: usize = 2;
/// How long a request waits for its turn: as long as the controller waits for the answer.
pub const CACHE_TURN_TIME_MAX: Duration = Duration::from_secs(8);
/// Threads that look again at what rights depend on: one of the controller's, and others that it gave up.
pub const CACHE_READERS_AGAIN_MAX: usize = 4;
/// Seconds for which the cache of the RPKI may be good after its relying party ran.
pub const RPKI_AGE_MAX_S: RangeInclusive<u64> = 60..=31 * 24 * 3600;
/// Issuers who may vouch for users.
pub const ISSUERS_MAX: usize = 64;
/// Seconds after which a revocation list may be asked for again.
pub const REVOCATIONS_EVERY_S: RangeInclusive<u64> = 1..=300;
/// Seconds for which one may be good after it was made.
pub const REVOCATIONS_AGE_MAX_S: RangeInclusive<u64> = 60..=31 * 24 * 3600;
