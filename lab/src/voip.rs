// SPDX-License-Identifier: Apache-2.0
//! SIP in a lab: Kamailio as the server, sipp as the phones.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::netns::Lab;
use crate::node::workspace;
use crate::patience::grown;

/// How long Kamailio may take to answer at its socket, and phones to register and keep alive once, on a machine that is not busy.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
const PHONES_WAIT: Duration = Duration::from_secs(20);

/// What reached the SIP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// NOTIFY requests with Event: keep-alive.
    pub keep_alives: usize,
    /// REGISTER requests.
    pub registers: usize,
}

/// What a phone that stays registered did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phone {
    /// Registrations that were confirmed.
    pub registrations: usize,
    /// Keep-alives that it sent.
    pub sent: usize,
    /// Keep-alives that were answered within half a second.
    pub answered: usize,
}

impl Lab {
    /// Starts Kamailio on UDP port 5060 of a machine: it takes every REGISTER and keeps none.
    ///
    /// # Errors
    /// It does not start; its log is in the error.
    pub fn start_kamailio(&mut self, machine: &str) -> Result<()> {
        self.start_kamailio_with(machine, "kamailio.cfg")
    }

    /// Starts Kamailio on UDP port 5060 of a machine: it keeps registrations as long as they run, and passes calls on.
    ///
    /// # Errors
    /// It does not start; its log is in the error.
    pub fn start_registrar(&mut self, machine: &str) -> Result<()> {
        self.start_kamailio_with(machine, "registrar.cfg")
    }

    fn start_kamailio_with(&mut self, machine: &str, config: &str) -> Result<()> {
        let (v4, v6) = (self.v4(machine), self.v6(machine));
        let config = workspace().join("lab/voip").join(config);
        let mut command = self.command(machine, "/usr/sbin/kamailio");
        command.arg("-f").arg(config).args(["-DD", "-E", "-m", "32", "-M", "4"]);
        command.args(["-l", &format!("udp:{v4}:5060"), "-l", &format!("udp:[{v6}]:5060")]);
        command.arg("-Y").arg(self.dir()).arg("-P").arg(self.dir().join("kamailio.pid"));
        self.start(machine, "kamailio", &mut command)?;
        self.wait_for_start((machine, "kamailio"), "listen", |lab| lab.sockets_at(machine, "udp", 5060) >= 2)
    }

    /// Returns what reached Kamailio so far.
    pub fn reached_kamailio(&self, machine: &str) -> Reached {
        let log = self.log(machine, "kamailio");
        Reached { keep_alives: distinct(&log, "REACHED keep-alive "), registers: distinct(&log, "REACHED REGISTER ") }
    }

    /// Starts a phone that stays registered under a name at a server, sends it a keep-alive every 0.2 s or so, and takes calls.
    ///
    /// # Errors
    /// sipp is missing.
    pub fn start_phone(&mut self, machine: &str, name: &str, server: IpAddr) -> Result<()> {
        let local = bracketed(self.local(machine, server));
        let log = self.phone_log(machine);
        if log.exists() {
            std::fs::remove_file(&log)?;
        }
        let mut command = self.command(machine, "sipp");
        command.arg(format!("{}:5060", bracketed(server))).arg("-sf").arg(workspace().join("lab/voip/registered.xml"));
        command.args(["-i", &local, "-p", "5061", "-s", name, "-nostdin", "-m", "1", "-default_behaviors", "none"]);
        command.arg("-trace_logs").arg("-log_file").arg(log).current_dir(self.dir());
        self.start(machine, "phone", &mut command)?;
        let mut command = self.command(machine, "sipp");
        command.args(["-sn", "uas", "-i", &local, "-p", "5062", "-nostdin"]).current_dir(self.dir());
        self.start(machine, "bell", &mut command)?;
        Ok(())
    }

    /// Ends a phone.
    ///
    /// # Errors
    /// There is none, or it had to be killed.
    pub fn stop_phone(&mut self, machine: &str) -> Result<()> {
        self.stop(machine, "phone")?;
        self.stop(machine, "bell")
    }

