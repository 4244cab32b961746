// SPDX-License-Identifier: Apache-2.0
//! Modules that take over TCP connections on their way, with real clients and servers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::IpAddr;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use crate::common::{Driver, Serving, eventually};
use netserv_lab::netns::host_port;
use netserv_lab::node::LabPackage;
use netserv_model::request::{ModuleState, Outcome};

/// The module's own container needs no port; what it takes over is in the user's prefixes.
const PERMITS: &str = "connect = ['tcp']\n";

over_each_driver!(
    a_cache_answers_in_the_place_of_the_server,
    words_are_taken_out_of_streams_and_both_ends_see_each_other,
    connections_pass_untouched_when_the_module_is_gone,
    what_others_take_away_of_the_rules_comes_back,
    connections_go_on_with_a_renewed_lease_and_new_properties,
    connections_go_on_without_a_module_that_drains,
    modules_that_take_the_same_connections_are_a_chain,
);

/// Goal: a cache intercepts HTTP; the server sees the client's address, but not each request.
fn a_cache_answers_in_the_place_of_the_server(driver: Driver) {
    let Some(net) = Serving::start("a_cache_answers_in_the_place_of_the_server", driver, PERMITS) else { return };
    let www = net.lab.dir().join("www");
    std::fs::write(www.join("page.txt"), "a page of the provider\n").unwrap();
    intercept(&net, "edge-cache", 80);
    for six in [false, true] {
        let server: IpAddr = if six { net.lab.v6("sender").into() } else { net.lab.v4("sender").into() };
        let url = format!("http://{}/page.txt", host_port(server, 80));
        let ask = || String::from_utf8_lossy(&net.curl("receiver", &["-i", &url]).stdout).to_lowercase();
        let first = ask();
        assert!(first.contains("x-cache: miss") && first.contains("a page of the provider"), "{first}");
        eventually("the cache answers", || ask().contains("x-cache: hit"));
        let again = ask();
        assert!(again.contains("a page of the provider") && again.contains("content-type: text/plain"), "{again}");

        // The server saw the client's own address, and not each request.
        let client = if six { net.lab.v6("receiver").to_string() } else { net.lab.v4("receiver").to_string() };
        let log = std::fs::read_to_string(net.lab.dir().join("sender-access.txt")).unwrap();
        let seen = log.lines().filter(|line| line.contains("/page.txt") && line.starts_with(&client)).count();
        let asked = net.status(&net.alice, "edge-cache").unwrap().counters;
        assert!(seen >= 1 && asked["hits"] >= 1, "{log}\n{asked:?}");
        assert!((seen as u64) < asked["hits"] + asked["misses"], "{log}\n{asked:?}");

        // What its user purges is asked for anew.
        let key = format!("{}/page.txt", host_port(server, 80).trim_end_matches(":80"));
        std::fs::write(www.join("page.txt"), format!("another page, of IPv{}\n", if six { 6 } else { 4 })).unwrap();
        assert!(!ask().contains("another page, of ipv"), "it is kept");
        let told = net.request(&net.alice, &["tell", "example.org/edge-cache", "--topic", "purge", &key]);
        assert_eq!(told, Outcome::Told);
        let anew = ask();
        assert!(anew.contains("x-cache: miss") && anew.contains("another page, of ipv"), "{anew}");
        std::fs::write(www.join("page.txt"), "a page of the provider\n").unwrap();

        // What is not for a cache goes on, with its body.
        let upload = vec![b'u'; 300_000];
        std::fs::write(net.lab.dir().join("upload"), &upload).unwrap();
        let name = format!("uploaded{}", u8::from(six));
        let (file, url) = (net.lab.dir().join("upload"), format!("http://{}/{name}", host_port(server, 80)));
        let put = net.curl("receiver", &["-i", "-T", &file.to_string_lossy(), &url]).stdout;
        let put = String::from_utf8_lossy(&put).to_lowercase();
        assert!(put.contains(" 201 created") && put.contains("x-cache: miss"), "{put}");
        assert!(std::fs::read(www.join(name)).unwrap() == upload, "the server got another body");
    }
    // Another user's traffic, and other ports, are not touched.
    assert!(!ask_head(&net, "sender", "receiver", 80).contains("x-cache"));
}

