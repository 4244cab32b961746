// SPDX-License-Identifier: Apache-2.0
//! AMnet's HTTP compressor on the way between an nginx and its clients, which know nothing of it.

use std::io::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use crate::common::{Driver, Serving, eventually, request_as};
use netserv_lab::netns::{Lab, host_port, is_root};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::{module_parts, workspace};
use netserv_lab::topology::{Kind, Topology};
use netserv_lab::website::{noise, page};
use netserv_model::flavour::Flavour;
use netserv_model::request::Outcome;
use netserv_skips::skipped;

over_one_driver! {
    afxdp: [pages_come_compressed_and_the_same]
    nfqueue: [what_the_module_cannot_wait_for_passes]
}

const PERMITS: &str = "connect = ['tcp']\n";

/// Goal: a client has after decompressing what the server has, in each coding, over IPv4 and IPv6; what is short, no text, or a part
/// comes as it is; a page that has not changed is not sent again; several requests go by one connection, and uploads arrive.
fn pages_come_compressed_and_the_same(driver: Driver) {
    let Some(net) = Serving::start("pages_come_compressed_and_the_same", driver, PERMITS) else { return };
    let www = net.lab.dir().join("www");
    let page = page(200_000);
    let write = |name: &str, bytes: &[u8]| std::fs::write(www.join(name), bytes).unwrap();
    write("page.html", &page);
    write("short.html", b"<p>short");
    write("noise.png", &noise(100_000));
    let filters = [
        format!("tcp dst {}/32 port 80", net.lab.v4("sender")),
        format!("tcp dst {}/128 port 80", net.lab.v6("sender")),
    ];
    net.install("http-compressor", &net.alice, &["--filter", &filters[0], "--filter", &filters[1]]);
    for server in [IpAddr::from(net.lab.v4("sender")), net.lab.v6("sender").into()] {
        let url = |name: &str| format!("http://{}/{name}", host_port(server, 80));
        let get = |name: &str, more: &[&str]| Answer::of(&net.curl("receiver", &[&["-i", &url(name)], more].concat()));
        for coding in ["br", "zstd", "gzip"] {
            let accept = format!("accept-encoding: {coding}");
            let answer = get("page.html", &["-H", &accept]);
            assert_eq!(answer.header("content-encoding"), Some(coding), "{server}");
            assert!(answer.body.len() < page.len() / 3, "{} of {} bytes", answer.body.len(), page.len());
            // What curl has decompressed itself.
            let text = net.curl("receiver", &[&url("page.html"), "--compressed", "-H", &accept]).stdout;
            assert!(text == page, "{server}, {coding}: another page");
        }
        let plain = get("page.html", &[]);
        assert_eq!((plain.header("content-encoding"), plain.header("vary")), (None, Some("accept-encoding")));
        assert!(plain.body == page);
        for name in ["short.html", "noise.png"] {
            let answer = get(name, &["-H", "accept-encoding: br, gzip"]);
            assert_eq!(answer.header("content-encoding"), None, "{name}");
            assert!(answer.body == std::fs::read(www.join(name)).unwrap(), "{name}");
        }
        let part = get("page.html", &["-H", "accept-encoding: gzip", "-r", "1000-1999"]);
        assert!(part.head.contains(" 206 ") && part.body == page[1000..2000], "{}", part.head);

        // nginx's own entity tag is strong, and the client's a weak one.
        let tag = get("page.html", &["-H", "accept-encoding: gzip"]).header("etag").unwrap().to_owned();
        assert!(tag.starts_with("W/\""), "{tag}");
        let again = get("page.html", &["-H", "accept-encoding: gzip", "-H", &format!("if-none-match: {tag}")]);
        assert!(again.head.contains(" 304 ") && again.body.is_empty(), "{}", again.head);
        assert_eq!(again.header("etag"), Some(&*tag));
        let head = get("page.html", &["-I", "-H", "accept-encoding: gzip"]);
        assert_eq!((head.header("content-encoding"), head.header("content-length")), (Some("gzip"), None));

        let both =
            net.curl("receiver", &["--compressed", "-w", "%{num_connects} ", &url("page.html"), &url("page.html")]);
        let text = String::from_utf8_lossy(&both.stdout).into_owned();
        assert_eq!(text.len(), 2 * page.len() + 4, "two pages and two counts");
        assert!(text.ends_with("0 "), "the second one came by the same connection");
        let upload = net.lab.dir().join("upload");
        std::fs::write(&upload, noise(900_000)).unwrap();
        let put = net.curl("receiver", &["-i", "-T", &upload.to_string_lossy(), &url("uploaded.bin")]);
        assert!(String::from_utf8_lossy(&put.stdout).contains(" 201 "), "{put:?}");
        assert!(std::fs::read(www.join("uploaded.bin")).unwrap() == noise(900_000));
        std::fs::remove_file(www.join("uploaded.bin")).unwrap();
    }
    let counters = net.status(&net.alice, "http-compressor").unwrap().counters;
    assert!(["br", "zstd", "gzip", "passed"].iter().all(|name| counters.get(*name).is_some_and(|count| *count > 0)));
}

