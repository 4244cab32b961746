// SPDX-License-Identifier: Apache-2.0
//! The developer's file `netserv.toml`: what a module is to nodes, how it is built, and its tests.
//!
//! The file stays with the developer. Nodes get the [`Manifest`] that [`Project::parse`] derives from it, which has
//! neither tests nor build keys. Whoever writes the file is told of every key that is not known here; see
//! [`netserv_model::manifest`] for how nodes of other versions deal with keys.
#![forbid(unsafe_code)]

mod cases;
mod error;
mod file;
pub mod limits;
mod lines;
#[cfg(test)]
mod tests;

use netserv_model::manifest::{MANIFEST_VERSION, Manifest};

pub use self::cases::{
    HttpTest, PacketTest, TcpOutcome, TcpSide, TcpStep, TcpTest, TestBytes, test_client, test_server,
};
pub use self::error::ProjectError;
pub use self::file::{Build, Tls};
pub use self::lines::{line_about, line_of};
use crate::file::ProjectFile;
use crate::limits::PROJECT_BYTES_MAX;

/// The file's name in a module's folder.
pub const PROJECT_FILE: &str = "netserv.toml";

/// A module's project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// What its packages say to nodes.
    pub manifest: Manifest,
    /// The files of its certificate, if its manifest has `tls`.
    pub tls: Option<Tls>,
    /// How `netserv module build` makes the code.
    pub build: Build,
    /// Recorded packets that go in and must come out.
    pub tests: Vec<PacketTest>,
    /// HTTP requests with the responses they must have.
    pub http_tests: Vec<HttpTest>,
    /// TCP connections with the bytes that must come out.
    pub tcp_tests: Vec<TcpTest>,
}

impl Project {
    /// Reads the text of a project's file; unknown keys are refused.
    ///
    /// # Errors
    /// The text is no TOML, or says something that is not understood or makes no sense.
    pub fn parse(text: &str) -> Result<Project, ProjectError> {
        if text.len() > PROJECT_BYTES_MAX {
            return Err(ProjectError::new(None, format!("{} bytes, at most {PROJECT_BYTES_MAX}", text.len())));
        }
        let file: ProjectFile = toml::from_str(text).map_err(|error| ProjectError::of_toml(text, &error))?;
        if file.manifest != MANIFEST_VERSION {
            let cause = format!("`manifest = {}`, understood is {MANIFEST_VERSION}", file.manifest);
            return Err(ProjectError::new(line_of(text, "", "manifest"), cause));
        }
        let project = file.into_project();
        let checked = project.manifest.check();
        checked.map_err(|refusal| ProjectError::new(line_about(text, &refusal.detail), refusal.detail))?;
        Ok(project)
    }

    /// Returns whether there is a test of any kind.
    pub fn has_tests(&self) -> bool {
        !self.tests.is_empty() || self.has_server_tests()
    }

    /// Returns whether there is a test of the server part.
    pub fn has_server_tests(&self) -> bool {
        !(self.http_tests.is_empty() && self.tcp_tests.is_empty())
    }
}

/// Returns the JSON Schema of the project's file, as published in `docs/schemas`.
pub fn schema() -> String {
    let schema = schemars::schema_for!(ProjectFile);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
