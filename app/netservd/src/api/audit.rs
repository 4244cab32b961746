// SPDX-License-Identifier: Apache-2.0
//! `GET /v1/audit`: the audit log as it is in its files, and whether it is whole.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::vec::IntoIter;

use axum::Json;
use axum::body::Body;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use netserv_audit::limits::READ_BYTES;
use netserv_audit::{Found, Reader, Wanted};
use netserv_model::UnixTime;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::error;
use crate::audit::folder::Folder;
use crate::limits::AUDIT_READERS_MAX;

/// Reads the log for clients, a few at a time.
#[derive(Clone)]
pub struct AuditFiles {
    folder: Folder,
    places: Arc<Semaphore>,
}

/// What a client wants of the log.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct AuditQuery {
    /// Since this time, in milliseconds since 1970.
    since: Option<u64>,
    /// Of this user only.
    user: Option<netserv_model::UserId>,
}

/// A client that reads.
struct Reading {
    files: IntoIter<File>,
    file: Option<File>,
    reader: Reader,
    wanted: Wanted,
    _place: OwnedSemaphorePermit,
}

impl AuditFiles {
    /// Reads the log of a folder.
    pub fn new(folder: Folder) -> AuditFiles {
        AuditFiles { folder, places: Arc::new(Semaphore::new(AUDIT_READERS_MAX)) }
    }

    /// Answers with the lines that are there.
    pub async fn get(&self, query: Result<Query<AuditQuery>, QueryRejection>) -> Response {
        let AuditQuery { since, user } = match query {
            Ok(Query(query)) => query,
            Err(rejection) => {
                let fix = "see the parameters in /v1/openapi.json";
                return error(StatusCode::BAD_REQUEST, &rejection.body_text(), fix);
            }
        };
        let wanted = Wanted { since: since.map(UnixTime), user };
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return busy() };
        let folder = self.folder.clone();
        let files = match blocking(move || folder.read()).await {
            Ok(files) => files.into_iter(),
            Err(cause) => return unreadable(&cause),
        };
        let reading = Reading { files, file: None, reader: Reader::default(), wanted, _place: place };
        let stream = futures_util::stream::unfold(reading, |reading| async {
            let (reading, text) = blocking(move || Ok(reading.next())).await.ok()?;
            Some((Ok::<_, Infallible>(text?), reading))
        });
        ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(stream)).into_response()
    }

    /// Answers whether the log is whole.
    pub async fn verify(&self) -> Response {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return busy() };
        let folder = self.folder.clone();
        let report = blocking(move || folder.verify()).await;
        drop(place);
        report.map_or_else(|cause| unreadable(&cause), |report| Json(report).into_response())
    }
}

impl Reading {
    /// Reads on until there is something that is wanted, or nothing more.
    fn next(mut self) -> (Reading, Option<String>) {
        let mut buffer = vec![0; READ_BYTES];
        let mut text = String::new();
        while text.is_empty() {
            if self.file.is_none() {
                self.file = self.files.next();
            }
            let Some(file) = &mut self.file else { return (self, None) };
            let wanted = &self.wanted;
            let mut found = |found: Found<'_>| {
                if let Found::Line(line, line_text) = found
                    && wanted.wants(&line)
                {
                    text.push_str(line_text);
                    text.push('\n');
                }
            };
            // What cannot be read is missing, which `verify` finds.
            match file.read(&mut buffer).unwrap_or(0) {
                0 => {
                    self.reader.end_file(&mut found);
                    self.file = None;
                }
                bytes => self.reader.take(&buffer[..bytes], &mut found),
            }
        }
        (self, Some(text))
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn unreadable(cause: &io::Error) -> Response {
    let cause = format!("the audit log cannot be read: {cause}");
    error(StatusCode::INTERNAL_SERVER_ERROR, &cause, "look at the folder `audit` in `state-dir`")
}

fn busy() -> Response {
    let cause = format!("{AUDIT_READERS_MAX} clients read the audit log already");
    error(StatusCode::SERVICE_UNAVAILABLE, &cause, "try again when one of them has ended")
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::Uri;
    use netserv_model::audit::{AuditEntry, AuditReport};

    use super::*;
    use crate::audit::folder::End;
    use crate::limits::{AUDIT_FILE_BYTES_MIN, AUDIT_FILES};

    /// A log of several files, with a line of jane's at each hour and one of john's beside it.
    fn log(hours: u64) -> (tempfile::TempDir, AuditFiles) {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::of(dir.path(), AUDIT_FILE_BYTES_MIN, AUDIT_FILES);
        let mut end = End::open(folder.clone()).unwrap();
        for hour in 0..hours {
            for user in ["jane", "john"] {
                let time = UnixTime::from_secs(3600 * hour);
                let entry = AuditEntry::new(time, "n1".parse().unwrap(), "SETUP", "installed", &"x".repeat(400));
                end.add(AuditEntry { user: Some(user.parse().unwrap()), ..entry }).unwrap();
            }
        }
        (dir, AuditFiles::new(folder))
    }

    async fn ask(files: &AuditFiles, query: &str) -> (StatusCode, String) {
        let uri: Uri = format!("/v1/audit?{query}").parse().unwrap();
        let response = files.get(Query::try_from_uri(&uri)).await;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_client_gets_the_lines_that_it_asks_for() {
        let (_dir, files) = log(300);
        for (query, lines) in [
            ("", 600),
            ("user=jane", 300),
            ("user=joan", 0),
            ("since=0", 600),
            (&format!("since={}", 3_600_000 * 290), 20),
            (&format!("since={}&user=john", 3_600_000 * 299), 1),
            ("since=99999999999", 0),
        ] {
            let (status, text) = ask(&files, query).await;
            assert_eq!((status, text.lines().count()), (StatusCode::OK, lines), "{query}");
        }
        for query in ["since=x", "user=Jane%20Doe"] {
            assert_eq!(ask(&files, query).await.0, StatusCode::BAD_REQUEST);
        }
        let report = to_bytes(files.verify().await.into_body(), usize::MAX).await.unwrap();
        let report: AuditReport = serde_json::from_slice(&report).unwrap();
        assert_eq!((report.lines, report.broken), (600, None));
    }

    #[tokio::test]
    async fn audit_readers_max_clients_read_at_a_time() {
        let (_dir, files) = log(1);
        let uri: Uri = "/v1/audit".parse().unwrap();
        let mut reading = Vec::new();
        for _ in 0..AUDIT_READERS_MAX {
            reading.push(files.get(Query::try_from_uri(&uri)).await);
        }
        assert_eq!(ask(&files, "").await.0, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(files.verify().await.status(), StatusCode::SERVICE_UNAVAILABLE);
        reading.pop();
        assert_eq!(ask(&files, "").await.0, StatusCode::OK);
    }
}