/// Goal: an upload of 100 MB, with its length and in chunks, one that is slower than a request may be, and an answer that begins later than
/// that come as they were; each time the connection goes on, and the next answer is compressed; a connection that becomes another protocol
/// is the two ends'. Method: a request has two seconds.
fn what_the_module_cannot_wait_for_passes(driver: Driver) {
    let permits = format!("{PERMITS}module-limits.request-ms = {REQUEST_MS}\n");
    let Some(mut net) = Serving::start("what_the_module_cannot_wait_for_passes", driver, &permits) else { return };
    let server = net.lab.v4("sender");
    start_patient_server(&mut net);
    net.install("http-compressor", &net.alice, &["--filter", &format!("tcp dst {server}/32 port {PATIENT_PORT}")]);
    let url = |path: &str| format!("http://{server}:{PATIENT_PORT}{path}");
    let text = "a line of text\n".repeat(5000);
    let is_coded = || {
        let answer = Answer::of(&net.curl("receiver", &["-i", "-H", "accept-encoding: gzip", &url("/")]));
        answer.header("content-encoding") == Some("gzip")
    };
    eventually("it is taken over", is_coded);
    let file = |name: &str| net.lab.dir().join(name).to_string_lossy().into_owned();
    let (large, small) = (file("large"), file("small"));
    std::fs::write(&large, noise(1 << 20).repeat(100)).unwrap();
    std::fs::write(&small, noise(400_000)).unwrap();
    let sum = |path: &str| {
        let output = std::process::Command::new("sha256sum").arg(path).output().unwrap();
        let length = std::fs::metadata(path).unwrap().len();
        format!("{length} {}", String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap())
    };
    // The second request of each goes by the connection of the first.
    let both = |first: &[&str]| {
        let (one, two, root) = (file("one"), file("two"), url("/"));
        let shown = "%{num_connects} %{http_code} %{time_total}\n";
        let second = ["--next", "-s", "-i", "-H", "accept-encoding: gzip", "-m", "60", "-w", shown, "-o", &two];
        let args = [&["-m", "300", "-w", shown, "-o", &one], first, &second, &[&root]].concat();
        let output = net.curl("receiver", &args);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        let [first, second] = shown.lines().collect::<Vec<_>>()[..] else { panic!("{output:?}") };
        assert!(first.starts_with("1 200 ") && second.starts_with("0 200 "), "{shown}");
        let seconds = first.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        let next = std::fs::read(&two).unwrap();
        assert!(next.windows(22).any(|line| line == b"content-encoding: gzip"), "the next answer is not compressed");
        (std::fs::read_to_string(&one).unwrap(), Duration::from_secs_f64(seconds))
    };
    let chunked = "transfer-encoding: chunked";
    for more in [&["-H", "x-other: 1"][..], &["-H", chunked]] {
        let (answer, _) = both(&[more, &["-T", &large, &url("/")]].concat());
        assert_eq!(answer.trim(), sum(&large), "{more:?}");
    }
    for more in [&["-H", "x-other: 1"][..], &["-H", chunked]] {
        let (answer, took) = both(&[more, &["--limit-rate", "100k", "-T", &small, &url("/")]].concat());
        assert_eq!(answer.trim(), sum(&small), "{more:?}");
        assert!(took > Duration::from_millis(REQUEST_MS), "{took:?}");
    }
    let (late, took) = both(&["-H", "accept-encoding: gzip", &url("/?4")]);
    assert!(late == text && took > Duration::from_secs(4), "{} bytes in {took:?}", late.len());
    let upgrade = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\none\ntwo\n";
    let mut client = net.lab.command("receiver", "nc");
    client.args(["-N", "-w", "10", &server.to_string(), &PATIENT_PORT.to_string()]);
    let mut client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    client.stdin.take().unwrap().write_all(upgrade.as_bytes()).unwrap();
    let said = String::from_utf8_lossy(&client.wait_with_output().unwrap().stdout).into_owned();
    assert!(said.contains(" 101 ") && said.ends_with("echo one\necho two\n"), "{said}");
}

