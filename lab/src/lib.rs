// SPDX-License-Identifier: Apache-2.0
//! Labs: NetServ in networks of namespaces on one machine, and the engines in a simulated world.

pub use netserv_patience as patience;

pub mod agent;
pub mod api;
pub mod baresip;
pub mod bench;
pub mod bird;
pub mod browser;
pub mod callers;
pub mod captured;
pub mod crowd;
pub mod crowding;
pub mod demo;
pub mod exercises;
pub mod flood;
pub mod heard;
pub mod histogram;
pub mod homes;
pub mod input;
pub mod listeners;
pub mod mover;
pub mod moving;
pub mod nat;
pub mod netns;
pub mod node;
pub mod packaged;
pub mod phones;
pub mod provider;
pub mod radio;
pub mod relay;
pub mod relocating;
pub mod replay;
pub mod rtp;
pub mod scale;
pub mod serving;
pub mod states;
pub mod stranger;
mod sys;
pub mod topology;
pub mod torture;
pub mod video;
pub mod videosite;
pub mod voip;
pub mod watching;
pub mod website;
pub mod world;
