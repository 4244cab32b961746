// SPDX-License-Identifier: Apache-2.0
//! `netserv-jvm archive`: writes the classes of the host as the JVM maps them, so that it starts in less time.

use std::path::PathBuf;
use std::time::Duration;

use super::batch::BatchMemory;
use super::bundles::Bundles;
use super::home::{JavaHome, Places, class_path};
use super::options::{Archive, Setup, options};
use super::outbox::Outbox;
use super::sys::{self, Bridge, Buffers, End};
use crate::error::ServeError;

/// Bytes of memory that the JVM is sized for; no archive depends on it.
const MEMORY_BYTES: u64 = 256 << 20;
/// How long the framework has to stop.
const STOP_MAX: Duration = Duration::from_secs(10);

/// The arguments of `archive`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The directory of the Java that is used.
    #[arg(long)]
    pub java_home: PathBuf,
    /// The file to write.
    #[arg(long)]
    pub out: PathBuf,
    /// Where the Java part is.
    #[command(flatten)]
    pub places: Places,
}

/// Starts the framework, stops it, and ends the process with the archive written. Does not return if all goes well.
///
/// # Errors
/// [`ServeError`] if there is no JVM, or the Java host broke.
pub fn archive(args: &Args) -> Result<(), ServeError> {
    let failed = |error: &dyn ToString| ServeError::Engine("the JVM", error.to_string());
    let broken = |thrown: sys::Thrown| ServeError::Broken(format!("the Java host failed: {thrown}"));
    Bundles::open(&args.places.data).map_err(|error| ServeError::Io("mkdir", error))?;
    let home = JavaHome::open(&args.java_home).map_err(|error| failed(&error))?;
    let class_path =
        class_path(&args.places.host).map_err(|error| failed(&format!("{}: {error}", args.places.host.display())))?;
    let setup = Setup {
        version: home.version,
        class_path: &class_path,
        data: &args.places.data,
        memory_bytes: MEMORY_BYTES,
        archive: Archive::Write(&args.out),
        test: false,
    };
    let outbox: &'static Outbox = Box::leak(Box::new(Outbox::new()?));
    let out = args.out.clone();
    let handler = Box::new(move |end| match end {
        End::Exit(0) if out.is_file() => 0,
        End::Exit(_) | End::Abort => {
            eprintln!("netserv-jvm: the JVM wrote no archive");
            1
        }
    });
    let bridge = Bridge::open(&home.libjvm(), &options(&setup), outbox, handler).map_err(|error| failed(&error))?;
    let memory = |count| sys::words(count).map_err(|error| ServeError::Io("mmap", error));
    let batch = BatchMemory::new().map_err(|error| ServeError::Io("mmap", error))?;
    let buffers = Buffers {
        table: batch.table,
        slots: memory(netserv_wire::container::ring::SLOTS_BYTES / size_of::<u64>())?,
        injects: batch.injects,
        header: memory(4096 / size_of::<u64>())?,
    };
    bridge.start(&buffers, &args.places.blocks, &args.places.data).map_err(broken)?;
    bridge.shutdown(STOP_MAX).map_err(broken)?;
    bridge.exit().map_err(broken)
}
