// SPDX-License-Identifier: Apache-2.0
//! `./dev demo`: sender – node – plain router – node – receiver, with real SIP phones behind the last node.

mod calls;
mod cdn;
mod compressor;
mod moves;
mod radio;
mod sip;
mod stranger;
mod telling;
mod video;

use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netserv_model::Flavour;
use netserv_model::api::RequestResult;
use netserv_model::request::Outcome;

use crate::netns::{Lab, clear_leftovers, is_root};
use crate::node::{FILES_ALLOWED, LabPackage, LabUser, Part, installed, workspace};

use crate::patience::{grown, wait_for};
use crate::topology::Topology;
use telling::{request_timeout, signed, title};

/// Phones in the demo.
const PHONES: usize = 100;
/// The port whose packets the guard sees.
const GUARDED_PORT: u16 = 9999;
/// Programs of others that the demo runs, with their Debian packages.
const PROGRAMS: [(&str, &str); 5] = [
    ("/usr/sbin/nginx", "nginx"),
    ("/usr/sbin/kamailio", "kamailio"),
    ("/usr/bin/sipp", "sip-tester"),
    ("/usr/bin/curl", "curl"),
    ("/bin/nc", "netcat-openbsd"),
];
/// How long a server may take until it answers, on a machine that is not busy.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// How long curl waits for one answer, on a machine that is not busy.
const CURL_WAIT: Duration = Duration::from_secs(2);
/// What a demo shows, beyond modules that are installed by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum App {
    /// Keep-alives, overload control, calls between phones behind NATs, and a live page, with an unmodified Kamailio.
    Sip,
    /// AMnet's HTTP compressor before an unmodified nginx.
    Compressor,
    /// A cache that follows the viewers of an unmodified nginx.
    Cdn,
    /// AMnet's reflector before an unmodified Icecast.
    Radio,
    /// A module that moves between two nodes with what it knows.
    Move,
    /// AMnet's video transcoder before an unmodified nginx with a live video.
    Video,
    /// Users whom no configuration names, let in by proof.
    Stranger,
}

/// Shows an application. Where an agent is part of it, nobody types SETUP.
///
/// # Errors
/// Something did not do what the demo shows; the error says what.
pub fn run_app(app: App) -> Result<()> {
    ensure_root()?;
    clear_leftovers()?;
    match app {
        App::Sip => sip::run(),
        App::Compressor => compressor::run(),
        App::Cdn => cdn::run(),
        App::Radio => radio::run(),
        App::Move => moves::run(),
        App::Video => video::run(),
        App::Stranger => stranger::run(),
    }
}

/// Runs the demo with modules of a flavour; with `keep`, waits for Enter before it takes the network down.
///
/// # Errors
/// Something did not do what the demo shows; the error says what.
pub fn run(flavour: Flavour, keep: bool) -> Result<()> {
    ensure_root()?;
    ensure_programs(&PROGRAMS)?;
    let started = Instant::now();
    for id in clear_leftovers()? {
        println!("(cleared up {id}, whose owner was gone)");
    }
    title("The network");
    let (lab, user) = network()?;

    title("Before: each keep-alive travels all the way to the SIP server");
    let before = phones(&lab)?;

    title(&format!("A signed SETUP travels hop by hop ({flavour})"));
    let keep_alive = lab.package_in("keep-alive", &[flavour], &user)?;
    let result = setup(&lab, &keep_alive, &user, 5060)?;
    show(&result);
    probe(&lab, &user)?;

    title("After: the router next to the phones answers");
    let after = phones(&lab)?;

    title("Echo, a WebAssembly module: UDP port 44444 comes back from the router");
    let echo = lab.package("echo", &user)?;
    setup(&lab, &echo, &user, 44444)?;
    echo_once(&lab)?;

    let server = match flavour {
        Flavour::Wasm => guard(&lab, &user)?,
        Flavour::Osgi => servlet(&lab, &user)?,
    };

    title("REMOVE: the nodes are what they were");
    for package in [&keep_alive, &echo, &server] {
        remove(&lab, package, &user)?;
    }

    title("Figures");
    let none = if after.reached == 0 { " (none)" } else { "" };
    println!("  keep-alives that reached Kamailio before: {}", before.reached);
    println!("  keep-alives that reached Kamailio after:  {}{none}", after.reached);
    println!("  phones answered before and after:         {} and {} of {PHONES}", before.answered, after.answered);
    println!("  SETUP over {} nodes, package downloaded:   {:.1} ms", result.nodes.len(), millis(result.took_us));
    println!("  the whole demo:                           {:.1} s", started.elapsed().as_secs_f64());
    ensure!(before.reached == PHONES, "before, {} of {PHONES} keep-alives reached the server", before.reached);
    ensure!(after.reached == 0, "after, {} keep-alives still reached the server", after.reached);
    ensure!(before.answered == PHONES && after.answered == PHONES, "not every phone was answered");
    if keep {
        println!("\nThe network stays up until you press Enter.");
        std::io::stdin().read_line(&mut String::new())?;
    }
    Ok(())
}

