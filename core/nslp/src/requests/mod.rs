// SPDX-License-Identifier: Apache-2.0
//! Requests on their way: from clients and peers to the controller and the next node, and their answers back.

mod arriving;
mod ask;
mod due;
mod local;
mod progress;
mod responses;
mod routes;
mod state;
mod statuses;

pub(crate) use arriving::{on_bad, on_request};
pub(crate) use due::{answers_due, copies_due, leases_due};
pub(crate) use local::on_local;
pub(crate) use progress::on_report;
pub(crate) use responses::on_response;
pub(crate) use routes::on_notification;
pub(crate) use state::Requests;
pub(crate) use statuses::{on_api_error, on_status};
