// SPDX-License-Identifier: Apache-2.0
//! The provider's agent: nobody types SETUP, and a module is near the clients of an unmodified web server while they come.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use netserv_lab::netns::{Lab, host_port, is_root, program, wait_until};
use netserv_lab::node::LabUser;
use netserv_lab::topology::{Kind, Topology};
use netserv_skips::skipped;

/// How long things may take on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Goal: a web server whose log goes to the agent gets its module onto the nodes in front of its clients, one SETUP for all of them,
/// renewed while they come and removed when they do not; an agent that is killed goes on with what it has deployed.
/// Method: nginx as Debian has it, curl as the clients from both versions of IP, and the nodes' own logs.
#[test]
fn a_module_follows_the_clients_of_an_unmodified_web_server() {
    let Some(mut provider) = Provider::start("a_module_follows_the_clients_of_an_unmodified_web_server") else {
        return;
    };
    assert_eq!(provider.nearest("receiver"), "", "nobody has come");
    provider.visit("receiver", false);
    provider.visit("receiver", true);
    assert_eq!(provider.installed(), [0, 0], "two visits are too few");
    let begun = Instant::now();
    (0..3).for_each(|_| provider.visit("receiver", false));
    assert!(wait_until(LONG, || provider.nearest("receiver") == "n2"), "{}", provider.log());
    eprintln!("from the visit that was enough to the nearest node: {:?}", begun.elapsed());
    assert_eq!(provider.installed(), [1, 1]);

    // Clients of another region behind the same node share it.
    (0..5).for_each(|_| provider.visit("receiver", true));
    assert!(wait_until(LONG, || provider.nearest_v6("receiver") == "n2"), "{}", provider.log());
    assert_eq!(provider.setups(), 1, "one SETUP for all clients behind one node");

    // Killed in the middle of it, the agent finds its deployment again, and renews it.
    provider.lab.kill("sender", "agent").unwrap();
    provider.start_agent();
    (0..4).for_each(|_| provider.visit("receiver", false));
    assert!(wait_until(LONG, || provider.nearest("receiver") == "n2"), "{}", provider.log());
    let until = Instant::now() + LEASE;
    while Instant::now() < until {
        provider.visit("receiver", false);
        std::thread::sleep(Duration::from_secs(1));
    }
    assert_eq!(
        (provider.installed(), provider.fresh_installations()),
        ([1, 1], 1),
        "it is there, and was all the time"
    );

    let agent = |args: &[&str]| provider.agent(args);
    let (shown, code) = agent(&["status"]);
    assert!(code == Some(0) && shown.contains("edge  running") && shown.contains("n1, n2"), "{shown}");
    let client = provider.lab.v4("receiver").to_string();
    assert_eq!(agent(&["nearest", "edge", &client]), ("n2\n".to_owned(), Some(0)));
    assert_eq!(agent(&["nearest", "edge", "203.0.113.9"]), (String::new(), Some(6)));
    assert_eq!(agent(&["nearest", "other", &client]).1, Some(4));

    // Nobody comes any more.
    assert!(wait_until(LONG, || provider.installed() == [0, 0]), "{}", provider.log());
    assert!(wait_until(LONG, || provider.nearest("receiver").is_empty()));
    let status = provider.ask("/v1/status");
    assert!(status.contains("\"deployments\":[]"), "{status}");
}

