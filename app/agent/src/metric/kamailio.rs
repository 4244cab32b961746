// SPDX-License-Identifier: Apache-2.0
//! Statistics of Kamailio by JSON-RPC over datagrams, as its module `jsonrpcs` answers them (`dgram_socket`).

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram as StdUnixDatagram};
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use rand::TryRng as _;
use serde::Deserialize;
use tokio::net::UnixDatagram;

use crate::limits::METRIC_BYTES_MAX;

#[derive(Deserialize)]
struct Answer {
    id: u64,
    #[serde(default)]
    result: Option<Vec<String>>,
    #[serde(default)]
    error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Uptime {
    id: u64,
    result: UpSince,
}

#[derive(Deserialize)]
struct UpSince {
    up_since: String,
}

#[derive(Deserialize)]
struct Done {
    id: u64,
    #[serde(default)]
    error: Option<serde_json::Value>,
}

/// Asks for a statistic, such as `core:rcv_requests`, or the sum of some with `+` between.
///
/// # Errors
/// Kamailio is away, or has no such statistic.
pub async fn read(socket: &Path, statistic: &str) -> Result<f64> {
    // It wants names without their groups, and answers with them.
    let bare = |name: &str| name.split_once(':').map_or(name, |(_, name)| name).to_owned();
    let names: Vec<String> = statistic.split('+').map(bare).collect();
    let (answer, id) = ask(socket, "stats.get_statistics", &names).await?;
    value(&answer, id, statistic)
}

/// Asks since when this Kamailio runs, in its own words, which are others after a restart.
///
/// # Errors
/// Kamailio is away.
pub async fn up_since(socket: &Path) -> Result<String> {
    let (answer, id) = ask(socket, "core.uptime", &[]).await?;
    begun(&answer, id)
}

/// Has Kamailio do something that it answers with no more than whether it did.
///
/// # Errors
/// Kamailio is away, or does not do it.
pub async fn call(socket: &Path, method: &str) -> Result<()> {
    let (answer, id) = ask(socket, method, &[]).await?;
    let answer: Done = serde_json::from_slice(&answer).context("the answer of Kamailio is not understood")?;
    ensure!(answer.id == id, "Kamailio answers another question");
    answer.error.map_or(Ok(()), |error| Err(refused(&error)))
}

/// Asks something, and returns the answer, and the number that it should have.
async fn ask(socket: &Path, method: &str, params: &[String]) -> Result<(Vec<u8>, u64)> {
    // Its answer needs an address; one without a file leaves nothing.
    let mut name = [0; 16];
    rand::rngs::SysRng.try_fill_bytes(&mut name)?;
    let own = StdUnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    own.set_nonblocking(true)?;
    let own = UnixDatagram::from_std(own)?;
    let id = u64::from(name[0]) << 8 | u64::from(name[1]);
    let call = serde_json::json!({ "jsonrpc": "2.0", "method": method, "params": params, "id": id });
    let sent = own.send_to(call.to_string().as_bytes(), socket).await;
    sent.with_context(|| format!("cannot reach Kamailio at {}", socket.display()))?;
    let mut answer = vec![0; METRIC_BYTES_MAX];
    let length = own.recv(&mut answer).await?;
    answer.truncate(length);
    Ok((answer, id))
}

fn refused(error: &serde_json::Value) -> anyhow::Error {
    anyhow!("Kamailio says: {}", error.to_string().chars().take(200).collect::<String>())
}

fn begun(answer: &[u8], id: u64) -> Result<String> {
    let answer: Uptime = serde_json::from_slice(answer).context("the answer of Kamailio is not understood")?;
    ensure!(answer.id == id, "Kamailio answers another question");
    Ok(answer.result.up_since)
}

fn value(answer: &[u8], id: u64, statistic: &str) -> Result<f64> {
    let answer: Answer = serde_json::from_slice(answer).context("the answer of Kamailio is not understood")?;
    ensure!(answer.id == id, "Kamailio answers another question");
    if let Some(error) = answer.error {
        return Err(refused(&error));
    }
    // Each is a line such as `core:rcv_requests = 17`.
    let lines = answer.result.unwrap_or_default();
    let mut sum = 0.0;
    for wanted in statistic.split('+') {
        let number = lines.iter().find_map(|line| line.split_once('=').filter(|(name, _)| name.trim() == wanted));
        let (_, number) = number.with_context(|| format!("Kamailio has no statistic `{wanted}`"))?;
        sum += number.trim().parse::<f64>().with_context(|| format!("`{wanted}` of Kamailio is no number"))?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kamailio_says_since_when_it_runs() {
        let answer = |id: u64| {
            let up = r#"{ "now": "Sun Nov 29 11:00:02 2026", "up_since": "Sun Nov 29 11:00:00 2026", "uptime": 2 }"#;
            begun(format!("{{\"jsonrpc\": \"2.0\",\n\"result\": {up}, \"id\": {id}}}").as_bytes(), 7)
        };
        assert_eq!(answer(7).unwrap(), "Sun Nov 29 11:00:00 2026");
        assert!(answer(8).is_err() && begun(b"{}", 7).is_err());
    }

    #[test]
    fn a_statistic_is_one_line_of_the_answer() {
        let value = |answer: &str| value(answer.as_bytes(), 7, "core:rcv_requests");
        let two = r#"{"jsonrpc":"2.0","result":["core:fwd_requests = 1","core:rcv_requests = 17"],"id":7}"#;
        assert_eq!(value(two).unwrap(), 17.0);
        assert_eq!(super::value(two.as_bytes(), 7, "core:rcv_requests+core:fwd_requests").unwrap(), 18.0);
        let error = |answer: &str| format!("{:#}", value(answer).unwrap_err());
        assert!(error(&two.replace("rcv", "xyz")).contains("no statistic"));
        assert!(error(&two.replace("17", "many")).contains("no number"));
        assert!(error(&two.replace("\"id\":7", "\"id\":8")).contains("another question"));
        assert!(
            error(r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method Not Found"},"id":7}"#)
                .contains("Not Found")
        );
        for rubbish in ["", "{}", "[]", "{\"id\":7,\"result\":5}"] {
            assert!(value(rubbish).is_err());
        }
    }
}
