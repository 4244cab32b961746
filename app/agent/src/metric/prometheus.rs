// SPDX-License-Identifier: Apache-2.0
//! Instant queries of Prometheus' HTTP API, version 1.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio_rustls::rustls::ClientConfig;

use super::tls;
use crate::config::{Credentials, Prometheus};
use crate::http::exchange;
use crate::limits::{METRIC_BYTES_MAX, SECRET_BYTES_MAX};

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    data: Option<Data>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: serde_json::Value,
}

#[derive(Deserialize)]
struct Series {
    value: Sample,
}

/// When, and the number as text.
type Sample = (f64, String);

/// One that is asked again and again.
pub struct Client {
    config: Prometheus,
    /// Whom to believe, once it is read.
    tls: Option<Arc<ClientConfig>>,
}

impl Client {
    /// Returns one that asks as it is configured.
    pub fn new(config: Prometheus) -> Client {
        Client { config, tls: None }
    }

    /// Asks for the value of the query.
    ///
    /// # Errors
    /// Prometheus is away, is not who it should be, does not understand the query, or has several values for it.
    pub async fn read(&mut self) -> Result<f64> {
        let url = self.config.url.clone();
        let is_secure = url.scheme_str() == Some("https");
        let host = url.host().context("the address has no host")?.trim_matches(['[', ']']);
        let port = url.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let stream = TcpStream::connect((host, port)).await;
        let stream = stream.with_context(|| format!("cannot reach {url}"))?;
        let request = request(&self.config)?;
        let (status, body) = if is_secure {
            let stream = tls::secure(stream, host, self.authorities()?).await.with_context(|| url.to_string())?;
            exchange(stream, request, METRIC_BYTES_MAX).await?
        } else {
            exchange(stream, request, METRIC_BYTES_MAX).await?
        };
        ensure!(![401, 403].contains(&status.as_u16()), "{url} does not let the agent ask: it answers {status}");
        value(&body).with_context(|| format!("the answer with status {status}"))
    }

    fn authorities(&mut self) -> Result<Arc<ClientConfig>> {
        let config = match &self.tls {
            Some(config) => Arc::clone(config),
            None => Arc::new(tls::client(self.config.ca.as_deref())?),
        };
        Ok(Arc::clone(self.tls.insert(config)))
    }
}

fn request(config: &Prometheus) -> Result<Request<Full<Bytes>>> {
    let url = &config.url;
    let body = form_urlencoded::Serializer::new(String::new()).append_pair("query", &config.query).finish();
    let path = format!("{}/api/v1/query", url.path().trim_end_matches('/'));
    let mut request = Request::post(path)
        .header("host", url.authority().map_or("", |authority| authority.as_str()))
        .header("content-type", "application/x-www-form-urlencoded");
    if let Some(credentials) = &config.credentials {
        request = request.header("authorization", authorization(credentials)?);
    }
    Ok(request.body(Full::new(Bytes::from(body)))?)
}

/// Returns the header's value (RFC 6750 §2.1, RFC 7617 §2).
fn authorization(credentials: &Credentials) -> Result<HeaderValue> {
    let text = match credentials {
        Credentials::Bearer(token) => format!("Bearer {}", secret(token)?),
        Credentials::Basic(user, password) => {
            format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{}", secret(password)?)))
        }
    };
    let mut value = HeaderValue::try_from(text).context("what it is shown has bytes that a header cannot have")?;
    value.set_sensitive(true);
    Ok(value)
}

/// Reads a secret, without the end of the line.
fn secret(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = File::open(path).and_then(|file| file.take(SECRET_BYTES_MAX).read_to_string(&mut text));
    file.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn value(body: &[u8]) -> Result<f64> {
    let answer: Answer = serde_json::from_slice(body).context("is not understood")?;
    if let Some(error) = answer.error {
        bail!("says: {}", error.chars().take(200).collect::<String>());
    }
    let Data { result_type, result } = answer.data.context("has no number")?;
    let text = match result_type.as_str() {
        "scalar" => serde_json::from_value::<Sample>(result)?.1,
        "vector" => {
            let series: Vec<Series> = serde_json::from_value(result)?;
            ensure!(series.len() <= 1, "has {} values; aggregate them, as by `sum(…)`", series.len());
            // What nothing is known of is none.
            series.into_iter().next().map_or_else(|| "0".to_owned(), |series| series.value.1)
        }
        _ => bail!("has more than a number"),
    };
    // It writes infinities with a sign.
    let number = text.trim_start_matches('+').parse::<f64>();
    number.with_context(|| format!("has `{}`, which is no number", text.chars().take(40).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_one_number() {
        let value = |result: &str| value(format!("{{\"status\":\"success\",\"data\":{result}}}").as_bytes());
        let good = |result: &str| value(result).unwrap();
        assert_eq!(good(r#"{"resultType":"scalar","result":[1.5,"3.25"]}"#), 3.25);
        assert_eq!(
            good(r#"{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1,"+Inf"]}]}"#),
            f64::INFINITY
        );
        assert_eq!(good(r#"{"resultType":"vector","result":[]}"#), 0.0);
        let bad = |result: &str| format!("{:#}", value(result).unwrap_err());
        let two = r#"{"resultType":"vector","result":[{"value":[1,"1"]},{"value":[1,"2"]}]}"#;
        assert!(bad(two).contains("2 values"));
        assert!(bad(r#"{"resultType":"matrix","result":[]}"#).contains("more than a number"));
        assert!(bad(r#"{"resultType":"scalar","result":[1,"many"]}"#).contains("no number"));
    }

    #[test]
    fn what_it_says_is_told_and_rubbish_is_none() {
        let error = value(br#"{"status":"error","errorType":"bad_data","error":"parse error"}"#).unwrap_err();
        assert!(error.to_string().contains("parse error"));
        for body in [&b""[..], b"{}", b"[1]", b"<html>", b"\xff"] {
            assert!(value(body).is_err());
        }
    }
    #[test]
    fn what_it_is_shown_is_read_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        let shown =
            |credentials: &Credentials| authorization(credentials).map(|value| value.to_str().unwrap().to_owned());
        let bearer = Credentials::Bearer(path.clone());
        assert!(shown(&bearer).unwrap_err().to_string().contains("cannot read"));
        std::fs::write(&path, "secret\n").unwrap();
        assert_eq!(shown(&bearer).unwrap(), "Bearer secret");
        assert_eq!(shown(&Credentials::Basic("agent".to_owned(), path.clone())).unwrap(), "Basic YWdlbnQ6c2VjcmV0");
        std::fs::write(&path, "a\nb").unwrap();
        assert!(shown(&bearer).unwrap_err().to_string().contains("cannot have"));
    }
}
