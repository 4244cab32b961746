// SPDX-License-Identifier: Apache-2.0
//! What the packet thread and the server thread tell each other.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};

use netserv_model::Refusal;
use netserv_model::effect::ModuleSlot;
use netserv_worker_base::wakeup::Wakeup;

use super::module::Module;

/// What the server thread is told. The node's own frames bound how much of it waits.
pub enum Order {
    /// Run a module; a version of it that runs in the same place is replaced.
    Load(Box<ServerLoad>),
    /// End the module in a place.
    Unload(ModuleSlot),
    /// End the module in a place, and let its connections go on.
    Drain {
        /// The place.
        slot: ModuleSlot,
        /// Which load it was.
        ticket: u64,
        /// Whether the module has them until they end.
        finish: bool,
    },
    /// Sockets that [`Report::WantsSockets`] asked for.
    Sockets {
        /// Whether they are of IPv6.
        v6: bool,
        /// The sockets.
        sockets: Vec<OwnedFd>,
    },
    /// Ask the module in a place for its state; [`Report::Exported`] answers.
    Export(ModuleSlot),
    /// End all modules, and the thread.
    End,
}

/// A module that is to run.
pub struct ServerLoad {
    /// The module.
    pub module: Arc<Module>,
    /// Which of the packet thread's loads this is.
    pub ticket: u64,
    /// Its compiled component.
    pub code: File,
    /// Its certificate chain and key, if it has one.
    pub tls: Option<File>,
    /// Where intercepted connections of IPv4, then IPv6, arrive.
    pub listeners: [Option<OwnedFd>; 2],
    /// What another instance of it said of its state.
    pub state: Option<Vec<u8>>,
}

/// What the server thread tells.
#[derive(Debug)]
pub enum Report {
    /// A module runs.
    Loaded {
        /// Its place.
        slot: ModuleSlot,
        /// Which load it was.
        ticket: u64,
    },
    /// A module could not be loaded, or ended; nothing of it is left on the server thread.
    Failed {
        /// Its place.
        slot: ModuleSlot,
        /// Which load it was.
        ticket: u64,
        /// Why.
        refusal: Refusal,
    },
    /// No connection is left of a module after [`Order::Drain`].
    Drained {
        /// Its place.
        slot: ModuleSlot,
        /// Which load it was.
        ticket: u64,
    },
    /// A module was asked for its state.
    Exported {
        /// Its place.
        slot: ModuleSlot,
        /// What it said, if it says something of its own.
        said: Result<Option<Vec<u8>>, Refusal>,
    },
    /// Sockets are wanted that may take any address as their own.
    WantsSockets {
        /// How many.
        count: u32,
        /// Whether they are to be of IPv6.
        v6: bool,
    },
}

/// What the server thread tells the packet thread with.
#[derive(Clone)]
pub struct Reports {
    sender: mpsc::Sender<Report>,
    wake: Arc<Wakeup>,
}

impl Reports {
    /// Returns what tells by `sender`, and raises `wake` each time.
    pub fn new(sender: mpsc::Sender<Report>, wake: Arc<Wakeup>) -> Reports {
        Reports { sender, wake }
    }

    /// Returns what it raises.
    pub fn wake(&self) -> &Arc<Wakeup> {
        &self.wake
    }

    /// Tells something.
    pub fn send(&self, report: Report) {
        // Nobody listens any longer once the worker ends.
        let _ = self.sender.send(report);
        self.wake.raise();
    }
}
