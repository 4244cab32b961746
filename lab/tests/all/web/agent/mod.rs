// SPDX-License-Identifier: Apache-2.0
//! The provider's agent: nobody types SETUP, and a module is near the clients of an unmodified web server while they come.

mod provider;

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use netserv_lab::netns::{Lab, host_port, program, wait_until};
use netserv_lab::patience::grown;
use netserv_lab::topology::{Impairment, Kind, Link, Machine, Topology};
use netserv_skips::skipped;

use self::provider::{LEASE, LONG, Provider, vectors};

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
    assert!(
        code == Some(0)
            && shown.contains("edge  running")
            && shown.contains("n1 (1 hop, ")
            && shown.contains(", n2 (3 hops, "),
        "{shown}"
    );
    let client = provider.lab.v4("receiver").to_string();
    assert_eq!(agent(&["nearest", "edge", &client]), ("n2\n".to_owned(), Some(0)));
    assert_eq!(agent(&["nearest", "edge", "203.0.113.9"]), (String::new(), Some(6)));
    assert_eq!(agent(&["nearest", "other", &client]).1, Some(4));

    // Nobody comes any more.
    assert!(wait_until(LONG, || provider.installed() == [0, 0]), "{}", provider.log());
    assert!(wait_until(LONG, || provider.nearest("receiver").is_empty()));
    // The nodes have removed it before the agent hears of it.
    let is_over = || provider.ask("/v1/status").contains("\"deployments\":[]");
    assert!(wait_until(LONG, is_over), "{}", provider.ask("/v1/status"));
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
    let get = |from: &str, v6: bool| {
        let server: IpAddr = if v6 { provider.lab.v6("receiver").into() } else { provider.lab.v4("receiver").into() };
        let url = format!("http://{}/index.html", host_port(server, 8000));
        provider.lab.command(from, "curl").args(["-sS", "--max-time", "20", &url]).output().unwrap().status.success()
    };
    assert!(wait_until(LONG, || get("receiver", true)), "{}", provider.lab.log("receiver", "server"));
    let out = |v6: bool| get("sender", v6);
    assert!(out(false));
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

/// Goal: where clients' packets take another way than those to them, nodes on both have the module, and lose it at the end. Method: `sender
/// – n1 – na – n2 – receiver`, and from n2 back by nb.
#[test]
fn nodes_on_the_way_back_get_the_module_too() {
    let test = "nodes_on_the_way_back_get_the_module_too";
    let machine = |(name, kind): (&str, Kind)| Machine { name: name.to_owned(), kind };
    let nodes = ["n1", "na", "n2", "nb"].map(|name| machine((name, Kind::Node)));
    let hosts = ["sender", "receiver"].map(|name| machine((name, Kind::Host)));
    let ends = [("sender", "n1"), ("n1", "na"), ("na", "n2"), ("n2", "receiver"), ("n1", "nb"), ("nb", "n2")];
    let link = |(a, b): (&str, &str)| Link { a: a.to_owned(), b: b.to_owned(), impairment: Impairment::default() };
    let topology = Topology { machines: [&nodes[..], &hosts].concat(), links: ends.map(link).into() };
    let back = topology.interfaces(5).0.v4.to_string();
    let more = |_: &Lab| [String::new(), "both-ways = true\n".to_owned()];
    let Some(provider) = Provider::start_in(test, topology, &more, "") else { return };
    provider.lab.run("n2", "ip", &["route", "replace", "10.1.0.0/24", "via", &back]).unwrap();
    let installed = || ["n1", "na", "n2", "nb"].map(|node| provider.lab.modules(node).unwrap().modules.len());
    let has_all = || {
        provider.visits(1);
        installed() == [1; 4] && provider.nearest("receiver") == "n2"
    };
    assert!(wait_until(LONG, has_all), "{:?}\n{}", installed(), provider.log());
    let (shown, _) = provider.agent(&["status"]);
    assert!(shown.contains("nb, n1 (1 hop, ") && shown.contains(", n2 (3 hops, "), "{shown}");
    assert_eq!(provider.agent(&["off", "edge"]).1, Some(0));
    assert!(wait_until(LONG, || installed() == [0; 4]), "{:?}\n{}", installed(), provider.log());
}