/// Goal: where the module has the certificate of the name that a client asks for, what comes by TLS is compressed on its way from a server that
/// has its own, and the same after decompressing; other names are between their two ends. Method: nginx, and curl that trusts one certificate
/// at a time.
#[test]
fn pages_come_compressed_over_tls_where_the_module_is_the_named_server() {
    let test = "pages_come_compressed_over_tls_where_the_module_is_the_named_server";
    let certificates = tempfile::tempdir().unwrap();
    let file = |name: &str| certificates.path().join(name).to_string_lossy().into_owned();
    let authority = ["-CA", &file("authority.pem"), "-CAkey", &file("authority.key"), "-extensions", "usr_cert"];
    for (name, names, by) in [
        ("authority", "DNS:authority.example.org", &[][..]),
        ("edge", "DNS:www.example.org", &[]),
        ("origin", "DNS:www.example.org,DNS:other.example.org", &authority),
    ] {
        let (pem, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key")));
        let made = std::process::Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "9"])
            .args(["-subj", &format!("/CN={name}"), "-addext", &format!("subjectAltName={names}")])
            .args(["-out", &pem, "-keyout", &key])
            .args(by)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
    }
    let settings = format!("[blocks.http-client]\nauthorities = \"{}\"\n", file("authority.pem"));
    let Some(mut net) = Serving::with_settings(test, Driver::Nfqueue, &settings, PERMITS) else { return };
    let page = page(200_000);
    std::fs::write(net.lab.dir().join("www/page.html"), &page).unwrap();
    serve_https(&mut net, &file("origin.pem"), &file("origin.key"));

    let server = net.lab.v4("sender");
    let project = workspace().join("modules/apps/http-compressor/netserv.toml");
    let text = std::fs::read_to_string(project).unwrap().replace(
        "intercept = [\"tcp port 80\"]",
        "intercept = [\"tcp port 443\"]\ntls = { certificate = \"edge.pem\", key = \"edge.key\" }\n\
         intercept-tls = [\"www.example.org\"]",
    );
    std::fs::write(file("netserv.toml"), text).unwrap();
    let code = module_parts("http-compressor", Flavour::Wasm).unwrap();
    let package = net.lab.dir().join("compressor-tls.nsm");
    let package = net.lab.package_of(file("netserv.toml").as_ref(), &code, &package, &net.alice).unwrap();
    let filter = format!("tcp dst {server}/32 port 443");
    let get = |name: &str, trusted: &str, more: &[&str]| {
        let (resolve, url) = (format!("{name}:443:{server}"), format!("https://{name}/page.html"));
        let trusted = file(trusted);
        net.curl("receiver", &[&["-i", "--resolve", &resolve, "--cacert", &trusted], more, &[&*url]].concat())
    };
    assert!(get("www.example.org", "authority.pem", &[]).status.success(), "the server is not there");
    eventually("it is installed", || {
        !matches!(net.setup(&net.alice, &package, &["--filter", &filter]), Outcome::Refused(_))
    });
    eventually("it is taken over", || get("www.example.org", "edge.pem", &[]).status.success());
    for coding in ["br", "zstd", "gzip"] {
        let accept = format!("accept-encoding: {coding}");
        let answer = Answer::of(&get("www.example.org", "edge.pem", &["-H", &accept]));
        let log = net.lab.log("node", "netservd");
        assert_eq!(
            answer.header("content-encoding"),
            Some(coding),
            "{}: {}\n{log}",
            answer.head,
            String::from_utf8_lossy(&answer.body)
        );
        assert!(answer.body.len() < page.len() / 3, "{} bytes", answer.body.len());
        let whole = Answer::of(&get("www.example.org", "edge.pem", &["-H", &accept, "--compressed"]));
        assert!(whole.body == page, "{coding}: another page");
    }
    let other = Answer::of(&get("other.example.org", "authority.pem", &["-H", "accept-encoding: gzip"]));
    assert!(other.header("content-encoding").is_none() && other.body == page, "{}", other.head);
    assert!(!get("www.example.org", "authority.pem", &[]).status.success(), "the server's certificate, by the module");
}

