// SPDX-License-Identifier: Apache-2.0
//! `netserv-jvm archive`: writes the classes of the host as the JVM maps them, so that it starts in less time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use netserv_model::ModuleRef;
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_worker_base::clock;
use netserv_worker_base::error::ServeError;
use rustix::event::{PollFd, PollFlags};

use super::bundles::Bundles;
use super::empty_bundle::empty_bundle;
use super::home::Places;
use super::options::Archive;
use super::outbox::{FromJava, Outbox};
use super::start::{Host, Purpose, RingParts, broken, java_home};
use super::sys::{BundleLoad, End, control};

/// Bytes of memory that the JVM is sized for; no archive depends on it.
const MEMORY_BYTES: u64 = 256 << 20;
/// How long a bundle has to start, and the framework to stop.
const ANSWER_MAX: Duration = Duration::from_secs(10);

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

/// Starts the framework, loads an empty bundle so that the classes are there which that takes, stops, and ends the
/// process with the archive written. Does not return if all goes well.
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
    let host = Host::start(&purpose, RingParts::new()?, Outbox::leak()?, handler)?;
    let jar = args.places.data.join("bundles/empty.jar");
    std::fs::write(&jar, empty_bundle()).map_err(|error| ServeError::Io("write", error))?;
    try_bundle(&host, &jar)?;
    host.bridge.shutdown(ANSWER_MAX).map_err(broken)?;
    host.bridge.exit().map_err(broken)
}

/// Has a bundle loaded. Whether it is taken does not matter.
fn try_bundle(host: &Host, jar: &Path) -> Result<(), ServeError> {
    let module: ModuleRef = "example.org/archived@1.0.0".parse().expect("the name of a module");
    let load = BundleLoad {
        slot: ModuleSlot(0),
        module: &module,
        jar,
        properties: &BTreeMap::new(),
        limits: &ModuleLimits::default(),
        state_schema: 1,
        blocks: &BTreeSet::new(),
        control: control::open(Vec::new()),
    };
    host.bridge.load(&load).map_err(broken)?;
    let until = clock::monotonic() + ANSWER_MAX;
    while clock::monotonic() < until {
        if host.outbox.poll_raised()? {
            host.bridge.idle(clock::monotonic()).map_err(broken)?;
            let mut events = std::iter::from_fn(|| host.outbox.poll_event());
            if events.any(|event| matches!(event, FromJava::Loaded(_) | FromJava::Failed(..))) {
                break;
            }
        }
        // A signal only makes this look once more.
        let _ = rustix::event::poll(&mut [PollFd::new(host.outbox, PollFlags::IN)], Some(&clock::until(until)));
    }
    // A batch of none, for the classes of the packet path.
    host.bridge.process(0).map_err(broken)?;
    host.bridge.unload(ModuleSlot(0)).map_err(broken)
}