/// Goal: a floating address leads to the module on the node that is nearest to the clients, and nowhere else, as long as they come; the next
/// deployment is a later owner. Method: a rule with one deployment at a time, and the routes of the nodes.
#[test]
fn a_floating_address_leads_to_the_deployment() {
    let test = "a_floating_address_leads_to_the_deployment";
    let rule = "floating = [\"10.99.9.9\"]\ndeployments-max = 1\nidle-s = 8\n".to_owned();
    let more = |_: &Lab| [String::new(), rule.clone()];
    let Some(provider) = Provider::start_on(test, &more, "10.99.9.0/24") else { return };
    let mut epochs = Vec::new();
    let is_deployed = || {
        provider.visits(1);
        provider.installed() == [0, 1]
    };
    for _ in 0..2 {
        provider.visits(2);
        let module = || provider.lab.modules("n2").unwrap().modules.into_iter().next();
        let address: IpAddr = "10.99.9.9".parse().unwrap();
        let leads = || is_deployed() && module().is_some_and(|module| module.floating == [address]);
        assert!(wait_until(LONG, leads), "{:?}\n{}", module(), provider.log());
        epochs.push(module().unwrap().epoch);
        let routes = |node| {
            let shown = provider.lab.run(node, "ip", &["route", "show", "proto", "79"]).unwrap();
            String::from_utf8(shown.stdout).unwrap()
        };
        assert!(routes("n2").contains("10.99.9.9") && !routes("n1").contains("10.99.9.9"));
        assert!(wait_until(LONG, || provider.installed() == [0, 0]), "{}", provider.log());
        assert!(!routes("n2").contains("10.99.9.9"));
    }
    assert!(epochs[0] < epochs[1], "{epochs:?}");

    // Switched off, the address is its user's to give by hand, and the agent's again once the rule is on.
    provider.visits(2);
    assert!(wait_until(LONG, is_deployed), "{}", provider.log());
    let epoch = || provider.lab.modules("n2").unwrap().modules[0].epoch;
    let of_agent = epoch();
    assert_eq!(provider.agent(&["off", "edge"]).1, Some(0));
    assert!(wait_until(LONG, || provider.installed() == [0, 0]), "{}", provider.log());
    let package = provider.lab.package("net-monitor", &provider.user).unwrap();
    let url = provider.lab.publish("sender", &package).unwrap();
    let (file, to) = (package.path.display().to_string(), provider.lab.v4("receiver").to_string());
    let (key, filter) =
        (provider.user.key.display().to_string(), format!("tcp dst {}/32 port 80", provider.lab.v4("sender")));
    let own = ["--url", &url, "--user", "janedoe", "--key", &key, "--filter", &filter, "--floating", "10.99.9.9"];
    let by_hand = [&["setup", &file, "--to", &to, "--node", "n2"][..], &own].concat();
    let result = provider.lab.request("sender", &by_hand).unwrap();
    assert!(provider.installed() == [0, 1] && epoch() > of_agent, "{result:?}");
    let of_hand = epoch();
    assert_eq!(provider.agent(&["on", "edge"]).1, Some(0));
    let is_back = || {
        provider.visits(1);
        provider.installed() == [0, 1] && epoch() > of_hand
    };
    assert!(wait_until(LONG, is_back), "{}", provider.log());
    let metrics = provider.ask("/metrics");
    assert!(metrics.contains("netserv_agent_rule{rule=\"edge\",state=\"on\"} 1"), "{metrics}");
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
    assert_eq!((provider.setups(), provider.fresh_installations()), (1, 1), "another SETUP of the same session");
    assert!(provider.lab.log("n2", "netservd").contains("replaced for"));

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
    assert!(took < grown(Duration::from_secs(10)), "{took:?}");
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
