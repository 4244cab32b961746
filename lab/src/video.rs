// SPDX-License-Identifier: Apache-2.0
//! A live video in a lab: ffmpeg makes it, nginx serves it, and viewers take single pictures of it.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::netns::{Lab, host_port};

/// The port of nginx.
pub const PORT: u16 = 8090;
/// Where ffmpeg listens, for nginx alone.
const BEHIND: &str = "127.0.0.1:8091";

/// How a live video is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// As AMnet's: 720 × 576 in the form of 4:3.
    Mpeg2,
    /// 640 × 480.
    H264,
}

impl Codec {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Codec::Mpeg2 => {
                &["-s", "720x576", "-aspect", "4:3", "-c:v", "mpeg2video", "-g", "12", "-bf", "2", "-b:v", "4M"]
            }
            Codec::H264 => &["-c:v", "libx264", "-preset", "veryfast", "-g", "25", "-b:v", "1M", "-pix_fmt", "yuv420p"],
        }
    }
}

/// Starts nginx and behind it ffmpeg, whose video begins when it is asked for, for one client at a time.
///
/// # Errors
/// One does not start.
pub fn start_source(lab: &mut Lab, machine: &str, codec: Codec) -> Result<()> {
    let dir = lab.dir().display().to_string();
    let (v4, v6) = (lab.v4(machine), lab.v6(machine));
    let config = format!(
        "daemon off; user root; worker_processes 1; pid {dir}/video-nginx.pid; error_log stderr notice;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log {dir}/video-access.txt; client_body_temp_path {dir}/video-body;\n\
         proxy_temp_path {dir}/video-proxy; fastcgi_temp_path {dir}/video-fastcgi;\n\
         uwsgi_temp_path {dir}/video-uwsgi; scgi_temp_path {dir}/video-scgi;\n\
         server {{ listen {v4}:{PORT}; listen [{v6}]:{PORT};\n\
         location / {{ proxy_pass http://{BEHIND}; proxy_buffering off; }} }} }}\n"
    );
    let file = lab.dir().join("video-nginx.conf");
    std::fs::write(&file, config)?;
    let mut nginx = lab.command(machine, "/usr/sbin/nginx");
    lab.start(machine, "video-nginx", nginx.arg("-c").arg(&file))?;
    let pid = lab.dir().join("video-nginx.pid");
    lab.wait_for_start((machine, "video-nginx"), "serve the video", |_| pid.exists())?;
    start_camera(lab, machine, codec)
}

/// Starts ffmpeg alone.
///
/// # Errors
/// It does not start.
pub fn start_camera(lab: &mut Lab, machine: &str, codec: Codec) -> Result<()> {
    let mut camera = lab.command(machine, "sh");
    // It serves one client, and then the next one.
    let script = "trap 'kill -KILL $camera; exit' TERM; while :; do \"$@\" & camera=$!; wait $camera; done";
    camera.args(["-c", script, "sh", "ffmpeg", "-nostdin", "-v", "fatal", "-re", "-f", "lavfi", "-i"]);
    camera.arg("testsrc2=size=640x480:rate=25").args(codec.arguments());
    camera.args(["-flush_packets", "1", "-f", "mpegts", "-listen", "1", &format!("http://{BEHIND}/live.ts")]);
    lab.start(machine, "camera", &mut camera)?;
    let port = BEHIND.parse::<SocketAddr>()?.port();
    lab.wait_for_start((machine, "camera"), "take a connection", |lab| lab.sockets_at(machine, "tcp", port) > 0)
}

/// Ends ffmpeg, as when a camera is switched off.
///
/// # Errors
/// There is none.
pub fn stop_camera(lab: &mut Lab, machine: &str) -> Result<()> {
    lab.stop(machine, "camera")
}

/// Returns where the video is, over one version of IP.
pub fn url(lab: &Lab, machine: &str, v6: bool) -> String {
    let ip: IpAddr = if v6 { lab.v6(machine).into() } else { lab.v4(machine).into() };
    format!("http://{}/live.ts", host_port(ip, PORT))
}

/// Has a viewer take what comes for some seconds, into a file.
///
/// # Errors
/// curl does not start.
pub fn start_viewing(
    lab: &Lab,
    machine: &str,
    module: IpAddr,
    query: &str,
    seconds: u32,
    into: &Path,
) -> Result<Child> {
    let url = format!("http://{}/video?{query}", host_port(module, 80));
    let mut curl = lab.command(machine, "curl");
    curl.args(["-s", "-g", "-N", "-m", &seconds.to_string(), "-o"]).arg(into).arg(url);
    Ok(curl.stdout(Stdio::null()).spawn()?)
}

