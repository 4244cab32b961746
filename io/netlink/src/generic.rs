// SPDX-License-Identifier: Apache-2.0
//! Numbers of generic netlink's controller, which knows the numbers of families by their names (`linux/genetlink.h`).

/// The controller itself (`GENL_ID_CTRL`).
pub const CONTROL: u16 = 0x10;
/// Asks for a family (`CTRL_CMD_GETFAMILY`).
pub const GET_FAMILY: u8 = 3;
/// The number of a family (`CTRL_ATTR_FAMILY_ID`).
pub const FAMILY_ID: u16 = 1;
/// The name of a family, with a zero at its end (`CTRL_ATTR_FAMILY_NAME`).
pub const FAMILY_NAME: u16 = 2;
