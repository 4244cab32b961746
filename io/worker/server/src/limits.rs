// SPDX-License-Identifier: Apache-2.0
//! Named bounds of server parts. What a module may use beyond these is in its own `ModuleLimits`.

use std::time::Duration;

/// Sockets of one module for datagrams in batches.
pub const UDP_SOCKETS_MAX: usize = 64;
/// Datagrams in one batch.
pub const UDP_BATCH_MAX: usize = 32;
/// Bytes that each datagram of a batch has room for.
pub const UDP_DATAGRAM_BYTES_MAX: usize = 65_536;
/// Bytes that a datagram can carry over IPv4.
pub const UDP_PAYLOAD_BYTES_MAX: usize = 65_507;
/// Bytes that a version of a module tells the next one of a connection.
pub const TCP_STATE_BYTES_MAX: usize = 64 * 1024;
/// How long connections are handed over; those that are not by then stay with the old version. A call that has begun goes on as long as it
/// may: one that was broken off would cost its version.
pub const TCP_HAND_OVER_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a module that fails closed keeps connections of a chain from going past it after it has failed; by then the container's
/// rules do.
pub const FAILED_TAKER_TIME: Duration = Duration::from_secs(10);
/// How long a component may take to say its state, or to take it.
pub const STATE_CALL_TIME_MAX: Duration = Duration::from_secs(5);
/// Characters of why a component does not say or take its state that its user is told.
pub const STATE_WORDS_CHARS_MAX: usize = 256;