fn words_are_taken_out_of_streams_and_both_ends_see_each_other(driver: Driver) {
    let test = "words_are_taken_out_of_streams_and_both_ends_see_each_other";
    let Some(mut net) = Serving::start(test, driver, PERMITS) else { return };
    start_line_server(&mut net, 7000);
    intercept(&net, "redact", 7000);
    for server in [IpAddr::from(net.lab.v4("sender")), net.lab.v6("sender").into()] {
        let client =
            if server.is_ipv6() { net.lab.v6("receiver").to_string() } else { net.lab.v4("receiver").to_string() };
        let mut talk = Talk::open(&net, server, 7000);
        // The server's greeting says who it believes that it talks to.
        assert_eq!(talk.line(), format!("hello {client}"));
        talk.say("my secret is out");
        assert_eq!(talk.line(), "echo my ****** is out");
        talk.say("nothing to see");
        assert_eq!(talk.line(), "echo nothing to see");
        // A half-closed connection still brings what the server has to say.
        talk.end();
        assert_eq!(talk.line(), "bye 2");
        assert_eq!(talk.line(), "");
    }
    assert!(net.status(&net.alice, "redact").unwrap().counters["words"] >= 2);
}

/// Goal (case 18): rules of policy routing, routes and tables of the packet filter that another program takes away are there again, and
/// new connections are taken over again, over IPv4 and IPv6. systemd-networkd removes rules that it did not make.
fn what_others_take_away_of_the_rules_comes_back(driver: Driver) {
    let Some(mut net) = Serving::start("what_others_take_away_of_the_rules_comes_back", driver, PERMITS) else {
        return;
    };
    start_line_server(&mut net, 7000);
    intercept(&net, "redact", 7000);
    let is_taken_over = |server: IpAddr| {
        let mut talk = Talk::open(&net, server, 7000);
        talk.line();
        talk.say("my secret is out");
        talk.line() == "echo my ****** is out"
    };
    let servers = [IpAddr::from(net.lab.v4("sender")), net.lab.v6("sender").into()];
    for server in servers {
        eventually("it is taken over", || is_taken_over(server));
    }
    // Each as a shell says it, in both versions of IP.
    let takings = [
        "ip -4 rule del priority 7800 && ip -6 rule del priority 7800",
        "for v in -4 -6; do ip $v route flush table $(ip $v rule show priority 7800 | sed 's/.*lookup //;s/ .*//'); done",
        "nft flush ruleset",
    ];
    for taking in takings {
        net.lab.run("node", "sh", &["-ec", taking]).unwrap();
        for server in servers {
            eventually(taking, || is_taken_over(server));
        }
        let said = |text: &str| net.lab.log("node", "netservd").contains(text);
        assert!(said("somebody took away what leads packets to modules"), "{taking}");
    }
    let said = || net.lab.log("node", "netservd").contains("somebody took away what bounds a container's packets");
    eventually("what bounds the container is there again", said);
}

fn connections_pass_untouched_when_the_module_is_gone(driver: Driver) {
    let test = "connections_pass_untouched_when_the_module_is_gone";
    let Some(mut net) = Serving::start(test, driver, PERMITS) else { return };
    start_line_server(&mut net, 7000);
    let server = IpAddr::from(net.lab.v4("sender"));
    // One that was there before goes on.
    let mut before = Talk::open(&net, server, 7000);
    assert!(before.line().starts_with("hello"));
    intercept(&net, "redact", 7000);
    before.say("my secret is mine");
    assert_eq!(before.line(), "echo my secret is mine");

    let mut during = Talk::open(&net, server, 7000);
    assert!(during.line().starts_with("hello"));
    during.say("my secret is out");
    assert_eq!(during.line(), "echo my ****** is out");
    assert_eq!(net.request(&net.alice, &["remove", "example.org/redact"]), Outcome::Removed);
    let mut after = Talk::open(&net, server, 7000);
    assert!(after.line().starts_with("hello"));
    after.say("my secret is mine");
    assert_eq!(after.line(), "echo my secret is mine");
    before.say("still here");
    assert_eq!(before.line(), "echo still here");
}