fn ensure_root() -> Result<()> {
    let fix = if installed().is_some() { "sudo netserv-lab demo" } else { "sudo ./dev demo" };
    ensure!(is_root(), "not root: the demo makes network namespaces; run `{fix}`");
    Ok(())
}

/// Fails if one of these programs is missing. Without that, the demo would stop in the middle.
fn ensure_programs(programs: &[(&str, &str)]) -> Result<()> {
    let missing = programs.iter().filter(|(program, _)| !Path::new(program).exists());
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    ensure!(packages.is_empty(), "programs are missing; run `apt install {}`", packages.join(" "));
    Ok(())
}

/// Builds the network with its daemons and servers.
fn network() -> Result<(Lab, LabUser)> {
    let mut lab = Lab::up(Topology::two_nodes())?;
    let sender = lab.v4("sender");
    println!("  sender {sender} ── n1 ── r (plain router) ── n2 ── receiver {}", lab.v4("receiver"));
    let mut user = lab.user("janedoe", &[&format!("{sender}/32"), &format!("{}/128", lab.v6("sender"))])?;
    user.extra = "listen = [\"tcp port 80\"]\n".to_owned();
    for (node, prefix) in [("n1", "10.99.1.0/29"), ("n2", "10.99.2.0/29")] {
        let extra = format!("{FILES_ALLOWED}[network]\nprefixes = [{prefix:?}]\n");
        lab.start_netservd(node, "node", std::slice::from_ref(&user), &extra)?;
    }
    lab.start_netservd("sender", "host", &[], "")?;
    lab.serve_http("sender")?;
    lab.start_kamailio("sender")?;
    println!("  n1 and n2 run netservd; the sender has Kamailio {sender}:5060 and a web server with the packages");
    println!("  user janedoe may filter packets from or to {sender}: that address is hers");
    Ok((lab, user))
}

struct Round {
    reached: usize,
    answered: usize,
}

fn phones(lab: &Lab) -> Result<Round> {
    let before = lab.reached_kamailio("sender");
    let answered = lab.phones("receiver", lab.v4("sender").into(), PHONES)?;
    let after = lab.reached_kamailio("sender");
    let reached = after.keep_alives - before.keep_alives;
    println!("  {PHONES} phones register and send a keep-alive each: {answered} got both answers");
    println!("  at Kamailio: {} REGISTERs, {reached} keep-alives", after.registers - before.registers);
    ensure!(after.registers - before.registers >= PHONES, "REGISTERs are lost on the way");
    Ok(Round { reached, answered })
}

