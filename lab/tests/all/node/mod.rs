// SPDX-License-Identifier: Apache-2.0
//! One node and its containers.

mod audit;
mod bad_input;
mod cleanup;
mod compilations;
mod container_network;
mod control_loop;
mod control_messages;
mod crash;
mod draining;
mod end_to_end;
mod firewalls;
mod full_disk;
mod interception;
mod net_monitor;
mod operator_services;
mod osgi;
mod osgi_bad;
mod queued;
mod real_time;
mod refusals;
mod replay;
mod revoked;
mod rules;
mod server_bundles;
mod servers;
mod services;
mod state;
mod strangers;
mod syn_guard;
mod trace;
mod usage;
