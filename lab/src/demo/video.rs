// SPDX-License-Identifier: Apache-2.0
//! `./dev demo --app video`: AMnet's video transcoder. A browser is the small device, and changes what it gets while it shows it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use netserv_model::RefusalKind;
use netserv_model::request::{ModuleStatus, Outcome};
use serde_json::{Value, json};

use super::telling::{hold, picture_folder, signed, title};
use crate::browser::Browser;
use crate::netns::{Lab, host_port};
use crate::node::LabUser;
use crate::patience::{grown, wait_for};
use crate::serving;
use crate::video::{self, Codec, Picture};
use crate::watching::shot;

/// How long a step may take, on a machine that is not busy.
const WAIT: Duration = Duration::from_secs(90);
/// How long curl waits for one answer, on a machine that is not busy.
const CURL_WAIT: Duration = Duration::from_secs(2);
/// What is promised of a change of quality.
const CHANGE_PROMISED: Duration = Duration::from_secs(2);
const MODULE: &str = "example.org/video-transcoder";
const PERMITS: &str = "listen = ['tcp port 80']\nconnect = ['tcp']\n";
/// How long each quality is looked at.
const LOOK: Duration = Duration::from_secs(3);
/// How long the camera is off.
const OUTAGE: Duration = Duration::from_secs(3);
/// Viewers watch until they are ended, and so many seconds at most.
const VIEW_S_MAX: u32 = 3_600;
/// How many pictures a viewer has before and since a change.
const PICTURES: usize = 10;

