// SPDX-License-Identifier: Apache-2.0
//! Timed scripts: requests and events in, commands out as short text.

mod admission;
mod bounds;
mod control;
mod draining;
mod failures;
mod flavours;
mod floating;
mod forbidden;
mod freezing;
mod lifecycle;
mod maintenance;
mod moves;
mod operator;
mod paths;
mod preparing;
mod replays;
mod revoked;

mod promises;
mod random;
mod script;
mod servers;
mod services;
mod sessions;
mod strangers;
mod suspended;
mod usage;
mod wanted;
