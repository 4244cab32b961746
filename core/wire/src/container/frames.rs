// SPDX-License-Identifier: Apache-2.0
//! Control frames between a node and a worker: JSON, one value per `SOCK_SEQPACKET` datagram.
//!
//! What a worker sends is untrusted: it may have been taken over by a module.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netserv_model::control::{CONTROL_TOPICS_MAX, ControlMessage, MODULE_NOTIFY_BYTES_MAX, ModuleMessage};
use netserv_model::effect::ModuleSlot;
use netserv_model::limits::{CONTEXT_LINE_BYTES_MAX, CONTEXT_LINES_MAX, MODULES_PER_CONTAINER_MAX};
use netserv_model::manifest::ModuleLimits;
use netserv_model::node_info::NodeInfo;
use netserv_model::request::{PacketCounts, ServerCounts};
use netserv_model::{Filter, ModuleName, ModuleRef, Refusal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::media::{MediaOutcome, MediaTask};

/// Bytes of one frame. Both ends set their send buffers so that one frame of this size fits.
pub const FRAME_BYTES_MAX: usize = 384 * 1024;
/// Bytes of a log line's text; a worker cuts longer ones.
pub const LOG_TEXT_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a counter's name.
pub const COUNTER_NAME_BYTES_MAX: usize = 64;
/// Descriptors beside one [`ToWorker::Load`].
pub const LOAD_PARTS_MAX: usize = 8;
/// Sockets that one [`FromWorker::Sockets`] asks for, and descriptors beside any frame.
pub const DESCRIPTORS_MAX: usize = 64;

/// What a node tells a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "frame", rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::large_enum_variant, reason = "one frame is there at a time, and soon bytes")]
pub enum ToWorker {
    /// Load a module. The datagram carries one descriptor for each of its parts, files open for reading.
    /// Answered by [`FromWorker::Loaded`] or [`FromWorker::Failed`].
    Load {
        /// The module's place.
        slot: ModuleSlot,
        /// Its name and version.
        module: ModuleRef,
        /// What it can read.
        properties: BTreeMap<String, String>,
        /// What it may use.
        limits: ModuleLimits,
        /// The version of its kv state.
        state_schema: u32,
        /// What the datagram's descriptors are, in their order; each kind at most once.
        parts: Vec<PartKind>,
        /// Where it takes connections; nothing if it only sees packets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<ServerLoad>,
        /// The building blocks that it may use.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        blocks: BTreeSet<String>,
        /// Whether the code that sees packets may run as several instances, one for each lane.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        parallel: bool,
    },
    /// Unload a module; not answered.
    Unload {
        /// The module's place.
        slot: ModuleSlot,
    },
    /// Have the connections that a module has taken over go on, and no others come; answered by [`FromWorker::Drained`], unless
    /// [`ToWorker::Unload`] comes before.
    Drain {
        /// The module's place.
        slot: ModuleSlot,
        /// Whether the module has them until they end; else it is called no more, and what comes on them is handed on.
        finish: bool,
    },
    /// A module that came with a state is in force: what was there before it is not put back any more. Not answered.
    Confirm {
        /// The module's place.
        slot: ModuleSlot,
    },
    /// Tell what the modules counted; answered by one [`FromWorker::Stats`] per module, then
    /// [`FromWorker::StatsDone`].
    Stats,
    /// The sockets that [`FromWorker::Sockets`] asked for, as the datagram's descriptors: unbound, non-blocking TCP
    /// sockets that may take any address as their own. Fewer than asked for if the node cannot make more.
    Sockets {
        /// Whether they are of IPv6.
        v6: bool,
    },
    /// Have packets go through modules in this order; others come after them, in the order of loading.
    Order {
        /// Their places.
        slots: Vec<ModuleSlot>,
    },
    /// What the user's modules may do in the network from here on.
    Permit {
        /// Connections that they may open.
        connect: Vec<Filter>,
        /// Connections that they may take.
        listen: Vec<Filter>,
    },
    /// A media job runs. The datagram's descriptors are where its input is written to, where each of its outputs is read
    /// from, and where the picture is written to if its task has one. Answers [`FromWorker::Media`]; [`ToWorker::MediaEnded`] follows.
    MediaStarted {
        /// Which job.
        job: u64,
    },
    /// A media job ended, or was never started.
    MediaEnded {
        /// Which job.
        job: u64,
        /// How.
        outcome: MediaOutcome,
        /// ffmpeg's last words about it, or why it was not started; empty if all is well.
        detail: String,
    },
    /// A further lane has packets for the worker, from a ring of its own. The datagram's descriptors are the ring's memory, the
    /// eventfd by which that lane wakes the worker, and the one by which the worker wakes that lane. Lanes come in their order,
    /// before any [`ToWorker::Load`].
    Lane,
    /// Put a control message into a module's inbox; answered by one [`FromWorker::Told`].
    Tell {
        /// The module's place.
        slot: ModuleSlot,
        /// The message.
        message: ControlMessage,
    },
    /// Write a module's state into the datagram's descriptor, a pipe, as [`ModuleState`](crate::state::ModuleState)
    /// says; answered by one [`FromWorker::Exported`]. Of each module, one such frame is unanswered at a time.
    Export {
        /// The module's place.
        slot: ModuleSlot,
    },
    /// What the modules are told of their node that are loaded from here on.
    Node {
        /// What.
        info: NodeInfo,
    },
    /// The messages that the module gets first which is loaded into a place next.
    Kept {
        /// The module's place.
        slot: ModuleSlot,
        /// The module, so that no other one gets them whose load comes in place of one that was not sent.
        module: ModuleName,
        /// At most [`CONTROL_TOPICS_MAX`], in order of their numbers.
        messages: Vec<ControlMessage>,
    },
    /// End; the process exits with 0.
    Shutdown,
}

/// What a descriptor beside a [`ToWorker::Load`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// The code that sees packets: a compiled core module, or an OSGi bundle whatever it does.
    Packet,
    /// The code that takes connections: a compiled component.
    Server,
    /// The certificate chain, then its key, in PEM.
    Tls,
    /// The listening socket that intercepted IPv4 connections arrive at.
    ListenerV4,
    /// The listening socket that intercepted IPv6 connections arrive at.
    ListenerV6,
    /// The state that the module begins with, as [`ModuleState`](crate::state::ModuleState) says.
    State,
}

