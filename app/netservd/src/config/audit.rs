// SPDX-License-Identifier: Apache-2.0
//! What the audit log may take of the disk.

use anyhow::{Result, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{
    AUDIT_FILE_BYTES, AUDIT_FILE_BYTES_MAX, AUDIT_FILE_BYTES_MIN, AUDIT_FILES, AUDIT_FILES_MAX, AUDIT_FILES_MIN,
};

/// The log of who asked what, who decided, and by which evidence: files in `state-dir`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Audit {
    /// Whether there is one.
    pub enabled: bool,
    /// Bytes of one file, 64 KiB to 1 GiB.
    pub file_bytes_max: u64,
    /// Files, 2 to 256; the oldest is deleted for a new one.
    pub files_max: usize,
}

impl Default for Audit {
    fn default() -> Audit {
        Audit { enabled: true, file_bytes_max: AUDIT_FILE_BYTES, files_max: AUDIT_FILES }
    }
}

impl Audit {
    /// Checks the values.
    ///
    /// # Errors
    /// The error names the key.
    pub fn check(&self) -> Result<()> {
        let Audit { enabled: _, file_bytes_max, files_max } = *self;
        ensure!(
            (AUDIT_FILE_BYTES_MIN..=AUDIT_FILE_BYTES_MAX).contains(&file_bytes_max),
            "audit.file-bytes-max is {file_bytes_max}, but must be from {AUDIT_FILE_BYTES_MIN} to {AUDIT_FILE_BYTES_MAX}"
        );
        ensure!(
            (AUDIT_FILES_MIN..=AUDIT_FILES_MAX).contains(&files_max),
            "audit.files-max is {files_max}, but must be from {AUDIT_FILES_MIN} to {AUDIT_FILES_MAX}"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::limits::{AUDIT_FILE_BYTES_MAX, AUDIT_FILE_BYTES_MIN, AUDIT_FILES_MAX, AUDIT_FILES_MIN};

    #[test]
    fn the_log_has_room_within_bounds() {
        let takes = |key: &str, value: u64| Config::parse(&format!("[audit]\n{key} = {value}")).is_ok();
        let (files_min, files_max) = (AUDIT_FILES_MIN as u64, AUDIT_FILES_MAX as u64);
        let bytes = ("file-bytes-max", AUDIT_FILE_BYTES_MIN, AUDIT_FILE_BYTES_MAX);
        for (key, min, max) in [bytes, ("files-max", files_min, files_max)] {
            assert!(takes(key, min) && takes(key, max) && !takes(key, min - 1) && !takes(key, max + 1), "{key}");
        }
    }
}