/// Has nginx serve by TLS what the lab serves in clear.
fn serve_https(net: &mut Serving, certificate: &str, key: &str) {
    let dir = net.lab.dir().display().to_string();
    let config = format!(
        "daemon off; user root; worker_processes 1; pid {dir}/tls.pid; error_log stderr notice;\n\
         events {{ worker_connections 64; }}\n\
         http {{ access_log off; client_body_temp_path {dir}/tls-body; proxy_temp_path {dir}/tls-proxy;\n\
         fastcgi_temp_path {dir}/tls-fastcgi; uwsgi_temp_path {dir}/tls-uwsgi; scgi_temp_path {dir}/tls-scgi;\n\
         types {{ text/html html; }} server {{ listen 443 ssl; root {dir}/www; ssl_certificate {certificate};\n\
         ssl_certificate_key {key}; }} }}\n"
    );
    let path = net.lab.dir().join("tls.conf");
    std::fs::write(&path, config).unwrap();
    let mut command = net.lab.command("sender", "/usr/sbin/nginx");
    net.lab.start("sender", "tls", command.arg("-c").arg(&path)).unwrap();
}

/// Goal: downloads from 50 servers, many at a time, come as they are, and none fails.
#[test]
fn downloads_from_fifty_servers_come_whole() {
    download_from_fifty("downloads_from_fifty_servers_come_whole", 4, 50);
}

/// Goal: of 1,000 downloads from 50 servers, 400 at a time, none fails. Method: curl, which takes all codings; each file is compared.
#[test]
#[ignore = "a measurement"]
fn a_thousand_downloads_from_fifty_servers_come_whole() {
    download_from_fifty("a_thousand_downloads_from_fifty_servers_come_whole", 20, 400);
}

