// SPDX-License-Identifier: Apache-2.0
//! `netserv node user`: who may do what, and by which proof.

use clap::Subcommand;
use netserv_api::UserList;
use netserv_model::api::{UsageReport, UserInfo, UserUsage};
use netserv_model::usage::Usage;
use netserv_model::{ModuleRef, PublicKey, UserId};
use serde::Serialize;

use crate::exit::{Exit, Failure, one_line};
use crate::output::{Output, Style};
use crate::report;
use crate::table::{Table, plain};
use crate::units::{format_byte_seconds, format_bytes, format_cpu};
use netserv_api::Client;

/// Show users, their rights, and their proofs
#[derive(Subcommand)]
pub enum User {
    /// List all users: those of the configuration, and others who proved their rights
    List,
    /// Show one user's rights with their proof and end, modules, and usage
    Show {
        /// The user, as `list` has it
        #[arg(value_name = "USER")]
        user: UserId,
    },
}

/// What `-j` shows of one user.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    info: UserInfo,
    usage: Option<UserUsage>,
}

impl User {
    /// Shows users.
    ///
    /// # Errors
    /// The node cannot be reached, or does not know the user.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        let mut list: UserList = client.get("/v1/users").await?;
        let User::Show { user } = self else {
            return show_all(&list, output);
        };
        list.users.retain(|info| info.user == user);
        let Some(info) = list.users.pop() else {
            return Err(Failure::new(format!("the node knows no user `{user}`"), "see `netserv node user list`"));
        };
        let used: UsageReport = client.get("/v1/usage").await?;
        let usage = used.users.into_iter().find(|used| used.user == user);
        if output.is_json() {
            output.json(&Shown { info, usage })?;
        } else {
            show(&info, usage.as_ref(), output);
        }
        Ok(Exit::Done)
    }
}

fn show_all(list: &UserList, output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(list)?;
    } else if list.users.is_empty() {
        output.note("the node knows no users");
    } else {
        let mut table = Table::new(&["USER", "PROOF", "UNTIL", "PREFIXES", "MODULES"]);
        for info in &list.users {
            let prefixes = info.may.as_ref().map_or_else(|| "-".to_owned(), |may| joined(&may.prefixes, "none"));
            let modules = joined(info.modules.iter().map(ModuleRef::to_string), "-");
            table.row([plain(&info.user), plain(one_line(&info.proof)), end(info), plain(prefixes), plain(modules)]);
        }
        table.write(output);
    }
    Ok(Exit::Done)
}

fn end(info: &UserInfo) -> (Style, String) {
    match (&info.refused, info.until) {
        (Some(_), _) => (Style::Warn, "ended".to_owned()),
        (None, Some(until)) => plain(until),
        (None, None) => plain("-"),
    }
}

fn show(info: &UserInfo, usage: Option<&UserUsage>, output: &mut Output) {
    let user = output.paint(Style::Bold, info.user.as_str());
    output.line(format!("user     {user}"));
    output.line(format!("keys     {}", joined(info.keys.iter().map(PublicKey::to_string), "none")));
    output.line(format!("proof    {}", one_line(&info.proof)));
    if let Some(until) = info.until {
        output.line(format!("until    {until}"));
    }
    if let Some(refused) = &info.refused {
        let word = output.paint(Style::Warn, "refused");
        output.line(format!("{word}  {}", one_line(refused)));
    }
    output.line(format!("modules  {}", joined(info.modules.iter().map(ModuleRef::to_string), "none")));
    for line in info.may.iter().flat_map(report::policy) {
        output.line(format!("may      {line}"));
    }
    if let Some(UserUsage { since, until, usage, .. }) = usage {
        let Usage { packets, cpu_ns, memory_byte_seconds, disk_byte_seconds, network } = usage;
        output.line(format!("used     from {since} until {until}"));
        output.line(format!(
            "         packets {} in, {} out; processor {}; memory {}; disk {}; network {} in, {} out",
            packets.packets_in,
            packets.packets_out,
            format_cpu(*cpu_ns),
            format_byte_seconds(*memory_byte_seconds),
            format_byte_seconds(*disk_byte_seconds),
            format_bytes(network.bytes_in),
            format_bytes(network.bytes_out)
        ));
    }
}

fn joined(texts: impl IntoIterator<Item = impl ToString>, nothing: &str) -> String {
    let texts: Vec<String> = texts.into_iter().map(|text| one_line(&text.to_string())).collect();
    if texts.is_empty() { nothing.to_owned() } else { texts.join(", ") }
}
