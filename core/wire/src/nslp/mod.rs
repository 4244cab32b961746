// SPDX-License-Identifier: Apache-2.0
//! The text of NetServ signaling messages.
