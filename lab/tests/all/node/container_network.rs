// SPDX-License-Identifier: Apache-2.0
//! Containers' own networks on a whole node: when they come and go, and who gets in.

use std::net::IpAddr;
use std::process::{Child, Command, Stdio};

use crate::common::{Driver, ask_udp, eventually, refusal, request_as, serving_net};
use netserv_api::Reloaded;
use netserv_lab::netns::{Lab, host_port};
use netserv_lab::node::{LabPackage, LabUser};
use netserv_model::api::RequestResult;
use netserv_model::container_link::is_container_link;
use netserv_model::request::{ModuleState, ModuleStatus};
use netserv_model::{RefusalKind, UserId};

over_each_driver!(
    a_network_comes_and_goes_with_a_users_modules,
    a_killed_node_keeps_addresses_and_leaves_no_link,
    a_packet_part_answers_at_its_containers_addresses
);

/// Goal: what a user is granted decides whether there is a network, who gets in, and for how long.
fn a_network_comes_and_goes_with_a_users_modules(driver: Driver) {
    let prefixes = ["10.99.7.0/29", "fd99:7::/64"];
    let Some(net) = Net::start("a_network_comes_and_goes_with_a_users_modules", driver, &prefixes) else { return };
    assert_done(&net.setup(&net.plain, "echo", 1));
    assert!(net.links().is_empty() && net.status(&net.plain)[0].addresses.is_empty(), "nothing is permitted");

    assert_done(&net.setup(&net.server, "echo", 2));
    let addresses = net.status(&net.server)[0].addresses.clone();
    assert_eq!(addresses, ["10.99.7.1", "fd99:7::1"].map(|text| text.parse::<IpAddr>().unwrap()));
    let link = net.links();
    assert_eq!(link.len(), 1);
    let device = net.lab.run("node", "ip", &["link", "show", "dev", &link[0]]).unwrap();
    assert!(!String::from_utf8_lossy(&device.stdout).contains("xdp"), "the driver leaves it alone: {device:?}");
    let served = net.serve(addresses[0]);
    for machine in ["sender", "receiver", "node"] {
        for address in &addresses {
            // Neighbours may have to be found first.
            eventually(&format!("{machine} reaches {address}"), || net.reaches(machine, *address, 8080));
            assert!(!net.reaches(machine, *address, 8081), "{machine} {address}");
        }
    }
    let dropped = |reason: &str| {
        let line = format!("netserv_container_dropped_packets_total{{user=\"server\",reason=\"{reason}\"}} ");
        let metrics = net.lab.metrics("node").unwrap();
        let value =
            metrics.lines().find_map(|found| found.strip_prefix(&line)).map(|text| text.parse::<u64>().unwrap());
        value.unwrap_or_else(|| panic!("no {line} in {metrics}"))
    };
    assert!(dropped("refused-in") >= 6 && dropped("spoofed") == 0);

    // What it may do changes with the configuration, also while it runs.
    net.configure(&prefixes, "tcp port 8081");
    net.signal("-HUP");
    eventually("the other port is open", || net.reaches("sender", addresses[0], 8081));
    assert!(!net.reaches("sender", addresses[0], 8080));
    net.configure_limits("cpu-permille = 300, disk-bytes = 65536");
    let output = net.lab.netserv("node", &["node", "reload", "-j"]).unwrap();
    let Reloaded { changes } = serde_json::from_slice(&output.stdout).unwrap();
    let told: Vec<String> = changes.iter().map(|change| format!("{} {}", change.key, change.from)).collect();
    let key = |name: &str| format!("user.server.container.{name}");
    let expected = [key("cpu-permille now"), key("disk-bytes the next start of the container")];
    assert_eq!(told, expected);
    let worker = net.worker_in(addresses[0]).unwrap();
    assert_eq!(cpu_permille(worker), 300, "before the reload was answered");

    // Another worker comes into the same network.
    let worker = net.worker_in(addresses[0]).unwrap();
    Command::new("kill").args(["-9", &worker.to_string()]).status().unwrap();
    eventually("the module runs again", || {
        net.status(&net.server)[0].restarts > 0 && net.status(&net.server)[0].state == ModuleState::Running
    });
    assert_ne!(net.worker_in(addresses[0]), Some(worker));
    assert!(net.links() == link && net.reaches("sender", addresses[0], 8081));

    drop(served);
    assert_done(&net.remove(&net.server, "echo"));
    eventually("the network is removed", || net.links().is_empty());
    assert_done(&net.setup(&net.server, "echo", 2));
    assert_eq!(net.status(&net.server)[0].addresses, addresses, "the user keeps its addresses");
}

