// SPDX-License-Identifier: Apache-2.0
//! Custom processing of `modules/apps/active-cdn`, held against ffmpeg and ffprobe: overlays that differ by node, sizes, streams.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::common::{eventually, request_as};
use netserv_lab::netns::{Lab, is_root, wait_until};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::LabUser;
use netserv_lab::topology::{Kind, Topology};
use netserv_lab::website::noise;
use netserv_model::request::{ModuleStatus, Outcome};
use netserv_skips::skipped;

const MODULE: &str = "example.org/active-cdn";
/// How long ten seconds of two qualities may take on a slow machine with much to do.
const STREAM_WAIT: Duration = Duration::from_secs(90);
const RULES: &str = "process=/plain/* resize; *.mp4 overlay hls; *.jpg overlay resize; *.png overlay";

/// Goal: the same picture and clip differ by the nodes' places and by what the provider says, and only where the text is; each has
/// a validator of its own; ranges, conditions and `no-transform` are as HTTP has them; of many who want a result one has it made.
#[test]
fn overlays_differ_by_node_and_are_made_once() {
    let test = "overlays_differ_by_node_and_are_made_once";
    let nodes = [("n1", "[about]\nplace = \"Berlin\"\n"), ("n2", "[about]\nplace = \"Kyoto\"\n")];
    let Some(edge) = Edge::up(test, &nodes) else { return };
    edge.install("n1,n2", &[RULES, "text=cloudy", "widths=100 200"]);
    let [first, second] = ["n1", "n2"].map(|node| edge.get(node, "/photo.jpg", &[]));
    for answer in [&first, &second] {
        assert_eq!(
            (answer.status(), answer.header("netserv-process")),
            (200, Some("overlay; made")),
            "{}",
            answer.head
        );
        assert_eq!(answer.header("content-type"), Some("image/jpeg"));
        assert_eq!(answer.header("content-length"), Some(&*answer.body.len().to_string()));
        assert_eq!(answer.header("last-modified"), None);
    }
    let original = std::fs::read(edge.www().join("photo.jpg")).unwrap();
    assert_ne!(first.header("etag"), second.header("etag"));
    let [first_pixels, second_pixels, pixels] =
        [&first.body, &second.body, &original].map(|picture| edge.pixels(picture));
    assert!(first_pixels.len() == 320 * 180 && pixels.len() == first_pixels.len());
    // The text is at the bottom; above, pictures are alike but for what coding does.
    let differ = |a: &[u8], b: &[u8]| a.iter().zip(b).filter(|(a, b)| a.abs_diff(**b) > 60).count();
    let (top, bottom) = (0..320 * 100, 320 * 150..320 * 180);
    assert!(differ(&first_pixels[bottom.clone()], &second_pixels[bottom.clone()]) > 100);
    assert!(differ(&first_pixels[bottom.clone()], &pixels[bottom]) > 500);
    assert_eq!(differ(&first_pixels[top.clone()], &pixels[top.clone()]), 0);
    assert_eq!(differ(&first_pixels[top.clone()], &second_pixels[top]), 0);

    let again = edge.get("n1", "/photo.jpg", &[]);
    assert_eq!((again.header("netserv-process"), again.header("etag")), (Some("overlay; hit"), first.header("etag")));
    assert!(again.body == first.body);
    let etag = format!("if-none-match: {}", first.header("etag").unwrap());
    assert_eq!(edge.get("n1", "/photo.jpg", &["-H", &etag]).status(), 304);
    assert_eq!(edge.get("n2", "/photo.jpg", &["-H", &etag]).status(), 200);
    let part = edge.get("n1", "/photo.jpg", &["-r", "10-19"]);
    assert!(part.status() == 206 && part.body == first.body[10..20], "{}", part.head);
    for forbidden in
        [edge.get("n1", "/photo.jpg", &["-H", "cache-control: no-transform"]), edge.get("n1", "/as-is/photo.jpg", &[])]
    {
        assert_eq!(forbidden.header("netserv-process"), Some("original; no-transform"), "{}", forbidden.head);
        assert!(forbidden.body == original);
    }
    let private = edge.get("n1", "/private/photo.jpg", &[]);
    assert_eq!(private.header("netserv-process"), Some("original; not-stored"), "{}", private.head);
    assert!(private.body == original && private.header("etag").is_some());

    // What the provider says reaches one node.
    edge.tell("n2", "text", "sunny");
    eventually("the text is another one", || edge.get("n2", "/photo.jpg", &[]).header("etag") != second.header("etag"));
    assert_eq!(edge.get("n1", "/photo.jpg", &[]).header("etag"), first.header("etag"));

    // A purge takes what was made of it, too.
    edge.tell("n1", "purge", &format!("{}/photo.jpg", edge.origin()));
    assert_eq!(edge.get("n1", "/photo.jpg", &[]).header("netserv-process"), Some("overlay; made"));

    // One clip is answered at once, and one that is longer while it is made.
    for (name, bytes_min) in [("clip", 10_000), ("noisy", 600_000)] {
        let (path, before) = (format!("/{name}.mp4"), edge.counter("n1", "processed"));
        let all = edge.at_once("n1", &path, 20);
        assert!(all.iter().all(|answer| answer.status() == 200 && answer.body == all[0].body), "all get the same");
        eventually("it is made", || edge.counter("n1", "processed") > before);
        let (hit, clip) = (edge.get("n1", &path, &[]), edge.probe(&all[0].body, "mp4"));
        assert_eq!(hit.header("netserv-process"), Some("overlay; hit"), "{}", hit.head);
        assert!(hit.body == all[0].body && hit.body.len() > bytes_min, "{} bytes", hit.body.len());
        assert!(clip.contains("h264,320,180") && clip.contains("aac"), "{clip}");
        assert_eq!(edge.counter("n1", "processed"), before + 1);
    }
    let [first, second] = ["n1", "n2"].map(|node| edge.get(node, "/clip.mp4", &[]));
    assert!(first.body != second.body && first.header("etag") != second.header("etag"));
}

