// SPDX-License-Identifier: Apache-2.0
//! The module as its node knows it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use netserv_server_sdk::jobs::{Job, Live};
use netserv_server_sdk::media::{Error as MediaError, Source};
use netserv_server_sdk::pictures::{self, Begun, Look, View};
use netserv_server_sdk::tcp::{self, Action, Address, Connection, Decision, Error, Flow, Side, TcpModule};
use netserv_server_sdk::wasi::io::streams::{InputStream, OutputStream, StreamError};
use netserv_server_sdk::{control, counters, properties, tcp_module};

use crate::host::{Counter, Host, Sent};
use crate::limits::TICK_MS;
use crate::quality::{Colours, Quality};
use crate::settings::Settings;
use crate::transcoder::Transcoder;

struct VideoTranscoder {
    transcoder: Transcoder,
    node: Node,
    begun: Instant,
    is_ticking: bool,
}

impl Default for VideoTranscoder {
    fn default() -> VideoTranscoder {
        let settings = Settings::read(properties::get);
        let node = Node { jobs: BTreeMap::new(), cpu_permille: settings.cpu_permille };
        VideoTranscoder { transcoder: Transcoder::new(settings), node, begun: Instant::now(), is_ticking: false }
    }
}

impl VideoTranscoder {
    /// Has something be done, and time go on for as long as there is something to do.
    fn run<T>(&mut self, run: impl FnOnce(&mut Transcoder, &mut Node, u64) -> T) -> T {
        let now_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        while let Some(message) = control::inbox::receive() {
            let text = String::from_utf8_lossy(&message.body);
            if let Err(why) = self.transcoder.told(&mut self.node, now_ms, &message.topic, &text) {
                eprintln!("a control message is of no use: {why}");
                let _ = control::notify(&message.topic, why.as_bytes());
            }
        }
        let outcome = run(&mut self.transcoder, &mut self.node, now_ms);
        if self.is_ticking == self.transcoder.is_idle() {
            self.is_ticking = !self.is_ticking;
            if !self.is_ticking {
                tcp::cancel_timer(TIMER);
            } else if tcp::set_timer(TIMER, TICK_MS, TICK_MS).is_err() {
                self.is_ticking = false;
            }
        }
        outcome
    }
}

const TIMER: u32 = 1;

impl TcpModule for VideoTranscoder {
    fn connect(&mut self, id: Connection, flow: &Flow) -> Decision {
        if flow.intercepted {
            return Decision::Splice;
        }
        self.run(|transcoder, host, now_ms| transcoder.connect(host, now_ms, id));
        Decision::Accept
    }

    fn data(&mut self, id: Connection, _: Side, bytes: &[u8]) -> Action {
        self.run(|transcoder, host, now_ms| transcoder.data(host, now_ms, id, bytes));
        // There is no other side.
        Action::Pass
    }

    fn end(&mut self, id: Connection, _: Side) {
        self.run(|transcoder, host, now_ms| transcoder.end(host, now_ms, id));
    }

    fn closed(&mut self, id: Connection) {
        self.run(|transcoder, host, now_ms| transcoder.closed(host, now_ms, id));
    }

    fn timer(&mut self, _: u32) {
        self.run(|transcoder, host, now_ms| transcoder.tick(host, now_ms));
    }

    fn ready(&mut self, job: u32) {
        self.node.handle_ready(job);
        self.run(|transcoder, host, now_ms| transcoder.ready(host, now_ms));
    }
}

/// The node.
struct Node {
    jobs: BTreeMap<u32, Work>,
    cpu_permille: u32,
}

/// A job. What is watched with its number is forgotten before what that was made of.
enum Work {
    Begun(Begun),
    Runs { input: OutputStream, output: InputStream, is_watched: bool, job: Job },
}

impl Node {
    fn handle_ready(&mut self, job: u32) {
        if let Some(Work::Runs { is_watched, .. }) = self.jobs.get_mut(&job) {
            *is_watched = false;
        }
    }

    /// Ends a job, and returns why it has ended by itself, if it has.
    fn finish(&mut self, number: u32) -> String {
        tcp::unwatch(number);
        let Some(Work::Runs { input, output, job, .. }) = self.jobs.remove(&number) else {
            return "it never ran".to_owned();
        };
        drop((input, output));
        Job::finish(job).map_or_else(|error| said(&error), |()| "it came to its end".to_owned())
    }
}

impl Host for Node {
    fn open(&mut self, to: SocketAddr) -> Option<Connection> {
        tcp::open(&Address { ip: to.ip().to_string(), port: to.port() })
            .inspect_err(|error| eprintln!("no connection to {to}: {error:?}"))
            .ok()
    }

