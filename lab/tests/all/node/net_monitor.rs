// SPDX-License-Identifier: Apache-2.0
//! net-monitor with its page: it counts what Wireshark counts of the same packets, and a browser shows it as they pass.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::browser::Browser;
use crate::common::{Driver, Serving, eventually};
use netserv_lab::netns::host_port;
use netserv_model::request::Outcome;
use netserv_skips::skipped;
use serde_json::{Value, json};

over_one_driver! {
    afxdp: []
    nfqueue: [the_page_shows_what_passes]
}

const LISTEN: &str = "listen = ['tcp port 80']\n";
const MODULE: &str = "example.org/net-monitor";
/// Bytes of an Ethernet header.
const LINK_BYTES: u64 = 14;
/// Packets and bytes from one address to another.
type Flows = BTreeMap<(IpAddr, IpAddr), (u64, u64)>;

/// Goal: packets and bytes by source and destination are those of the same traffic's capture, over IPv4 and IPv6, ICMP, UDP and
/// TCP; the page shows them as they pass and after it was cut off, and asks nobody but the node; what is not looked at is in no
/// row. Method: the module without a page counts first, and its counts go on in the one with a page.
fn the_page_shows_what_passes(driver: Driver) {
    let test = "the_page_shows_what_passes";
    if Command::new("tshark").arg("--version").output().is_err() {
        return skipped(test, "tshark is not installed");
    }
    let Some(mut net) = Serving::start(test, driver, LISTEN) else { return };
    let filters = filters(&net);
    let wishes: Vec<&str> = filters.iter().flat_map(|filter| ["--filter", filter]).collect();
    net.install("net-monitor", &net.alice, &wishes);
    send(&net);
    let counted = || net.status(&net.alice, "net-monitor").map(|status| status.counters).unwrap_or_default();
    eventually("packets are counted", || counted().get("packets").is_some_and(|packets| *packets >= 30));
    net.install("net-monitor-live", &net.alice, &wishes);
    let page = net.address(&net.alice, true);
    net.answers("receiver", page, "/data.json", "\"counted\"");
    let before = settled(&net, page);
    assert!(before.len() >= 4, "{before:?}");

    let capture = begin_capture(&mut net);
    let mut browser = Browser::open(&net.lab, "receiver", &format!("http://{}/", host_port(page, 80)));
    eventually("the page lives", || text(&mut browser, "status") == "live");
    send(&net);
    let expected = |captured: &Flows| {
        let mut all = before.clone();
        for (flow, (packets, bytes)) in captured {
            let sum = all.entry(*flow).or_default();
            *sum = (sum.0 + packets, sum.1 + bytes);
        }
        all
    };
    eventually("the counts are those of the capture", || flows(&net, page) == expected(&captured(&net, &capture)));
    assert!(captured(&net, &capture).len() >= 4);
    compare_with_conversations(&net, &capture);
    shows_and_stays_up_to_date(&net, page, &mut browser);
    fits_narrow_screens_and_both_schemes(&mut browser);
    comes_back_after_a_cut(&net, page, &mut browser);
    tells_apart_what_is_sampled_away(&net, page);
}

/// The page has all rows, and new packets reach it without a reload.
fn shows_and_stays_up_to_date(net: &Serving, page: IpAddr, browser: &mut Browser) {
    let pairs = "JSON.stringify([...document.querySelectorAll('#flows tbody tr')].map(row => [...row.cells].map(cell => cell.textContent.replace(/,/g, ''))))";
    eventually("the page has all rows", || {
        let said = browser.evaluate(pairs);
        let said: Vec<Vec<String>> = serde_json::from_str(said.as_str().unwrap_or("[]")).unwrap();
        let mut shown = Flows::new();
        for row in &said {
            let number = |at: usize| row[at].parse::<u64>().unwrap();
            count(net, &mut shown, &row[0], &row[1], (number(3), number(4)));
        }
        !shown.is_empty() && shown == flows(net, page)
    });
    assert_eq!(text(browser, "node"), "at node");
    browser.evaluate("window.stays = true");
    let before = number(browser, "packets");
    send(net);
    eventually("the page goes on", || number(browser, "packets") >= before + 30);
    assert_eq!(browser.evaluate("window.stays"), json!(true));
    eventually("rates are drawn", || {
        let label = browser.evaluate("document.querySelector('#rates').getAttribute('aria-label')");
        label.as_str().is_some_and(|label| label.contains("packets/s"))
    });
    let is_drawn = "(() => { const canvas = document.querySelector('#rates canvas'); \
        return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(byte => byte > 0); })()";
    assert_eq!(browser.evaluate(is_drawn), json!(true));
    let foreign = "performance.getEntriesByType('resource').filter(one => !one.name.startsWith(location.origin) && !one.name.startsWith('data:')).length";
    assert_eq!(browser.evaluate(foreign), json!(0));
    assert!(browser.evaluate("performance.getEntriesByType('resource').length").as_u64() >= Some(5));
}

