// SPDX-License-Identifier: Apache-2.0
//! Calls and registrations.

mod edge;
mod homes;
mod media_relay;
mod packaged;
mod provider;
mod relay_cases;
mod relay_reports;
mod relay_strangers;
mod restarted;
mod rport;
mod serving;
mod sip_digest;
mod sip_oc;
mod sip_torture;
mod switches;
