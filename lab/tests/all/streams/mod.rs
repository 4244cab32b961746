// SPDX-License-Identifier: Apache-2.0
//! Sound and pictures.

mod media;
mod radio;
mod video;