fn fits_narrow_screens_and_both_schemes(browser: &mut Browser) {
    let narrow = json!({ "width": 340, "height": 700, "deviceScaleFactor": 1, "mobile": false });
    browser.call("Emulation.setDeviceMetricsOverride", &narrow);
    eventually("the page fits", || browser.evaluate("document.documentElement.scrollWidth <= 340") == json!(true));
    let mut backgrounds = Vec::new();
    for scheme in ["light", "dark"] {
        let feature = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        browser.call("Emulation.setEmulatedMedia", &feature);
        backgrounds.push(browser.evaluate("getComputedStyle(document.body).backgroundColor"));
        let picture = browser.call("Page.captureScreenshot", &json!({}));
        assert!(picture["data"].as_str().is_some_and(|data| data.len() > 10_000), "{scheme}");
    }
    assert_ne!(backgrounds[0], backgrounds[1]);
}

/// Method: the browser's machine drops what the page's server sends, so that no connection ends.
fn comes_back_after_a_cut(net: &Serving, page: IpAddr, browser: &mut Browser) {
    let rule = |verb: &str| {
        let args = [verb, "INPUT", "-s", &page.to_string(), "-j", "DROP"];
        net.lab.run("receiver", "ip6tables", &args).unwrap();
    };
    rule("-I");
    eventually("the cut is told", || text(browser, "status") == "connection lost, trying again");
    send(net);
    let before = number(browser, "packets");
    rule("-D");
    eventually("the page lives again", || text(browser, "status") == "live" && number(browser, "packets") > before);
}

fn tells_apart_what_is_sampled_away(net: &Serving, page: IpAddr) {
    assert_eq!(net.request(&net.alice, &["tell", MODULE, "--topic", "sample", "2"]), Outcome::Told);
    // What was sent before is all counted, and may reach the page late.
    let mut before = data(net, page);
    eventually("nothing is on its way", || {
        std::thread::sleep(Duration::from_secs(1));
        let earlier = std::mem::replace(&mut before, data(net, page));
        earlier["seen"] == before["seen"]
    });
    send(net);
    let mut after = Value::Null;
    eventually("packets are sampled away", || {
        after = data(net, page);
        after["not_counted"]["sampled_away"].as_u64() >= Some(15)
    });
    assert_eq!(after["sample"], 2);
    eventually("all are somewhere", || {
        after = data(net, page);
        let at = |data: &Value, path: &str| data.pointer(path).and_then(Value::as_u64).unwrap_or_default();
        let since = |path: &str| at(&after, path).saturating_sub(at(&before, path));
        let apart =
            since("/not_counted/sampled_away") + since("/not_counted/not_ip") + since("/not_counted/no_room/packets");
        let counted = since("/counted/packets");
        since("/seen") >= 30 && since("/seen") == counted + apart && counted.abs_diff(apart) <= 1
    });
}

/// What the module is to see: the sender's packets of three protocols, and those to it.
fn filters(net: &Serving) -> Vec<String> {
    let ends = [format!("{}/32", net.lab.v4("sender")), format!("{}/128", net.lab.v6("sender"))];
    ends.iter()
        .flat_map(|end| {
            [
                format!("icmp src {end}"),
                format!("icmp dst {end}"),
                format!("udp dst {end} port 7000"),
                format!("tcp dst {end} port 81"),
                format!("tcp src {end} sport 81"),
            ]
        })
        .collect()
}

/// Sends some packets from the receiver to the sender, which answers to most.
fn send(net: &Serving) {
    for address in [IpAddr::from(net.lab.v4("sender")), net.lab.v6("sender").into()] {
        let script = format!(
            "ping -q -i 0.02 -c 5 -s 300 {address}; nc -z -w 1 {address} 81; \
             for number in 1 2 3 4 5 6 7 8 9; do printf %$((number * 100))s > /dev/udp/{address}/7000; done; true"
        );
        net.lab.run("receiver", "bash", &["-c", &script]).unwrap();
    }
}

fn begin_capture(net: &mut Serving) -> PathBuf {
    let file = net.lab.dir().join("receiver.pcap");
    let [v4, v6] = [net.lab.v4("sender").to_string(), net.lab.v6("sender").to_string()];
    let what = format!("(host {v4} or host {v6}) and (icmp or icmp6 or udp dst port 7000 or tcp port 81)");
    let interface = net.lab.topology().interfaces_of("receiver").remove(0).name;
    let mut capture = net.lab.command("receiver", "tcpdump");
    capture.args(["-i", &interface, "-U", "--immediate-mode", "-w"]).arg(&file).arg(what);
    net.lab.start("receiver", "tcpdump", &mut capture).unwrap();
    eventually("the capture begins", || net.lab.log("receiver", "tcpdump").contains("listening"));
    file
}