/// Goal: a picture has one of the provider's widths; a clip is a stream that ffmpeg plays to its end in both qualities; what is no
/// clip, or broken, comes as it is.
#[test]
fn pictures_get_smaller_and_clips_become_streams() {
    let test = "pictures_get_smaller_and_clips_become_streams";
    let Some(edge) = Edge::up(test, &[("n1", "[about]\nplace = \"Berlin\"\n")]) else { return };
    edge.install("n1", &[RULES, "overlay={place}", "widths=100 200"]);
    for (query, size) in [("w=100", "100,56"), ("w=30", "100,56"), ("w=101", "200,112"), ("w=9999", "200,112")] {
        let answer = edge.get("n1", &format!("/plain/photo.jpg?{query}"), &[]);
        assert!(answer.header("netserv-process").is_some_and(|made| made.starts_with("resize=")), "{}", answer.head);
        let told = edge.probe(&answer.body, "jpeg_pipe");
        assert!(told.contains(&format!("mjpeg,{size}")), "{query}: {told}");
    }
    assert_eq!(edge.counter("n1", "processed"), 2, "so many widths there are");
    for small in ["small", "late"] {
        let small = edge.get("n1", &format!("/plain/{small}.jpg?w=200"), &[]);
        assert_eq!(small.header("netserv-process"), Some("original; same"), "{}", small.head);
    }
    let png = edge.get("n1", "/picture.png", &[]);
    assert_eq!(png.header("netserv-process"), Some("overlay; made"), "{}", png.head);
    assert!(edge.probe(&png.body, "png_pipe").contains("png,320,180"));

    plays(&edge);
    a_purge_takes_segments(&edge);

    for (name, why) in [
        ("broken.mp4", "failed"),
        ("cut.mp4", "failed"),
        ("noise.jpg", "failed"),
        ("page.jpg", "kind"),
        ("long.jpg", "too-long"),
    ] {
        for _ in 0..2 {
            let answer = edge.get("n1", &format!("/{name}"), &[]);
            assert_eq!(answer.header("netserv-process"), Some(&*format!("original; {why}")), "{name}: {}", answer.head);
            let kept = std::fs::read(edge.www().join(name)).unwrap();
            assert!(answer.status() == 200 && answer.body == kept, "{name}: {}", answer.head);
        }
    }
    let silent = edge.get("n1", "/no-pictures.mp4/hls.m3u8", &[]);
    assert_eq!((silent.status(), silent.header("location")), (302, Some("../no-pictures.mp4")), "{}", silent.head);
    let missing = edge.get("n1", "/none.mp4/hls.m3u8", &["-L"]);
    assert_eq!(missing.status(), 404, "{}", missing.head);
    assert_eq!(edge.get("n1", "/clip.mp4/hls-high-0-0123456789abcdef.ts", &[]).status(), 404);
    let ended = edge.lab.metrics("n1").unwrap();
    assert!(ended.contains("netserv_media_jobs{state=\"running\"} 0"), "{ended}");
}

