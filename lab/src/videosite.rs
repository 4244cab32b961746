// SPDX-License-Identifier: Apache-2.0
//! A provider with a video site in a lab: nginx with the agent beside it, as `dist/examples/nginx` has them, and viewers in two regions, each
//! behind a node of its own.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netserv_api::AgentStatus;
use netserv_model::Flavour;
use netserv_model::request::ModuleStatus;

use crate::agent;
use crate::netns::{Lab, host_port};
use crate::node::FILES_ALLOWED;
use crate::node::{LabPackage, LabUser, module_parts, workspace};
use crate::patience::{grown, wait_for};
use crate::topology::{Impairment, Kind, Link, Machine, Topology};

/// `sender – r`, and behind the router `n1 – v1` and `n2 – v2`: the site, and two nodes with a region of viewers each.
pub struct VideoSite {
    /// The network.
    pub lab: Lab,
    /// Who the provider is for the nodes.
    pub user: LabUser,
}

/// When the agent's rule brings the cache, and takes it away.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// So many requests of a region within ten seconds bring it.
    pub count: u32,
    /// Seconds of a lease.
    pub lease_s: u64,
    /// Seconds without a viewer after which it goes.
    pub idle_s: u64,
}

/// What is another in the examples than they say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes<'c> {
    /// Further properties of the module, each behind a comma.
    pub properties: &'c str,
    /// Further tables of the agent's file.
    pub tables: &'c str,
    /// Further lines of its rule.
    pub rule: &'c str,
    /// Texts of `site.conf`, and what stands there instead.
    pub site: &'c [(&'c str, &'c str)],
}

/// What a viewer got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The status.
    pub code: u16,
    /// Bytes of the body.
    pub bytes: u64,
    /// Where a redirect leads; empty if it is none.
    pub to: String,
    /// The node that the redirect names; empty if it is none.
    pub node: String,
    /// What caches on the way say; empty if there is none.
    pub cache: String,
    /// What is said of storing it.
    pub control: String,
}

/// The two regions: a node, its viewers, and what its operator says of where it is.
pub const REGIONS: [(&str, &str, &str); 2] = [("n1", "v1", "Rome"), ("n2", "v2", "Oslo")];
/// The film's path.
pub const FILM: &str = "/video/film.mp4";
/// How long curl waits, on a machine that is not busy.
const CURL_WAIT: Duration = Duration::from_secs(20);

impl VideoSite {
    /// Builds the network with the daemons of nodes and of the provider.
    ///
    /// # Errors
    /// A daemon does not start.
    pub fn up(driver: Option<&str>) -> Result<VideoSite> {
        let machine = |name: &str, kind| Machine { name: name.to_owned(), kind };
        let nodes = REGIONS.map(|(node, _, _)| machine(node, Kind::Node));
        let viewers = REGIONS.map(|(_, viewer, _)| machine(viewer, Kind::Host));
        let machines = [machine("sender", Kind::Host), machine("r", Kind::Router)];
        let ends = [("sender", "r"), ("r", "n1"), ("n1", "v1"), ("r", "n2"), ("n2", "v2")];
        let link = |(a, b): (&str, &str)| Link { a: a.into(), b: b.into(), impairment: Impairment::default() };
        let machines = machines.into_iter().chain(nodes).chain(viewers).collect();
        let mut lab = Lab::up(Topology { machines, links: ends.map(link).into() })?;
        if let Some(driver) = driver {
            lab.use_driver(driver);
        }
        let own = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
        let mut user = lab.user("www", &[&own[0], &own[1]])?;
        user.extra =
            "listen = [\"tcp port 80\", \"tcp port 443\"]\nconnect = [\"tcp\"]\ncontainer.memory-bytes = 268435456\n\
             module-limits.request-ms = 600000\n"
                .to_owned();
        for (number, (node, _, place)) in (1..).zip(REGIONS) {
            let extra = format!(
                "osgi.enabled = false\n{FILES_ALLOWED}[about]\nplace = {place:?}\n\
                 [network]\nprefixes = [\"10.99.{number}.0/29\", \"fd99:{number}::/125\"]\n"
            );
            lab.start_netservd(node, "node", std::slice::from_ref(&user), &extra)?;
        }
        lab.start_netservd("sender", "host", &[], "")?;
        let site = VideoSite { lab, user };
        site.lead_to_containers()?;
        Ok(site)
    }

