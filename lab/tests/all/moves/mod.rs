// SPDX-License-Identifier: Apache-2.0
//! Modules that move between nodes.

mod floating;
mod moved_by_rule;
mod moved_media;
mod moved_radio;
mod moved_registration;
mod moved_state;
mod relocation;