/// Downloads so many files from each of 50 servers, so many at a time by two processes.
fn download_from_fifty(test: &str, files: usize, at_a_time: usize) {
    const SERVERS: usize = 50;
    let Some(net) = Slow::up(test, 0) else { return };
    let (sender, toward) = (net.lab.v4("sender").to_string(), net.lab.topology().interfaces(1).0.v4.to_string());
    for server in 1..=SERVERS {
        net.lab.run("sender", "ip", &["address", "add", &format!("10.98.0.{server}/32"), "dev", "lo"]).unwrap();
    }
    net.lab.run("node", "ip", &["route", "add", SERVERS_PREFIX, "via", &sender]).unwrap();
    net.lab.run("receiver", "ip", &["route", "add", SERVERS_PREFIX, "via", &toward]).unwrap();
    let www = net.lab.dir().join("www");
    let contents: Vec<Vec<u8>> = (0..files)
        .map(|file| match file % 4 {
            0 => page(2_000 + 1_000 * file),
            1 => page(60_000 + 3_000 * file),
            2 => noise(30_000 + 2_000 * file),
            _ => page(500),
        })
        .collect();
    for (number, content) in contents.iter().enumerate() {
        std::fs::write(www.join(format!("{number}.html")), content).unwrap();
    }
    net.switch_for(true, &format!("tcp dst {SERVERS_PREFIX} port 80"));
    let coded = || {
        let args = ["-s", "-i", "-H", "accept-encoding: gzip", "http://10.98.0.7/1.html"];
        let answer = net.lab.command("receiver", "curl").args(args).output().unwrap();
        answer.status.success() && Answer::of(&answer).header("content-encoding") == Some("gzip")
    };
    eventually("it is taken over", coded);
    let got = net.lab.dir().join("got");
    let halves = [(1, SERVERS / 2), (SERVERS / 2 + 1, SERVERS)].map(|(first, last)| {
        let url = format!("http://10.98.0.[{first}-{last}]/[0-{}].html", files - 1);
        let out = got.join("#1/#2").to_string_lossy().into_owned();
        let mut curl = net.lab.command("receiver", "curl");
        curl.args(["-s", "--compressed", "--create-dirs", "-m", "120", "--parallel", "--parallel-immediate"]);
        curl.args(["--parallel-max", &(at_a_time / 2).to_string(), "-w", "%{http_code} %header{content-encoding}\n"]);
        curl.args(["-o", &out, &url]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    let shown: String = halves
        .into_iter()
        .map(|curl| {
            let output = curl.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
        .collect();
    let good = shown.lines().filter(|line| line.starts_with("200 ")).count();
    let coded = shown.lines().filter(|line| ["200 br", "200 zstd", "200 gzip"].contains(line)).count();
    eprintln!("{good} downloads, {coded} of them compressed");
    assert_eq!(good, SERVERS * files, "{shown}");
    assert!(coded * 4 >= good, "{coded} of {good} were compressed");
    for server in 1..=SERVERS {
        for (number, content) in contents.iter().enumerate() {
            let bytes = std::fs::read(got.join(server.to_string()).join(number.to_string())).unwrap();
            assert!(bytes == *content, "server {server}, file {number}: {} bytes", bytes.len());
        }
    }
}

/// Starts a server on the sender that says what was uploaded, waits before it answers for as many seconds as the query says, and echoes
/// lines on connections that are upgraded.
fn start_patient_server(net: &mut Serving) {
    let script = net.lab.dir().join("patient.py");
    std::fs::write(&script, PATIENT).unwrap();
    let mut command = net.lab.command("sender", "python3");
    command.arg(script).arg(PATIENT_PORT.to_string());
    net.lab.start("sender", "patient", &mut command).unwrap();
    let listens = || {
        let port = PATIENT_PORT.to_string();
        net.lab.command("sender", "nc").args(["-z", "-w", "1", "127.0.0.1", &port]).status().unwrap().success()
    };
    eventually("the server listens", listens);
}

/// Goal: over 10 Mbit/s a page of more than 25 kB comes in 30 % less time, a large text in 60 % less (AMnet: 25 to 30, and over 40), and
/// what does not shrink takes 1 % more at most (AMnet: 8 on one file). Method: each with the module and without it, in turns.
#[test]
#[ignore = "a measurement"]
fn pages_come_faster_over_a_slow_link() {
    let Some(net) = Slow::up("pages_come_faster_over_a_slow_link", 10_000) else { return };
    let www = net.lab.dir().join("www");
    std::fs::write(www.join("page.html"), page(60_000)).unwrap();
    std::fs::write(www.join("large.txt"), page(2_000_000)).unwrap();
    std::fs::write(www.join("noise.png"), noise(2_000_000)).unwrap();
    let mut seconds = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
    for _ in 0..ROUNDS {
        for with in [false, true] {
            net.switch(with);
            for (number, name) in ["page.html", "large.txt", "noise.png"].into_iter().enumerate() {
                seconds[number][usize::from(with)].push(net.seconds(name));
            }
        }
    }
    let [html, text, other] = seconds.map(|[mut without, mut with]| {
        let (without, with) = (median(&mut without), median(&mut with));
        eprintln!("{:.1} ms without, {:.1} ms with it", without * 1e3, with * 1e3);
        1.0 - with / without
    });
    eprintln!("saved: {:.1} %, {:.1} %, {:.1} %", html * 100.0, text * 100.0, other * 100.0);
    assert!(html >= 0.3 && text >= 0.6 && other >= -0.01, "{html:.3}, {text:.3}, {other:.3}");
}

/// Goal: 400 and 5,000 connections at a time get all of their pages. Method: `wrk`, whose clients take gzip.
#[test]
#[ignore = "a measurement"]
fn thousands_of_connections_at_a_time() {
    let Some(net) = Slow::up("thousands_of_connections_at_a_time", 0) else { return };
    std::fs::write(net.lab.dir().join("www/page.html"), page(30_000)).unwrap();
    net.switch(true);
    for connections in ["400", "5000"] {
        let url = format!("http://{}/page.html", net.lab.v4("sender"));
        let args = ["-t1", "-c", connections, "-d10s", "--timeout", "30s", "-H", "accept-encoding: gzip", &url];
        let output = net.lab.command("receiver", "wrk").args(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        eprintln!("{connections}: {text}");
        let all = text.lines().find_map(|line| line.trim().split_once(" requests in")).map_or("", |(all, _)| all);
        let counters = net.lab.modules("node").unwrap().modules.remove(0).counters;
        let count = |name: &str| counters.get(name).copied().unwrap_or(0);
        eprintln!("{counters:?}");
        // Those before are among them.
        assert!(count("gzip") > 0 && count("gzip") + count("passed") >= all.parse::<u64>().unwrap(), "{counters:?}");
        assert!(
            text.contains("Requests/sec") && !text.contains("Non-2xx") && !text.contains("Socket errors"),
            "{text}"
        );
    }
}

/// `sender – node – receiver`, whose link to the receiver is slow.
struct Slow {
    lab: Lab,
    user: netserv_lab::node::LabUser,
    package: PathBuf,
    url: String,
}

impl Slow {
    fn up(test: &str, kbit_per_s: u32) -> Option<Slow> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        let mut topology = Topology::chain(&[("sender", Kind::Host), ("node", Kind::Node), ("receiver", Kind::Host)]);
        topology.links[1].impairment.kbit_per_s = kbit_per_s;
        topology.links[1].impairment.delay = Duration::from_millis(if kbit_per_s > 0 { 5 } else { 0 });
        let mut lab = Lab::up(topology).unwrap();
        let mut user = lab.user("alice", &[&format!("{}/32", lab.v4("sender")), SERVERS_PREFIX]).unwrap();
        user.extra = format!("{PERMITS}container.memory-bytes = 536870912\n");
        let extra = format!("osgi.enabled = false\n{FILES_ALLOWED}[network]\nprefixes = [\"10.99.7.0/29\"]\n");
        lab.start_netservd("node", "node", std::slice::from_ref(&user), &extra).unwrap();
        lab.start_netservd("sender", "host", &[], "").unwrap();
        lab.serve_http("sender").unwrap();
        let package = lab.package("http-compressor", &user).unwrap();
        let url = lab.publish("sender", &package).unwrap();
        Some(Slow { lab, user, package: package.path, url })
    }

    fn switch(&self, on: bool) {
        self.switch_for(on, &format!("tcp dst {}/32 port 80", self.lab.v4("sender")));
    }

    fn switch_for(&self, on: bool, filter: &str) {
        let to = self.lab.v4("receiver").to_string();
        let package = self.package.to_string_lossy();
        let args = match on {
            true => vec!["setup", &package, "--url", &self.url, "--filter", filter, "--to", &to],
            false => vec!["remove", "example.org/http-compressor", "--to", &to],
        };
        request_as(&self.lab, &self.user, &args);
    }

    /// Returns how long curl takes for a file.
    fn seconds(&self, name: &str) -> f64 {
        let url = format!("http://{}/{name}", self.lab.v4("sender"));
        let args = ["-s", "--compressed", "-o", "/dev/null", "-w", "%{time_total} %{http_code}", &url];
        let output = self.lab.command("receiver", "curl").args(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (seconds, code) = text.split_once(' ').unwrap();
        assert_eq!(code, "200", "{name}");
        seconds.parse().unwrap()
    }
}

/// What curl shows with `-i`.
struct Answer {
    /// In small letters but for values.
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn of(output: &Output) -> Answer {
        let bytes = &output.stdout;
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("{output:?}"));
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let lines = text.lines().map(|line| match line.split_once(": ") {
            Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
            None => line.to_owned(),
        });
        Answer { head: lines.collect::<Vec<_>>().join("\n"), body: bytes[end + 4..].to_vec() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const ROUNDS: usize = 7;
/// Where fifty servers are.
const SERVERS_PREFIX: &str = "10.98.0.0/24";
/// What a request may take in the test of what takes longer.
const REQUEST_MS: u64 = 2000;
const PATIENT_PORT: u16 = 8081;
const PATIENT: &str = "
import hashlib, http.server, socket, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def say(self, body):
        self.send_response(200)
        self.send_header('content-type', 'text/plain')
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.headers.get('upgrade') == 'echo':
            self.send_response(101)
            self.send_header('connection', 'upgrade')
            self.send_header('upgrade', 'echo')
            self.end_headers()
            for line in self.rfile:
                self.wfile.write(b'echo ' + line)
            self.close_connection = True
            return
        time.sleep(float(self.path.partition('?')[2] or 0))
        self.say(b'a line of text\\n' * 5000)

    def pieces(self):
        if self.headers.get('transfer-encoding') == 'chunked':
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            left = int(self.headers['content-length'])
            while left:
                piece = self.rfile.read(min(left, 65536))
                if not piece:
                    return
                left -= len(piece)
                yield piece

    def do_PUT(self):
        length, digest = 0, hashlib.sha256()
        for piece in self.pieces():
            length += len(piece)
            digest.update(piece)
        self.say(f'{length} {digest.hexdigest()}'.encode())

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer.address_family = socket.AF_INET6
http.server.ThreadingHTTPServer(('::', int(sys.argv[1])), Handler).serve_forever()
";