/// Goal: what is no observation, comes from nobody who may tell, or names no rule, changes nothing and is answered.
#[test]
fn rubbish_is_refused_and_counts_for_nothing() {
    let Some(provider) = Provider::start("rubbish_is_refused_and_counts_for_nothing") else { return };
    let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
    for line in [&b"\xff\xfe\x00"[..], b"", b"nginx: nobody - -", &[b'x'; 60_000], b"nginx: 999.1.1.1 - - "] {
        let _ = socket.send_to(line, provider.path("access.sock"));
    }
    let post = |body: &str| {
        let head = format!(
            "POST /v1/observations HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        provider.call(&head)
    };
    let client = provider.lab.v4("receiver");
    let told = |rule: &str, count: &str| {
        post(&format!("{{\"observations\":[{{\"rule\":\"{rule}\",\"client\":\"{client}\",\"count\":{count}}}]}}"))
    };
    assert!(post("{").starts_with("HTTP/1.1 4"), "no JSON");
    assert!(post("{\"observations\":[{\"rule\":\"edge\",\"client\":\"nobody\"}]}").starts_with("HTTP/1.1 4"));
    assert!(told("other", "1").starts_with("HTTP/1.1 404"));
    assert!(told("edge", "-1").starts_with("HTTP/1.1 4"));
    let many = format!(
        "{{\"observations\":[{}]}}",
        vec![format!("{{\"rule\":\"edge\",\"client\":\"{client}\"}}"); 1025].join(",")
    );
    assert!(post(&many).starts_with("HTTP/1.1 413"));
    assert!(
        provider
            .call("GET /v1/nearest?module=nothing&client=192.0.2.1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .starts_with("HTTP/1.1 404")
    );
    let status = provider.ask("/v1/status");
    assert!(status.contains("\"observations\":0,") && status.contains("\"deployments\":[]"), "{status}");
    // Others of this machine cannot even ask.
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(provider.path("agent.sock")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o660);
    // What is right still counts.
    let comes = || {
        assert!(told("edge", "3").starts_with("HTTP/1.1 204"));
        provider.nearest("receiver") == "n2"
    };
    assert!(wait_until(LONG, comes), "{}", provider.log());
}

/// Goal: a program that knows nothing of us opens flows, and the module comes onto the nodes on the way to their other end, stays while
/// a flow lasts, and goes after it (AMnet's control application). Method: curl and nc to the server of another machine, IPv4 and IPv6.
#[test]
fn a_module_follows_flows_of_programs_that_know_nothing_of_it() {
    let test = "a_module_follows_flows_of_programs_that_know_nothing_of_it";
    let more = |_: &Lab| {
        let flows = "[[flows]]\nname = \"out\"\nprotocol = \"tcp\"\nremote-port = 8000\nevery-s = 0.2\n".to_owned();
        [flows, "flows = \"out\"\n".to_owned()]
    };
    let Some(mut provider) = Provider::start_with(test, &more) else { return };
    let mut server = provider.lab.command("receiver", "python3");
    server.args(["-m", "http.server", "8000", "--bind", "::"]).current_dir(provider.path("www"));
    provider.lab.start("receiver", "server", &mut server).unwrap();
    let out = |v6: bool| {
        let server: IpAddr = if v6 { provider.lab.v6("receiver").into() } else { provider.lab.v4("receiver").into() };
        let url = format!("http://{}/index.html", host_port(server, 8000));
        provider.lab.command("sender", "curl").args(["-sS", "--max-time", "20", &url]).output().unwrap().status.success()
    };
    assert!(wait_until(LONG, || out(false)), "{}", provider.lab.log("receiver", "server"));
    // One has come; it takes three.
    assert_eq!(provider.installed(), [0, 0]);
    let begun = Instant::now();
    assert!(out(false) && out(false));
    assert!(wait_until(LONG, || provider.installed() == [1, 1]), "{}", provider.log());
    eprintln!("from the third flow to the module on both nodes: {:?}", begun.elapsed());
    (0..3).for_each(|_| assert!(out(true)));
    assert!(wait_until(LONG, || provider.nearest_v6("receiver") == "n2"), "{}", provider.log());
    assert_eq!(provider.setups(), 1, "both versions of IP lead over the same nodes");
    assert!(provider.agent(&["status"]).0.contains("flows out: "), "{}", provider.agent(&["status"]).0);

    // A flow that goes on keeps it, though the module sees nothing and no new flow comes.
    let to = provider.lab.v4("receiver").to_string();
    let mut long = provider.lab.command("sender", "nc");
    long.arg("-d").args([&to, "8000"]);
    provider.lab.start("sender", "long", &mut long).unwrap();
    let until = Instant::now() + Duration::from_secs(25);
    while Instant::now() < until {
        assert_eq!(provider.installed(), [1, 1], "it went in the middle of a flow:\n{}", provider.log());
        std::thread::sleep(Duration::from_secs(1));
    }
    provider.lab.kill("sender", "long").unwrap();
    assert!(wait_until(LONG, || provider.installed() == [0, 0]), "{}", provider.log());
}

/// Goal: a floating address leads to the module on the node that is nearest to the clients, and nowhere else, as long as they come; the next
/// deployment is a later owner. Method: a rule with one deployment at a time, and the routes of the nodes.
#[test]
fn a_floating_address_leads_to_the_deployment() {
    let test = "a_floating_address_leads_to_the_deployment";
    let rule = "floating = [\"10.99.9.9\"]\ndeployments-max = 1\n".to_owned();
    let more = |_: &Lab| [String::new(), rule.clone()];
    let Some(provider) = Provider::start_on(test, &more, "10.99.9.0/24") else { return };
    let mut epochs = Vec::new();
    for _ in 0..2 {
        provider.visits(3);
        assert!(wait_until(LONG, || provider.installed() == [0, 1]), "{}", provider.log());
        let module = provider.lab.modules("n2").unwrap().modules.remove(0);
        assert_eq!(module.floating, ["10.99.9.9".parse::<IpAddr>().unwrap()]);
        epochs.push(module.epoch);
        let routes = |node| {
            let shown = provider.lab.run(node, "ip", &["route", "show", "proto", "79"]).unwrap();
            String::from_utf8(shown.stdout).unwrap()
        };
        assert!(routes("n2").contains("10.99.9.9") && !routes("n1").contains("10.99.9.9"));
        assert!(wait_until(LONG, || provider.installed() == [0, 0]), "{}", provider.log());
        assert!(!routes("n2").contains("10.99.9.9"));
    }
    assert!(epochs[0] < epochs[1], "{epochs:?}");
}

/// Goal: the configuration is read again while the agent runs: what is wrong changes nothing and is told, a rule that asks nodes for
/// something else has its modules set up anew without a gap, one that is the same is not touched, and one that is gone has nothing left.
/// Method: two rules over nginx' log, `netserv agent reload` and SIGHUP, and what the nodes say.
#[test]
fn rules_are_read_again_while_the_agent_runs() {
    let Some(provider) = Provider::start("rules_are_read_again_while_the_agent_runs") else { return };
    provider.visits(3);
    assert!(wait_until(LONG, || provider.installed() == [1, 1]), "{}", provider.log());
    let first = provider.config();
    let filters = |provider: &Provider| provider.lab.modules("n2").unwrap().modules[0].filters[0].to_string();
    assert!(filters(&provider).ends_with("port 80"), "{}", filters(&provider));

    std::fs::write(provider.path("agent.toml"), first.replace("count = 3", "count = 0")).unwrap();
    let mut reload = std::process::Command::new(program("netserv").unwrap());
    reload.env("NETSERV_AGENT_SOCKET", provider.path("agent.sock")).args(["agent", "reload"]);
    let output = reload.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(4) && said.contains("`count` is 0"), "{output:?}");

    let begun = Instant::now();
    std::fs::write(provider.path("agent.toml"), first.replace(" port 80\"", " port 81\"")).unwrap();
    let (told, code) = provider.agent(&["reload"]);
    assert!(code == Some(0) && told.contains("edge  renewed"), "{told}");
    let renewed = || {
        assert_eq!(provider.installed(), [1, 1], "there is a gap");
        filters(&provider).ends_with("port 81")
    };
    assert!(wait_until(LONG, renewed), "{}", provider.log());
    eprintln!("from the reload to the new filter on the last node: {:?}", begun.elapsed());
    assert_eq!((provider.setups(), provider.fresh_installations()), (1, 2), "another SETUP of the same session");

    // A second rule beside it, by SIGHUP, with the same log: what it counts is its own matter.
    let renewed = provider.config();
    let second = &renewed[renewed.find("[[rule]]").unwrap()..];
    let second = second.replace("\"edge\"", "\"second\"").replace("net-monitor@", "echo@");
    let echo = provider.lab.package("echo", &provider.user).unwrap();
    let url = provider.lab.publish("sender", &echo).unwrap();
    let lines = second.lines().map(|line| match line.split(' ').next() {
        Some("url") => format!("url = {url:?}\n"),
        Some("digest") => format!("digest = \"{}\"\n", echo.digest),
        Some(_) | None => format!("{line}\n"),
    });
    std::fs::write(provider.path("agent.toml"), format!("{renewed}{}", lines.collect::<String>())).unwrap();
    provider.hang_up();
    let is_known = || provider.ask("/v1/status").contains("\"name\":\"second\"");
    assert!(wait_until(LONG, is_known), "{}", provider.log());
    let comes = || {
        provider.visits(3);
        provider.installed() == [2, 2]
    };
    assert!(wait_until(LONG, comes), "{}", provider.log());
    // Gone: its module goes, and the other one stays.
    std::fs::write(provider.path("agent.toml"), &renewed).unwrap();
    provider.hang_up();
    assert!(wait_until(LONG, || provider.installed() == [1, 1]), "{}", provider.log());
    let left = provider.lab.modules("n2").unwrap().modules.remove(0);
    assert!(left.module.name.as_str().ends_with("/net-monitor"), "{left:?}");
    assert!(provider.agent(&["reload"]).0.contains("edge  same"));
    assert_eq!(provider.nearest("receiver"), "n2");
}

/// Goal: a rule is in force while Kamailio has much to do, and a switch ends it at once, also over a restart of the agent.
/// Method: Kamailio as Debian has it, asked by JSON-RPC; OPTIONS from sipp's place, by hand.
#[test]
fn a_rule_goes_by_the_load_of_kamailio_and_by_its_switch() {
    let test = "a_rule_goes_by_the_load_of_kamailio_and_by_its_switch";
    if !Path::new("/usr/sbin/kamailio").exists() {
        return skipped(test, "needs kamailio");
    }
    let metric = |lab: &Lab| {
        let socket = lab.dir().join("rpc.sock");
        format!("kamailio = {socket:?}\nstatistic = \"core:rcv_requests\"\nrate = true\n")
    };
    let Some(mut provider) = Provider::start_by(test, &metric, "over = 20, until = 2") else { return };
    provider.visits(5);
    assert!(wait_until(LONG, || provider.ask("/v1/status").contains("cannot reach Kamailio")), "{}", provider.log());
    provider.start_kamailio();
    assert!(wait_until(LONG, || provider.ask("/v1/status").contains("\"value\":0.0")), "{}", provider.log());
    provider.visits(5);
    assert_eq!(provider.installed(), [0, 0], "nothing happens at the SIP server");

    let begun = Instant::now();
    let loaded = |provider: &Provider| {
        provider.calls(40);
        provider.visits(3);
        provider.installed() == [1, 1]
    };
    assert!(wait_until(LONG, || loaded(&provider)), "{}", provider.log());
    eprintln!("from the first call to the module on both nodes: {:?}", begun.elapsed());
    assert!(provider.agent(&["status"]).0.contains("metric load: "));

    // Switched off, all is as before at once, and stays so.
    let begun = Instant::now();
    assert_eq!(provider.agent(&["off", "edge"]).1, Some(0));
    assert!(wait_until(LONG, || provider.installed() == [0, 0]), "{}", provider.log());
    let took = begun.elapsed();
    eprintln!("from the switch to the plain path: {took:?}");
    // A second is the goal; here nothing is optimised, and others are at work.
    assert!(took < Duration::from_secs(10), "{took:?}");
    provider.lab.kill("sender", "agent").unwrap();
    provider.start_agent();
    (0..3).for_each(|_| assert!(!loaded(&provider)));
    assert!(provider.agent(&["status"]).0.contains("rule edge is off"));
    assert_eq!(provider.agent(&["off", "other"]).1, Some(4));
    assert_eq!(provider.agent(&["on", "edge"]).1, Some(0));
    assert!(wait_until(LONG, || loaded(&provider)), "{}", provider.log());

    // The load ends, though clients still come.
    let gone = || {
        provider.visits(1);
        std::thread::sleep(Duration::from_secs(1));
        provider.installed() == [0, 0]
    };
    assert!(wait_until(LONG, gone), "{}", provider.log());
}

/// Goal: a rule is in force while a query of Prometheus is over its bound, which is asked by TLS with a password. Method: Prometheus as
/// Debian has it, which reads its own counters.
#[test]
fn a_rule_goes_by_a_query_of_prometheus() {
    let test = "a_rule_goes_by_a_query_of_prometheus";
    if !Path::new("/usr/bin/prometheus").exists() {
        return skipped(test, "needs prometheus");
    }
    let metric = |lab: &Lab| {
        let query = "sum(prometheus_http_requests_total{handler='/-/ready'})";
        let (ca, password) = (vectors().join("authority.pem"), lab.dir().join("password"));
        std::fs::write(&password, "wrong\n").unwrap();
        format!(
            "prometheus = \"https://10.0.0.1:9090\"\nquery = \"{query}\"\nca = {ca:?}\nuser = \"agent\"\npassword-file = {password:?}\n"
        )
    };
    let Some(mut provider) = Provider::start_by(test, &metric, "over = 20") else { return };
    // The address that the certificate names.
    provider.lab.run("sender", "ip", &["addr", "add", "10.0.0.1/32", "dev", "lo"]).unwrap();
    provider.start_prometheus();
    let value = |provider: &Provider| provider.agent(&["status"]).0;
    assert!(wait_until(LONG, || value(&provider).contains("does not let the agent ask")), "{}", value(&provider));
    std::fs::write(provider.path("password"), "secret\n").unwrap();
    assert!(
        wait_until(LONG, || value(&provider).contains("metric load: 0") || value(&provider).contains("metric load: 1")),
        "{}",
        value(&provider)
    );
    provider.visits(5);
    assert_eq!(provider.installed(), [0, 0]);
    for _ in 0..30 {
        let ready = ["-sSk", "--max-time", "20", "-u", "agent:secret", "https://10.0.0.1:9090/-/ready"];
        assert!(provider.lab.command("sender", "curl").args(ready).output().unwrap().status.success());
    }
    let comes = || {
        provider.visits(3);
        provider.installed() == [1, 1]
    };
    assert!(wait_until(LONG, comes), "{}\n{}", value(&provider), provider.log());
    // Once it is away, its last word does not count for ever.
    provider.lab.kill("sender", "prometheus").unwrap();
    let gone = || {
        provider.visits(1);
        std::thread::sleep(Duration::from_secs(1));
        provider.installed() == [0, 0]
    };
    assert!(wait_until(LONG, gone), "{}\n{}", value(&provider), provider.log());
    assert!(value(&provider).contains("cannot reach https://10.0.0.1:9090/"), "{}", value(&provider));
}

fn vectors() -> std::path::PathBuf {
    netserv_lab::node::workspace().join("vectors/certificates")
}

const LEASE: Duration = Duration::from_secs(10);

/// A provider with a web server and an agent, two nodes, and clients behind them.
struct Provider {
    lab: Lab,
    user: LabUser,
}

impl Provider {
    fn start(test: &str) -> Option<Provider> {
        Provider::start_with(test, &|_| [String::new(), String::new()])
    }

    /// Starts one whose rule goes by the metric `load`, of which `source` tells where it comes from.
    fn start_by(test: &str, source: &dyn Fn(&Lab) -> String, condition: &str) -> Option<Provider> {
        Provider::start_with(test, &|lab| {
            let metric = format!("[[metric]]\nname = \"load\"\nevery-s = 1\n{}", source(lab));
            [metric, format!("while = {{ metric = \"load\", {condition} }}\n")]
        })
    }

    fn start_with(test: &str, more: &dyn Fn(&Lab) -> [String; 2]) -> Option<Provider> {
        Provider::start_on(test, more, "")
    }

    /// Starts one whose user has these prefixes, too, and then containers with a network.
    fn start_on(test: &str, more: &dyn Fn(&Lab) -> [String; 2], prefix: &str) -> Option<Provider> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        let chain = [
            ("sender", Kind::Host),
            ("n1", Kind::Node),
            ("r", Kind::Router),
            ("n2", Kind::Node),
            ("receiver", Kind::Host),
        ];
        let mut lab = Lab::up(Topology::chain(&chain)).unwrap();
        let own = format!("{}/32", lab.v4("sender"));
        let has_network = !prefix.is_empty();
        let prefixes = [&own[..], prefix];
        let mut user = lab.user("janedoe", &prefixes[..1 + usize::from(has_network)]).unwrap();
        user.extra = if has_network { "listen = ['icmp']\n".to_owned() } else { user.extra };
        for (number, node) in ["n1", "n2"].into_iter().enumerate() {
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

    fn write_config(&self, url: &str, digest: &str, [metric, condition]: &[String; 2]) {
        let path = |name: &str| self.path(name);
        let text = format!(
            "netservd = {:?}\nuser = \"janedoe\"\nkey = {:?}\nstate-dir = {:?}\nsocket = {:?}\n\
             [[log]]\nname = \"access\"\nsocket = {:?}\npattern = \"nginx: {{client}} - \"\n\
             {metric}[[rule]]\nname = \"edge\"\nlog = \"access\"\ncount = 3\nwindow-s = 30\nmodule = \"example.org/net-monitor@1.0.0\"\n\
             url = {url:?}\ndigest = {digest:?}\nfilters = [\"tcp dst {}/32 port 80\"]\nlease-s = {}\nidle-s = 15\n\
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

    fn config(&self) -> String {
        std::fs::read_to_string(self.path("agent.toml")).unwrap()
    }

    /// Sends SIGHUP to the agent.
    fn hang_up(&self) {
        let pid = self.lab.pid("sender", "agent").unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    }

    fn start_agent(&mut self) {
        let mut command = self.lab.command("sender", program("netserv-agent").unwrap());
        command.arg("--config").arg(self.path("agent.toml"));
        self.lab.start("sender", "agent", &mut command).unwrap();
        let up = wait_until(LONG, || UnixStream::connect(self.path("agent.sock")).is_ok());
        assert!(up, "{}", self.log());
    }

    /// The server's own log and the agent's, as an operator would write it.
    fn start_nginx(&mut self) {
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
    fn start_kamailio(&mut self) {
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

    fn start_prometheus(&mut self) {
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
    fn calls(&self, count: usize) {
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

    fn visits(&self, count: usize) {
        (0..count).for_each(|_| self.visit("receiver", false));
    }

    fn agent(&self, args: &[&str]) -> (String, Option<i32>) {
        let mut command = std::process::Command::new(program("netserv").unwrap());
        let output =
            command.env("NETSERV_AGENT_SOCKET", self.path("agent.sock")).arg("agent").args(args).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.code())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.lab.dir().join(name)
    }

    fn visit(&self, client: &str, six: bool) {
        let server: IpAddr = if six { self.lab.v6("sender").into() } else { self.lab.v4("sender").into() };
        let url = format!("http://{}/index.html", host_port(server, 80));
        let output = self.lab.command(client, "curl").args(["-sS", "--max-time", "20", &url]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Returns how many modules each node has.
    fn installed(&self) -> [usize; 2] {
        ["n1", "n2"].map(|node| self.lab.modules(node).unwrap().modules.len())
    }

    /// Returns how many SETUPs without a session before it reached the last node.
    fn setups(&self) -> usize {
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
    fn fresh_installations(&self) -> usize {
        self.lab.log("n2", "netservd").lines().filter(|line| line.contains("installed for")).count()
    }

    fn nearest(&self, client: &str) -> String {
        self.nearest_of(self.lab.v4(client).into())
    }

    fn nearest_v6(&self, client: &str) -> String {
        self.nearest_of(self.lab.v6(client).into())
    }

    fn nearest_of(&self, client: IpAddr) -> String {
        let answer = self.call(&format!(
            "GET /v1/nearest?module=example.org/net-monitor&client={client} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        ));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let header = answer.lines().find_map(|line| line.strip_prefix("netserv-node:"));
        header.unwrap().trim().to_owned()
    }

    fn ask(&self, path: &str) -> String {
        self.call(&format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
    }

    fn call(&self, request: &str) -> String {
        let mut stream = UnixStream::connect(self.path("agent.sock")).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn log(&self) -> String {
        self.lab.log("sender", "agent")
    }
}