    fn send(&mut self, id: Connection, to: Side, bytes: &[u8]) -> Sent {
        match tcp::send(id, to, bytes) {
            Ok(()) => Sent::Done,
            Err(Error::WouldBlock | Error::Quota) => Sent::Full,
            Err(Error::NotFound | Error::NotPermitted | Error::Invalid) => Sent::Gone,
        }
    }

    fn queued(&mut self, id: Connection) -> Option<u64> {
        tcp::queued(id, Side::Client).ok()
    }

    fn pause(&mut self, id: Connection, is_paused: bool) {
        // One that is gone says so by `closed`.
        let _ = if is_paused { tcp::pause(id, Side::Server) } else { tcp::resume(id, Side::Server) };
    }

    fn close(&mut self, id: Connection) {
        // It may be gone.
        let _ = tcp::close(id);
    }

    fn count(&mut self, counter: Counter, amount: u64) {
        let _ = counters::add(counter.name(), amount);
    }

    fn set(&mut self, counter: Counter, value: u64) {
        let _ = counters::set(counter.name(), value);
    }

    fn begin(&mut self, job: u32, quality: Quality) -> Result<(), String> {
        let live = Live { cpu_permille: self.cpu_permille, keep_times: false };
        let begun = pictures::begin(Source::Mpegts, live, &[view(quality)]).map_err(|error| said(&error))?;
        tcp::watch(begun.subscribe(), job).map_err(|error| format!("{error:?}"))?;
        self.jobs.insert(job, Work::Begun(begun));
        Ok(())
    }

    fn runs(&mut self, number: u32) -> Result<bool, String> {
        match self.jobs.get(&number) {
            Some(Work::Runs { .. }) => return Ok(true),
            Some(Work::Begun(begun)) if !begun.subscribe().ready() => return Ok(false),
            Some(Work::Begun(_)) | None => {}
        }
        tcp::unwatch(number);
        let Some(Work::Begun(begun)) = self.jobs.remove(&number) else { return Err("there is no job".to_owned()) };
        let job = Begun::job(begun).map_err(|error| said(&error))?;
        let input = job.input().map_err(|error| said(&error))?;
        let output = job.output(0).map_err(|error| said(&error))?;
        self.jobs.insert(number, Work::Runs { input, output, is_watched: false, job });
        Ok(true)
    }

    fn write(&mut self, number: u32, bytes: &[u8]) -> Option<usize> {
        let Some(Work::Runs { input, .. }) = self.jobs.get(&number) else { return None };
        let room = usize::try_from(input.check_write().ok()?).unwrap_or(usize::MAX).min(bytes.len());
        // Writing nothing is more than is permitted, too.
        if room > 0 {
            input.write(&bytes[..room]).ok()?;
        }
        Some(room)
    }

    fn read(&mut self, number: u32) -> Result<Vec<u8>, String> {
        let Some(Work::Runs { output, is_watched, .. }) = self.jobs.get_mut(&number) else {
            return Err("there is no job".to_owned());
        };
        match output.read(READ_BYTES) {
            Ok(bytes) => {
                if bytes.is_empty() && !*is_watched {
                    *is_watched = tcp::watch(output.subscribe(), number).is_ok();
                }
                Ok(bytes)
            }
            Err(StreamError::Closed | StreamError::LastOperationFailed(_)) => Err(self.finish(number)),
        }
    }

    fn end(&mut self, number: u32) {
        tcp::unwatch(number);
        match self.jobs.remove(&number) {
            Some(Work::Runs { input, output, job, .. }) => {
                drop((input, output));
                drop(job);
            }
            Some(Work::Begun(begun)) => drop(begun),
            None => {}
        }
    }
}

fn view(quality: Quality) -> View {
    let look = match quality.colours {
        Colours::Full => Look::Jpeg(quality.coarseness),
        Colours::Grey => Look::GreyJpeg(quality.coarseness),
        Colours::Palette => Look::PalettePng,
    };
    View { width: quality.size.0, height: quality.size.1, per_second: quality.rate, look }
}

fn said(error: &MediaError) -> String {
    match error {
        MediaError::Busy => "there is no place for a job".to_owned(),
        MediaError::Invalid(why) | MediaError::Failed(why) | MediaError::Limit(why) | MediaError::Unavailable(why) => {
            why.clone()
        }
    }
}

/// Bytes of a job's output that are read at once.
const READ_BYTES: u64 = 64 * 1024;

tcp_module!(VideoTranscoder);
