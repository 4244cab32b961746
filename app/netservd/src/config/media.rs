// SPDX-License-Identifier: Apache-2.0
//! The block `media`: what the operator allows, and which programs there are.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use netserv_container::{MediaFiles, MediaLimits};
use netserv_model::policy::ContainerLimits;
use netserv_wire::container::media::MediaLive;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The block `media`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct MediaBlock {
    /// The `ffmpeg` program, beside which `ffprobe` is; empty means the one in `/usr/bin` or `/usr/local/bin`.
    pub ffmpeg: PathBuf,
    /// The font of texts that are laid over pictures; empty means DejaVu Sans where Debian has it.
    pub font: PathBuf,
    /// Jobs at a time on this node.
    pub jobs: u32,
    /// Jobs at a time of one user.
    pub jobs_per_user: u32,
    /// Seconds that a job may take.
    pub time_s: u64,
    /// Bytes of memory of one job, what is kept of its input included.
    pub memory_bytes: u64,
    /// Bytes of an input that may be kept because it has to be read twice.
    pub input_bytes: u64,
    /// Processor time of one job, in thousandths of a processor.
    pub cpu_permille: u32,
    /// Jobs at a time whose input comes as it happens, beside the others; 0 for none.
    pub live_jobs: u32,
    /// Such jobs at a time of one user.
    pub live_jobs_per_user: u32,
    /// Seconds that such a job may take.
    pub live_time_s: u64,
    /// Seconds for which such a job may do nothing.
    pub live_idle_s: u64,
    /// The most processor time of such a job, in thousandths of a processor.
    pub live_cpu_permille: u32,
}

/// How many jobs of a kind there may be at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaShares {
    /// On the node.
    pub jobs: u32,
    /// Of one user.
    pub per_user: u32,
}

impl Default for MediaBlock {
    fn default() -> MediaBlock {
        let ContainerLimits { memory_bytes, cpu_permille, disk_bytes, .. } = MediaLimits::default().container;
        MediaBlock {
            ffmpeg: PathBuf::new(),
            font: PathBuf::new(),
            jobs: 4,
            jobs_per_user: 2,
            time_s: 300,
            memory_bytes,
            input_bytes: disk_bytes,
            cpu_permille,
            live_jobs: 2,
            live_jobs_per_user: 1,
            live_time_s: 43_200,
            live_idle_s: 60,
            live_cpu_permille: 500,
        }
    }
}

impl MediaBlock {
    /// Looks for the programs and the font.
    ///
    /// # Errors
    /// What is missing, and what to do about it.
    pub fn files(&self) -> Result<MediaFiles, String> {
        let usual = ["/usr/bin/ffmpeg", "/usr/local/bin/ffmpeg"].map(PathBuf::from);
        let found = match self.ffmpeg.as_os_str().is_empty() {
            true => usual.into_iter().find(|path| path.is_file()),
            false => Some(self.ffmpeg.clone()).filter(|path| path.is_file()),
        };
        let fix = "install ffmpeg, or set blocks.media.ffmpeg to where it is";
        let ffmpeg = found.ok_or_else(|| format!("there is no ffmpeg; fix: {fix}"))?;
        let ffprobe = ffmpeg.with_file_name("ffprobe");
        if !ffprobe.is_file() {
            return Err(format!("{} is not there; fix: install it beside ffmpeg", ffprobe.display()));
        }
        let font = match self.font.as_os_str().is_empty() {
            true => Path::new(DEJAVU).is_file().then(|| PathBuf::from(DEJAVU)),
            false if self.font.is_file() => Some(self.font.clone()),
            false => return Err(format!("{} is not there; fix: set blocks.media.font", self.font.display())),
        };
        Ok(MediaFiles { ffmpeg, ffprobe, font })
    }

    /// Returns how many jobs there may be at a time, of those whose input comes as it happens or of the others.
    pub fn shares(&self, is_live: bool) -> MediaShares {
        match is_live {
            true => MediaShares { jobs: self.live_jobs, per_user: self.live_jobs_per_user },
            false => MediaShares { jobs: self.jobs, per_user: self.jobs_per_user },
        }
    }

    /// Returns how many seconds a job may take.
    pub fn seconds(&self, is_live: bool) -> u64 {
        if is_live { self.live_time_s } else { self.time_s }
    }

