// SPDX-License-Identifier: Apache-2.0
//! `netserv node usage`: what users and their modules used.

use netserv_model::UserId;
use netserv_model::api::{UsageReport, UserUsage};
use netserv_model::usage::{Traffic, Usage};

use crate::exit::{Exit, Failure};
use crate::output::{Output, Style};
use crate::table::{Table, plain};
use crate::units::{format_byte_seconds, format_bytes, format_cpu};
use netserv_api::Client;

/// Shows what users used: all of them, or one.
///
/// # Errors
/// The node cannot be reached or refuses the call.
pub async fn run(client: &Client, user: Option<&UserId>, output: &mut Output) -> Result<Exit, Failure> {
    let mut report: UsageReport = client.get("/v1/usage").await?;
    if let Some(user) = user {
        report.users.retain(|used| used.user == *user);
        report.others = None;
    }
    if output.is_json() {
        output.json(&report)?;
    } else if report.users.is_empty() && report.others.is_none() {
        output.note("nothing was used here");
    } else {
        table(&report).write(output);
    }
    Ok(Exit::Done)
}

fn table(report: &UsageReport) -> Table {
    let mut table = Table::new(&[
        "USER",
        "MODULE",
        "PACKETS IN",
        "BYTES IN",
        "PACKETS OUT",
        "BYTES OUT",
        "CPU",
        "MEMORY",
        "DISK",
        "NETWORK IN",
        "NETWORK OUT",
    ]);
    for UserUsage { user, since, until, usage, modules } in &report.users {
        table.row(row(plain(user), plain("(all)"), usage));
        table.note(format!("from {since} until {until}"));
        for module in modules {
            let [packets_in, bytes_in, packets_out, bytes_out] = traffic(&module.packets);
            let first = [plain(user), plain(&module.module), packets_in, bytes_in, packets_out, bytes_out];
            let none = || plain("-");
            table.row(first.into_iter().chain([plain(format_cpu(module.cpu_ns)), none(), none(), none(), none()]));
        }
    }
    if let Some(others) = &report.others {
        table.row(row(plain("(others)"), plain("(all)"), others));
    }
    table
}

type Cell = (Style, String);

fn row(user: Cell, module: Cell, usage: &Usage) -> impl Iterator<Item = Cell> {
    let Usage { packets, cpu_ns, memory_byte_seconds, disk_byte_seconds, network } = usage;
    let held = [*memory_byte_seconds, *disk_byte_seconds].map(|held| plain(format_byte_seconds(held)));
    let network = [network.bytes_in, network.bytes_out].map(|bytes| plain(format_bytes(bytes)));
    let rest = [plain(format_cpu(*cpu_ns))].into_iter().chain(held).chain(network);
    [user, module].into_iter().chain(traffic(packets)).chain(rest)
}

fn traffic(traffic: &Traffic) -> [Cell; 4] {
    let Traffic { packets_in, bytes_in, packets_out, bytes_out } = *traffic;
    [plain(packets_in), plain(format_bytes(bytes_in)), plain(packets_out), plain(format_bytes(bytes_out))]
}
