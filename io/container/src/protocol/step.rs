// SPDX-License-Identifier: Apache-2.0
//! Steps that can fail, by name.

use std::io;

use serde::{Deserialize, Serialize};

/// A step that failed, and why.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StepError {
    pub(crate) step: String,
    pub(crate) detail: String,
}

pub(crate) fn step_error(step: &str, detail: &impl ToString) -> StepError {
    StepError { step: step.to_owned(), detail: detail.to_string() }
}

/// Names the step that failed.
pub(crate) trait Step<T> {
    fn step(self, step: &str) -> Result<T, StepError>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: &str) -> Result<T, StepError> {
        self.map_err(|error| step_error(step, &error.into()))
    }
}