    /// The operators' part: the prefixes of containers are routed to their nodes.
    fn lead_to_containers(&self) -> Result<()> {
        let topology = self.lab.topology();
        let route = |machine: &str, to: [&str; 2], via: &crate::topology::Interface| {
            for (prefix, via) in to.into_iter().zip([IpAddr::from(via.v4), via.v6.into()]) {
                self.lab.run(machine, "ip", &["route", "add", prefix, "via", &via.to_string()])?;
            }
            Ok::<_, anyhow::Error>(())
        };
        route("sender", ["default"; 2], &topology.interfaces(0).1)?;
        for (number, (node, viewer, _)) in (1..).zip(REGIONS) {
            let (router, outside) = topology.interfaces(2 * number - 1);
            let own = [format!("10.99.{number}.0/29"), format!("fd99:{number}::/125")];
            route("r", [&own[0], &own[1]], &outside)?;
            route(node, ["default"; 2], &router)?;
            route(viewer, ["default"; 2], &topology.interfaces(2 * number).0)?;
        }
        Ok(())
    }

    /// Starts nginx and the agent, with the files of `dist/examples/nginx`. `properties` are further ones of the module.
    ///
    /// # Errors
    /// The module is not built, or a program does not start.
    pub fn start(&mut self, times: Times, properties: &str) -> Result<()> {
        let package = self.package("listen = [\"tcp port 80\"]\n")?;
        self.start_with(times, &package, &Changes { properties, ..Changes::default() })
    }

    /// Packs the cache as docs/apps/cdn.md says: it takes over no connections on their way, and listens as these lines say.
    ///
    /// # Errors
    /// The module is not built, or its project has other lines.
    pub fn package(&self, listen: &str) -> Result<LabPackage> {
        let text = std::fs::read_to_string(workspace().join("modules/apps/active-cdn/netserv.toml"))?;
        let changes = [("intercept = [\"tcp port 80\"]\n", ""), ("listen = [\"tcp port 80\"]\n", listen)];
        let (project, file) = (self.path("netserv.toml"), self.path("active-cdn.nsm"));
        std::fs::write(&project, replaced(&text, &changes)?)?;
        self.lab.package_of(&project, &module_parts("active-cdn", Flavour::Wasm)?, &file, &self.user)
    }

    /// The same with a package of one's own, and other changes.
    ///
    /// # Errors
    /// As of [`VideoSite::start`].
    pub fn start_with(&mut self, times: Times, package: &LabPackage, changes: &Changes<'_>) -> Result<()> {
        let url = self.lab.publish("sender", package)?;
        std::fs::create_dir_all(self.path("www/video"))?;
        let origin = format!("origin = \"http://{}\"{}", self.lab.v4("sender"), changes.properties);
        let text = replaced(
            &example("agent.toml")?,
            &[
                ("user = \"www\"\n", ""),
                ("key = \"/etc/netserv/www.pem\"", ""),
                ("[[log]]", &format!("{}[[log]]", changes.tables)),
                ("/run/netserv/access.sock", &self.path("access.sock").display().to_string()),
                ("count = 20 ", &format!("count = {} ", times.count)),
                ("example.org/active-cdn@1.0.0", &package.module),
                ("https://www.example.org/active-cdn-1.0.0.nsm", &url),
                (&format!("sha256:{}", "0".repeat(64)), &package.digest),
                ("origin = \"http://www.example.org\"", &origin),
                ("lease-s = 60 ", &format!("lease-s = {} ", times.lease_s)),
                ("idle-s = 300 ", &format!("idle-s = {} ", times.idle_s)),
            ],
        )?;
        // The lab says itself who signs.
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let text = lines.chain([changes.rule]).collect::<Vec<_>>().join("\n");
        agent::start(&mut self.lab, &self.user, &text)?;
        self.start_nginx(changes.site)
    }

