// SPDX-License-Identifier: Apache-2.0
//! Server modules: components of WASI 0.2 that take and open connections, on a thread of their own.
//!
//! The packet thread has the control socket. It tells the server thread what to do over a channel, and hears of it over
//! another, with an eventfd that it polls. What both share of a module is in [`module::Module`].

pub mod blocks;
pub mod command;
pub mod component;
pub mod disk;
pub mod egress;
pub mod engine;
pub mod http;
pub mod intercepts;
pub mod listeners;
pub mod log_stream;
pub mod message_memory;
pub mod module;
pub mod sockets;
pub mod state;
pub mod tcp;
pub mod testing;
pub mod thread;
pub mod tls;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc;

use netserv_model::Refusal;
use netserv_model::effect::ModuleSlot;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::error::ServeError;
use crate::link::birth::Wakeup;
use module::Module;

/// What the server thread is told. The node's own frames bound how much of it waits.
pub enum Order {
    /// Run a module; a version of it that runs in the same place is replaced.
    Load(Box<Load>),
    /// End the module in a place.
    Unload(ModuleSlot),
    /// Sockets that [`Report::WantsSockets`] asked for.
    Sockets {
        /// Whether they are of IPv6.
        v6: bool,
        /// The sockets.
        sockets: Vec<OwnedFd>,
    },
    /// End all modules, and the thread.
    End,
}

/// A module that is to run.
pub struct Load {
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
    /// Tells something.
    pub fn send(&self, report: Report) {
        // Nobody listens any longer once the worker ends.
        let _ = self.sender.send(report);
        self.wake.raise();
    }
}

/// The packet thread's hold on the server thread, which starts with the first module that it is for.
pub struct Server {
    orders: Option<UnboundedSender<Order>>,
    reports: mpsc::Receiver<Report>,
    own: Reports,
    thread: Option<std::thread::JoinHandle<()>>,
    memory_bytes: u64,
}

impl Server {
    /// Returns a hold on a thread that has not started, in a container of `memory_bytes`. Its reports, and lines in
    /// modules' logs, raise `wake`.
    pub fn new(wake: Arc<Wakeup>, memory_bytes: u64) -> Server {
        let (sender, reports) = mpsc::channel();
        Server { orders: None, reports, own: Reports { sender, wake }, thread: None, memory_bytes }
    }

    /// Returns what makes the packet thread look for reports and lines.
    pub fn wake(&self) -> &Arc<Wakeup> {
        &self.own.wake
    }

    /// Gives an order to the thread, which is started for a load and else may not be there.
    ///
    /// # Errors
    /// The thread cannot be started, or has ended.
    pub fn order(&mut self, order: Order) -> Result<(), ServeError> {
        if self.orders.is_none() && matches!(order, Order::Load(_)) {
            let (sender, receiver) = unbounded_channel();
            self.thread = Some(thread::start(receiver, self.own.clone(), self.memory_bytes)?);
            self.orders = Some(sender);
        }
        let Some(orders) = &self.orders else { return Ok(()) };
        orders.send(order).map_err(|_| ServeError::Broken("the server thread ended".to_owned()))
    }

    /// Returns the next report, if there is one.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn report(&mut self) -> Result<Option<Report>, ServeError> {
        if let Ok(report) = self.reports.try_recv() {
            return Ok(Some(report));
        }
        match &self.thread {
            Some(thread) if thread.is_finished() => Err(ServeError::Broken("the server thread ended".to_owned())),
            Some(_) | None => Ok(None),
        }
    }

    /// Ends all modules, each when its requests have ended or after
    /// [`STOP_TIME_MAX`](crate::limits::STOP_TIME_MAX), and waits for that.
    pub fn end(&mut self) {
        // A thread that has ended hears no order.
        let _ = self.order(Order::End);
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, that is told on standard error.
            let _ = thread.join();
        }
    }
}
