// SPDX-License-Identifier: Apache-2.0
//! The block `media` end to end: a server module of either flavour, a node, and ffmpeg in its sandbox.

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use crate::common::{Driver, Serving, eventually};
use netserv_lab::netns::host_port;
use netserv_model::Flavour;
use netserv_model::request::Outcome;
use netserv_skips::skipped;

const LISTEN: &str = "listen = ['tcp port 80']\n";

#[test]
fn a_module_converts_clips_by_the_nodes_ffmpeg() {
    clips_are_converted("a_module_converts_clips_by_the_nodes_ffmpeg", Flavour::Wasm);
}

#[test]
fn a_bundle_converts_clips_by_the_nodes_ffmpeg() {
    clips_are_converted("a_bundle_converts_clips_by_the_nodes_ffmpeg", Flavour::Osgi);
}

fn clips_are_converted(test: &str, flavour: Flavour) {
    if !Path::new("/usr/bin/ffmpeg").exists() {
        return skipped(test, "needs ffmpeg");
    }
    let Some(net) = Serving::start(test, Driver::Nfqueue, LISTEN) else { return };
    let package = net.lab.package_in("converter", &[flavour], &net.alice).unwrap();
    let outcome = net.setup(&net.alice, &package, &[]);
    assert!(matches!(outcome, Outcome::Installed { .. }), "{outcome:?}\n{}", net.lab.log("node", "netservd"));
    assert_eq!(net.status(&net.alice, "converter").unwrap().flavour, Some(flavour));
    let (address, clip) = (net.address(&net.alice, false), net.lab.dir().join("clip.mp4"));
    make_clip(&clip);
    let post = |path: &str, body: &Path| post(&net, address, path, body);

    eventually("the module answers", || net.get("receiver", address, "/").is_some());
    let told = post("/probe", &clip);
    assert!(told.contains("video h264 320x180") && told.contains("audio aac 44100 Hz"), "{told}");
    let converted = net.lab.dir().join("clip.webm");
    let url = format!("http://{}/convert/webm?width=160&text=over+it", host_port(address, 80));
    let data = format!("@{}", clip.display());
    let output = converted.display().to_string();
    let out = net.curl("receiver", &["-m", "20", "-f", "--data-binary", &data, "-o", &output, &url]);
    assert!(out.status.success(), "{out:?}\n{}", net.lab.log("node", "netservd"));
    let told = post("/probe", &converted);
    assert!(told.contains("matroska,webm") && told.contains("video vp8 160x90"), "{told}");

    let ladder = net.lab.dir().join("ladder.ts");
    let url = format!("http://{}/ladder?widths=160,80&start-ms=500&grey=1", host_port(address, 80));
    let output = ladder.display().to_string();
    let out = net.curl("receiver", &["-m", "20", "-f", "--data-binary", &data, "-o", &output, "-D", "-", &url]);
    let told = String::from_utf8_lossy(&out.stdout).into_owned();
    let numbers = |name: &str| -> Vec<usize> {
        let line = told.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix(name).map(str::to_owned));
        let line = line.unwrap_or_else(|| panic!("{told}"));
        line.trim().split(',').map(|number| number.parse().unwrap()).collect()
    };
    if flavour == Flavour::Wasm {
        assert_eq!(numbers("segments:"), [1, 1], "half a second of either: {told}");
    }
    let (lengths, both) = (numbers("lengths:"), std::fs::read(&ladder).unwrap());
    assert_eq!(lengths.iter().sum::<usize>(), both.len());
    for (part, size) in [(&both[..lengths[0]], "160x90"), (&both[lengths[0]..], "80x46")] {
        std::fs::write(&ladder, part).unwrap();
        let told = post("/probe", &ladder);
        assert!(told.contains(&format!("video h264 {size}")), "{told}");
    }

    if flavour == Flavour::Wasm {
        handed_over(&net, address, &clip);
    }
    // What is no clip is said to be none, and the module goes on.
    let nonsense = net.lab.dir().join("nonsense");
    std::fs::write(&nonsense, "#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n").unwrap();
    let told = post("/convert/webm", &nonsense);
    assert!(told.contains("Invalid"), "ffmpeg says why: {told}");
    assert!(post("/probe", &clip).contains("h264"));

    let metrics = net.lab.metrics("node").unwrap();
    for line in
        ["netserv_media_jobs_total{user=\"alice\",outcome=\"done\"} ", "netserv_media_jobs{state=\"running\"} 0"]
    {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let failed = if flavour == Flavour::Wasm { 2 } else { 1 };
    let failed = format!("netserv_media_jobs_total{{user=\"alice\",outcome=\"failed\"}} {failed}");
    assert!(metrics.contains(&failed), "{metrics}");
}

/// Goal: what a job makes is sent by the node, and one that fails is not taken for whole. Method: a clip, and one that is damaged behind its
/// begin.
fn handed_over(net: &Serving, address: IpAddr, clip: &Path) {
    let url = format!("http://{}/stream/webm?width=160", host_port(address, 80));
    let converted = net.lab.dir().join("handed-over.webm");
    let send = |clip: &Path| {
        let (data, output) = (format!("@{}", clip.display()), converted.display().to_string());
        net.curl("receiver", &["-m", "20", "-f", "--data-binary", &data, "-o", &output, &url])
    };
    let out = send(clip);
    assert!(out.status.success(), "{out:?}\n{}", net.lab.log("node", "netservd"));
    let told = post(net, address, "/probe", &converted);
    assert!(told.contains("video vp8 160x90"), "{told}");
    let nonsense = net.lab.dir().join("no-clip");
    std::fs::write(&nonsense, "#EXTM3U\n").unwrap();
    let out = send(&nonsense);
    assert!(matches!(out.status.code(), Some(18 | 52 | 56)), "it is not whole: {out:?}");
}

fn post(net: &Serving, address: IpAddr, path: &str, body: &Path) -> String {
    let url = format!("http://{}{path}", host_port(address, 80));
    let out = net.curl("receiver", &["-m", "20", "--data-binary", &format!("@{}", body.display()), &url]);
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn make_clip(path: &Path) {
    let mut ffmpeg = Command::new("/usr/bin/ffmpeg");
    ffmpeg.args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-f", "lavfi", "-i"]);
    ffmpeg.args(["sine=frequency=440", "-t", "1", "-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac"]);
    assert!(ffmpeg.arg(path).status().unwrap().success());
}