    /// Returns what one job may use. A live one gets the processor time that it asks for, up to the most.
    pub fn limits(&self, live: Option<MediaLive>) -> MediaLimits {
        let pids = MediaLimits::default().container.pids;
        let (memory_bytes, disk_bytes) = (self.memory_bytes, self.input_bytes);
        let cpu_permille = match live {
            None => self.cpu_permille,
            Some(MediaLive { cpu_permille: 0, .. }) => self.live_cpu_permille,
            Some(MediaLive { cpu_permille, .. }) => cpu_permille.min(self.live_cpu_permille),
        };
        MediaLimits { container: ContainerLimits { memory_bytes, cpu_permille, pids, disk_bytes } }
    }

    /// Checks what the operator wrote.
    ///
    /// # Errors
    /// A number with which no job could run.
    pub fn check(&self) -> Result<()> {
        ensure!((1..=256).contains(&self.jobs), "blocks.media.jobs is {}, but must be 1 to 256", self.jobs);
        ensure!(self.jobs_per_user > 0, "blocks.media.jobs-per-user must not be 0");
        ensure!((1..=86_400).contains(&self.time_s), "blocks.media.time-s is {}, but must be 1 to 86400", self.time_s);
        let least = 64 * 1024 * 1024;
        ensure!(self.memory_bytes >= least, "blocks.media.memory-bytes must be {least} or more");
        ensure!(self.input_bytes > 0, "blocks.media.input-bytes must not be 0");
        ensure!(
            self.input_bytes <= self.memory_bytes / 2,
            "blocks.media.input-bytes must be half of blocks.media.memory-bytes at most, of which it is a part"
        );
        ensure!(self.cpu_permille >= 10, "blocks.media.cpu-permille must be 10 or more");
        ensure!(self.live_jobs <= 256, "blocks.media.live-jobs is {}, but must be 0 to 256", self.live_jobs);
        ensure!(self.live_jobs_per_user > 0, "blocks.media.live-jobs-per-user must not be 0");
        let live_s = self.live_time_s;
        ensure!((1..=604_800).contains(&live_s), "blocks.media.live-time-s is {live_s}, but must be 1 to 604800");
        let idle_s = self.live_idle_s;
        ensure!((1..=86_400).contains(&idle_s), "blocks.media.live-idle-s is {idle_s}, but must be 1 to 86400");
        ensure!(self.live_cpu_permille >= 10, "blocks.media.live-cpu-permille must be 10 or more");
        Ok(())
    }
}

const DEJAVU: &str = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let block = |change: fn(&mut MediaBlock)| {
            let mut block = MediaBlock::default();
            change(&mut block);
            block
        };
        assert!(MediaBlock::default().check().is_ok());
        let files = |change| block(change).files().unwrap_err();
        assert!(files(|block| block.ffmpeg = "/nowhere/ffmpeg".into()).contains("blocks.media.ffmpeg"));
        assert!(files(|block| block.ffmpeg = "/proc/self/exe".into()).contains("ffprobe"));
        for (change, named) in [
            ((|block| block.jobs = 0) as fn(&mut MediaBlock), "jobs"),
            (|block| block.jobs_per_user = 0, "jobs-per-user"),
            (|block| block.time_s = 0, "time-s"),
            (|block| block.memory_bytes = 1, "memory-bytes"),
            (|block| block.input_bytes = u64::MAX, "input-bytes"),
            (|block| block.cpu_permille = 0, "cpu-permille"),
            (|block| block.live_jobs = 257, "live-jobs"),
            (|block| block.live_jobs_per_user = 0, "live-jobs-per-user"),
            (|block| block.live_idle_s = 0, "live-idle-s"),
            (|block| block.live_time_s = 0, "live-time-s"),
            (|block| block.live_cpu_permille = 9, "live-cpu-permille"),
        ] {
            let error = block(change).check().unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_live_job_gets_what_it_asks_for_up_to_the_most() {
        let block = MediaBlock { live_cpu_permille: 400, ..MediaBlock::default() };
        let asked =
            |cpu_permille| block.limits(Some(MediaLive { cpu_permille, keep_times: false })).container.cpu_permille;
        assert_eq!([asked(0), asked(10), asked(400), asked(401)], [400, 10, 400, 400]);
        assert_eq!(block.limits(None).container.cpu_permille, block.cpu_permille);
    }
}
