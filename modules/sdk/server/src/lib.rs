// SPDX-License-Identifier: Apache-2.0
//! Write server modules for NetServ nodes in Rust: components of WASI 0.2 for `wasm32-wasip2`.
//!
//! A module that only answers HTTP needs nothing of this: any `wasi:http/proxy` component runs. This crate has the node's
//! building blocks ([`kv`], [`messages`], [`channel`], [`cache`] and the others) and two traits that save most of the boilerplate:
//! [`http::HttpModule`] and [`tcp::TcpModule`].
//!
//! ```no_run
//! use netserv_server_sdk::http::{HttpModule, Request, Response};
//! use netserv_server_sdk::{http_module, kv};
//!
//! struct Visitors;
//!
//! impl HttpModule for Visitors {
//!     fn handle(_: Request) -> Response {
//!         match kv::increment(b"visitors", 1) {
//!             Ok(count) => Response::text(200, format!("you are number {count}\n")),
//!             Err(error) => Response::text(500, format!("no state: {error:?}\n")),
//!         }
//!     }
//! }
//!
//! http_module!(Visitors);
//! # fn main() {}
//! ```

#[allow(
    missing_docs,
    unsafe_code,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "generated; the documentation is in wit/"
)]
#[doc(hidden)]
pub mod bindings;
pub mod channel;
pub mod http;
pub mod mpegts;
pub mod page;
pub mod resident;
pub mod state;
pub mod tcp;
pub mod udp;

/// Control messages, which the module's user sends by `netserv tell`, and the way back.
///
/// A module with an instance for each request reads the last message of a topic; one that stays (a TCP handler, a program, a
/// [`resident!`]) has an inbox:
///
/// ```no_run
/// use netserv_server_sdk::control::{inbox, last, notify};
///
/// // netserv tell example.org/page --topic limit 100 --to DEST
/// let limit: u64 = last("limit").and_then(|it| String::from_utf8(it.body).ok()?.parse().ok()).unwrap_or(10);
///
/// loop {
///     inbox::subscribe().block();
///     while let Some(message) = inbox::receive() {
///         let answer = format!("{} had {} bytes, up to {limit}", message.seq, message.body.len());
///         // netserv watch --module example.org/page
///         notify(&message.topic, answer.as_bytes()).expect("one a second is few");
///     }
/// }
/// ```
pub mod control {
    #[doc(inline)]
    pub use crate::bindings::imports::netserv::control::requester::{Error as NotifyError, notify};
    #[doc(inline)]
    pub use crate::bindings::imports::netserv::control::{inbox, topics::last, types::Message};
}

#[doc(inline)]
pub use bindings::imports::netserv::{
    compress1_0_0::codec as compress, compress1_1_0::streams::coded, crypto::crypto, hash::digest as hash,
    kv::store as kv, log::log, media1_0_0::media, media1_2_0::pictures, metrics::counters, properties::properties,
    search::search, sip::parser as sip,
};
#[doc(inline)]
pub use bindings::imports::wasi;

/// What may be forgotten, on the node's disk: one fetch for all who want it, details beside the body, purges.
///
/// ```no_run
/// use netserv_server_sdk::cache::{self, Details, Error, Opened, Scope, Writer};
/// use netserv_server_sdk::http::{Bounds, Fetched, Response, write_all};
///
/// /// Answers with an entry, also while another instance writes it; who finds none writes it for all.
/// fn answer(key: &str, mut upstream: Fetched) -> Result<Response, Error> {
///     if let Opened::Writer(writer) = cache::open_or_join(key)? {
///         let (content_type, etag) = ("text/css".to_owned(), "\"1\"".to_owned());
///         let (meta, tags) = (b"any bytes".to_vec(), vec!["site-1".to_owned()]);
///         let stream = writer.begin(&Details { content_type, etag, max_age: 60, meta, tags }, None)?;
///         while let Ok(Some(bytes)) = upstream.chunk() {
///             write_all(&stream, &bytes).map_err(|_| Error::TooLarge)?;
///         }
///         drop(stream);
///         Writer::finish(writer)?;
///     }
///     let Some(reader) = cache::get(key)? else { return Err(Error::Unavailable) };
///     let details = reader.entry().details;
///     let bounds = Bounds { idle_ms: 0, total_ms: 0, least_rate: 0 };
///     Ok(Response::stream(200, reader.body(None)?, bounds).with("content-type", &details.content_type))
/// }
///
/// let forgotten = cache::purge(&Scope::Tag("site-1".to_owned()));
/// ```
#[doc(inline)]
pub use bindings::imports::netserv::cache1_1_0::entries as cache;

