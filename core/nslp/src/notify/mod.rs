// SPDX-License-Identifier: Apache-2.0
//! NOTIFY, for those who sent SETUPs: of nodes further on, of modules on this node, and that this node is going to stop.

mod farewell;
mod modules;
mod tell;

pub(crate) use farewell::Farewell;
pub(crate) use modules::on_module_news;
pub(crate) use tell::{on_notify, tell};
