// SPDX-License-Identifier: Apache-2.0
//! SIP in a lab: Kamailio as the server, sipp as the phones.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::netns::{Lab, wait_until};
use crate::node::workspace;

/// What reached the SIP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// NOTIFY requests with Event: keep-alive.
    pub keep_alives: usize,
    /// REGISTER requests.
    pub registers: usize,
}

impl Lab {
    /// Starts Kamailio on UDP port 5060 of a machine.
    ///
    /// # Errors
    /// It does not start; its log is in the error.
    pub fn start_kamailio(&mut self, machine: &str) -> Result<()> {
        let (v4, v6) = (self.v4(machine), self.v6(machine));
        let config = workspace().join("lab/voip/kamailio.cfg");
        let mut command = self.command(machine, "/usr/sbin/kamailio");
        command.arg("-f").arg(config).args(["-DD", "-E", "-m", "32", "-M", "4"]);
        command.args(["-l", &format!("udp:{v4}:5060"), "-l", &format!("udp:[{v6}]:5060")]);
        command.arg("-Y").arg(self.dir()).arg("-P").arg(self.dir().join("kamailio.pid"));
        self.start(machine, "kamailio", &mut command)?;
        let mut ended = false;
        let up = wait_until(Duration::from_secs(10), || {
            ended = self.has_ended(machine, "kamailio");
            let sockets = self.run(machine, "ss", &["-Huln", "sport", "=", "5060"]);
            ended || sockets.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).lines().count() >= 2)
        });
        ensure!(up && !ended, "kamailio does not start:\n{}", self.log(machine, "kamailio"));
        Ok(())
    }

    /// Returns what reached Kamailio so far.
    pub fn reached_kamailio(&self, machine: &str) -> Reached {
        let log = self.log(machine, "kamailio");
        Reached { keep_alives: distinct(&log, "REACHED keep-alive "), registers: distinct(&log, "REACHED REGISTER ") }
    }

    /// Lets so many phones register and send one keep-alive each; returns how many got both answers.
    ///
    /// # Errors
    /// sipp is missing or cannot run.
    pub fn phones(&self, machine: &str, server: IpAddr, phones: usize) -> Result<usize> {
        let local: IpAddr = if server.is_ipv4() { self.v4(machine).into() } else { self.v6(machine).into() };
        let scenario = workspace().join("lab/voip/phones.xml");
        let bracketed = |address: IpAddr| match address {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("[{v6}]"),
        };
        let stats = self.dir().join(format!("phones-{}.csv", std::process::id()));
        if stats.exists() {
            std::fs::remove_file(&stats)?;
        }
        let mut command = self.command(machine, "sipp");
        command.arg(format!("{}:5060", bracketed(server))).arg("-sf").arg(scenario);
        command.args(["-i", &bracketed(local), "-p", "5061", "-nostdin", "-trace_stat", "-fd", "1", "-timeout", "20s"]);
        command.args(["-m", &phones.to_string(), "-l", &phones.to_string(), "-r", "200"]).arg("-stf").arg(&stats);
        let output = command.current_dir(self.dir()).output().context("cannot run sipp")?;
        let csv = std::fs::read_to_string(&stats).with_context(|| {
            format!("sipp wrote no statistics: {}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()))
        })?;
        column(&csv, "SuccessfulCall(C)").context("sipp's statistics have no SuccessfulCall(C)")
    }
}

/// Counts the different Call-IDs after a word: a request that is sent again because its answer is late counts once.
fn distinct(log: &str, word: &str) -> usize {
    log.lines().filter_map(|line| line.split_once(word)).map(|(_, call_id)| call_id).collect::<BTreeSet<_>>().len()
}

/// Returns the last row's value of a column.
fn column(csv: &str, name: &str) -> Option<usize> {
    let mut lines = csv.lines();
    let place = lines.next()?.split(';').position(|title| title == name)?;
    lines.next_back()?.split(';').nth(place)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_sent_again_count_once() {
        let log = "x REACHED keep-alive 1-a@h\nx REACHED REGISTER 1-a@h\nx REACHED keep-alive 1-a@h\nx REACHED keep-alive 2-a@h\n";
        assert_eq!((distinct(log, "REACHED keep-alive "), distinct(log, "REACHED REGISTER ")), (2, 1));
    }

    #[test]
    fn the_last_row_counts() {
        assert_eq!(column("A;SuccessfulCall(C);\n1;2;\n1;100;\n", "SuccessfulCall(C)"), Some(100));
        assert_eq!(column("A;B;\n1;2;\n", "C"), None);
    }
}
