// SPDX-License-Identifier: Apache-2.0
//! What all answers of the API have in common.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use netserv_api::{ApiError, LogLine};

/// Says that nobody answers any more.
pub fn stopping() -> Response {
    error(StatusCode::SERVICE_UNAVAILABLE, "the node is stopping", "start netservd again")
}

/// Says what is wrong and what to do about it.
pub fn error(status: StatusCode, error: &str, fix: &str) -> Response {
    (status, Json(ApiError { error: error.to_owned(), fix: fix.to_owned() })).into_response()
}

/// Returns lines of the log as lines of JSON.
pub fn json_lines(lines: &[LogLine]) -> String {
    // Plain data always serialises.
    lines.iter().filter_map(|line| serde_json::to_string(line).ok()).flat_map(|json| [json, "\n".into()]).collect()
}
