// SPDX-License-Identifier: Apache-2.0
//! Server modules: components of WASI 0.2 that take and open connections, on a thread of their own.
//!
//! The packet thread has the control socket. It tells the server thread what to do over a channel, and hears of it over
//! another, with an eventfd that it polls. What both share of a module is in [`module::Module`].

pub mod accepted;
pub mod blocks;
mod cap;
pub mod carrier;
pub mod command;
pub mod component;
pub mod connect;
pub mod connect_to;
pub mod disk;
pub mod egress;
pub mod engine;
pub mod exchange;
pub mod hits;
pub mod http;
pub mod intercepts;
pub mod limits;
pub mod listeners;
pub mod log_stream;
pub mod message_memory;
pub mod module;
mod orders;
pub mod origin;
mod places;
pub mod relay;
pub mod route;
pub mod sockets;
pub mod state;
mod sys;
mod takers;
pub mod tcp;
pub mod testing;
pub mod thread;
pub mod tls;
pub mod udp;
pub mod waiting;

use std::sync::{Arc, mpsc};

use netserv_worker_base::error::ServeError;
use netserv_worker_base::wakeup::Wakeup;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use orders::Reports;

pub use orders::{Order, Report, ServerLoad};

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
        Server { orders: None, reports, own: Reports::new(sender, wake), thread: None, memory_bytes }
    }

    /// Returns what makes the packet thread look for reports and lines.
    pub fn wake(&self) -> &Arc<Wakeup> {
        self.own.wake()
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