/// ffmpeg plays both qualities over the network, with all pictures and times that do not go back.
fn plays(edge: &Edge) {
    let master = edge.get("n1", "/clip.mp4/hls.m3u8", &[]);
    assert_eq!(master.header("content-type"), Some("application/vnd.apple.mpegurl"), "{}", master.head);
    let list = || String::from_utf8_lossy(&edge.get("n1", "/clip.mp4/hls-low.m3u8", &[]).body).into_owned();
    assert!(wait_until(STREAM_WAIT, || list().contains("#EXT-X-ENDLIST")), "{}", list());
    assert_eq!(list().matches("#EXTINF:").count(), 3, "{}", list());
    let url = |name: &str| format!("http://{}/clip.mp4/{name}", edge.address("n1"));
    let show = "stream=codec_name,width,height:format=duration";
    for (name, size) in [("hls-high.m3u8", "320,180"), ("hls-low.m3u8", "426,240")] {
        let args = ["-v", "error", "-of", "csv=p=0", "-show_entries", show, &url(name)];
        let told = edge.lab.command("receiver", "ffprobe").args(args).output().unwrap();
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.contains(&format!("h264,{size}")) && told.contains("aac"), "{name}: {told}");
        let args = ["-v", "warning", "-xerror", "-i", &url(name), "-map", "0:v", "-f", "framemd5", "-"];
        let played = edge.lab.command("receiver", "ffmpeg").args(args).output().unwrap();
        let pictures = String::from_utf8_lossy(&played.stdout).lines().filter(|line| !line.starts_with('#')).count();
        assert!(
            played.status.success() && played.stderr.is_empty() && pictures == 250,
            "{name}: {pictures}, {played:?}"
        );
    }
    let played = edge
        .lab
        .command("receiver", "ffmpeg")
        .args(["-v", "error", "-i", &url("hls.m3u8"), "-f", "null", "-"])
        .output();
    assert!(played.unwrap().status.success());
    let name = list().lines().find(|line| line.ends_with(".ts")).unwrap().to_owned();
    let segment = edge.get("n1", &format!("/clip.mp4/{name}"), &[]);
    assert!(
        segment.header("content-type") == Some("video/mp2t") && segment.body.len().is_multiple_of(188),
        "{}",
        segment.head
    );
    assert_eq!(edge.get("n1", "/clip.mp4/hls-low.m3u8", &[]).header("netserv-process"), Some("hls; hit"));
    assert!(edge.get("n1", "/clip.mp4/hls-low.m3u8", &[]).header("etag").is_some());
}