/// A picture that a viewer got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Of which quality it is.
    pub quality: String,
    /// Its media type.
    pub media_type: String,
    /// Itself.
    pub bytes: Vec<u8>,
}

/// Returns the pictures that were taken into a file; the last one may lack its end, and is left out then.
///
/// # Errors
/// There is something else in it.
pub fn pictures(file: &Path) -> Result<Vec<Picture>> {
    let all = std::fs::read(file).with_context(|| file.display().to_string())?;
    let (mut left, mut found) = (all.as_slice(), Vec::new());
    while let Some(end) = left.windows(4).position(|end| end == b"\r\n\r\n") {
        let head = std::str::from_utf8(&left[..end])?;
        ensure!(head.starts_with("--picture\r\n"), "no picture begins with {head:?}");
        let line = |name: &str| {
            let value = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            value.map(str::to_owned).with_context(|| format!("no {name} in {head:?}"))
        };
        let length: usize = line("Content-Length")?.parse()?;
        let Some((bytes, rest)) = left[end + 4..].split_at_checked(length + 2) else { break };
        ensure!(bytes.ends_with(b"\r\n"), "a picture is longer than it says");
        let bytes = bytes[..length].to_vec();
        found.push(Picture { quality: line("Quality")?, media_type: line("Content-Type")?, bytes });
        left = rest;
    }
    Ok(found)
}

/// Decodes pictures by ffmpeg, and returns them as raw pixels of a format of its, such as `gray`, each as large as given.
///
/// # Errors
/// ffmpeg says that something is wrong with them.
pub fn decode(
    pictures: &[Picture],
    (width, height): (usize, usize),
    pixels: &str,
    bytes: usize,
) -> Result<Vec<Vec<u8>>> {
    let first = pictures.first().context("there are no pictures")?;
    let (format, file) = (if first.media_type == "image/png" { "png_pipe" } else { "jpeg_pipe" }, tempfile()?);
    std::fs::write(&file, pictures.iter().map(|picture| picture.bytes.as_slice()).collect::<Vec<_>>().concat())?;
    let path = file.display().to_string();
    let raw = ffmpeg(&["-xerror", "-f", format, "-i", &path, "-f", "rawvideo", "-pix_fmt", pixels, "-"]);
    let _ = std::fs::remove_file(&file);
    let (raw, size) = (raw?, width * height * bytes);
    ensure!(raw.len() == pictures.len() * size, "{} pictures have {} bytes", pictures.len(), raw.len());
    Ok(raw.chunks_exact(size).map(<[u8]>::to_vec).collect())
}

/// Returns the peak signal-to-noise ratio, in dB, between pictures and those of a file from one of them on, as ffmpeg has it for all
/// together, for the luma. They are all pictures of the file, none left out.
///
/// # Errors
/// ffmpeg does not say.
pub fn psnr(pictures: &[Picture], original: &Path, from: usize) -> Result<f64> {
    let file = tempfile()?;
    std::fs::write(&file, pictures.iter().map(|picture| picture.bytes.as_slice()).collect::<Vec<_>>().concat())?;
    let count = pictures.len();
    let graph = format!(
        "[0:v]format=yuv420p,setpts=N/25/TB[a];\
         [1:v]trim=start_frame={from}:end_frame={},format=yuvj420p,format=yuv420p,setpts=N/25/TB[b];[a][b]psnr",
        from + count
    );
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "info", "-f", "jpeg_pipe", "-i"])
        .arg(&file)
        .arg("-i")
        .arg(original)
        .args(["-lavfi", &graph, "-f", "null", "-"])
        .output()?;
    let _ = std::fs::remove_file(&file);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = said.split("PSNR y:").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    told.with_context(|| format!("ffmpeg says {said}"))
}

/// Runs ffmpeg, and returns what it writes.
///
/// # Errors
/// It says that something is wrong.
pub fn ffmpeg(args: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new("ffmpeg").args(["-nostdin", "-v", "error", "-y"]).args(args).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && said.trim().is_empty(), "ffmpeg: {}, {said}", output.status);
    Ok(output.stdout)
}

fn tempfile() -> Result<PathBuf> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("netserv-pictures-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    Ok(std::env::temp_dir().join(name))
}
