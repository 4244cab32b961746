// SPDX-License-Identifier: Apache-2.0
//! Makes of a live video what a small device can show, as AMnet did for a Palm: fewer and smaller pictures, each whole in itself, with fewer
//! colours. Who watches changes that while it watches.
//!
//! What it does is in [`transcoder`], which knows of its node by [`host::Host`] alone: [`source`] is the one connection to where the video
//! comes from, with [`answer`] for its HTTP and [`clock`] to hold it to real time; [`feed`] is one [`quality`] with the job that makes it,
//! whose [`pictures`] go to all who watch it; [`http`] and [`page`] are what viewers ask and get.

pub mod answer;
pub mod clock;
pub mod feed;
pub mod host;
pub mod http;
pub mod limits;
mod module;
pub mod page;
pub mod pictures;
pub mod quality;
pub mod settings;
pub mod source;
pub mod transcoder;

#[cfg(test)]
mod testing;