/// A purge of a clip takes the segments of its stream, and of one that is being made those that come later.
fn a_purge_takes_segments(edge: &Edge) {
    let list = |clip: &str, quality: &str| {
        String::from_utf8_lossy(&edge.get("n1", &format!("/{clip}/hls-{quality}.m3u8"), &[]).body).into_owned()
    };
    let segments = |clip: &str| {
        let lists = ["high", "low"].map(|quality| list(clip, quality));
        lists.concat().lines().filter(|line| line.ends_with(".ts")).map(str::to_owned).collect::<Vec<_>>()
    };
    let is_there = |clip: &str, name: &str| edge.get("n1", &format!("/{clip}/{name}"), &[]).status() == 200;
    let purge = |clip: &str| {
        edge.tell("n1", "purge", &format!("{}/{clip}", edge.origin()));
        // It reads its messages when the next one asks.
        assert_eq!(edge.get("n1", "/picture.png", &["-I"]).status(), 200);
    };
    let of_clip = segments("clip.mp4");
    assert!(of_clip.len() == 6 && of_clip.iter().all(|name| is_there("clip.mp4", name)), "{of_clip:?}");
    purge("clip.mp4");
    assert!(!of_clip.iter().any(|name| is_there("clip.mp4", name)), "{of_clip:?}");

    eventually("the first segments are made", || segments("lasting.mp4").len() >= 2);
    let (high, begun) = (list("lasting.mp4", "high"), segments("lasting.mp4"));
    assert!(!high.contains("#EXT-X-ENDLIST"), "it is made too soon to be purged meanwhile: {high}");
    purge("lasting.mp4");
    let is_over = || edge.lab.metrics("n1").unwrap().contains("netserv_media_jobs{state=\"running\"} 0");
    assert!(wait_until(STREAM_WAIT, is_over), "it is made for ever");
    // Those that came after the purge have higher numbers.
    let numbered = |number: usize| begun[0].replacen("-0-", &format!("-{number}-"), 1);
    assert!(begun[0].contains("-0-"), "{begun:?}");
    let left: Vec<usize> = (0..LASTING_S / 4).filter(|number| is_there("lasting.mp4", &numbered(*number))).collect();
    assert!(left.is_empty(), "segments {left:?} are there after the purge");
}

/// Goal: where there is no ffmpeg, and where the jobs are taken, clients get the original, and are told why; a bad rule is refused
/// by name. Method: one node has no ffmpeg; the other one's jobs hardly get on.
#[test]
fn the_original_is_the_answer_where_nothing_can_be_made() {
    let test = "the_original_is_the_answer_where_nothing_can_be_made";
    let slow = "[blocks.media]\njobs = 1\njobs-per-user = 1\ncpu-permille = 10\n";
    let Some(edge) = Edge::up(test, &[("n1", "[blocks.media]\nffmpeg = \"/nowhere\"\n"), ("n2", slow)]) else { return };
    for (rules, why) in [
        ("process=/a hls; /b blur", "`/b blur`: `blur` is none of"),
        ("widths=1", "`1` is no number from 16"),
        ("overlay={place", "has no other one"),
    ] {
        let is_refused = || {
            let outcome = edge.setup("n1", &[rules]).remove(0);
            let Outcome::Refused(refusal) = outcome else { panic!("{rules}: {outcome:?}") };
            refusal.detail.contains(why)
        };
        // The first one may come before the module is compiled.
        eventually("it is refused by name", is_refused);
    }
    edge.install("n1,n2", &[RULES, "overlay=here"]);
    let original = std::fs::read(edge.www().join("clip.mp4")).unwrap();
    let answer = edge.get("n1", "/clip.mp4", &[]);
    assert_eq!((answer.status(), answer.header("netserv-process")), (200, Some("original; unavailable")));
    assert!(answer.body == original && answer.header("accept-ranges").is_some());
    let stream = edge.get("n1", "/clip.mp4/hls.m3u8", &[]);
    assert_eq!((stream.status(), stream.header("location")), (302, Some("../clip.mp4")), "{}", stream.head);

    let mut waiting: Vec<Child> = (0..8).map(|number| edge.ask("n2", &format!("/clip.mp4?{number}"), &[])).collect();
    let waits = || {
        let metrics = edge.lab.metrics("n2").unwrap();
        let count = |state| {
            let begin = format!("netserv_media_jobs{{state=\"{state}\"}} ");
            metrics.lines().find_map(|line| line.strip_prefix(&begin)?.parse::<u32>().ok()).unwrap_or(0)
        };
        count("running") + count("waiting")
    };
    // Of one user as many wait as the operator lets it: the others have their answers.
    eventually("jobs wait", || waits() >= 5);
    let answer = edge.get("n2", "/clip.mp4?9", &[]);
    assert_eq!(answer.header("netserv-process"), Some("original; busy"), "{}", answer.head);
    assert!(answer.body == original);
    for child in &mut waiting {
        let _ = child.kill();
        child.wait().unwrap();
    }
}

