// SPDX-License-Identifier: Apache-2.0
//! Files of the machine that both sides name.

use std::path::PathBuf;

/// What media jobs are made of. Everybody must be allowed to read all of it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MediaFiles {
    /// The `ffmpeg` program.
    pub ffmpeg: PathBuf,
    /// The `ffprobe` program.
    pub ffprobe: PathBuf,
    /// The font of texts; without one there are none.
    pub font: Option<PathBuf>,
}
