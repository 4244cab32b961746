// SPDX-License-Identifier: Apache-2.0
//! Keeps a launcher running.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use netserv_container::{ContainerError, Launcher, LauncherConfig};
use netserv_model::{Refusal, RefusalKind};

/// The node's launcher: the one that runs, or the one that takes its place when that one has died.
///
/// All calls may block for as long as a launcher may take to answer; none is made on the control loop but at its end.
pub struct Keeper {
    config: LauncherConfig,
    state: Mutex<State>,
}

enum State {
    Up(Arc<Launcher>),
    Down,
    Ended,
}

impl Keeper {
    /// Returns a keeper that has not started a launcher yet.
    pub fn new(config: LauncherConfig) -> Keeper {
        Keeper { config, state: Mutex::new(State::Down) }
    }

    /// Returns the launcher; one that died is replaced.
    ///
    /// # Errors
    /// This machine cannot run containers, or the node is stopping.
    pub fn launcher(&self) -> Result<Arc<Launcher>, Refusal> {
        let mut state = self.state();
        match &*state {
            State::Up(launcher) if launcher.is_up() => return Ok(launcher.clone()),
            State::Up(launcher) => {
                let pid = launcher.pid();
                tracing::error!(pid, "the launcher ended, and all containers with it; it is started again");
            }
            State::Down => {}
            State::Ended => return Err(Refusal::new(RefusalKind::NodeFailed, "the node is stopping")),
        }
        // The directory is free for a new one when nobody holds the old one any more.
        *state = State::Down;
        let launcher = Arc::new(self.start().map_err(|error| refusal(&error))?);
        *state = State::Up(launcher.clone());
        Ok(launcher)
    }

    /// Ends the launcher and all containers, and waits for that.
    pub fn end(&self) {
        let State::Up(launcher) = std::mem::replace(&mut *self.state(), State::Ended) else { return };
        launcher.end();
        let until = Instant::now() + END_WAIT;
        while Arc::strong_count(&launcher) > 1 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn start(&self) -> Result<Launcher, ContainerError> {
        let until = Instant::now() + END_WAIT;
        loop {
            match Launcher::start(&self.config) {
                Err(ContainerError::InUse(_)) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                result => return result,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long those who use a launcher may take to let go of it when it is gone.
const END_WAIT: Duration = Duration::from_secs(3);

fn refusal(error: &ContainerError) -> Refusal {
    let detail = format!("this machine cannot run containers: {error} (`netservd doctor` says what it lacks)");
    Refusal::new(RefusalKind::NodeFailed, detail)
}
