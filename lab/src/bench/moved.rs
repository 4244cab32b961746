// SPDX-License-Identifier: Apache-2.0
//! A path that moves: from the kernel's new route to the module on the new path.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use netserv_api::ModuleList;
use netserv_model::request::Outcome;

use super::goals::Goal;
use super::summary::{Figure, Row};
use super::{Plan, progress};
use crate::moving::{address, lead_through, up};
use crate::netns::{Lab, wait_until};
use crate::node::{LabPackage, LabUser};

/// Until then, a module is taken for not coming, or not going.
const WAIT: Duration = Duration::from_secs(90);
/// Between two moves.
const BETWEEN: Duration = Duration::from_millis(500);

/// Measures moves between two nodes, over IPv4 and over IPv6.
///
/// # Errors
/// A module does not come, or stays where the path led.
pub fn measure(plan: &Plan) -> Result<Figure> {
    let (lab, user) = up("afxdp")?;
    let package = lab.package("net-monitor", &user)?;
    let url = lab.publish("sender", &package)?;
    let mut rows = Vec::new();
    for (version, six) in [("IPv4", false), ("IPv6", true)] {
        lead_through(&lab, "na", six)?;
        install(&lab, &user, &package, &url, six)?;
        let (mut came, mut left) = (Vec::new(), Vec::new());
        for at in 0..plan.moves {
            let (new, old) = if at % 2 == 0 { ("nb", "na") } else { ("na", "nb") };
            let begun = Instant::now();
            lead_through(&lab, new, six)?;
            ensure!(wait_until(WAIT, || has(&lab, new) == Some(true)), "{new} is on the path and has no module");
            came.push(begun.elapsed().as_secs_f64());
            ensure!(wait_until(WAIT, || has(&lab, old) == Some(false)), "{old} is off the path and keeps its module");
            left.push(begun.elapsed().as_secs_f64());
            std::thread::sleep(BETWEEN);
        }
        remove(&lab, &user, &package, six)?;
        progress(&format!("moves over {version}"));
        rows.push(Row::new(format!("{version}: the new path has the module"), "s", &came).goal(Goal::MovedRoute));
        rows.push(Row::new(format!("{version}: the node that was left has it no more"), "s", &left));
    }
    let how = "sender (host) – n1 – na – plain router – receiver, and n1 – nb – plain router; net-monitor is installed along the \
               path, and n1's kernel gets a route through the other node, and back again. From before `ip route replace` starts \
               until the node on the new path lists the module, which it has in its store from the second move on.";
    Ok(Figure { name: "Moved routes", how: how.to_owned(), rows })
}

fn install(lab: &Lab, user: &LabUser, package: &LabPackage, url: &str, six: bool) -> Result<()> {
    let (file, key) = (package.path.to_string_lossy().into_owned(), user.key.to_string_lossy().into_owned());
    let (to, filter) = (address(lab, "receiver", six), format!("udp src {}", address(lab, "sender", six)));
    let what = ["setup", &file, "--to", &to, "--url", url, "--filter", &filter, "--ttl", "600"];
    let result = lab.request("sender", &[&what[..], &["--user", &user.name, "--key", &key]].concat())?;
    let installed = result.nodes.iter().filter(|node| matches!(node.outcome, Outcome::Installed { .. })).count();
    ensure!(installed == 2 && result.incomplete.is_none(), "not installed on n1 and na: {result:?}");
    Ok(())
}

fn remove(lab: &Lab, user: &LabUser, package: &LabPackage, six: bool) -> Result<()> {
    let key = user.key.to_string_lossy().into_owned();
    let name = package.module.split('@').next().unwrap_or_default();
    let what = ["remove", name, "--to", &address(lab, "receiver", six), "--user", &user.name, "--key", &key];
    lab.request("sender", &what)?;
    let gone = || ["n1", "na", "nb"].iter().all(|node| has(lab, node) == Some(false));
    ensure!(wait_until(WAIT, gone), "a node keeps what was removed");
    Ok(())
}

/// Returns whether a node has a module, if it answers.
fn has(lab: &Lab, node: &str) -> Option<bool> {
    let list: ModuleList = serde_json::from_str(&lab.get(node, "/v1/modules").ok()?).ok()?;
    Some(!list.modules.is_empty())
}
