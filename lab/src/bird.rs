// SPDX-License-Identifier: Apache-2.0
//! Routing daemons in a lab: bird speaks OSPF for IPv4 and IPv6 and moves the kernel's routes.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

use netserv_container::network::FLOATING_PROTOCOL;

use crate::netns::Lab;

impl Lab {
    /// Starts bird on a machine, which takes over all routes that the lab gave the machine.
    ///
    /// It speaks OSPF with the neighbours that are named, over links of the costs that stand beside them, and announces the
    /// prefixes of all of the machine's links, and the floating addresses that its node leads to containers. A machine that forwards nothing is no way for others.
    ///
    /// # Errors
    /// bird is missing or does not start; its log is in the error.
    pub fn start_bird(&mut self, machine: &str, neighbours: &[(&str, u16)]) -> Result<()> {
        let (config, socket) = (self.dir().join(format!("{machine}-bird.conf")), self.bird_socket(machine));
        std::fs::write(&config, self.bird_config(machine, neighbours))?;
        // The lab's own routes would win against those of bird.
        for version in ["-4", "-6"] {
            self.run(machine, "ip", &[version, "route", "flush", "proto", "boot"])?;
        }
        let mut command = self.command(machine, "/usr/sbin/bird");
        command.args(["-f", "-c"]).arg(&config).arg("-s").arg(&socket);
        command.arg("-P").arg(self.dir().join(format!("{machine}-bird.pid")));
        self.start(machine, "bird", &mut command)?;
        self.wait_for_start((machine, "bird"), "answer", |lab| lab.birdc(machine, "show status").is_ok())
    }

    /// Runs a command of bird's command line, and returns what it says.
    ///
    /// # Errors
    /// bird does not run there, or does not understand the command.
    pub fn birdc(&self, machine: &str, words: &str) -> Result<String> {
        let mut command = self.command(machine, "/usr/sbin/birdc");
        command.arg("-s").arg(self.bird_socket(machine)).args(words.split(' '));
        let output = command.output().context("cannot run birdc")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "birdc {words}: {said}{}", String::from_utf8_lossy(&output.stderr));
        Ok(said)
    }

    fn bird_socket(&self, machine: &str) -> std::path::PathBuf {
        self.dir().join(format!("{machine}-bird.ctl"))
    }

    fn bird_config(&self, machine: &str, neighbours: &[(&str, u16)]) -> String {
        let mut links = String::new();
        for interface in self.topology().interfaces_of(machine) {
            let cost = neighbours.iter().find(|(name, _)| interface.name == format!("to-{name}")).map(|(_, cost)| cost);
            // Writing to a String cannot fail.
            let _ = match cost {
                Some(cost) => {
                    writeln!(
                        links,
                        "interface {:?} {{ type ptp; hello 1; dead 4; retransmit 2; cost {cost}; }};",
                        interface.name
                    )
                }
                None => writeln!(links, "interface {:?} {{ stub; }};", interface.name),
            };
        }
        let is_stub =
            self.topology().machines.iter().any(|m| m.name == machine && m.kind == crate::topology::Kind::Host);
        let stub = if is_stub { "stub router yes;" } else { "" };
        let mut text =
            format!("log stderr all;\nrouter id {};\nprotocol device {{ scan time 1; }}\n", self.v4(machine));
        for (ip, ospf) in [("ipv4", "v2"), ("ipv6", "v3")] {
            let _ = write!(
                text,
                "protocol kernel {{ learn; {ip} {{ preference 160; import where krt_source = {FLOATING_PROTOCOL};\n\
                 export where source ~ [RTS_OSPF, RTS_OSPF_IA, RTS_OSPF_EXT1, RTS_OSPF_EXT2]; }}; }}\n\
                 protocol ospf {ospf} {{ {ip} {{ import all; export where source = RTS_INHERIT; }}; tick 1; {stub}\narea 0 {{\n{links}}}; }}\n"
            );
        }
        text
    }
}