/// What the part of a module that takes connections has to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerLoad {
    /// Where it takes connections, at the container's own addresses.
    pub listen: Vec<Filter>,
    /// Which connections between others it takes over.
    pub intercept: Vec<Filter>,
    /// Nobody gets past it where it takes connections over, while it is down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refuse: bool,
    /// The container's own addresses.
    pub addresses: Vec<IpAddr>,
    /// Connections that it may open.
    pub connect: Vec<Filter>,
    /// Names in its certificate that it serves by TLS in the place of their servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intercept_tls: Vec<String>,
}

/// What a worker tells its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "frame", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FromWorker {
    /// The worker takes modules.
    Ready {
        /// The packet ABI that it speaks.
        abi: u32,
        /// What runs the modules, for people and for the cache of compiled code.
        engine: String,
    },
    /// A module runs.
    Loaded {
        /// The module's place.
        slot: ModuleSlot,
    },
    /// A module could not be loaded, or trapped; it is unloaded, the others go on.
    Failed {
        /// The module's place.
        slot: ModuleSlot,
        /// Why.
        refusal: Refusal,
    },
    /// No connection is left of a module that [`ToWorker::Drain`] named.
    Drained {
        /// The module's place.
        slot: ModuleSlot,
    },
    /// A line for the node's log.
    Log {
        /// The module that wrote it; nothing if the worker itself did.
        slot: Option<ModuleSlot>,
        /// How important it is.
        level: LogLevel,
        /// One line.
        text: String,
    },
    /// What one module counted since it was loaded.
    Stats {
        /// The module's place.
        slot: ModuleSlot,
        /// Its packets.
        packets: PacketCounts,
        /// Counters that it keeps, by name.
        counters: BTreeMap<String, u64>,
        /// What the part that takes connections counted, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<ServerCounts>,
    },
    /// There are no more [`FromWorker::Stats`] in this answer.
    StatsDone {
        /// What went wrong with the files of the worker's modules.
        #[serde(default)]
        storage: StorageFailures,
    },
    /// The worker wants sockets that may take any address as their own; answered by [`ToWorker::Sockets`].
    Sockets {
        /// How many: 1 to [`DESCRIPTORS_MAX`].
        count: u32,
        /// Whether they are to be of IPv6.
        v6: bool,
    },
    /// A module wants a media job; answered by [`ToWorker::MediaStarted`] or [`ToWorker::MediaEnded`].
    Media {
        /// The module's place.
        slot: ModuleSlot,
        /// The job's number, which no other job of this worker has or had.
        job: u64,
        /// What is to be done.
        task: MediaTask,
    },
    /// What became of a control message. Answers come in the order of the messages.
    Told {
        /// The module's place.
        slot: ModuleSlot,
        /// The message's number.
        seq: u64,
        /// Whether it is in the inbox.
        verdict: TellVerdict,
    },
    /// A module's state is written to the pipe that [`ToWorker::Export`] came with, or why it is not.
    Exported {
        /// The module's place.
        slot: ModuleSlot,
        /// Why there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<Refusal>,
    },
    /// A module tells the requester of its SETUP something.
    Notify {
        /// The module's place.
        slot: ModuleSlot,
        /// What.
        message: ModuleMessage,
    },
    /// Nobody wants a media job any more; answered by [`ToWorker::MediaEnded`] if it has not ended.
    MediaCancel {
        /// Which job.
        job: u64,
    },
}

