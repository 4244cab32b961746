// SPDX-License-Identifier: Apache-2.0
//! Where chains start.

/// A hook of the kernel at which a chain starts.
#[derive(Clone, Copy, Debug)]
pub enum Hook {
    /// Before packets are routed, at this place among others' chains. What is not judged passes.
    Prerouting(i32),
    /// Packets for this machine. What no rule accepts is dropped.
    Input,
    /// What the chain at `Input` accepted. What is not judged passes.
    AfterInput,
    /// Packets from one machine to another. What no rule accepts is dropped.
    Forward,
    /// What others let pass between machines. What is not judged passes.
    AfterForward,
    /// Packets of this machine. What no rule accepts is dropped.
    Output,
    /// Packets of this machine, at this place among others' chains: one that is given another mark is routed anew. What is not
    /// judged passes.
    Reroute(i32),
}
