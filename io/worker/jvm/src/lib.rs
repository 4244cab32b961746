// SPDX-License-Identifier: Apache-2.0
//! The worker that runs OSGi bundles: a JVM in this process, embedded by JNI's Invocation API.
//!
//! The class `org.netserv.host.Bridge` (see `java/host`) is the other side. A batch of packets costs one crossing: the
//! native side writes a table of the batch into memory that both see, calls `Bridge.process`, and reads the verdicts
//! from the table; the packets stay where they are, in the slots of the ring. What Java threads have to tell, they
//! leave in the [`outbox`], and the packet thread sends it.
//!
//! Invariant: one thread, the packet thread, touches the ring and the control socket. Java never trusts the native side
//! less than that side trusts Java, which is not at all: verdicts, lengths and module slots are checked.

pub mod archive;
pub mod batch;
pub mod bundles;
mod empty_bundle;
pub mod handles;
pub mod home;
pub mod limits;
pub mod media;
pub mod options;
pub mod outbox;
pub mod serve;
pub mod start;
mod sys;

pub use sys::{Bridge, BundleLoad, End, bind, control, leave, packet_thread, replace_program};
