// SPDX-License-Identifier: Apache-2.0
//! Who calls the node's API, and the way back.

use std::fmt;

use netserv_model::audit::LOCAL;
use tokio::sync::oneshot;

/// Who calls the node's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The node itself: for the operator's services, or by a signal of the system.
    Node,
    /// A process of this machine, as it was when it connected (`SO_PEERCRED`, unix(7)).
    Process {
        /// Its user.
        uid: u32,
        /// Its number; nothing if it is in another PID namespace.
        pid: Option<i32>,
    },
}

/// As the audit log has it.
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(LOCAL)?;
        match self {
            Caller::Node => Ok(()),
            Caller::Process { uid, pid: None } => write!(f, " uid {uid}"),
            Caller::Process { uid, pid: Some(pid) } => write!(f, " uid {uid} pid {pid}"),
        }
    }
}

/// Who called, and the way back. A caller may have gone.
#[derive(Debug)]
pub struct Reply<T> {
    /// Who called.
    pub caller: Caller,
    /// The way back.
    pub to: oneshot::Sender<T>,
}

impl<T> Reply<T> {
    /// For what the node does of itself, or by a signal: the answer goes to nobody.
    pub fn of_the_node() -> Reply<T> {
        Reply { caller: Caller::Node, to: oneshot::channel().0 }
    }

    /// Answers; nothing is said if the caller has gone.
    pub fn send(self, answer: T) {
        let _ = self.to.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_have_a_name_in_the_audit_log() {
        let process = |pid| Caller::Process { uid: 1000, pid }.to_string();
        assert_eq!(process(Some(7)), "local uid 1000 pid 7");
        assert_eq!((process(None), Caller::Node.to_string()), ("local uid 1000".to_owned(), "local".to_owned()));
    }
}