    fn start_nginx(&mut self, changes: &[(&str, &str)]) -> Result<()> {
        let config = self.path("site.conf");
        std::fs::write(&config, nginx(&self.lab, changes)?)?;
        let mut command = self.lab.command("sender", "/usr/sbin/nginx");
        command.arg("-c").arg(&config);
        self.lab.start("sender", "nginx", &mut command)?;
        let pid = self.path("nginx.pid");
        self.lab.wait_for_start(("sender", "nginx"), "serve the site", |_| pid.exists())
    }

    /// Asks the site for a path once, as a viewer does; a redirect is not followed.
    ///
    /// # Errors
    /// There is no answer.
    pub fn ask(&self, viewer: &str, path: &str) -> Result<Visit> {
        self.get(viewer, &format!("http://{}{path}", self.lab.v4("sender")), &[])
    }

    /// The same over IPv6.
    ///
    /// # Errors
    /// As of [`VideoSite::ask`].
    pub fn ask_v6(&self, viewer: &str, path: &str) -> Result<Visit> {
        self.get(viewer, &format!("http://{}{path}", host_port(self.lab.v6("sender").into(), 80)), &[])
    }

    /// Asks the site for a path, and goes where it is sent.
    ///
    /// # Errors
    /// As of [`VideoSite::ask`].
    pub fn follow(&self, viewer: &str, path: &str) -> Result<Visit> {
        self.get(viewer, &format!("http://{}{path}", self.lab.v4("sender")), &["-L"])
    }

    /// Asks for a URL with further arguments of curl's.
    ///
    /// # Errors
    /// There is no answer.
    pub fn get(&self, viewer: &str, url: &str, more: &[&str]) -> Result<Visit> {
        let told = "%{http_code}\n%{size_download}\n%{redirect_url}\n%header{netserv-node}\n%header{cache-status}\n\
                    %header{cache-control}\n";
        let curl_s = grown(CURL_WAIT).as_secs().to_string();
        let args = ["-s", "-g", "-m", &curl_s, "-o", "/dev/null", "-w", told, url];
        let output = self.lab.command(viewer, "curl").args(args).args(more).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        ensure!(output.status.success(), "{url}: curl ends with {} and says {text:?}", output.status);
        let [code, bytes, to, node, cache, control] = lines[..] else { anyhow::bail!("curl says {text:?}") };
        let [to, node, cache, control] = [to, node, cache, control].map(str::to_owned);
        Ok(Visit { code: code.parse()?, bytes: bytes.parse().context("no number of bytes")?, to, node, cache, control })
    }

    /// Has a viewer come so often that the cache is wanted, and then until it is sent to a node. Returns how long it took from the request that
    /// was enough, and where it was sent.
    ///
    /// # Errors
    /// It is not sent anywhere within a time, which grows with the machine's load.
    pub fn come(&self, viewer: &str, times: Times, wait: Duration) -> Result<(Duration, Visit)> {
        for _ in 0..times.count {
            let visit = self.ask(viewer, FILM)?;
            ensure!(visit.code == 200, "{viewer} is not served by the site: {visit:?}");
        }
        let begun = Instant::now();
        let mut last = None;
        let waited = wait_for(&format!("{viewer} to be sent to a node"), wait, || {
            last = self.ask(viewer, FILM).ok();
            last.as_ref().is_some_and(|visit| visit.code == 302)
        });
        let took = begun.elapsed();
        waited.map_err(|gave_up| gave_up.seeing(format!("{last:?}\n{}", self.lab.log("sender", "agent"))))?;
        Ok((took, last.context("no visit")?))
    }

    /// Returns how things are for the agent.
    ///
    /// # Errors
    /// It does not answer.
    pub fn agent(&self) -> Result<AgentStatus> {
        agent::status(&self.lab)
    }

    /// Returns the provider's module on a node; nothing if it is not there.
    pub fn module(&self, node: &str) -> Option<ModuleStatus> {
        self.lab.modules(node).ok()?.modules.into_iter().next()
    }