/// Entries of the cache that are written although all who wanted them have gone.
#[doc(inline)]
pub use bindings::imports::netserv::cache1_2_0::unread;

/// Changes of entries that were read, and of nothing that has come in their place.
#[doc(inline)]
pub use bindings::imports::netserv::cache1_3_0::read as cache_read;

/// Between whom the request came that an instance answers.
///
/// ```no_run
/// use netserv_server_sdk::{connection, log};
///
/// if let Some(ends) = connection::request() {
///     let how = if ends.intercepted { "on the way to" } else { "by asking" };
///     log::log(log::Level::Info, &format!("{} came {how} {}", ends.client.ip, ends.server.ip));
/// }
/// ```
#[doc(inline)]
pub use bindings::imports::netserv::connection::flow as connection;

/// Media jobs with several outputs, from the middle of a clip, or live; [`media`] has those with one.
///
/// ```no_run
/// use netserv_server_sdk::jobs::{self, Job, Live, Order, Output, Segments};
/// use netserv_server_sdk::media::{AudioCodec, Error, Format, Source, VideoCodec};
///
/// /// Begins to make two qualities of a live stream, each in segments that begin where the input's do.
/// fn qualities() -> Result<Job, Error> {
///     let quality = |width, video_bit_rate| Output {
///         format: Format::Mpegts,
///         video: VideoCodec::H264,
///         audio: AudioCodec::Copy,
///         width,
///         height: 0,
///         video_bit_rate,
///         audio_bit_rate: 0,
///         grey: false,
///         segments: Segments::Source,
///         overlay: None,
///     };
///     let live = Some(Live { cpu_permille: 300, keep_times: true });
///     let outputs = vec![quality(640, 800_000), quality(320, 200_000)];
///     jobs::begin(&Order { source: Source::Mpegts, start_ms: 0, duration_ms: 0, live, outputs })
/// }
///
/// let job = qualities().expect("its turn came");
/// let (input, outputs) = (job.input(), [job.output(0), job.output(1)]);
/// // Write the input as there is room, read both outputs as they come, and drop all three at the end.
/// # drop((input, outputs));
/// Job::finish(job).expect("it was understood");
/// ```
///
/// An output can be handed over to the node, which sends it while the instance writes the input and after that:
///
/// ```no_run
/// use netserv_server_sdk::http::{Bounds, Response, write_all};
/// use netserv_server_sdk::media::{self, Error, Settings};
///
/// /// Answers with what a job makes of a clip, as it comes.
/// fn converted(settings: &Settings, clip: Vec<u8>) -> Result<Response, Error> {
///     let job = media::transcode(settings)?;
///     let (input, output) = (job.input()?, job.output()?);
///     let bounds = Bounds { idle_ms: 10_000, total_ms: 0, least_rate: 0 };
///     Ok(Response::stream(200, output, bounds).then(move || {
///         // A client that goes away ends the job.
///         let _ = write_all(&input, &clip);
///         drop((input, job));
///     }))
/// }
/// ```
#[doc(inline)]
pub use bindings::imports::netserv::media1_1_0::jobs;

/// Messages between the server part and the packet part.
///
/// ```no_run
/// use netserv_server_sdk::messages;
///
/// messages::send(b"block 192.0.2.1").expect("the module has a packet part");
/// messages::subscribe().block();
/// while let Some(answer) = messages::receive() {
///     println!("{}", String::from_utf8_lossy(&answer));
/// }
/// ```
#[doc(inline)]
pub use bindings::imports::netserv::messages::exchange as messages;

/// The node that the module runs on.
///
/// ```no_run
/// use netserv_server_sdk::node;
///
/// let fast = node::fact("uplink").is_some_and(|uplink| uplink == "100G");
/// println!("{} in {}: {}", node::id(), node::place(), if fast { "fast" } else { "slow" });
/// for address in node::addresses() {
///     println!("its container is {address}");
/// }
/// ```
#[doc(inline)]
pub use bindings::imports::netserv::node::info as node;