fn setup(lab: &Lab, package: &LabPackage, user: &LabUser, port: u16) -> Result<RequestResult> {
    let (url, file) = (lab.publish("sender", package)?, package.path.to_string_lossy().into_owned());
    let filter = format!("udp dst {}/32 port {port}", lab.v4("sender"));
    let receiver = lab.v4("receiver").to_string();
    println!("  netserv setup {} --to {receiver} --filter '{filter}'", package.module);
    let result = signed(lab, user, &["setup", &file, "--to", &receiver, "--url", &url, "--filter", &filter])?;
    check_installed(&result)?;
    Ok(result)
}

/// Checks that both nodes have installed a module.
fn check_installed(result: &RequestResult) -> Result<()> {
    ensure!(result.incomplete.is_none(), "the response stack is not whole: {:?}", result.incomplete);
    ensure!(result.nodes.len() == 2, "{} nodes answered, not 2: {:?}", result.nodes.len(), result.nodes);
    // A node that a busy machine made slow is asked again, and then the other one had it already.
    let installed = |outcome: &Outcome| matches!(outcome, Outcome::Installed { .. } | Outcome::Refreshed { .. });
    ensure!(result.nodes.iter().all(|node| installed(&node.outcome)), "not installed everywhere: {:?}", result.nodes);
    Ok(())
}

fn remove(lab: &Lab, package: &LabPackage, user: &LabUser) -> Result<()> {
    let name = package.module.split('@').next().unwrap_or_default();
    let result = signed(lab, user, &["remove", name, "--to", &lab.v4("receiver").to_string()])?;
    println!("  netserv remove {name}");
    show(&result);
    ensure!(result.nodes.iter().all(|node| node.outcome == Outcome::Removed), "{name} is not removed everywhere");
    Ok(())
}

fn show(result: &RequestResult) {
    for (hop, node) in result.nodes.iter().enumerate() {
        println!(
            "    hop {}: {} {}: {:?}, {:.1} ms",
            hop + 1,
            node.node,
            node.address,
            node.outcome,
            millis(node.took_us)
        );
    }
    println!("    the whole response stack was back after {:.1} ms", millis(result.took_us));
}

fn probe(lab: &Lab, user: &LabUser) -> Result<()> {
    let (receiver, key) = (lab.v4("receiver").to_string(), user.key.to_string_lossy());
    let ask = ["probe", "--to", &receiver, "--ask", "nodes,modules,blocks,load"];
    println!("\n  netserv {}", ask.join(" "));
    let timeout = request_timeout();
    let who: &[&str] = &["--user", &user.name, "--key", &key, "--timeout", &timeout];
    let output = lab.netserv("sender", &[&ask[..], who].concat())?;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        println!("    {line}");
    }
    Ok(())
}

fn echo_once(lab: &Lab) -> Result<()> {
    let text = "any text sent by netcat";
    println!("  receiver sent   `{text}` to {}:44444, where nothing listens", lab.v4("sender"));
    let mut echoed = String::new();
    let waited = wait_for("the echo to come back", ANSWER_WAIT, || {
        echoed = netcat(lab, text).unwrap_or_else(|error| error.to_string());
        echoed.trim_end() == text
    });
    waited.map_err(|gave_up| gave_up.seeing(echoed.as_str()))?;
    println!("  receiver got    `{}`", echoed.trim_end());
    Ok(())
}