    /// Returns how many sessions' SETUPs have reached a node.
    pub fn setups(&self, node: &str) -> usize {
        let log = self.lab.log(node, "netservd");
        let setups = log.lines().filter(|line| line.contains("method=\"SETUP\""));
        let session = |line: &str| Some(line.split("session=").nth(1)?.split(' ').next()?.to_owned());
        setups.filter_map(session).collect::<BTreeSet<String>>().len()
    }

    /// Returns the status and the bytes of each answer that the site gave an address for a path.
    pub fn served(&self, client: IpAddr, path: &str) -> Vec<(u16, u64)> {
        let log = std::fs::read_to_string(self.path("access.log")).unwrap_or_default();
        let (own, asked) = (format!("{client} - "), format!("\"GET {path} "));
        let of = |line: &str| {
            let mut words = line.split("\" ").nth(1)?.split(' ');
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        };
        log.lines().filter(|line| line.starts_with(&own) && line.contains(&asked)).filter_map(of).collect()
    }

    /// Returns a file of the lab's.
    pub fn path(&self, name: &str) -> PathBuf {
        self.lab.dir().join(name)
    }
}

/// Returns a file of `dist/examples/nginx`.
///
/// # Errors
/// It is not there.
pub fn example(name: &str) -> Result<String> {
    let path = workspace().join("dist/examples/nginx").join(name);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns the whole configuration of an nginx in a lab that has `site.conf` with some changes, as Debian's includes it.
///
/// # Errors
/// The file has not what the lab's paths or the changes take the place of.
pub fn nginx(lab: &Lab, changes: &[(&str, &str)]) -> Result<String> {
    let dir = lab.dir().display().to_string();
    let site = replaced(
        &replaced(&example("site.conf")?, changes)?,
        &[
            ("/srv/www", &format!("{dir}/www")),
            ("/var/log/nginx", &dir),
            ("/run/netserv/access.sock", &format!("{dir}/access.sock")),
        ],
    )?;
    Ok(format!(
        "daemon off; user root; worker_processes 1; pid {dir}/nginx.pid; error_log stderr notice;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ client_body_temp_path {dir}/nginx-body; proxy_temp_path {dir}/nginx-proxy;\n\
         fastcgi_temp_path {dir}/nginx-fastcgi; uwsgi_temp_path {dir}/nginx-uwsgi; scgi_temp_path {dir}/nginx-scgi;\n\
         include /etc/nginx/mime.types;\n{site}}}\n"
    ))
}

/// Returns a text with others in the place of what has to be in it.
fn replaced(text: &str, changes: &[(&str, &str)]) -> Result<String> {
    let mut text = text.to_owned();
    for (from, to) in changes {
        ensure!(text.contains(from), "the example has no `{from}`");
        text = text.replace(from, to);
    }
    Ok(text)
}

/// Has ffmpeg make a film of so many seconds, and writes the page that shows it.
///
/// # Errors
/// ffmpeg does not.
pub fn write_film(www: &Path, seconds: u32) -> Result<()> {
    let (picture, film) = (format!("testsrc2=size=640x360:rate=25:duration={seconds}"), www.join("video/film.mp4"));
    let args = ["-v", "error", "-y", "-f", "lavfi", "-i", &picture, "-c:v", "libx264", "-preset", "ultrafast"];
    let more = ["-g", "25", "-pix_fmt", "yuv420p", "-movflags", "+faststart"];
    let output = Command::new("ffmpeg").args(args).args(more).arg(film).output().context("cannot run ffmpeg")?;
    ensure!(output.status.success(), "ffmpeg: {}", String::from_utf8_lossy(&output.stderr));
    Ok(std::fs::write(www.join("video/index.html"), PAGE)?)
}

/// The site's page.
const PAGE: &str = "<!doctype html>\n<html lang=en><meta charset=utf-8><title>A film</title>\n\
    <style>body{font:16px system-ui;margin:2em}video{display:block;background:#000}</style>\n\
    <h1>A film</h1>\n<video id=film src=film.mp4 width=640 height=360 muted autoplay controls></video>\n\
    <p>from <b id=from></b>\n<script>document.getElementById('from').textContent = location.host</script>\n";