/// What became of a control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TellVerdict {
    /// It is in the module's inbox.
    Taken,
    /// As many as may wait do.
    Full,
    /// The module has no inbox.
    NoInbox,
    /// There is no module in the place.
    NotLoaded,
}

/// How many times a worker's files could not be read or written, or were damaged, since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageFailures {
    /// That of kv state.
    pub kv: u64,
    /// That of the cache.
    pub cache: u64,
}

/// How important a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// A person should look.
    Warn,
    /// A change of state.
    Info,
    /// An odd branch.
    Debug,
}

impl LogLevel {
    /// Returns the level as its word.
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        }
    }
}

/// A frame that cannot be sent or is none.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The frame is longer than [`FRAME_BYTES_MAX`].
    #[error("a control frame of {0} bytes is over the {FRAME_BYTES_MAX} allowed")]
    TooLong(usize),
    /// The bytes are no frame, or one with a field out of its bounds.
    #[error("not a control frame: {0}")]
    Malformed(String),
}

impl ToWorker {
    /// Returns the frame's bytes.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] if properties make it longer than a frame may be.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        encode(self)
    }

    /// Returns the frame that `bytes` hold.
    ///
    /// # Errors
    /// [`FrameError`] if they hold none.
    pub fn decode(bytes: &[u8]) -> Result<ToWorker, FrameError> {
        let frame: ToWorker = decode(bytes)?;
        match &frame {
            ToWorker::Load { slot, parts, .. } => {
                check_slot(*slot)?;
                check_parts(parts)?;
            }
            ToWorker::Unload { slot }
            | ToWorker::Drain { slot, .. }
            | ToWorker::Confirm { slot }
            | ToWorker::Tell { slot, .. }
            | ToWorker::Export { slot } => check_slot(*slot)?,
            ToWorker::Order { slots } => check_order(slots)?,
            ToWorker::Node { info } => info.check().map_err(FrameError::Malformed)?,
            ToWorker::Kept { slot, messages, .. } => {
                check_slot(*slot)?;
                check_kept(messages)?;
            }
            ToWorker::MediaEnded { detail, .. } => check_text("words about a job", detail, LOG_TEXT_BYTES_MAX)?,
            ToWorker::Stats
            | ToWorker::Lane
            | ToWorker::Sockets { .. }
            | ToWorker::Permit { .. }
            | ToWorker::MediaStarted { .. }
            | ToWorker::Shutdown => {}
        }
        Ok(frame)
    }
}