/// Shows it. Pictures of the device go to `target/demo/video`.
///
/// # Errors
/// Something did not do what the demo shows.
pub fn run() -> Result<()> {
    let begun = Instant::now();
    title(
        "A camera: ffmpeg makes MPEG-2 of 720 × 576, 4 Mbit/s, and nginx serves it; a node on the way to a small device",
    );
    let settings = "[blocks.media]\nlive-jobs = 3\nlive-jobs-per-user = 3\n";
    let (mut lab, [user]) =
        serving::network_with(settings, None, &["10.99.7.0/29", "fd99:7::/64"], [("janedoe", PERMITS)])?;
    video::start_source(&mut lab, "sender", Codec::Mpeg2)?;
    let source = video::url(&lab, "sender", false);
    println!("  sender {} ── node ── receiver; {source}", lab.v4("sender"));

    title("A signed SETUP brings the module; a browser opens its page");
    install(&lab, &user, &source)?;
    let pictures = picture_folder("video")?;
    let page = page(&lab)?;
    let mut device = Device { browser: Browser::open(&lab, "receiver", &page)?, pictures };
    let came = Instant::now();
    let waited = wait_for("the device to show a picture", WAIT, || device.number("pictures") > 0);
    waited.map_err(|gave_up| gave_up.seeing(lab.log("node", "netservd")))?;
    println!("  {page} has its first picture {:.1} s after the browser began", came.elapsed().as_secs_f64());
    device.look("usual")?;

    title("The device's user wants something else, while the video goes on");
    for (name, value) in [
        ("size", "320x240"),
        ("rate", "25"),
        ("colours", "palette"),
        ("colours", "grey"),
        ("coarseness", "20"),
        ("size", "80x60"),
        ("size", "320x240"),
    ] {
        let took = device.choose(name, value)?;
        hold(&format!("{name} {value}"), took, CHANGE_PROMISED)?;
        device.look(value)?;
    }

    title("Others come, and want the same: one job, and one connection to the camera");
    let into = lab.dir().join("same");
    let same = "size=320x240&rate=25&colours=grey&coarseness=20";
    let mut viewers = Vec::new();
    for _ in 0..5 {
        viewers.push(video::start_viewing(&lab, "receiver", address(&lab)?, same, VIEW_S_MAX, &into)?);
    }
    let one_for_all = || counter(&lab, "viewers") == 6 && counter(&lab, "qualities") == 1;
    let waited = wait_for("six viewers to watch one quality", WAIT, one_for_all);
    waited.map_err(|gave_up| gave_up.seeing(counters(&lab)))?;
    let asked = counter(&lab, "asked");
    println!("  6 viewers, 1 quality, asked the camera {asked} time");
    ensure!(asked == 1, "the camera was asked {asked} times");
    for mut viewer in viewers {
        viewer.kill()?;
        viewer.wait()?;
    }

    title("A control message changes it for those who chose nothing");
    let into = lab.dir().join("told");
    let mut viewer = video::start_viewing(&lab, "receiver", address(&lab)?, "", VIEW_S_MAX, &into)?;
    let waited = wait_for("a viewer who chose nothing to have pictures", WAIT, || taken(&into).len() >= PICTURES);
    waited.map_err(|gave_up| gave_up.seeing(counters(&lab)))?;
    let (changed, told) = (counter(&lab, "changed"), Instant::now());
    let to = lab.v4("receiver").to_string();
    println!("  netserv tell {MODULE} --topic quality 'colours=palette rate=5' --to {to}");
    signed(&lab, &user, &["tell", MODULE, "--topic", "quality", "colours=palette rate=5", "--to", &to])?;
    let waited = wait_for("that viewer's pictures to change", WAIT, || counter(&lab, "changed") > changed);
    waited.map_err(|gave_up| gave_up.seeing(counters(&lab)))?;
    println!("  there after {:.2} s", told.elapsed().as_secs_f64());
    let have = taken(&into).len();
    let waited = wait_for("that viewer to have more pictures", WAIT, || taken(&into).len() >= have + PICTURES);
    waited.map_err(|gave_up| gave_up.seeing(counters(&lab)))?;
    viewer.kill()?;
    viewer.wait()?;
    let seen = video::pictures(&into)?;
    let (first, last) = (seen.first().context("no picture")?, seen.last().context("no picture")?);
    println!("  one connection had {} pictures: {} and then {}", seen.len(), first.quality, last.quality);

    title("The camera is off for three seconds");
    video::stop_camera(&mut lab, "sender")?;
    std::thread::sleep(OUTAGE);
    let waited = wait_for("the module to notice that the camera is off", WAIT, || counter(&lab, "outages") > 0);
    waited.map_err(|gave_up| gave_up.seeing(counters(&lab)))?;
    let before = device.number("pictures");
    video::start_camera(&mut lab, "sender", Codec::Mpeg2)?;
    let back = Instant::now();
    let waited = wait_for("the device to show more pictures", WAIT, || device.number("pictures") > before + 10);
    waited.map_err(|gave_up| gave_up.seeing(counters(&lab)))?;
    println!("  the device shows it again {:.1} s after it is on", back.elapsed().as_secs_f64());
    println!("  counters: {:?}", module(&lab)?.counters);
    println!("  pictures of the device: {}", device.pictures.display());
    println!("\n  the whole demo: {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// The browser, and where pictures of it go.
struct Device {
    browser: Browser,
    pictures: PathBuf,
}

impl Device {
    fn number(&mut self, name: &str) -> u64 {
        let value = self.browser.evaluate(&format!("window.shown && window.shown.{name}"));
        value.ok().and_then(|value| value.as_u64()).unwrap_or(0)
    }

    /// Chooses as its user does. Returns how long it took until there was a picture.
    fn choose(&mut self, name: &str, value: &str) -> Result<Duration> {
        let choose = format!(
            "(() => {{ const form = document.getElementById('quality'); form.elements['{name}'].value = '{value}'; \
             window.shown.changeMs = 0; form.onchange(); }})()"
        );
        self.browser.evaluate(&choose)?;
        wait_for(&format!("the device to show {name} {value}"), WAIT, || self.number("changeMs") > 0)?;
        let quality = self.browser.evaluate("window.shown.quality")?;
        let is_it = quality.as_str().is_some_and(|quality| quality.contains(&format!("{name}={value}")));
        ensure!(is_it, "{name} does not become {value}: {quality}");
        Ok(Duration::from_millis(self.number("changeMs")))
    }

    /// Looks at it for a while, says what it shows, and keeps its picture.
    fn look(&mut self, name: &str) -> Result<()> {
        std::thread::sleep(LOOK);
        let told: Value = self.browser.evaluate("document.getElementById('figures').textContent")?;
        println!("    {}", told.as_str().unwrap_or_default());
        let path = self.pictures.join(format!("{name}.png"));
        std::fs::write(path, shot(&mut self.browser, &json!({ "format": "png" }))?)?;
        Ok(())
    }
}

fn install(lab: &Lab, user: &LabUser, source: &str) -> Result<()> {
    let package = lab.package("video-transcoder", user)?;
    let (url, to) = (lab.publish("sender", &package)?, lab.v4("receiver").to_string());
    let (file, source) = (package.path.to_string_lossy().into_owned(), format!("source={source}"));
    let args = ["setup", &file, "--url", &url, "--to", &to, "--property", &source, "--property", "qualities=3"];
    println!("  netserv setup {} --property {source} --property qualities=3 --to {to}", package.module);
    let mut last = Err(anyhow!("the node was not asked"));
    let waited = wait_for("the node to install the module", WAIT, || {
        last = signed(lab, user, &args).and_then(|result| {
            let node = result.nodes.into_iter().next().context("no node answers")?;
            Ok(node.outcome)
        });
        // It may take longer to compile than a request may.
        matches!(&last, Ok(outcome) if !outcome.is_refused_for(RefusalKind::Timeout))
    });
    let seen = || format!("{last:?}\n{}", lab.log("node", "netservd"));
    waited.map_err(|gave_up| gave_up.seeing(seen()))?;
    let is_there = matches!(last, Ok(Outcome::Installed { .. } | Outcome::Refreshed { .. } | Outcome::Replaced { .. }));
    ensure!(is_there, "it is not installed: {}", seen());
    Ok(())
}

fn module(lab: &Lab) -> Result<ModuleStatus> {
    lab.modules("node")?.modules.into_iter().next().context("the node has no module")
}

fn counter(lab: &Lab, name: &str) -> u64 {
    module(lab).ok().and_then(|module| module.counters.get(name).copied()).unwrap_or(0)
}

/// Returns all counters of the module, for an error.
fn counters(lab: &Lab) -> String {
    format!("counters: {:?}", module(lab).map(|module| module.counters))
}

/// Returns the pictures that a viewer has so far.
fn taken(into: &Path) -> Vec<Picture> {
    video::pictures(into).unwrap_or_default()
}

fn address(lab: &Lab) -> Result<IpAddr> {
    module(lab)?.addresses.into_iter().find(IpAddr::is_ipv4).context("the module has no address")
}

/// Returns the module's page, once it answers.
fn page(lab: &Lab) -> Result<String> {
    let page = format!("http://{}/", host_port(address(lab)?, 80));
    let curl_s = grown(CURL_WAIT).as_secs().to_string();
    let args = ["-s", "-f", "-m", &curl_s, "-o", "/dev/null", &page];
    let answers = || lab.command("receiver", "curl").args(args).status().is_ok_and(|one| one.success());
    wait_for(&format!("{page} to answer"), WAIT, answers)?;
    Ok(page)
}
