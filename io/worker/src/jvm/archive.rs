// SPDX-License-Identifier: Apache-2.0
//! `netserv-jvm archive`: writes the classes of the host as the JVM maps them, so that it starts in less time.

use std::path::PathBuf;
use std::time::Duration;

use super::bundles::Bundles;
use super::home::Places;
use super::options::Archive;
use super::start::{Host, Purpose, RingParts, broken, java_home};
use super::sys::End;
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
    Bundles::open(&args.places.data).map_err(|error| ServeError::Io("mkdir", error))?;
    let purpose = Purpose {
        home: &java_home(&args.java_home)?,
        places: &args.places,
        memory_bytes: MEMORY_BYTES,
        archive: Archive::Write(&args.out),
        test: false,
    };
    let out = args.out.clone();
    let handler = Box::new(move |end| match end {
        End::Exit(0) if out.is_file() => 0,
        End::Exit(_) | End::Abort => {
            eprintln!("netserv-jvm: the JVM wrote no archive");
            1
        }
    });
    let host = Host::start(&purpose, RingParts::new()?, handler)?;
    host.bridge.shutdown(STOP_MAX).map_err(broken)?;
    host.bridge.exit().map_err(broken)
}