fn a_killed_node_keeps_addresses_and_leaves_no_link(driver: Driver) {
    let test = "a_killed_node_keeps_addresses_and_leaves_no_link";
    let Some(mut net) = Net::start(test, driver, &["10.99.7.4/32"]) else { return };
    assert_done(&net.setup(&net.server, "echo", 2));
    let address: IpAddr = "10.99.7.4".parse().unwrap();
    assert_eq!(net.status(&net.server)[0].addresses, [address]);
    // A user for whom no address is left is told so, and the others go on.
    let refused = refusal(&net.setup(&net.other, "echo", 3));
    assert!(refused.kind == RefusalKind::QuotaExceeded && refused.detail.contains("network.prefixes"), "{refused}");

    let _served = net.serve(address);
    net.lab.kill("node", "netservd").unwrap();
    assert_eq!(net.links().len(), 1, "the server that the test put in keeps it alive");
    net.lab.restart_netservd("node").unwrap();
    eventually("the module runs again", || {
        net.status(&net.server).first().is_some_and(|status| status.state == ModuleState::Running)
    });
    assert_eq!((net.status(&net.server)[0].addresses.clone(), net.links().len()), (vec![address], 1));
    let _again = net.serve(address);
    assert!(net.reaches("receiver", address, 8080));
    net.lab.stop("node", "netservd").unwrap();
    assert!(net.links().is_empty());
}

/// Goal: `self` in a filter is the container, whatever its addresses are on a node; one without a network has none.
fn a_packet_part_answers_at_its_containers_addresses(driver: Driver) {
    let test = "a_packet_part_answers_at_its_containers_addresses";
    let Some(mut net) = Net::start(test, driver, &["10.99.7.0/29", "fd99:7::/64"]) else { return };
    let refused = refusal(&net.setup_filtered(&net.plain, "echo", "dst self"));
    assert!(refused.kind == RefusalKind::NoNetwork && refused.detail.contains("`listen`"), "{refused}");

    // The port is in the manifest's filter, `udp port 44444`.
    assert_done(&net.setup_filtered(&net.server, "echo", "dst self"));
    let answers = |net: &Net| {
        let [status] = &net.status(&net.server)[..] else { panic!("one module") };
        assert_eq!(status.filters[0].to_string(), "udp dst self port 44444");
        assert_eq!(status.addresses.len(), 2);
        for address in status.addresses.clone() {
            eventually(&format!("{address} answers"), || {
                ask_udp(&net.lab, "sender", address, 44_444, "hello").as_deref() == Some("hello")
            });
            assert_eq!(ask_udp(&net.lab, "sender", address, 44_445, "hello"), None, "another port");
        }
    };
    answers(&net);
    let worker = net.worker_in("10.99.7.1".parse().unwrap()).unwrap();
    Command::new("kill").args(["-9", &worker.to_string()]).status().unwrap();
    eventually("another worker runs it", || {
        let status = &net.status(&net.server)[0];
        status.restarts > 0 && status.state == ModuleState::Running
    });
    answers(&net);
    net.lab.kill("node", "netservd").unwrap();
    net.lab.restart_netservd("node").unwrap();
    eventually("the module runs again", || {
        net.status(&net.server).first().is_some_and(|status| status.state == ModuleState::Running)
    });
    answers(&net);
}

/// `sender – node – receiver`, and users: one who may serve, one more, and one who may nothing.
struct Net {
    lab: Lab,
    server: LabUser,
    other: LabUser,
    plain: LabUser,
}

/// A web server in a container's network, as long as it lives.
struct Served(Child);

impl Net {
    fn start(test: &str, driver: Driver, prefixes: &[&str]) -> Option<Net> {
        let users =
            [("server", "listen = ['tcp port 8080']\n"), ("other", "connect = ['tcp port 443']\n"), ("plain", "")];
        let (lab, [server, other, plain]) = serving_net(test, driver, prefixes, users)?;
        Some(Net { lab, server, other, plain })
    }