/// Runs a module of both roles on both nodes: its packet part counts and drops, its server part shows and takes wishes.
fn guard(lab: &Lab, user: &LabUser) -> Result<LabPackage> {
    title("A module of both roles: its packet part counts who sends, its page lets people block them");
    let package = lab.package("guard", user)?;
    setup(lab, &package, user, GUARDED_PORT)?;
    let address = served_at(lab, &package)?;
    let (sender, receiver) = (lab.v4("sender"), lab.v4("receiver"));
    let send = format!("for i in 1 2 3; do echo x > /dev/udp/{sender}/{GUARDED_PORT}; done");
    println!("  receiver sent   three packets to {sender}:{GUARDED_PORT}");
    lab.run("receiver", "bash", &["-c", &send])?;
    asked(lab, &format!("http://{address}/senders"), &format!("{receiver} 3 allowed"))?;
    let wish = format!("http://{address}/block/{receiver}");
    println!("  receiver posted {wish}");
    let time_max = grown(CURL_WAIT).as_secs().to_string();
    lab.run("receiver", "curl", &["--silent", "--max-time", &time_max, "--request", "POST", &wish])?;
    asked(lab, &format!("http://{address}/senders"), "blocked")?;
    lab.run("receiver", "bash", &["-c", &send])?;
    let dropped = || {
        let modules = lab.modules("n2").map(|list| list.modules).unwrap_or_default();
        modules.iter().find(|status| status.module.to_string() == package.module).map(|status| status.packets.dropped)
    };
    let waited = wait_for("n2 to drop three packets", ANSWER_WAIT, || dropped() == Some(3));
    waited.map_err(|gave_up| gave_up.seeing(format!("it dropped {:?}", dropped())))?;
    println!("  receiver sent   three more, and n2 dropped them");
    Ok(package)
}

/// Runs a servlet bundle from Maven Central on both nodes, and asks the one next to the receiver.
fn servlet(lab: &Lab, user: &LabUser) -> Result<LabPackage> {
    title("A server: a servlet from Maven Central, as it is, on an address of janedoe's container");
    let dir = workspace().join("java/samples/central/pax-hello");
    let code = (Part::Bundle, dir.join("target/pax-hello.jar"));
    let path = lab.dir().join("pax-hello.nsm");
    let package = lab.package_of(&dir.join("netserv.toml"), &[code], &path, user)?;
    let (url, receiver) = (lab.publish("sender", &package)?, lab.v4("receiver").to_string());
    println!("  netserv setup {} --to {receiver}", package.module);
    let result = signed(lab, user, &["setup", &path.to_string_lossy(), "--to", &receiver, "--url", &url])?;
    show(&result);
    check_installed(&result)?;
    let address = served_at(lab, &package)?;
    asked(lab, &format!("http://{address}/helloworld/hs"), "Hello World")?;
    Ok(package)
}

/// Returns the address of a module's container on n2, with the way there.
fn served_at(lab: &Lab, package: &LabPackage) -> Result<IpAddr> {
    let modules = lab.modules("n2")?.modules;
    let status = modules.iter().find(|status| status.module.to_string() == package.module);
    let address = status.and_then(|status| status.addresses.first()).context("the server has no address")?;
    // The operator's part: the prefix of the node's containers is routed to the node.
    let node = lab.topology().interfaces(3).0.v4.to_string();
    lab.run("receiver", "ip", &["route", "add", &address.to_string(), "via", &node])?;
    Ok(*address)
}

/// Has the receiver ask until the answer has a text, and shows it.
fn asked(lab: &Lab, url: &str, text: &str) -> Result<()> {
    let (mut page, time_max) = (String::new(), grown(CURL_WAIT).as_secs().to_string());
    let waited = wait_for(&format!("{url} to say `{text}`"), ANSWER_WAIT, || {
        let output = lab.command("receiver", "curl").args(["--silent", "--max-time", &time_max, url]).output();
        page = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        page.contains(text)
    });
    waited.map_err(|gave_up| gave_up.seeing(page.as_str()))?;
    println!("  receiver asked  {url}");
    println!("  receiver got    {}", page.split_whitespace().collect::<Vec<_>>().join(" "));
    Ok(())
}

fn netcat(lab: &Lab, text: &str) -> Result<String> {
    let mut command = lab.command("receiver", "nc");
    command.args(["-u", "-w", "1", &lab.v4("sender").to_string(), "44444"]);
    let mut child = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().context("netcat has no input")?;
    writeln!(input, "{text}")?;
    drop(input);
    let output = child.wait_with_output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[allow(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}
