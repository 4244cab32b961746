// SPDX-License-Identifier: Apache-2.0
//! A provider with a web server and an agent, and what it asks of them.

use std::io::{Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Duration;

use netserv_lab::netns::{Lab, host_port, is_root, program, wait_until};
use netserv_lab::node::LabUser;
use netserv_lab::topology::{Kind, Topology};
use netserv_skips::skipped;

/// How long things may take on a busy machine.
pub const LONG: Duration = Duration::from_secs(60);

pub fn vectors() -> std::path::PathBuf {
    netserv_lab::node::workspace().join("vectors/certificates")
}

pub const LEASE: Duration = Duration::from_secs(10);

/// A provider with a web server and an agent, two nodes, and clients behind them.
pub struct Provider {
    pub lab: Lab,
    pub user: LabUser,
}

impl Provider {
    pub fn start(test: &str) -> Option<Provider> {
        Provider::start_with(test, &|_| [String::new(), String::new()])
    }

    /// Starts one whose rule goes by the metric `load`, of which `source` tells where it comes from.
    pub fn start_by(test: &str, source: &dyn Fn(&Lab) -> String, condition: &str) -> Option<Provider> {
        Provider::start_with(test, &|lab| {
            let metric = format!("[[metric]]\nname = \"load\"\nevery-s = 1\n{}", source(lab));
            [metric, format!("while = {{ metric = \"load\", {condition} }}\n")]
        })
    }

    pub fn start_with(test: &str, more: &dyn Fn(&Lab) -> [String; 2]) -> Option<Provider> {
        Provider::start_on(test, more, "")
    }

    /// Starts one whose user has these prefixes, too, and then containers with a network.
    pub fn start_on(test: &str, more: &dyn Fn(&Lab) -> [String; 2], prefix: &str) -> Option<Provider> {
        Provider::start_in(test, Topology::two_nodes(), more, prefix)
    }

    /// Starts one in a network with a sender and a receiver.
    pub fn start_in(
        test: &str,
        topology: Topology,
        more: &dyn Fn(&Lab) -> [String; 2],
        prefix: &str,
    ) -> Option<Provider> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        let nodes = topology.machines.iter().filter(|machine| machine.kind == Kind::Node);
        let nodes: Vec<String> = nodes.map(|machine| machine.name.clone()).collect();
        let mut lab = Lab::up(topology).unwrap();
        let own = format!("{}/32", lab.v4("sender"));
        let has_network = !prefix.is_empty();
        let prefixes = [&own[..], prefix];
        let mut user = lab.user("janedoe", &prefixes[..1 + usize::from(has_network)]).unwrap();
        user.extra = if has_network { "listen = ['icmp']\n".to_owned() } else { user.extra };
        for (number, node) in nodes.iter().enumerate() {
            let network = format!("[network]\nprefixes = ['10.98.{}.0/24']\n", 1 + number);
            let extra = format!("osgi.enabled = false\n{}", if has_network { network } else { String::new() });
            lab.start_netservd(node, "node", std::slice::from_ref(&user), &extra).unwrap();
        }
        lab.start_netservd("sender", "host", &[], "").unwrap();
        let package = lab.package("net-monitor", &user).unwrap();
        let url = lab.publish("sender", &package).unwrap();
        let mut provider = Provider { lab, user };
        let more = more(&provider.lab);
        provider.write_config(&url, &package.digest.to_string(), &more);
        provider.start_agent();
        provider.start_nginx();
        Some(provider)
    }

    pub fn write_config(&self, url: &str, digest: &str, [metric, condition]: &[String; 2]) {
        let path = |name: &str| self.path(name);
        let idle = if condition.contains("idle-s") { "" } else { "idle-s = 15\n" };
        let text = format!(
            "netservd = {:?}\nuser = \"janedoe\"\nkey = {:?}\nstate-dir = {:?}\nsocket = {:?}\n\
             [[log]]\nname = \"access\"\nsocket = {:?}\npattern = \"nginx: {{client}} - \"\n\
             {metric}[[rule]]\nname = \"edge\"\nlog = \"access\"\ncount = 3\nwindow-s = 30\nmodule = \"example.org/net-monitor@1.0.0\"\n\
             url = {url:?}\ndigest = {digest:?}\nfilters = [\"tcp dst {}/32 port 80\"]\nlease-s = {}\n{idle}\
             {condition}",
            self.lab.socket("sender"),
            self.user.key,
            path("agent"),
            path("agent.sock"),
            path("access.sock"),
            self.lab.v4("sender"),
            LEASE.as_secs(),
        );
        std::fs::write(path("agent.toml"), text).unwrap();
    }

    pub fn config(&self) -> String {
        std::fs::read_to_string(self.path("agent.toml")).unwrap()
    }

    /// Sends SIGHUP to the agent.
    pub fn hang_up(&self) {
        let pid = self.lab.pid("sender", "agent").unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    }

    pub fn start_agent(&mut self) {
        let mut command = self.lab.command("sender", program("netserv-agent").unwrap());
        command.arg("--config").arg(self.path("agent.toml"));
        self.lab.start("sender", "agent", &mut command).unwrap();
        // It hears the server's log a moment after it takes calls.
        let hears = || UnixDatagram::unbound().is_ok_and(|log| log.connect(self.path("access.sock")).is_ok());
        let up = wait_until(LONG, || UnixStream::connect(self.path("agent.sock")).is_ok() && hears());
        assert!(up, "{}", self.log());
    }

    /// The server's own log and the agent's, as an operator would write it.
    pub fn start_nginx(&mut self) {
        let dir = self.lab.dir().display().to_string();
        let config = format!(
            "daemon off; user root; worker_processes 1; pid {dir}/nginx.pid; error_log stderr notice;\n\
             events {{ worker_connections 256; }}\n\
             http {{ access_log syslog:server=unix:{dir}/access.sock,nohostname; client_body_temp_path {dir}/nginx-body;\n\
             proxy_temp_path {dir}/nginx-proxy; fastcgi_temp_path {dir}/nginx-fastcgi; uwsgi_temp_path {dir}/nginx-uwsgi;\n\
             scgi_temp_path {dir}/nginx-scgi; server {{ listen 80; listen [::]:80; root {dir}/www; }} }}\n"
        );
        std::fs::write(self.path("nginx.conf"), config).unwrap();
        std::fs::write(self.path("www/index.html"), "hello\n").unwrap();
        let mut command = self.lab.command("sender", "/usr/sbin/nginx");
        command.arg("-c").arg(self.path("nginx.conf"));
        self.lab.start("sender", "nginx", &mut command).unwrap();
        assert!(wait_until(LONG, || self.path("nginx.pid").exists()));
    }

    /// A SIP server that answers everything, and tells of itself as its operator would have it.
    pub fn start_kamailio(&mut self) {
        let socket = self.path("rpc.sock");
        let text = format!(
            "debug=1\nlog_stderror=yes\nchildren=2\ndisable_tcp=yes\nauto_aliases=no\n\
             loadmodule \"sl.so\"\nloadmodule \"kex.so\"\nloadmodule \"jsonrpcs.so\"\n\
             modparam(\"jsonrpcs\", \"transport\", 4)\nmodparam(\"jsonrpcs\", \"dgram_socket\", \"{}\")\n\
             request_route {{ sl_send_reply(\"200\", \"OK\"); exit; }}\n",
            socket.display()
        );
        std::fs::write(self.path("kamailio.cfg"), text).unwrap();
        let listen = format!("udp:{}:5060", self.lab.v4("sender"));
        let mut command = self.lab.command("sender", "/usr/sbin/kamailio");
        command.arg("-f").arg(self.path("kamailio.cfg")).args(["-DD", "-E", "-m", "32", "-M", "4", "-l", &listen]);
        command.arg("-Y").arg(self.lab.dir()).arg("-P").arg(self.path("kamailio.pid"));
        self.lab.start("sender", "kamailio", &mut command).unwrap();
        assert!(wait_until(LONG, || socket.exists()), "{}", self.lab.log("sender", "kamailio"));
    }

    pub fn start_prometheus(&mut self) {
        let text = "global: { scrape_interval: 1s }\nscrape_configs:\n- job_name: own\n  scheme: https\n  \
                    basic_auth: { username: agent, password: secret }\n  tls_config: { insecure_skip_verify: true }\n  \
                    static_configs: [{ targets: ['10.0.0.1:9090'] }]\n";
        std::fs::write(self.path("prometheus.yml"), text).unwrap();
        let mut command = self.lab.command("sender", "/usr/bin/prometheus");
        command.arg(format!("--config.file={}", self.path("prometheus.yml").display()));
        command.arg(format!("--storage.tsdb.path={}", self.path("prometheus").display()));
        command.arg("--web.listen-address=10.0.0.1:9090");
        let file = |end: &str| vectors().join(format!("address.{end}"));
        // The password is `secret`, by bcrypt.
        let web = format!(
            "tls_server_config: {{ cert_file: {:?}, key_file: {:?} }}\nbasic_auth_users: {{ agent: '{}' }}\n",
            file("pem"),
            file("key"),
            "$2b$04$mv7YmvrnOTb0585D.IY85O3BbMKTOFjETbglYAhdgcF1WKMAksLzC",
        );
        std::fs::write(self.path("web.yml"), web).unwrap();
        command.arg(format!("--web.config.file={}", self.path("web.yml").display()));
        self.lab.start("sender", "prometheus", &mut command).unwrap();
    }

    /// Sends so many OPTIONS to Kamailio.
    pub fn calls(&self, count: usize) {
        let server = self.lab.v4("sender");
        let text = format!(
            "OPTIONS sip:{server} SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\nFrom: <sip:a@a>;tag=1\r\n\
             To: <sip:b@b>\r\nCall-ID: 1\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"
        );
        let request = self.path("options.sip");
        std::fs::write(&request, text).unwrap();
        // One write is one datagram.
        let script = format!("for n in $(seq {count}); do cat {} > /dev/udp/{server}/5060; done", request.display());
        assert!(self.lab.command("receiver", "bash").args(["-c", &script]).status().unwrap().success());
    }

    pub fn visits(&self, count: usize) {
        (0..count).for_each(|_| self.visit("receiver", false));
    }

    pub fn agent(&self, args: &[&str]) -> (String, Option<i32>) {
        let mut command = std::process::Command::new(program("netserv").unwrap());
        let output =
            command.env("NETSERV_AGENT_SOCKET", self.path("agent.sock")).arg("agent").args(args).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.code())
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.lab.dir().join(name)
    }

    pub fn visit(&self, client: &str, six: bool) {
        let server: IpAddr = if six { self.lab.v6("sender").into() } else { self.lab.v4("sender").into() };
        let url = format!("http://{}/index.html", host_port(server, 80));
        let output = self.lab.command(client, "curl").args(["-sS", "--max-time", "20", &url]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Returns how many modules each node has.
    pub fn installed(&self) -> [usize; 2] {
        ["n1", "n2"].map(|node| self.lab.modules(node).unwrap().modules.len())
    }

    /// Returns how many SETUPs without a session before it reached the last node.
    pub fn setups(&self) -> usize {
        let sessions: std::collections::BTreeSet<String> = self
            .lab
            .log("n2", "netservd")
            .lines()
            .filter(|line| line.contains("method=\"SETUP\""))
            .filter_map(|line| Some(line.split("session=").nth(1)?.split(' ').next()?.to_owned()))
            .collect();
        sessions.len()
    }

    /// Returns how often the last node loaded the module anew.
    pub fn fresh_installations(&self) -> usize {
        self.lab.log("n2", "netservd").lines().filter(|line| line.contains("installed for")).count()
    }

    pub fn nearest(&self, client: &str) -> String {
        self.nearest_of(self.lab.v4(client).into())
    }

    pub fn nearest_v6(&self, client: &str) -> String {
        self.nearest_of(self.lab.v6(client).into())
    }

    pub fn nearest_of(&self, client: IpAddr) -> String {
        let answer = self.call(&format!(
            "GET /v1/nearest?module=example.org/net-monitor&client={client} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        ));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let header = answer.lines().find_map(|line| line.strip_prefix("netserv-node:"));
        header.unwrap().trim().to_owned()
    }

    pub fn ask(&self, path: &str) -> String {
        self.call(&format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
    }

    pub fn call(&self, request: &str) -> String {
        let mut stream = UnixStream::connect(self.path("agent.sock")).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub fn log(&self) -> String {
        self.lab.log("sender", "agent")
    }
}