    /// Writes the node's configuration again, with another port for the server.
    fn configure(&self, prefixes: &[&str], listen: &str) {
        let path = self.lab.dir().join("node.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("tcp port 8080") && text.contains(&format!("{prefixes:?}")), "{text}");
        std::fs::write(&path, text.replace("tcp port 8080", listen)).unwrap();
    }

    /// Gives the server's container other limits in the node's configuration.
    fn configure_limits(&self, limits: &str) {
        let path = self.lab.dir().join("node.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let listen = "listen = ['tcp port 8081']\n";
        assert!(text.contains(listen), "{text}");
        std::fs::write(&path, text.replace(listen, &format!("{listen}container = {{ {limits} }}\n"))).unwrap();
    }

    fn signal(&self, signal: &str) {
        let pid = self.lab.pid("node", "netservd").unwrap().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    fn package(&self, user: &LabUser, module: &str) -> LabPackage {
        self.lab.package(module, user).unwrap()
    }

    fn setup(&self, user: &LabUser, module: &str, port: u16) -> RequestResult {
        self.setup_filtered(user, module, &format!("udp dst {}/32 port {}", self.lab.v4("sender"), 44000 + port))
    }

    fn setup_filtered(&self, user: &LabUser, module: &str, filter: &str) -> RequestResult {
        let package = self.package(user, module);
        let url = self.lab.publish("sender", &package).unwrap();
        let (file, receiver) = (package.path.to_string_lossy().into_owned(), self.lab.v4("receiver").to_string());
        request_as(&self.lab, user, &["setup", &file, "--to", &receiver, "--url", &url, "--filter", filter])
    }

    fn remove(&self, user: &LabUser, module: &str) -> RequestResult {
        let package = self.package(user, module);
        let name = package.module.split('@').next().unwrap();
        request_as(&self.lab, user, &["remove", name, "--to", &self.lab.v4("receiver").to_string()])
    }

    fn status(&self, user: &LabUser) -> Vec<ModuleStatus> {
        let user: UserId = user.name.parse().unwrap();
        let list = self.lab.modules("node").unwrap();
        list.modules.into_iter().filter(|status| status.user == user).collect()
    }

    /// Returns the names of the node's ends of containers' links.
    fn links(&self) -> Vec<String> {
        let output = self.lab.run("node", "ip", &["-br", "link"]).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let names = text.lines().filter_map(|line| line.split(['@', ' ']).next());
        names.filter(|name| is_container_link(name)).map(str::to_owned).collect()
    }

    /// Returns the process in the container's network that has an address.
    fn worker_in(&self, address: IpAddr) -> Option<u32> {
        let netservd = self.lab.pid("node", "netservd").unwrap();
        let has_address = |pid: &u32| {
            let net = format!("--net=/proc/{pid}/ns/net");
            let output = Command::new("nsenter").args([&net, "ip", "-br", "address"]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).contains(&format!(" {address}/"))
        };
        children(netservd).into_iter().flat_map(children).find(has_address)
    }

    /// Runs a web server on both ports in the container's network.
    fn serve(&self, address: IpAddr) -> Served {
        let mut found = None;
        eventually("the container has its network", || {
            found = self.worker_in(address);
            found.is_some()
        });
        let net = format!("--net=/proc/{}/ns/net", found.unwrap());
        let script = "import http.server as h,threading,socket\n\
                      class S(h.ThreadingHTTPServer): address_family=socket.AF_INET6\n\
                      s=[S(('::',p),h.SimpleHTTPRequestHandler) for p in (8080,8081)]\n\
                      threading.Thread(target=s[0].serve_forever,daemon=True).start()\n\
                      print('ready',flush=True); s[1].serve_forever()";
        let mut command = Command::new("nsenter");
        command.args([&net, "/usr/bin/python3", "-c", script]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        assert_eq!(line, "ready\n");
        Served(child)
    }

    fn reaches(&self, machine: &str, address: IpAddr, port: u16) -> bool {
        let url = format!("http://{}/", host_port(address, port));
        let mut curl = self.lab.command(machine, "curl");
        curl.args(["-s", "-g", "-o", "/dev/null", "--connect-timeout", "0.3", "-m", "3", &url])
            .status()
            .unwrap()
            .success()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asserts that the node did what it was asked for.
fn assert_done(result: &RequestResult) {
    let node = result.nodes.iter().find(|node| node.node.as_str() == "node");
    assert!(node.is_some_and(|node| node.outcome.is_ok()), "{result:?}");
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Returns the processor time that a process's control group may use, in thousandths of a core.
fn cpu_permille(pid: u32) -> u64 {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let number = |text: &str| text.trim().parse::<u64>().unwrap();
    for group in groups.lines() {
        let [_, controllers, path] = group.splitn(3, ':').collect::<Vec<_>>()[..] else { panic!("{groups}") };
        let is_v1 = controllers.split(',').any(|controller| controller == "cpu");
        let mounted = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|fields| {
            (is_v1 && fields[2] == "cgroup" && fields[3].split(',').any(|option| option == "cpu"))
                || (controllers.is_empty() && fields[2] == "cgroup2")
        });
        let Some(mounted) = mounted else { continue };
        let file = |name: &str| std::fs::read_to_string(format!("{}{path}/{name}", mounted[1]));
        if let (Ok(quota), Ok(period)) = (file("cpu.cfs_quota_us"), file("cpu.cfs_period_us")) {
            return number(&quota) * 1000 / number(&period);
        }
        if let Some((quota, period)) = file("cpu.max").ok().as_deref().and_then(|text| text.split_once(' ')) {
            return number(quota) * 1000 / number(period);
        }
    }
    panic!("no limit of processor time: {groups}")
}
