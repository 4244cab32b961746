// SPDX-License-Identifier: Apache-2.0
//! A user's store, to which nodes write states and from which they fetch them.

use netserv_model::api::RequestResult;
use netserv_model::request::Outcome;

/// Returns what a node did with a request.
pub fn outcome_of(result: &RequestResult, node: &str) -> Outcome {
    let report = result.nodes.iter().find(|report| report.node.as_str() == node);
    report.unwrap_or_else(|| panic!("{node} says nothing: {result:?}")).outcome.clone()
}
