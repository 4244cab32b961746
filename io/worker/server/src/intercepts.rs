// SPDX-License-Identifier: Apache-2.0
//! Intercepted connections: where they arrive, and sockets of the node's making that go on to their servers with the
//! clients' addresses, which a worker has no right to make.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream as StdStream};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netserv_model::effect::ModuleSlot;
use netserv_model::{Refusal, RefusalKind};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::orders::{Report, Reports};
use super::origin::Origin;
use super::takers::{Taker, Takers};
use crate::limits;

/// Where intercepted connections arrive, by the place of their module.
pub struct Intercepts {
    takers: Arc<Takers>,
    tasks: BTreeMap<ModuleSlot, Vec<JoinHandle<()>>>,
    sockets: Arc<Sockets>,
}

impl Intercepts {
    /// Returns none; sockets are asked for by reports.
    pub fn new(reports: Reports) -> Intercepts {
        Intercepts { takers: Arc::default(), tasks: BTreeMap::new(), sockets: Arc::new(Sockets::new(reports)) }
    }

    /// Takes connections for a module: at new listening sockets, or at those that its last version had.
    ///
    /// # Errors
    /// [`RefusalKind::NodeFailed`] if they are of no use.
    pub fn open(&mut self, slot: ModuleSlot, listeners: [Option<OwnedFd>; 2], taker: Taker) -> Result<(), Refusal> {
        let failed = |error: io::Error| {
            Refusal::new(RefusalKind::NodeFailed, format!("intercepted connections cannot be taken: {error}"))
        };
        let mut opened = Vec::new();
        for listener in listeners.into_iter().flatten() {
            // The node has made it one that does not block.
            opened.push(TcpListener::from_std(std::net::TcpListener::from(listener)).map_err(failed)?);
        }
        self.takers.put(slot, taker);
        let tasks = self.tasks.entry(slot).or_default();
        if !opened.is_empty() {
            tasks.drain(..).for_each(|task| task.abort());
        }
        for listener in opened {
            tasks.push(tokio::spawn(take(listener, slot, Arc::clone(&self.takers), Arc::clone(&self.sockets))));
        }
        Ok(())
    }

    /// Takes no more connections for a module.
    pub fn close(&mut self, slot: ModuleSlot) {
        self.takers.remove(slot);
        self.tasks.remove(&slot).iter().flatten().for_each(JoinHandle::abort);
    }

    /// Takes sockets that were asked for.
    pub fn supply(&self, v6: bool, sockets: Vec<OwnedFd>) {
        self.sockets.supply(v6, sockets);
    }
}