/// `sender – nodes – receiver`: an origin, nodes with the module, and who asks them.
struct Edge {
    lab: Lab,
    user: LabUser,
}

impl Edge {
    /// Builds the network, or says that the test is skipped. Beside a node's name stands further configuration.
    fn up(test: &str, nodes: &[(&str, &str)]) -> Option<Edge> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        if !Path::new("/usr/bin/ffmpeg").exists() {
            skipped(test, "needs ffmpeg");
            return None;
        }
        let middle = nodes.iter().map(|(name, _)| (*name, Kind::Node));
        let chain: Vec<_> =
            [("sender", Kind::Host)].into_iter().chain(middle).chain([("receiver", Kind::Host)]).collect();
        let mut lab = Lab::up(Topology::chain(&chain)).unwrap();
        let own = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
        let mut user = lab.user("www", &[&own[0], &own[1]]).unwrap();
        user.extra = "listen = ['tcp port 80']\nconnect = ['tcp']\ncontainer.memory-bytes = 268435456\n\
            module-limits.request-ms = 600000\n"
            .to_owned();
        for (number, (node, extra)) in nodes.iter().enumerate() {
            let prefix = format!("10.99.{number}.0/29");
            let extra = format!("osgi.enabled = false\n{FILES_ALLOWED}[network]\nprefixes = [{prefix:?}]\n{extra}");
            lab.start_netservd(node, "node", std::slice::from_ref(&user), &extra).unwrap();
            // Each machine finds a node's containers over the link that leads there.
            for (place, (machine, _)) in chain.iter().enumerate().filter(|(place, _)| *place != number + 1) {
                let links = lab.topology();
                let via = if place <= number { links.interfaces(place).1 } else { links.interfaces(place - 1).0 };
                lab.run(machine, "ip", &["route", "add", &prefix, "via", &via.v4.to_string()]).unwrap();
            }
        }
        lab.start_netservd("sender", "host", &[], "").unwrap();
        lab.serve_http("sender").unwrap();
        let mut edge = Edge { lab, user };
        edge.serve_clips();
        Some(edge)
    }

    /// Serves clips and pictures on a port of their own, with what they are.
    fn serve_clips(&mut self) {
        let www = self.www();
        std::fs::create_dir_all(&www).unwrap();
        let make = |args: &str, name: &str| {
            let mut ffmpeg = Command::new("/usr/bin/ffmpeg");
            ffmpeg.args(["-v", "error", "-f", "lavfi", "-i"]).args(args.split(' ')).arg(www.join(name));
            assert!(ffmpeg.status().unwrap().success(), "{name}");
        };
        let sound = "-f lavfi -i sine=frequency=440 -pix_fmt yuv420p -c:v libx264 -preset ultrafast -c:a aac";
        make(&format!("testsrc2=size=320x180:rate=25 {sound} -t 10"), "clip.mp4");
        make(&format!("testsrc2=size=320x180:rate=25,noise=alls=90:allf=t {sound} -t 4"), "noisy.mp4");
        make(&format!("testsrc2=size=640x360:rate=25 {sound} -t {LASTING_S}"), "lasting.mp4");
        make("sine=frequency=440 -t 1 -c:a aac", "no-pictures.mp4");
        make("mandelbrot=size=320x180 -frames:v 1 -q:v 2", "photo.jpg");
        make("mandelbrot=size=320x180 -frames:v 1", "picture.png");
        make("testsrc=size=80x60 -frames:v 1", "small.jpg");
        let clip = std::fs::read(www.join("clip.mp4")).unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(www.join(name), bytes).unwrap();
        // The index comes last; without it, nothing can be read.
        write("cut.mp4", &clip[..clip.len() / 2]);
        write("broken.mp4", &[&clip[..24], &noise(50_000)].concat());
        write("noise.jpg", &noise(50_000));
        // How wide it is comes late, behind what applications have put there.
        let small = std::fs::read(www.join("small.jpg")).unwrap();
        let application = [&[0xff, 0xe1, 0xff, 0xff][..], &[0; 0xfffd]].concat();
        write("late.jpg", &[&small[..2], &application.repeat(3), &small[2..]].concat());
        let dir = self.lab.dir().display().to_string();
        let config = format!(
            "daemon off; user root; worker_processes 1; pid {dir}/origin.pid; error_log stderr notice; events {{ }}\n\
             http {{ access_log off; client_body_temp_path {dir}/o-body; proxy_temp_path {dir}/o-proxy;\n\
             fastcgi_temp_path {dir}/o-fastcgi; uwsgi_temp_path {dir}/o-uwsgi; scgi_temp_path {dir}/o-scgi;\n\
             types {{ video/mp4 mp4; image/jpeg jpg; image/png png; }} root {www};\n\
             server {{ listen {port}; location / {{ add_header cache-control max-age=600; }}\n\
             location = /page.jpg {{ types {{ }} default_type text/html; return 200 'no picture'; add_header cache-control max-age=600; }}\n\
             location /plain/ {{ alias {www}/; add_header cache-control max-age=600; }}\n\
             location /as-is/ {{ alias {www}/; add_header cache-control 'max-age=600, no-transform'; }}\n\
             location /private/ {{ alias {www}/; add_header cache-control private; }} }} }}\n",
            www = www.display(),
            port = ORIGIN_PORT,
        );
        write("page.jpg", b"no picture");
        write("long.jpg", &vec![0; (16 << 20) + 1]);
        let path = self.lab.dir().join("origin.conf");
        std::fs::write(&path, config).unwrap();
        let mut nginx = self.lab.command("sender", "/usr/sbin/nginx");
        nginx.arg("-c").arg(&path);
        self.lab.start("sender", "origin", &mut nginx).unwrap();
    }

    fn www(&self) -> PathBuf {
        self.lab.dir().join("clips")
    }

    fn origin(&self) -> String {
        format!("{}:{ORIGIN_PORT}", self.lab.v4("sender"))
    }

    /// Sends a SETUP to nodes, and returns what they did.
    fn setup(&self, nodes: &str, properties: &[&str]) -> Vec<Outcome> {
        let package = self.lab.package("active-cdn", &self.user).unwrap();
        let url = self.lab.publish("sender", &package).unwrap();
        let (to, path) = (self.lab.v4("receiver").to_string(), package.path.to_string_lossy().into_owned());
        let origin = format!("origin=http://{}", self.origin());
        // Without a filter, only its own address leads to it.
        let mut args = vec!["setup", &path, "--url", &url, "--to", &to, "--node", nodes, "--property", &origin];
        args.extend(properties.iter().flat_map(|property| ["--property", property]));
        let filter = format!("tcp dst {}/32 port 80", self.lab.v4("sender"));
        args.extend(["--filter", &filter]);
        let result = request_as(&self.lab, &self.user, &args);
        let named = |name: &str| nodes.split(',').any(|node| node == name);
        result.nodes.into_iter().filter(|node| named(node.node.as_str())).map(|node| node.outcome).collect()
    }

    fn install(&self, nodes: &str, properties: &[&str]) {
        let is_there = || {
            let outcomes = self.setup(nodes, properties);
            let fits = |outcome: &Outcome| {
                matches!(outcome, Outcome::Installed { .. } | Outcome::Replaced { .. } | Outcome::Refreshed { .. })
            };
            outcomes.len() == nodes.split(',').count() && outcomes.iter().all(fits)
        };
        eventually("the module is compiled and runs", is_there);
        for node in nodes.split(',') {
            eventually("the cache answers", || self.get(node, "/photo.jpg", &["-I"]).status() == 200);
        }
    }

    fn tell(&self, node: &str, topic: &str, text: &str) {
        let to = self.lab.v4("receiver").to_string();
        let args = ["tell", MODULE, "--topic", topic, text, "--to", &to, "--node", node];
        let result = request_as(&self.lab, &self.user, &args);
        assert!(result.nodes.iter().any(|node| node.outcome == Outcome::Told), "{result:?}");
    }

    fn status(&self, node: &str) -> ModuleStatus {
        self.lab.modules(node).unwrap().modules.remove(0)
    }

    fn counter(&self, node: &str, name: &str) -> u64 {
        self.status(node).counters.get(name).copied().unwrap_or(0)
    }

    fn address(&self, node: &str) -> IpAddr {
        self.status(node).addresses.into_iter().find(IpAddr::is_ipv4).unwrap()
    }

    /// Begins to ask for something.
    fn ask(&self, node: &str, path: &str, more: &[&str]) -> Child {
        let url = format!("http://{}{path}", self.address(node));
        let mut curl = self.lab.command("receiver", "curl");
        curl.args(["-s", "-g", "-m", "60", "-D", "/dev/stderr"]).args(more).arg(url);
        curl.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn get(&self, node: &str, path: &str, more: &[&str]) -> Answer {
        Answer::of(&self.ask(node, path, more).wait_with_output().unwrap())
    }

    /// Asks so many times at once.
    fn at_once(&self, node: &str, path: &str, count: usize) -> Vec<Answer> {
        let asking: Vec<Child> = (0..count).map(|_| self.ask(node, path, &[])).collect();
        std::thread::scope(|scope| {
            let waiting: Vec<_> =
                asking.into_iter().map(|child| scope.spawn(|| child.wait_with_output().unwrap())).collect();
            waiting.into_iter().map(|thread| Answer::of(&thread.join().unwrap())).collect()
        })
    }

    /// Returns the grey pixels of a picture.
    fn pixels(&self, picture: &[u8]) -> Vec<u8> {
        let path = self.lab.dir().join("picture");
        std::fs::write(&path, picture).unwrap();
        let mut ffmpeg = Command::new("/usr/bin/ffmpeg");
        ffmpeg.args(["-v", "error", "-i"]).arg(&path).args(["-pix_fmt", "gray", "-f", "rawvideo", "-"]);
        ffmpeg.output().unwrap().stdout
    }

    /// Returns what ffprobe says of a file: codecs and sizes.
    fn probe(&self, bytes: &[u8], format: &str) -> String {
        let path = self.lab.dir().join("probed");
        std::fs::write(&path, bytes).unwrap();
        let show = "stream=codec_name,width,height";
        let mut ffprobe = Command::new("/usr/bin/ffprobe");
        ffprobe.args(["-v", "error", "-f", format, "-of", "csv=p=0", "-show_entries", show]).arg(&path);
        String::from_utf8_lossy(&ffprobe.output().unwrap().stdout).into_owned()
    }
}

/// Seconds of a clip that takes a while.
const LASTING_S: usize = 60;
/// Where clips and pictures are served.
const ORIGIN_PORT: u16 = 8080;

/// What curl got.
struct Answer {
    /// All heads, in small letters but for values.
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn of(output: &Output) -> Answer {
        Answer { head: String::from_utf8_lossy(&output.stderr).into_owned(), body: output.stdout.clone() }
    }

    /// Returns the last status; 0 without one.
    fn status(&self) -> u16 {
        let mut lines = self.head.lines().filter(|line| line.starts_with("HTTP/"));
        lines.next_back().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0)
    }

    /// Returns the value of a header of the last head.
    fn header(&self, name: &str) -> Option<&str> {
        let fits = |line: &&str| line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case(name));
        self.head.lines().rfind(fits).and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
    }
}
