// SPDX-License-Identifier: Apache-2.0
//! Commands of the control loop, which come while packets flow or do not.

use super::*;

/// The eventfd of commands is reported once. A loop that hears of it amid a turn must not sleep over the command.
#[test]
fn a_command_that_comes_amid_a_turn_is_not_slept_over() {
    let mut rig = Rig::new();
    rig.turn();
    assert!(!rig.packets.turn(&mut rig.batch).unwrap(), "there is nothing to do");
    rig.commands.send(PacketCommand::EndTrace(TraceId(0))).unwrap();
    rustix::io::write(&rig.packets.eventfds._commands, &1_u64.to_ne_bytes()).unwrap();
    rig.packets.eventfds.polled_at = rig.packets.cx.now.checked_sub(EVENTFDS_INTERVAL_MAX).unwrap();
    assert!(rig.packets.turn(&mut rig.batch).unwrap(), "the loop would sleep now");
    assert!(!rig.packets.turn(&mut rig.batch).unwrap(), "the eventfd is reported once");
}
