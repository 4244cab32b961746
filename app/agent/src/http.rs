// SPDX-License-Identifier: Apache-2.0
//! One request over a connection of its own.

use anyhow::{Result, anyhow};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::task::Task;

/// Sends a request, and returns the answer, of which at most `bytes_max` are read.
///
/// # Errors
/// The connection breaks, or the answer is longer.
pub async fn exchange<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    request: Request<Full<Bytes>>,
    bytes_max: usize,
) -> Result<(StatusCode, Bytes)> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let _connection = Task(tokio::spawn(connection));
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), bytes_max).collect().await;
    Ok((status, body.map_err(|error| anyhow!("the answer breaks off: {error}"))?.to_bytes()))
}
