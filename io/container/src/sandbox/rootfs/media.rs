// SPDX-License-Identifier: Apache-2.0
//! The root of media jobs: ffmpeg, ffprobe, a font, and the libraries that the loader lists for the programs.
//!
//! Those are some two hundred, and every mount in the launcher's namespace costs each start of a container some time,
//! be it of a job or not. So the root has an empty file for each, over which a job's process mounts it for itself.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::libraries::{libraries_up_to, library_path};
use super::mount::{READ_ONLY, READ_ONLY_DATA, bind, inside};
use super::template::Template;
use crate::limits::MEDIA_LIBRARIES_MAX;
use crate::protocol::MediaSetup;
use crate::sandbox::paths::{DATA, FONT};

/// Which of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Program {
    Ffmpeg,
    Ffprobe,
}

impl Program {
    /// Returns where it is inside the sandbox.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Program::Ffmpeg => "/ffmpeg",
            Program::Ffprobe => "/ffprobe",
        }
    }
}

/// A root with what has yet to be put into it.
#[derive(Debug)]
pub(crate) struct MediaRoot {
    pub(crate) template: Template,
    files: Vec<(PathBuf, PathBuf, u64)>,
}

impl MediaRoot {
    /// Builds the root, in this process's mount namespace, which is its own.
    pub(crate) fn build(setup: &MediaSetup) -> io::Result<MediaRoot> {
        let files = &setup.files;
        let mut libraries = libraries_up_to(MEDIA_LIBRARIES_MAX, &files.ffmpeg, &[], &[])?;
        libraries.extend(libraries_up_to(MEDIA_LIBRARIES_MAX, &files.ffprobe, &[], &[])?);
        libraries.sort();
        libraries.dedup();
        let library_path = library_path(&libraries);
        let programs = [(Program::Ffmpeg, &files.ffmpeg), (Program::Ffprobe, &files.ffprobe)];
        let programs = programs.map(|(program, file)| (file.clone(), PathBuf::from(program.path()), READ_ONLY));
        let font = files.font.iter().map(|font| (font.clone(), PathBuf::from(FONT), READ_ONLY_DATA));
        let libraries = libraries.into_iter().map(|file| (file.clone(), file, READ_ONLY));
        let files: Vec<(PathBuf, PathBuf, u64)> = programs.into_iter().chain(font).chain(libraries).collect();
        let options = [("size", "1m"), ("nr_inodes", "2048"), ("mode", "755")];
        let template = Template::build(&setup.root, &options, || {
            for (_, target, _) in &files {
                let target = inside(&setup.root, target);
                fs::create_dir_all(target.parent().expect("a file has a directory"))?;
                File::create(target)?;
            }
            // Where ffmpeg keeps what may have to be read twice.
            std::os::unix::fs::symlink(DATA, inside(&setup.root, Path::new("/tmp")))?;
            Ok(vec![])
        })?;
        Ok(MediaRoot { template: Template { library_path, ..template }, files })
    }

    /// Puts the files into the root, in the mount namespace of a process that is about to enter it.
    pub(crate) fn fill(&self) -> io::Result<()> {
        let root: &Path = &self.template.path;
        self.files.iter().try_for_each(|(source, target, attributes)| bind(source, &inside(root, target), *attributes))
    }
}
