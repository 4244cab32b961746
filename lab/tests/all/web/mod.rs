// SPDX-License-Identifier: Apache-2.0
//! Caches, the compressor, and the agent that deploys them.

mod agent;
mod cdn;
mod cdn_https;
mod cdn_process;
mod cdn_told;
mod compressor;
mod http_cache;
mod origin_names;