/// Returns what a capture has, less link headers.
fn captured(net: &Serving, capture: &Path) -> Flows {
    let fields = ["ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "frame.len"];
    // Of what ICMP quotes, only the packet that it is in counts.
    let mut args = vec!["-T", "fields", "-E", "occurrence=f"];
    args.extend(fields.iter().flat_map(|field| ["-e", field]));
    let mut flows = Flows::new();
    for line in tshark(capture, &args).lines() {
        let words: Vec<&str> = line.split('\t').collect();
        let [source, destination] = if words[0].is_empty() { [words[2], words[3]] } else { [words[0], words[1]] };
        count(net, &mut flows, source, destination, (1, words[4].parse::<u64>().unwrap() - LINK_BYTES));
    }
    flows
}

/// Wireshark's own tables of conversations say the same; it rounds bytes from ten thousand on.
fn compare_with_conversations(net: &Serving, capture: &Path) {
    let flows = captured(net, capture);
    let mut compared = 0;
    for kind in ["ip", "ipv6"] {
        for line in tshark(capture, &["-q", "-z", &format!("conv,{kind}")]).lines().filter(|line| line.contains("<->"))
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (a, b): (IpAddr, IpAddr) = (words[0].parse().unwrap(), words[2].parse().unwrap());
            if !flows.contains_key(&(a, b)) && !flows.contains_key(&(b, a)) {
                continue;
            }
            for (flow, said) in [((b, a), &words[3..6]), ((a, b), &words[6..9])] {
                let (packets, bytes) = flows.get(&flow).copied().unwrap_or_default();
                let with_links = bytes + packets * LINK_BYTES;
                let (number, unit) = (said[1].parse::<u64>().unwrap(), said[2]);
                assert_eq!(said[0].parse::<u64>().unwrap(), packets, "{line}");
                match unit {
                    "bytes" => assert_eq!(number, with_links, "{line}"),
                    _ => assert!(with_links.abs_diff(number * 1000) <= 1000 && unit == "kB", "{line}"),
                }
                compared += usize::from(packets > 0);
            }
        }
    }
    assert_eq!(compared, flows.len());
}

fn tshark(capture: &Path, args: &[&str]) -> String {
    let output = Command::new("tshark").arg("-r").arg(capture).args(args).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn data(net: &Serving, page: IpAddr) -> Value {
    serde_json::from_str(&net.get("receiver", page, "/data.json").unwrap_or_default()).unwrap_or_default()
}

/// Returns what `/data.json` has by source and destination.
fn flows(net: &Serving, page: IpAddr) -> Flows {
    let mut flows = Flows::new();
    for row in data(net, page)["flows"]["rows"].as_array().into_iter().flatten() {
        let [source, destination] = ["source", "destination"].map(|name| row[name].as_str().unwrap());
        let [packets, bytes] = ["packets", "bytes"].map(|name| row[name].as_u64().unwrap());
        count(net, &mut flows, source, destination, (packets, bytes));
    }
    flows
}

/// Adds packets and bytes between sender and receiver. What the sender says to its neighbour, which the module sees too, is on
/// another link than the capture.
fn count(net: &Serving, flows: &mut Flows, source: &str, destination: &str, (packets, bytes): (u64, u64)) {
    let ends = [source, destination].map(|text| text.parse::<IpAddr>().unwrap());
    let ours = |end: &IpAddr| {
        ["sender", "receiver"].iter().any(|host| [net.lab.v4(host).into(), net.lab.v6(host).into()].contains(end))
    };
    if ends.iter().all(ours) {
        let sum = flows.entry((ends[0], ends[1])).or_default();
        *sum = (sum.0 + packets, sum.1 + bytes);
    }
}

/// Returns the counts once they are the same for longer than the module takes to tell them.
fn settled(net: &Serving, page: IpAddr) -> Flows {
    let mut last = Flows::new();
    eventually("nothing comes any more", || {
        let before = std::mem::replace(&mut last, flows(net, page));
        std::thread::sleep(Duration::from_millis(1300));
        !last.is_empty() && last == before
    });
    last
}

fn text(browser: &mut Browser, id: &str) -> String {
    let said = browser.evaluate(&format!("document.getElementById('{id}')?.textContent"));
    said.as_str().unwrap_or_default().to_owned()
}

/// Returns a number of the page, without its separators.
fn number(browser: &mut Browser, id: &str) -> u64 {
    text(browser, id).replace(',', "").parse().unwrap_or_default()
}