/// Goal: an open connection does not notice that the module's lease is renewed, and goes on by new properties. Method: `redact` is told
/// another word.
fn connections_go_on_with_a_renewed_lease_and_new_properties(driver: Driver) {
    let test = "connections_go_on_with_a_renewed_lease_and_new_properties";
    let Some(mut net) = Serving::start(test, driver, PERMITS) else { return };
    start_line_server(&mut net, 7000);
    let package = intercept(&net, "redact", 7000);
    let mut talks = [IpAddr::from(net.lab.v4("sender")), net.lab.v6("sender").into()].map(|server| {
        let mut talk = Talk::open(&net, server, 7000);
        assert!(talk.line().starts_with("hello"));
        talk
    });
    let mut are_redacted = |line: &str| {
        talks.iter_mut().all(|talk| {
            talk.say("my secret word");
            talk.line() == line
        })
    };
    assert!(are_redacted("echo my ****** word"));
    let again = |properties: &[&str]| {
        let filters = intercepted(&net, 7000);
        let filters = filters.iter().flat_map(|filter| ["--filter", filter]);
        net.setup(&net.alice, &package, &filters.chain(properties.iter().copied()).collect::<Vec<_>>())
    };
    let renewed = again(&[]);
    assert!(matches!(renewed, Outcome::Refreshed { .. }), "{renewed:?}");
    assert!(are_redacted("echo my ****** word"));
    let replaced = again(&["--property", "word=word"]);
    assert!(matches!(replaced, Outcome::Replaced { .. }), "{replaced:?}");
    // The old version hands each over as it leaves.
    eventually("the next version has them", || are_redacted("echo my secret ****"));
}

fn connections_go_on_without_a_module_that_drains(driver: Driver) {
    let test = "connections_go_on_without_a_module_that_drains";
    let Some(mut net) = Serving::start(test, driver, PERMITS) else { return };
    start_line_server(&mut net, 5201);
    intercept(&net, "byte-count", 5201);
    let open = |net: &Serving| {
        [IpAddr::from(net.lab.v4("sender")), net.lab.v6("sender").into()].map(|server| {
            let mut talk = Talk::open(net, server, 5201);
            assert!(talk.line().starts_with("hello"));
            talk
        })
    };
    let says = |talk: &mut Talk, line: &str| {
        talk.say(line);
        talk.line() == format!("echo {line}")
    };
    let module = "example.org/byte-count";
    let remove = |force: &[&str]| net.request(&net.alice, &[&["remove", module][..], force].concat());
    let mut during = open(&net);
    assert!(during.iter_mut().all(|talk| says(talk, "with the module")));
    assert_eq!(remove(&[]), Outcome::Removed);
    let state = |net: &Serving| net.status(&net.alice, "byte-count").map(|status| status.state);
    assert_eq!(state(&net), Some(ModuleState::Draining));
    // Longer than a module has to end by itself.
    std::thread::sleep(Duration::from_secs(6));
    assert!(during.iter_mut().all(|talk| says(talk, "without it")));
    let mut after = open(&net);
    assert!(after.iter_mut().all(|talk| says(talk, "past it")));

    for talk in &mut during {
        talk.end();
        assert_eq!((talk.line(), talk.line()), ("bye 2".to_owned(), String::new()));
    }
    eventually("nothing of the module is left", || state(&net).is_none());
    // Whatever passed the container in the kernel goes on when that is gone.
    assert!(after.iter_mut().all(|talk| says(talk, "still past it")));

    intercept(&net, "byte-count", 5201);
    let mut cut = open(&net);
    assert!(cut.iter_mut().all(|talk| says(talk, "with the module")));
    assert_eq!(remove(&[]), Outcome::Removed);
    assert!(cut.iter_mut().all(|talk| says(talk, "without it")));
    assert_eq!(remove(&["--force"]), Outcome::Removed);
    eventually("nothing of the module is left", || state(&net).is_none());
    assert!(cut.iter_mut().all(|talk| talk.line().is_empty()), "they end");
}