impl FromWorker {
    /// Returns the frame's bytes.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] if a text or the counters make it longer than a frame may be.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        encode(self)
    }

    /// Returns the frame that `bytes` hold, with every text inside its bound.
    ///
    /// # Errors
    /// [`FrameError`] if they hold none.
    pub fn decode(bytes: &[u8]) -> Result<FromWorker, FrameError> {
        let frame: FromWorker = decode(bytes)?;
        match &frame {
            FromWorker::Loaded { slot } | FromWorker::Drained { slot } => check_slot(*slot)?,
            FromWorker::Failed { slot, refusal } | FromWorker::Exported { slot, refusal: Some(refusal) } => {
                check_slot(*slot)?;
                check_text("a refusal's detail", &refusal.detail, LOG_TEXT_BYTES_MAX)?;
                check_context(&refusal.context)?;
            }
            FromWorker::Exported { slot, refusal: None } => check_slot(*slot)?,
            FromWorker::Log { slot, text, .. } => {
                slot.map_or(Ok(()), check_slot)?;
                check_text("a log line", text, LOG_TEXT_BYTES_MAX)?;
            }
            FromWorker::Stats { slot, counters, .. } => {
                check_slot(*slot)?;
                counters.keys().try_for_each(|name| check_name(name))?;
            }
            FromWorker::Ready { engine, .. } => check_text("an engine's name", engine, LOG_TEXT_BYTES_MAX)?,
            FromWorker::Sockets { count, .. } => check_count(*count)?,
            FromWorker::Media { slot, task, .. } => {
                check_slot(*slot)?;
                task.check().map_err(FrameError::Malformed)?;
            }
            FromWorker::Told { slot, .. } => check_slot(*slot)?,
            FromWorker::Notify { slot, message } => {
                check_slot(*slot)?;
                check_size("a module's message", message.body.len(), MODULE_NOTIFY_BYTES_MAX)?;
            }
            FromWorker::StatsDone { .. } | FromWorker::MediaCancel { .. } => {}
        }
        Ok(frame)
    }
}