/// Instances of components at a time, of all server modules of a container together, however much memory it has; one request
/// has one. Each takes 8 GiB of addresses.
pub const INSTANCES_MAX: u32 = 2048;
/// Memory that an instance takes which waits and does nothing, in bytes, with its connection: 85 KiB were measured.
pub const INSTANCE_BYTES_LEAST: u64 = 96 << 10;
/// The memory that a container has unless the node says otherwise, in bytes.
pub const CONTAINER_BYTES: u64 = 96 << 20;
/// All instances of components have one of so many parts of the container's memory.
pub const INSTANCES_MEMORY_SHARE: u64 = 2;
/// Memory of each instance that does not count there, in bytes: most of what one starts with is never touched.
pub const INSTANCE_BYTES_FREE: u64 = 2 << 20;
/// Instances of core modules in one instance of a component.
pub const CORE_INSTANCES_PER_COMPONENT_MAX: u32 = 128;
/// Memories of one instance of a component, which a chain of components has several of.
pub const MEMORIES_PER_COMPONENT_MAX: u32 = 16;
/// Tables of one instance of a component.
pub const TABLES_PER_COMPONENT_MAX: u32 = 64;
/// As [`CORE_INSTANCES_PER_COMPONENT_MAX`], for the store's own count.
pub const CORE_INSTANCES_MAX: usize = CORE_INSTANCES_PER_COMPONENT_MAX as usize;
/// As [`MEMORIES_PER_COMPONENT_MAX`], for the store's own count.
pub const MEMORIES_MAX: usize = MEMORIES_PER_COMPONENT_MAX as usize;
/// As [`TABLES_PER_COMPONENT_MAX`], for the store's own count.
pub const SERVER_TABLES_MAX: usize = TABLES_PER_COMPONENT_MAX as usize;
/// Places of ended instances that keep what makes the next one of the same component cheap.
pub const WARM_SLOTS_MAX: u32 = 32;
/// Bytes of the stack that an instance runs on, with room for the node's own calls.
pub const FIBER_BYTES: usize = 1024 * 1024;
/// How long a component may take until there is an instance of it. The thread that starts modules waits for it.
pub const START_TIME_MAX: Duration = Duration::from_secs(2);
/// Resources (streams, requests, sockets) of an instance that lives as long as its module.
pub const RESOURCES_MAX: usize = 16_384;
/// Resources of an instance that answers one request.
pub const REQUEST_RESOURCES_MAX: usize = 1024;
/// Bytes that an instance may hand over in one call, if its own memory is smaller.
pub const CALL_BYTES_MIN: usize = 1 << 20;
/// How long memory that an instance did not get is taken for the cause if it traps.
pub const DENIED_TIME_MAX: Duration = Duration::from_secs(1);
/// Bytes of the headers of one HTTP message that a component makes, as they are in the node's memory.
pub const FIELDS_BYTES_MAX: usize = 128 * 1024;
/// Bytes of the node's memory for HTTP messages that an instance has in any case.
pub const MESSAGES_BYTES_FREE: usize = 256 * 1024;
/// Bytes of the node's memory for HTTP messages of all instances of a module beyond [`MESSAGES_BYTES_FREE`] of each.
pub const MESSAGES_MEMORY_BYTES_MAX: usize = 16 << 20;
/// Bytes of a body that a component may write at once.
pub const BODY_CHUNK_BYTES_MAX: usize = 64 * 1024;
/// Random bytes in one call of a component.
pub const SERVER_RANDOM_BYTES_MAX: u64 = 1024 * 1024;
/// Sets of imports that are kept for the next component with the same blocks.
pub const LINKERS_KEPT_MAX: usize = 16;
/// How long a component computes before others of its thread have their turn.
pub const BEAT: Duration = Duration::from_millis(5);
/// Beats without anything at work after which the beat rests.
pub const IDLE_BEATS: u32 = 20;
/// How long the beat rests at most.
pub const BEAT_SLEEP_MAX: Duration = Duration::from_secs(3600);
/// Bytes of the head of an HTTP request or response.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Header lines of an HTTP request, and of a response of a module.
pub const HEADERS_MAX: usize = 256;
/// Header lines of a server's response.
pub const SERVER_HEADERS_MAX: usize = 512;
/// Bytes of empty lines before a request of an intercepted connection.
pub const EMPTY_LINE_BYTES_MAX: usize = 4;
/// Bytes of the method of a request of an intercepted connection.
pub const METHOD_BYTES_MAX: usize = 32;
/// Bytes of a TLS ClientHello, with the records that it comes in.
pub const CLIENT_HELLO_BYTES_MAX: usize = 16 * 1024;
/// Bytes that an intercepted connection is read of at once before it is known what it is.
pub const OPENING_BYTES: usize = 4 * 1024;
/// Bytes of an intercepted connection's beginning that are looked at after each piece; beyond them, after so many more or an empty line.
pub const LOOK_BYTES: usize = 1024;
/// How long the client of an intercepted connection may be silent before its server is connected, which may speak first.
pub const SILENT_TIME_MAX: Duration = Duration::from_millis(250);
/// Bytes that a connection that goes on without its module is read of at once.
pub const RELAY_BYTES: usize = 64 * 1024;
/// How long a client may take for a request's head, from the connection's start or the request before.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long after its deadline a request ends if telling the client takes so long: by the end of its connection, or of its
/// stream in HTTP/2.
pub const GRACE_TIME: Duration = Duration::from_millis(500);
/// How long a TLS handshake may take.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// How long the answer of a server may take that does not agree to an upgrade.
pub const PASSED_TIME_MAX: Duration = Duration::from_secs(3600);
/// Streams at a time of one HTTP/2 connection.
pub const STREAMS_MAX: u32 = 128;
/// Bytes of responses that wait in one HTTP/2 stream.
pub const SEND_BYTES_MAX: usize = 256 * 1024;
/// How long a request waits for its turn if its module serves as many as it may.
pub const TURN_TIME_MAX: Duration = Duration::from_secs(10);
/// How long an instance that answers a request may wait for a server's answer, or for another instance's entry of the cache, until that
/// counts as long.
pub const LONG_WAIT_TIME: Duration = Duration::from_secs(2);
/// So many quarters of a module's requests at a time may wait for long; what further ones wait for fails.
pub const LONG_WAITS_QUARTERS: usize = 3;
/// How long an instance may wait for the answer to a request that the node sent on, also if other requests wait for an instance.
pub const FORWARD_WAIT_TIME: Duration = Duration::from_millis(500);
/// Requests of HTTP/2 that wait for their turn, for each that may be served at a time. Of HTTP/1, each connection may have one.
pub const WAITING_PER_REQUEST_MAX: usize = 4;
/// Responses of one module that the node pumps by itself.
pub const HELD_RESPONSES_MAX: usize = 8192;
/// Bytes of one such response that are on their way to its client.
pub const HELD_BYTES_MAX: usize = 32 * 1024;
/// Bytes of one that are in memory anyway, unless its client was slow since it last took all that was on its way.
pub const HELD_WIDE_BYTES_MAX: usize = 256 * 1024;
/// Bytes of one until others have their turn.
pub const HELD_TURN_BYTES: usize = 64 * 1024;
/// Responses of one module that may have so many on their way.
pub const HELD_WIDE_MAX: usize = 64;
/// How long such a client may take nothing before it is as others are.
pub const HELD_WIDE_PATIENCE: Duration = Duration::from_millis(50);
/// Bytes that its source is asked for at once.
pub const HELD_PIECE_BYTES: usize = 16 * 1024;
/// Bytes that its source is asked for at once while those of all such responses take [`HELD_MEMORY_BYTES_MAX`].
pub const HELD_PIECE_BYTES_MIN: usize = 2 * 1024;
/// Bytes that are on their way to the clients of all such responses of a module, but for the least of each.
pub const HELD_MEMORY_BYTES_MAX: usize = 16 << 20;
/// How long such a response may take.
pub const HELD_TIME_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long its source may be silent.
pub const HELD_IDLE_TIME_MAX: Duration = Duration::from_secs(3600);
/// Bytes that an upload may take which is sent on, in buffers on both sides, if the server takes nothing,
pub const UPLOAD_BYTES: usize = 192 * 1024;
/// and that all of a module may.
pub const UPLOADS_MEMORY_BYTES_MAX: usize = 128 * UPLOAD_BYTES;
/// How long an upload may move nothing that began while half of that was taken,
pub const UPLOAD_HURRIED_TIME: Duration = Duration::from_secs(20);
/// and how many bytes a second it has to bring after that.
pub const UPLOAD_HURRIED_RATE: u64 = 1024;
/// How long what comes of an upload is read, and thrown away, whose server takes no more of it,
pub const UPLOAD_REST_TIME_MAX: Duration = Duration::from_secs(30);
/// and how long nothing may come meanwhile.
pub const UPLOAD_REST_SILENCE_MAX: Duration = Duration::from_secs(5);
/// How long a connection of which all requests are over is read after its end, so that a client that is slow to take the last answer has it,
pub const LINGER_TIME_MAX: Duration = Duration::from_secs(30);
/// and bytes that it may send meanwhile.
pub const LINGER_BYTES_MAX: u64 = 64 * 1024;
/// How often it is looked whether the client of a request that was sent on is still there,
pub const PRESENCE_EVERY: Duration = Duration::from_secs(5);
/// and how long one is waited for that says nothing any more.
pub const HALF_CLOSED_TIME_MAX: Duration = Duration::from_secs(60);
/// How long its client may take nothing, and how far it may lag behind the least rate, unless the module's properties say otherwise,
pub const HELD_PATIENCE: Duration = Duration::from_secs(300);
/// at least,
pub const HELD_PATIENCE_MIN: Duration = Duration::from_secs(1);
/// and at most.
pub const HELD_PATIENCE_MAX: Duration = Duration::from_secs(3600);
/// How long it may take nothing until it may have to give way to others,
pub const HELD_PATIENCE_CROWDED: Duration = Duration::from_secs(10);
/// which it has while only one of so many parts is left of the module's places for such responses, or for connections.
pub const HELD_CROWDED_SHARE: usize = 8;
/// Connections that are looked at for one that gives way to another client's.
pub const GIVE_WAY_LOOKS_MAX: usize = 64;
/// How often one is searched for that gives way, if there was none.
pub const HELD_SEARCH_EVERY: Duration = Duration::from_millis(100);
/// Bytes to a client of HTTP that the kernel holds beyond those on their way: a client that takes some is seen to.
pub const CLIENT_UNSENT_BYTES_MAX: u32 = 128 * 1024;
/// How often its source is asked at once although it has nothing that it said it had.
pub const HELD_TRIES_MAX: u32 = 8;
/// Answers of one version of a module that the node gives again without an instance.
pub const HTTP_HITS_MAX: usize = 4096;
/// Bytes of the body of such an answer.
pub const HTTP_HIT_BODY_BYTES_MAX: usize = 16 << 20;
/// Bytes of the body of one that is given at once if it is in memory. Of others the node has no more on its way than of a response that
/// was handed over.
pub const HTTP_HIT_AT_ONCE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of what is said of one: target, headers, and names of headers.
pub const HTTP_HIT_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Names of headers of requests that one is not for.
pub const HTTP_HIT_UNLESS_MAX: usize = 32;
/// Bytes that one counts for beside what is said of it: about what it takes in memory.
pub const HTTP_HIT_COST: usize = 768;
/// Bytes that each header and each name of one counts for beside its own.
pub const HTTP_HIT_LINE_COST: usize = 160;
/// Bytes of memory of all such answers of a container's modules, however much it has.
pub const HTTP_HITS_MEMORY_BYTES_MAX: usize = 8 << 20;
/// They have one of so many parts of the container's memory, up to that.
pub const HTTP_HITS_MEMORY_SHARE: u64 = 32;
/// How long requests under way have to end when their module is stopped or replaced.
pub const STOP_TIME_MAX: Duration = netserv_model::limits::SERVER_STOP_TIME_MAX;
/// How long the version of a program that is to be replaced stays for the next one to want its port.
pub const HANDOVER_TIME_MAX: Duration = Duration::from_secs(1);
/// How long a program that takes no port is waited for to end, before it counts as running.
pub const SETTLE_TIME_MAX: Duration = Duration::from_millis(100);
/// Ports that one server module listens at.
pub const LISTEN_PORTS_MAX: usize = 64;
/// Connections that wait at one port to be taken.
pub const BACKLOG: u32 = 1024;
/// Bytes of a certificate chain with its key.
pub const PEM_BYTES_MAX: u64 = 256 * 1024;
/// How long a component's own request may take to be connected.
pub const EGRESS_CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a server may be silent while a component waits for its answer.
pub const EGRESS_IDLE_TIME_MAX: Duration = Duration::from_secs(60);
/// Interim responses (RFC 9110 §15.2) that a server may send before its answer.
pub const EGRESS_INTERIM_MAX: usize = 16;
/// How long a server may take to say that it wants a body whose client waits for that, until the body goes on.
pub const EXPECT_TIME_MAX: Duration = Duration::from_secs(1);
/// Addresses of a name that are tried.
pub const EGRESS_ADDRESSES_MAX: usize = 4;
/// How long a connection to a server is kept that no request of its module uses,
pub const KEPT_TIME_MAX: Duration = Duration::from_secs(15);
/// how many to one server,
pub const KEPT_PER_SERVER_MAX: usize = 32;
/// and how many of a module in all.
pub const KEPT_MAX: usize = 64;
/// How long an address of a name is tried alone before the next one is tried beside it (RFC 8305 §5).
pub const HEAD_START_TIME: Duration = Duration::from_millis(250);
/// How long an address is tried last after another one of its name has answered before it.
pub const SLOW_TIME: Duration = Duration::from_secs(60);
/// Such addresses that are known for each module.
pub const SLOW_ADDRESSES_MAX: usize = 64;
/// Random bytes that one call of the block `crypto` gives.
pub const CRYPTO_RANDOM_BYTES_MAX: usize = 65_536;
/// Bytes that a stream which is compressed as it is read takes of its source at once.
pub const CODED_PIECE_BYTES: usize = 16 * 1024;
/// How often it asks its source in one call, while the coder gives nothing.
pub const CODED_TRIES_MAX: usize = 2;
/// How long its source is silent until what the coder has goes on.
pub const CODED_FLUSH_AFTER: Duration = Duration::from_millis(5);
/// How long what the coder has waits at most while its source is never silent for that long.
pub const CODED_FLUSH_AT_LAST: Duration = Duration::from_millis(50);
/// Bytes that are decompressed at once, without a decompressor.
pub const DECOMPRESS_AT_ONCE_BYTES_MAX: u64 = 8 << 20;
/// The coders have one of so many parts of the container's memory, up to that.
pub const COMPRESS_MEMORY_SHARE: u64 = 4;
/// Bytes of an input whose contents are told.
pub const MEDIA_PROBED_BYTES_MAX: usize = 16 << 20;
/// How long a live job may take to end whose outputs have.
pub const MEDIA_END_TIME_MAX: Duration = Duration::from_secs(1);
/// How long what was written to a media job waits for ffmpeg once the stream is dropped.
pub const MEDIA_REST_TIME_MAX: Duration = Duration::from_secs(30);
/// Threads that serve connections, if there are so many processors.
pub const SERVER_THREADS_MAX: usize = 4;
/// Tasks that run on a thread before it looks for events of the network again.
pub const TASKS_BETWEEN_EVENTS: u32 = 4;
/// Threads that ask name servers.
pub const LOOKUP_THREADS_MAX: usize = 4;
/// Threads that wait for the disk, apart from those that wait for name servers.
pub const DISK_THREADS_MAX: usize = 4;
/// Bytes of a connection that a module is shown at once, as `wit/deps/netserv-tcp/tcp.wit` says.
pub const TCP_CHUNK_BYTES_MAX: usize = 256 * 1024;
/// Bytes of the first chunk, and of chunks for a side that does not take them as fast as they come.
pub const TCP_CHUNK_BYTES_FIRST: usize = 16 * 1024;
/// Bytes of chunks while [`TCP_WAITING_TOTAL`] is reached.
pub const TCP_CHUNK_BYTES_MIN: usize = 4 * 1024;
/// Bytes that wait in all connections of a module before each of them reads less at a time.
pub const TCP_WAITING_TOTAL: usize = 16 << 20;
/// Bytes that a module may have waiting for one side, and may put in place of a chunk.
pub const TCP_SEND_BYTES_MAX: usize = 1 << 20;
/// Bytes that wait in all connections of a module before each side has but a share of what is left.
pub const TCP_SENT_FREE: usize = 12 << 20;
/// Bytes that may wait in all connections of a module for it to send more of its own than the least.
pub const TCP_SENT_TOTAL: usize = 24 << 20;
/// Bytes of its own that a module may always have waiting for one side.
pub const TCP_SHARE_BYTES_MIN: usize = 2 * 1024;
/// How often it is looked whether there is room that a module waits for.
pub const TCP_ROOM_LOOK_TIME: Duration = Duration::from_millis(100);
/// What a module that handles connections may watch.
pub const TCP_WATCHES_MAX: usize = 64;
/// Large buffers that are kept for the next connection with something to read.
pub const TCP_BUFFERS_KEPT_MAX: usize = 8;
/// Timers of a module that handles connections.
pub const TCP_TIMERS_MAX: usize = 64;
/// How long a connection may be silent before its other end is asked whether it exists. The node answers such questions of a server in the
/// client's place, so the server learns of a client that vanished no sooner than the node does.
pub const TCP_KEEP_IDLE: Duration = Duration::from_secs(60);
/// How long an answer to such a question is waited for before the next one.
pub const TCP_KEEP_INTERVAL: Duration = Duration::from_secs(10);
/// Questions without an answer before the connection is closed.
pub const TCP_KEEP_QUESTIONS: u32 = 3;
/// How long a module may send nothing to a client that sends no more, without closing the connection.
pub const TCP_HALF_CLOSED_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a connection that is being closed waits for its other end to take more of what was sent before.
pub const TCP_CLOSING_TIME_MAX: Duration = Duration::from_secs(30);
/// How long nothing may come or go on a connection to the module's own port.
pub const TCP_IDLE_TIME_MAX: Duration = Duration::from_secs(300);
/// Sockets for intercepted connections that are kept of each version of IP.
pub const SOCKETS_KEPT: usize = 32;
/// Sockets that the node is asked for at once.
pub const SOCKETS_ASKED_MAX: usize = netserv_wire::container::frames::DESCRIPTORS_MAX;
/// How long an intercepted connection waits for a socket.
pub const SOCKETS_TIME_MAX: Duration = Duration::from_secs(5);
/// How long the node may take to give sockets before it is asked again.
pub const SOCKETS_ANSWER_TIME_MAX: Duration = Duration::from_secs(1);