/// Goal: connections that two modules of a user intercept pass through both, in the order of installation, and through one
/// when the other is gone, over IPv4 and IPv6.
fn modules_that_take_the_same_connections_are_a_chain(driver: Driver) {
    let test = "modules_that_take_the_same_connections_are_a_chain";
    let Some(mut net) = Serving::start(test, driver, PERMITS) else { return };
    // The port of one, which the other takes by the request.
    start_line_server(&mut net, 7000);
    intercept(&net, "redact", 7000);
    intercept(&net, "byte-count", 7000);
    let counted = |net: &Serving, module: &str| net.status(&net.alice, module).unwrap().server.unwrap().connections;
    for server in [IpAddr::from(net.lab.v4("sender")), net.lab.v6("sender").into()] {
        let client =
            if server.is_ipv6() { net.lab.v6("receiver").to_string() } else { net.lab.v4("receiver").to_string() };
        let mut talk = Talk::open(&net, server, 7000);
        assert_eq!(talk.line(), format!("hello {client}"), "the server sees the client");
        talk.say("my secret is out");
        assert_eq!(talk.line(), "echo my ****** is out");
        talk.end();
        assert_eq!((talk.line(), talk.line()), ("bye 1".to_owned(), String::new()));
    }
    assert_eq!((counted(&net, "redact"), counted(&net, "byte-count")), (2, 2));

    // Either may go: the other has the connections.
    let server = IpAddr::from(net.lab.v4("sender"));
    assert_eq!(net.request(&net.alice, &["remove", "example.org/byte-count"]), Outcome::Removed);
    eventually("the other takes connections", || {
        let mut talk = Talk::open(&net, server, 7000);
        talk.line();
        talk.say("my secret is out");
        talk.line() == "echo my ****** is out"
    });
    intercept(&net, "byte-count", 7000);
    assert_eq!(net.request(&net.alice, &["remove", "example.org/redact"]), Outcome::Removed);
    // The worker may still be about to end it.
    eventually("connections are past it", || {
        let mut talk = Talk::open(&net, server, 7000);
        talk.line();
        talk.say("my secret is mine");
        talk.line() == "echo my secret is mine"
    });
    assert!(counted(&net, "byte-count") >= 1);
}

/// Installs a sample module for connections to a port of the sender, which is alice's.
fn intercept(net: &Serving, module: &str, port: u16) -> LabPackage {
    let filters = intercepted(net, port);
    net.install(module, &net.alice, &["--filter", &filters[0], "--filter", &filters[1]])
}

/// Returns filters for a port of the sender: a module's manifest names the port, the SETUP narrows it to addresses of the user's own.
fn intercepted(net: &Serving, port: u16) -> [String; 2] {
    [
        format!("tcp dst {}/32 port {port}", net.lab.v4("sender")),
        format!("tcp dst {}/128 port {port}", net.lab.v6("sender")),
    ]
}

fn ask_head(net: &Serving, machine: &str, server: &str, port: u16) -> String {
    let url = format!("http://{}/", host_port(net.lab.v4(server).into(), port));
    String::from_utf8_lossy(&net.curl(machine, &["-i", &url]).stdout).to_lowercase()
}

/// Starts a server on the sender that greets with the client's address, echoes lines, and says goodbye after the end.
fn start_line_server(net: &mut Serving, port: u16) {
    let script = format!(
        "import socket, threading\n\
         s = socket.create_server(('::', {port}), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)\n\
         def talk(c, a):\n\
         \x20   f = c.makefile('rw', newline='\\n'); n = 0\n\
         \x20   f.write('hello ' + a[0].replace('::ffff:', '') + '\\n'); f.flush()\n\
         \x20   for line in f:\n\
         \x20       n += 1; f.write('echo ' + line); f.flush()\n\
         \x20   f.write('bye %d\\n' % n); f.flush(); f.close(); c.close()\n\
         while True:\n\
         \x20   c, a = s.accept(); threading.Thread(target=talk, args=(c, a), daemon=True).start()\n"
    );
    let mut command = net.lab.command("sender", "python3");
    command.args(["-c", &script]);
    net.lab.start("sender", "lines", &mut command).unwrap();
    let listens = || {
        let output = net.lab.command("sender", "nc").args(["-z", "-w", "1", "127.0.0.1", &port.to_string()]).status();
        output.unwrap().success()
    };
    eventually("the server listens", listens);
}

/// A connection from the receiver, line by line.
struct Talk {
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    child: std::process::Child,
}

impl Talk {
    fn open(net: &Serving, server: IpAddr, port: u16) -> Talk {
        let mut command = net.lab.command("receiver", "nc");
        command.args(["-N", "-w", "10", &server.to_string(), &port.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Talk { input, output, child }
    }

    fn say(&mut self, line: &str) {
        // It may have ended; then no line comes back.
        let _ = writeln!(self.input.as_mut().unwrap(), "{line}");
    }

    /// Sends no more.
    fn end(&mut self) {
        self.input = None;
    }

    /// Returns the next line, an empty one at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
