// SPDX-License-Identifier: Apache-2.0
//! A module's source: its folder, its project, and the files that become parts of its package.

use std::path::{Path, PathBuf};

use netserv_project::{PROJECT_FILE, Project, ProjectError, line_of};
use netserv_repository::Part;

use crate::exit::{Failure, OrFail};

/// A module's source: its folder and its project.
pub struct Source {
    /// The project's file.
    pub path: PathBuf,
    /// The folder.
    pub dir: PathBuf,
    /// The project as it was read.
    pub project: Project,
    /// The text of the project's file.
    pub text: String,
}

impl Source {
    /// Reads the project of a module's folder.
    ///
    /// # Errors
    /// There is none, or it is not as it should be.
    pub fn read(dir: &Path) -> Result<Source, Failure> {
        if dir.is_file() {
            let cause = format!("{} is a file, and no module's folder", dir.display());
            return Err(Failure::new(cause, "name the folder that netserv.toml is in"));
        }
        Source::of_project(dir.join(PROJECT_FILE))
    }

    /// Reads a project's file, which lies in the module's folder.
    ///
    /// # Errors
    /// There is none, or it is not as it should be.
    pub fn of_project(path: PathBuf) -> Result<Source, Failure> {
        let dir = path.parent().map(Path::to_owned).unwrap_or_default();
        let shown = path.display();
        let missing = "name a module's folder, or make one with `netserv module new`";
        let text = std::fs::read_to_string(&path).or_fail(format!("cannot read {shown}"), missing)?;
        let project = Project::parse(&text).map_err(|error| bad_project(&path, &error))?;
        Ok(Source { path, dir, project, text })
    }

    /// Returns where each part is, of which there is at least one unless the module is a service.
    ///
    /// # Errors
    /// The project's file does not say.
    pub fn parts(&self) -> Result<Vec<PartFile>, Failure> {
        let build = &self.project.build;
        let named = [(Part::Core, &build.wasm), (Part::Component, &build.component), (Part::Bundle, &build.bundle)];
        let file = |(part, file): (Part, &Option<String>)| Some(PartFile::of(part, self.dir.join(file.as_ref()?)));
        let parts: Vec<PartFile> = named.into_iter().filter_map(file).collect();
        if parts.is_empty() && self.project.manifest.service.is_none() {
            let cause = format!("{} does not say which file is the code", self.path.display());
            let fix = "add `wasm = \"FILE\"`, `component = \"FILE\"` or `bundle = \"FILE\"` below [build]";
            return Err(Failure::new(cause, fix));
        }
        Ok(parts)
    }

    /// Returns the certificate and its key as one part, if the project has them.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn tls(&self) -> Result<Option<PartFile>, Failure> {
        let Some(tls) = &self.project.tls else { return Ok(None) };
        let mut pem = Vec::new();
        for (key, file) in [("certificate", &tls.certificate), ("key", &tls.key)] {
            let path = self.dir.join(file);
            let place = self.place("server.tls", key).or_else(|| self.place("server", "tls"));
            let doing = format!("{}`{key}` names {}, which cannot be read", self.at(place), path.display());
            pem.extend(
                std::fs::read(&path).or_fail(doing, format!("put the PEM file there, or mend {}", self.shown()))?,
            );
            if !pem.ends_with(b"\n") {
                pem.push(b'\n');
            }
        }
        let path = self.dir.join(&tls.certificate);
        Ok(Some(PartFile { bytes: pem, ..PartFile::of(Part::Tls, path) }))
    }

    /// Returns the project's file as it was named.
    pub fn shown(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// Returns the line of the project's file in which a key of a section is, or the section without a key.
    pub fn place(&self, section: &str, key: &str) -> Option<usize> {
        line_of(&self.text, section, key)
    }

    /// Returns the project's file and a line of it, to stand before what is wrong there.
    pub fn at(&self, line: Option<usize>) -> String {
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        format!("{}: {line}", self.shown())
    }

    /// Returns the package's usual place.
    pub fn package_path(&self) -> PathBuf {
        let name = self.project.manifest.name.as_str();
        let last = name.rsplit('/').next().unwrap_or(name);
        self.dir.join(format!("{last}-{}.nsm", self.project.manifest.version))
    }
}

/// A file that becomes a part of a package.
#[derive(Debug)]
pub struct PartFile {
    /// Which part.
    pub part: Part,
    /// The file.
    pub path: PathBuf,
    /// What is in it, once it was read.
    pub bytes: Vec<u8>,
}

impl PartFile {
    /// Names a file that was not read.
    pub fn of(part: Part, path: PathBuf) -> PartFile {
        PartFile { part, path, bytes: Vec::new() }
    }

    /// Returns the key below [build] that names the part; the certificate has none there.
    pub fn key(&self) -> &'static str {
        match self.part {
            Part::Core => "wasm",
            Part::Component => "component",
            Part::Bundle => "bundle",
            Part::Tls => "tls",
        }
    }
}

/// Says what is wrong with a project's file.
fn bad_project(path: &Path, error: &ProjectError) -> Failure {
    let shown = path.display();
    let fix = match &error.meant {
        Some(name) => format!("write `{name}` in {shown}"),
        None => format!("mend {shown}"),
    };
    Failure::new(format!("{shown}: {error}"), fix)
}