    /// Returns what a phone did so far.
    pub fn phone(&self, machine: &str) -> Phone {
        let log = std::fs::read_to_string(self.phone_log(machine)).unwrap_or_default();
        let count = |word: &str| log.lines().filter(|line| *line == word).count();
        Phone { registrations: count("registered"), sent: count("sent"), answered: count("answered") }
    }

    /// Calls the phone of a name that is registered at a machine's server from there, and hangs up; returns whether it answered.
    ///
    /// # Errors
    /// sipp is missing.
    pub fn call_phone(&self, machine: &str, name: &str, server: IpAddr) -> Result<bool> {
        let mut command = self.command(machine, "sipp");
        command.arg(format!("{}:5060", bracketed(server))).args(["-sn", "uac", "-s", name, "-m", "1"]);
        command.args(["-i", &bracketed(server), "-p", "5070", "-nostdin", "-timeout", "15s"]).current_dir(self.dir());
        Ok(command.output().context("cannot run sipp")?.status.success())
    }

    fn phone_log(&self, machine: &str) -> PathBuf {
        self.dir().join(format!("{machine}-phone.txt"))
    }

    fn local(&self, machine: &str, server: IpAddr) -> IpAddr {
        if server.is_ipv4() { self.v4(machine).into() } else { self.v6(machine).into() }
    }

    /// Lets so many phones register and send one keep-alive each; returns how many got both answers.
    ///
    /// # Errors
    /// sipp is missing or cannot run.
    pub fn phones(&self, machine: &str, server: IpAddr, phones: usize) -> Result<usize> {
        let local = self.local(machine, server);
        let scenario = workspace().join("lab/voip/phones.xml");
        let stats = self.dir().join(format!("phones-{}.csv", std::process::id()));
        if stats.exists() {
            std::fs::remove_file(&stats)?;
        }
        let mut command = self.command(machine, "sipp");
        command.arg(format!("{}:5060", bracketed(server))).arg("-sf").arg(scenario);
        let timeout = format!("{}s", grown(PHONES_WAIT).as_secs());
        command.args(["-i", &bracketed(local), "-p", "5061", "-nostdin", "-trace_stat", "-fd", "1"]);
        command.args(["-timeout", &timeout]);
        command.args(["-m", &phones.to_string(), "-l", &phones.to_string(), "-r", "200"]).arg("-stf").arg(&stats);
        let output = command.current_dir(self.dir()).output().context("cannot run sipp")?;
        let csv = std::fs::read_to_string(&stats).with_context(|| {
            format!("sipp wrote no statistics: {}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()))
        })?;
        column(&csv, "SuccessfulCall(C)").context("sipp's statistics have no SuccessfulCall(C)")
    }
}

/// Returns what a block of code of docs/apps/sip.md has from where it says this to its end.
///
/// # Errors
/// None says it.
pub fn documented(first: &str) -> Result<String> {
    let page = std::fs::read_to_string(workspace().join("docs/apps/sip.md"))?;
    let (_, rest) =
        page.split_once(&format!("\n{first}")).with_context(|| format!("docs/apps/sip.md has no `{first}`"))?;
    let (block, _) = rest.split_once("\n```").context("docs/apps/sip.md has a block without an end")?;
    Ok(format!("{first}{block}\n"))
}

/// Asks the Kamailio whose socket is `rpc.sock` in the lab's folder something, with parameters in JSON, and returns its answer.
///
/// # Errors
/// It does not answer.
pub fn rpc(lab: &Lab, method: &str, params: &str) -> Result<String> {
    let own = lab.dir().join("asks.sock");
    let _ = std::fs::remove_file(&own);
    let socket = UnixDatagram::bind(&own)?;
    socket.set_read_timeout(Some(grown(ANSWER_WAIT)))?;
    let call = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":[{params}],\"id\":1}}");
    socket.send_to(call.as_bytes(), lab.dir().join("rpc.sock"))?;
    let mut answer = [0; 16_384];
    let length = socket.recv(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

/// Returns an address as sipp wants it, and as it is in a URI.
pub fn bracketed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
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