async fn take(listener: TcpListener, slot: ModuleSlot, takers: Arc<Takers>, sockets: Arc<Sockets>) {
    loop {
        let Ok((stream, client)) = listener.accept().await else {
            // The connection was given up meanwhile, or there are too many open files until others end.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(server) = stream.local_addr() else { continue };
        // Only who is in the container gets there by itself.
        if server.ip().is_loopback() {
            continue;
        }
        let origin = Arc::new(FlowOrigin { client: client.ip(), server, sockets: Arc::clone(&sockets) });
        takers.accept(slot, stream, [client, server], origin);
    }
}

const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// The server of an intercepted connection.
struct FlowOrigin {
    client: IpAddr,
    server: SocketAddr,
    sockets: Arc<Sockets>,
}

impl Origin for FlowOrigin {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>> {
        let (client, server, sockets) = (self.client, self.server, Arc::clone(&self.sockets));
        Box::pin(async move {
            let socket = sockets.take(server.is_ipv6()).await?;
            let socket = TcpSocket::from_std_stream(StdStream::from(socket));
            socket.bind(SocketAddr::new(client, 0))?;
            socket.connect(server).await
        })
    }
}

/// Sockets that may take any address as their own.
struct Sockets {
    reports: Reports,
    families: [Family; 2],
}

struct Family {
    stock: Mutex<Stock>,
    /// As many permits as there are sockets that nobody has been promised.
    there: Semaphore,
}

#[derive(Default)]
struct Stock {
    sockets: VecDeque<OwnedFd>,
    /// Who waits for one.
    waiting: usize,
    /// When the node was asked that has not answered.
    asked: Option<Instant>,
}

impl Sockets {
    fn new(reports: Reports) -> Sockets {
        Sockets { reports, families: [Family::default(), Family::default()] }
    }

    async fn take(&self, v6: bool) -> io::Result<OwnedFd> {
        let family = &self.families[usize::from(v6)];
        let waiting = Waiting::new(family);
        let none = || io::Error::new(io::ErrorKind::TimedOut, "the node gave no socket");
        let until = Instant::now() + limits::SOCKETS_TIME_MAX;
        let permit = loop {
            self.ask(&mut family.lock(), v6);
            let again = until.min(Instant::now() + limits::SOCKETS_ANSWER_TIME_MAX);
            match timeout_at(again, family.there.acquire()).await {
                Ok(permit) => break permit.map_err(|_| none())?,
                Err(_) if again < until => {}
                Err(_) => return Err(none()),
            }
        };
        permit.forget();
        let socket = family.lock().sockets.pop_front();
        drop(waiting);
        socket.ok_or_else(none)
    }

    /// Has the node asked for more before they run out, once until it answers or has had its time.
    fn ask(&self, stock: &mut Stock, v6: bool) {
        let wanted = (stock.waiting + limits::SOCKETS_KEPT).saturating_sub(stock.sockets.len());
        let asked = stock.asked.is_some_and(|asked| asked.elapsed() < limits::SOCKETS_ANSWER_TIME_MAX);
        if asked || wanted <= limits::SOCKETS_KEPT / 2 {
            return;
        }
        stock.asked = Some(Instant::now());
        let count = u32::try_from(wanted.min(limits::SOCKETS_ASKED_MAX)).unwrap_or(u32::MAX);
        self.reports.send(Report::WantsSockets { count, v6 });
    }

    fn supply(self: &Arc<Self>, v6: bool, sockets: Vec<OwnedFd>) {
        let family = &self.families[usize::from(v6)];
        let mut stock = family.lock();
        stock.asked = None;
        let count = sockets.len();
        stock.sockets.extend(sockets);
        if count > 0 {
            self.ask(&mut stock, v6);
        } else if stock.waiting > 0 {
            let own = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(ASK_AGAIN).await;
                own.ask(&mut own.families[usize::from(v6)].lock(), v6);
            });
        }
        drop(stock);
        family.there.add_permits(count);
    }
}

/// How long to wait before a node that had no sockets is asked again.
const ASK_AGAIN: std::time::Duration = std::time::Duration::from_millis(100);

impl Default for Family {
    fn default() -> Family {
        Family { stock: Mutex::default(), there: Semaphore::new(0) }
    }
}

impl Family {
    fn lock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Waiting<'a>(&'a Family);

impl Waiting<'_> {
    fn new(family: &Family) -> Waiting<'_> {
        family.lock().waiting += 1;
        Waiting(family)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use netserv_worker_base::wakeup::Wakeup;

    use super::*;

    /// An answer may be lost, and a client may give up before its connection does.
    #[tokio::test]
    async fn a_node_that_does_not_answer_is_asked_again() {
        let (sender, mut reports) = mpsc::channel();
        let sockets = Arc::new(Sockets::new(Reports::new(sender, Arc::new(Wakeup::new().unwrap()))));
        let taker = || {
            let sockets = Arc::clone(&sockets);
            tokio::spawn(async move { sockets.take(false).await })
        };
        let gives_up = taker();
        reports = asked(reports).await;
        gives_up.abort();
        let waits = taker();
        asked(reports).await;
        let socket = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        sockets.supply(false, vec![socket]);
        waits.await.unwrap().unwrap();
    }

    /// Waits until the node is asked, for less time than a connection waits.
    async fn asked(reports: mpsc::Receiver<Report>) -> mpsc::Receiver<Report> {
        let wait = move || {
            let report = reports.recv_timeout(limits::SOCKETS_TIME_MAX / 2).expect("nobody asks");
            assert!(matches!(report, Report::WantsSockets { v6: false, .. }), "{report:?}");
            reports
        };
        tokio::task::spawn_blocking(wait).await.unwrap()
    }
}
