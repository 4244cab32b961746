// SPDX-License-Identifier: Apache-2.0
//! Instant queries of Prometheus' HTTP API, version 1.

use anyhow::{Context, Result, bail, ensure};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, Uri};
use serde::Deserialize;
use tokio::net::TcpStream;

use crate::http::exchange;
use crate::limits::METRIC_BYTES_MAX;

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

/// Asks for the value of a query.
///
/// # Errors
/// Prometheus is away, does not understand it, or has several values for it.
pub async fn read(url: &Uri, query: &str) -> Result<f64> {
    let (host, port) = (url.host().context("the address has no host")?, url.port_u16().unwrap_or(80));
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await;
    let stream = stream.with_context(|| format!("cannot reach {url}"))?;
    let body = form_urlencoded::Serializer::new(String::new()).append_pair("query", query).finish();
    let path = format!("{}/api/v1/query", url.path().trim_end_matches('/'));
    let request = Request::post(path)
        .header("host", url.authority().map_or(host, |authority| authority.as_str()))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Full::new(Bytes::from(body)))?;
    let (status, body) = exchange(stream, request, METRIC_BYTES_MAX).await?;
    value(&body).with_context(|| format!("the answer with status {status}"))
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
}