fn encode<T: Serialize>(frame: &T) -> Result<Vec<u8>, FrameError> {
    let bytes = serde_json::to_vec(frame).map_err(|error| FrameError::Malformed(error.to_string()))?;
    if bytes.len() > FRAME_BYTES_MAX { Err(FrameError::TooLong(bytes.len())) } else { Ok(bytes) }
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FrameError> {
    if bytes.len() > FRAME_BYTES_MAX {
        return Err(FrameError::TooLong(bytes.len()));
    }
    serde_json::from_slice(bytes).map_err(|error| FrameError::Malformed(error.to_string()))
}

fn check_slot(slot: ModuleSlot) -> Result<(), FrameError> {
    if usize::from(slot.0) < MODULES_PER_CONTAINER_MAX {
        Ok(())
    } else {
        Err(FrameError::Malformed(format!("module slot {} is over {}", slot.0, MODULES_PER_CONTAINER_MAX - 1)))
    }
}

fn check_kept(messages: &[ControlMessage]) -> Result<(), FrameError> {
    match messages.len() {
        0..=CONTROL_TOPICS_MAX => Ok(()),
        more => Err(FrameError::Malformed(format!("{more} messages are kept, at most {CONTROL_TOPICS_MAX} may be"))),
    }
}

fn check_order(slots: &[ModuleSlot]) -> Result<(), FrameError> {
    let places: BTreeSet<&ModuleSlot> = slots.iter().collect();
    if places.len() < slots.len() {
        return Err(FrameError::Malformed("a module is in the order of packets twice".to_owned()));
    }
    slots.iter().try_for_each(|slot| check_slot(*slot))
}

fn check_parts(parts: &[PartKind]) -> Result<(), FrameError> {
    let kinds: BTreeSet<&PartKind> = parts.iter().collect();
    if kinds.len() < parts.len() || parts.len() > LOAD_PARTS_MAX {
        return Err(FrameError::Malformed(format!("{} parts of {} kinds", parts.len(), kinds.len())));
    }
    Ok(())
}

fn check_count(sockets: u32) -> Result<(), FrameError> {
    if (1..=DESCRIPTORS_MAX).contains(&usize::try_from(sockets).unwrap_or(usize::MAX)) {
        Ok(())
    } else {
        Err(FrameError::Malformed(format!("{sockets} sockets wanted, 1 to {DESCRIPTORS_MAX} at a time")))
    }
}

fn check_text(what: &str, text: &str, bytes_max: usize) -> Result<(), FrameError> {
    check_size(what, text.len(), bytes_max)
}

fn check_size(what: &str, bytes: usize, bytes_max: usize) -> Result<(), FrameError> {
    if bytes <= bytes_max {
        Ok(())
    } else {
        Err(FrameError::Malformed(format!("{what} of {bytes} bytes is over the {bytes_max} allowed")))
    }
}

fn check_context(lines: &[String]) -> Result<(), FrameError> {
    if lines.len() > CONTEXT_LINES_MAX {
        return Err(FrameError::Malformed(format!("{} lines of context, at most {CONTEXT_LINES_MAX}", lines.len())));
    }
    lines.iter().try_for_each(|line| check_text("a line of context", line, CONTEXT_LINE_BYTES_MAX))
}

/// Checks the name of a counter, which people see on terminals.
fn check_name(name: &str) -> Result<(), FrameError> {
    check_text("a counter's name", name, COUNTER_NAME_BYTES_MAX)?;
    if name.chars().any(char::is_control) {
        return Err(FrameError::Malformed("a control character in a counter's name".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use netserv_model::RefusalKind;
    use netserv_model::control::CONTROL_BYTES_MAX;
    use proptest::prelude::*;

    use super::*;
    use crate::container::media::MediaSource;

    #[test]
    fn frames_round_trip() {
        for frame in to_worker_examples() {
            assert_eq!(ToWorker::decode(&frame.encode().unwrap()).unwrap(), frame);
        }
        for frame in from_worker_examples() {
            assert_eq!(FromWorker::decode(&frame.encode().unwrap()).unwrap(), frame);
        }
    }

    #[test]
    fn frames_are_readable_json() {
        let text = String::from_utf8(ToWorker::Unload { slot: ModuleSlot(3) }.encode().unwrap()).unwrap();
        assert_eq!(text, r#"{"frame":"unload","slot":3}"#);
    }

    #[test]
    fn bounds_are_kept() {
        let long = "x".repeat(FRAME_BYTES_MAX);
        let log = |text: &str| FromWorker::Log { slot: None, level: LogLevel::Info, text: text.to_owned() };
        assert!(matches!(log(&long).encode(), Err(FrameError::TooLong(_))));
        assert!(matches!(FromWorker::decode(&vec![b' '; FRAME_BYTES_MAX + 1]), Err(FrameError::TooLong(_))));

        check_from_worker(&log(&long[..LOG_TEXT_BYTES_MAX]), true);
        check_from_worker(&log(&long[..=LOG_TEXT_BYTES_MAX]), false);
        let failed = |context: Vec<String>| {
            let refusal = Refusal { context, ..Refusal::new(RefusalKind::Trapped, "x") };
            FromWorker::Failed { slot: ModuleSlot(0), refusal }
        };
        check_from_worker(&failed(vec![long[..CONTEXT_LINE_BYTES_MAX].to_owned(); CONTEXT_LINES_MAX]), true);
        check_from_worker(&failed(vec![long[..=CONTEXT_LINE_BYTES_MAX].to_owned()]), false);
        check_from_worker(&failed(vec![String::new(); CONTEXT_LINES_MAX + 1]), false);
        check_from_worker(&FromWorker::Loaded { slot: ModuleSlot(63) }, true);
        check_from_worker(&FromWorker::Loaded { slot: ModuleSlot(64) }, false);
        check_from_worker(&stats(&long[..COUNTER_NAME_BYTES_MAX]), true);
        check_from_worker(&stats(&long[..=COUNTER_NAME_BYTES_MAX]), false);

        for (count, fits) in [(0, false), (1, true), (64, true), (65, false), (u32::MAX, false)] {
            check_from_worker(&FromWorker::Sockets { count, v6: false }, fits);
        }
        let notify = |bytes: usize| FromWorker::Notify {
            slot: ModuleSlot(0),
            message: ModuleMessage { topic: "full".parse().unwrap(), body: vec![0; bytes] },
        };
        check_from_worker(&notify(MODULE_NOTIFY_BYTES_MAX), true);
        check_from_worker(&notify(MODULE_NOTIFY_BYTES_MAX + 1), false);
        let tell = |bytes: usize| ToWorker::decode(&tell(bytes).encode().unwrap()).is_ok();
        assert!(tell(CONTROL_BYTES_MAX) && !tell(CONTROL_BYTES_MAX + 1));
        let kept = |messages: usize| ToWorker::decode(&kept(messages).encode().unwrap()).is_ok();
        assert!(kept(CONTROL_TOPICS_MAX) && !kept(CONTROL_TOPICS_MAX + 1));
    }

    #[test]
    fn an_order_has_each_module_once() {
        let check = |slots: &[u8], fits: bool| {
            let slots = slots.iter().map(|slot| ModuleSlot(*slot)).collect();
            assert_eq!(ToWorker::decode(&ToWorker::Order { slots }.encode().unwrap()).is_ok(), fits);
        };
        check(&[], true);
        check(&[63, 0], true);
        check(&[64], false);
        check(&[1, 1], false);
    }

    #[test]
    fn a_part_is_there_once() {
        let with = |parts: Vec<PartKind>| {
            let ToWorker::Load { slot, module, properties, limits, state_schema, server, blocks, .. } = load() else {
                unreachable!()
            };
            let parallel = false;
            let load =
                ToWorker::Load { slot, module, properties, limits, state_schema, parts, server, blocks, parallel };
            ToWorker::decode(&load.encode().unwrap())
        };
        assert!(with(vec![]).is_ok());
        assert!(with(vec![PartKind::Tls, PartKind::Server]).is_ok());
        assert!(matches!(with(vec![PartKind::Tls, PartKind::Tls]), Err(FrameError::Malformed(_))));
        assert!(matches!(with(vec![PartKind::Packet; LOAD_PARTS_MAX + 1]), Err(FrameError::Malformed(_))));
    }

    #[test]
    fn names_that_would_steer_a_terminal_are_refused() {
        for name in ["\u{1b}[2J", "a\nb", "\u{9b}31m", "\0"] {
            check_from_worker(&stats(name), false);
        }
        check_from_worker(&stats("größe 1"), true);
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        for text in
            ["", "{}", "null", r#"{"frame":"reboot"}"#, r#"{"frame":"stats","slot":-1}"#, r#"{"frame":"ready"}"#]
        {
            assert!(FromWorker::decode(text.as_bytes()).is_err(), "{text}");
        }
        for name in ["unload", "drain", "confirm"] {
            assert!(ToWorker::decode(format!(r#"{{"frame":"{name}","slot":64}}"#).as_bytes()).is_err());
        }
        assert!(FromWorker::decode(br#"{"frame":"drained","slot":64}"#).is_err());
        assert!(ToWorker::decode("[".repeat(100_000).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            prop_assert!(ToWorker::decode(&bytes).is_err());
            prop_assert!(FromWorker::decode(&bytes).is_err());
        }

        #[test]
        fn damaged_frames_never_panic(which in 0_usize..14, at in 0_usize..200, byte in any::<u8>()) {
            let mut bytes = from_worker_examples()[which].encode().unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Ok(frame) = FromWorker::decode(&bytes) {
                prop_assert_eq!(FromWorker::decode(&frame.encode().unwrap()).unwrap(), frame);
            }
        }
    }

    fn check_from_worker(frame: &FromWorker, fits: bool) {
        assert_eq!(FromWorker::decode(&frame.encode().unwrap()).is_ok(), fits);
    }

    fn stats(counter: &str) -> FromWorker {
        let counters = BTreeMap::from([(counter.to_owned(), 7)]);
        let server = Some(ServerCounts { requests: 3, ..ServerCounts::default() });
        FromWorker::Stats { slot: ModuleSlot(1), packets: PacketCounts::default(), counters, server }
    }

    fn load() -> ToWorker {
        let filter = |text: &str| vec![text.parse().unwrap()];
        ToWorker::Load {
            slot: ModuleSlot(0),
            module: "example.org/net-monitor@1.2.0".parse().unwrap(),
            properties: BTreeMap::from([("sample".to_owned(), "100".to_owned())]),
            limits: ModuleLimits::default(),
            state_schema: 1,
            parts: vec![
                PartKind::Packet,
                PartKind::Server,
                PartKind::Tls,
                PartKind::ListenerV4,
                PartKind::ListenerV6,
                PartKind::State,
            ],
            server: Some(ServerLoad {
                listen: filter("tcp port 443"),
                intercept: filter("tcp dst 10.1.0.0/16 port 80"),
                refuse: true,
                addresses: vec!["2001:db8::2".parse().unwrap()],
                connect: filter("tcp"),
                intercept_tls: vec!["www.example.org".to_owned()],
            }),
            blocks: BTreeSet::from(["kv".to_owned()]),
            parallel: true,
        }
    }

    fn to_worker_examples() -> Vec<ToWorker> {
        let order = ToWorker::Order { slots: vec![ModuleSlot(3), ModuleSlot(0)] };
        let permit = ToWorker::Permit { connect: vec!["tcp".parse().unwrap()], listen: vec![] };
        let unload = ToWorker::Unload { slot: ModuleSlot(63) };
        vec![
            load(),
            unload,
            ToWorker::Drain { slot: ModuleSlot(63), finish: true },
            ToWorker::Confirm { slot: ModuleSlot(63) },
            ToWorker::Stats,
            ToWorker::Export { slot: ModuleSlot(63) },
            ToWorker::Sockets { v6: true },
            permit,
            order,
            ToWorker::Lane,
            tell(3),
            kept(2),
            ToWorker::Node {
                info: NodeInfo { id: "n1".to_owned(), place: "berlin".to_owned(), ..NodeInfo::default() },
            },
            ToWorker::Shutdown,
        ]
        .into_iter()
        .chain(media_to_worker())
        .collect()
    }

    fn kept(messages: usize) -> ToWorker {
        let message =
            |seq| ControlMessage { topic: "limit".parse().unwrap(), seq, body: vec![0xff; CONTROL_BYTES_MAX] };
        let messages = (0..messages).map(|seq| message(u64::try_from(seq).unwrap())).collect();
        ToWorker::Kept { slot: ModuleSlot(1), module: "example.org/m".parse().unwrap(), messages }
    }

    fn tell(bytes: usize) -> ToWorker {
        let message = ControlMessage { topic: "limit".parse().unwrap(), seq: 7, body: vec![0xff; bytes] };
        ToWorker::Tell { slot: ModuleSlot(1), message }
    }

    fn media_to_worker() -> [ToWorker; 2] {
        let detail = "Invalid data found".to_owned();
        [ToWorker::MediaStarted { job: 7 }, ToWorker::MediaEnded { job: 7, outcome: MediaOutcome::Failed, detail }]
    }

    fn from_worker_examples() -> Vec<FromWorker> {
        let trapped = Refusal::new(RefusalKind::Trapped, "unreachable").with_context(["in guard::parse"]);
        vec![
            FromWorker::Ready { abi: 1, engine: "wasmtime 48".to_owned() },
            FromWorker::Loaded { slot: ModuleSlot(0) },
            FromWorker::Drained { slot: ModuleSlot(63) },
            FromWorker::Exported { slot: ModuleSlot(63), refusal: None },
            FromWorker::Exported { slot: ModuleSlot(2), refusal: Some(trapped.clone()) },
            FromWorker::Failed { slot: ModuleSlot(2), refusal: trapped },
            FromWorker::Log { slot: None, level: LogLevel::Warn, text: "a \"line\"".to_owned() },
            stats("packets"),
            FromWorker::StatsDone { storage: StorageFailures { kv: 3, cache: u64::MAX } },
            FromWorker::Sockets { count: 64, v6: true },
            FromWorker::Media { slot: ModuleSlot(1), job: 7, task: MediaTask::Probe { source: MediaSource::Any } },
            FromWorker::MediaCancel { job: 7 },
            FromWorker::Told { slot: ModuleSlot(1), seq: u64::MAX, verdict: TellVerdict::NoInbox },
            FromWorker::Notify {
                slot: ModuleSlot(1),
                message: ModuleMessage { topic: "full".parse().unwrap(), body: b"\xff".to_vec() },
            },
        ]
    }
}
