// SPDX-License-Identifier: Apache-2.0
//! A radio station in a lab: Icecast, whose source is ffmpeg, and those who listen.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::listeners::Told;
use crate::netns::{Lab, START_WAIT, host_port, program};
use crate::patience::{grown, wait_for};

/// The port of Icecast.
pub const PORT: u16 = 8000;
/// How long curl waits for Icecast's answer, on a machine that is not busy.
const CURL_WAIT: Duration = Duration::from_secs(5);

/// Who listens, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Listening {
    /// How many.
    pub listeners: usize,
    /// How many of them want titles.
    pub titles: usize,
    /// For how long.
    pub seconds: u64,
    /// Milliseconds between two who come.
    pub every_ms: u64,
    /// Whether over IPv6.
    pub v6: bool,
}

/// Starts Icecast on a machine, at both versions of IP.
///
/// # Errors
/// It does not start.
pub fn start_server(lab: &mut Lab, machine: &str) -> Result<()> {
    let dir = lab.dir().join("icecast");
    std::fs::create_dir_all(&dir)?;
    let logs = dir.display();
    let config = format!(
        "<icecast><limits><clients>5000</clients><sources>4</sources><burst-size>65535</burst-size></limits>\n\
         <authentication><source-password>source</source-password><admin-user>admin</admin-user>\
         <admin-password>admin</admin-password></authentication><hostname>radio</hostname>\n\
         <listen-socket><port>{PORT}</port><bind-address>{}</bind-address></listen-socket>\n\
         <listen-socket><port>{PORT}</port><bind-address>{}</bind-address></listen-socket>\n\
         <listen-socket><port>{PORT}</port><bind-address>127.0.0.1</bind-address></listen-socket>\n\
         <paths><logdir>{logs}</logdir><webroot>/usr/share/icecast2/web</webroot>\
         <adminroot>/usr/share/icecast2/admin</adminroot></paths>\n\
         <logging><accesslog>access.log</accesslog><errorlog>error.log</errorlog><loglevel>3</loglevel></logging>\n\
         <security><chroot>0</chroot><changeowner><user>nobody</user><group>nogroup</group></changeowner></security>\n\
         </icecast>\n",
        lab.v4(machine),
        lab.v6(machine),
    );
    let file = dir.join("icecast.xml");
    std::fs::write(&file, config)?;
    // It gives up being root, as it insists to, and logs after that.
    for name in ["access.log", "error.log"] {
        std::fs::write(dir.join(name), "")?;
    }
    lab.run(machine, "chown", &["-R", "nobody:nogroup", &dir.to_string_lossy()])?;
    lab.run(machine, "chmod", &["a+x", &lab.dir().to_string_lossy()])?;
    let mut command = lab.command(machine, "icecast2");
    lab.start(machine, "icecast", command.arg("-c").arg(&file))?;
    let said = || std::fs::read_to_string(dir.join("error.log")).unwrap_or_default();
    let started = lab.wait_for_start((machine, "icecast"), "answer", |lab| status(lab, machine).is_ok());
    started.with_context(|| format!("icecast does not start, and writes:\n{}", said()))
}

/// Starts the source of `/live.mp3`: a tone that goes up and down, as MP3 of 128 kbit/s.
///
/// # Errors
/// It does not start.
pub fn start_source(lab: &mut Lab, machine: &str) -> Result<()> {
    let mut command = lab.command(machine, "ffmpeg");
    command.args(["-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i"]);
    command.arg("aevalsrc=0.4*sin(2*PI*(300+200*sin(t))*t)+0.1*random(0):s=44100");
    command.args(["-ac", "2", "-c:a", "libmp3lame", "-b:a", "128k", "-id3v2_version", "0", "-write_xing", "0"]);
    command.args(["-content_type", "audio/mpeg", "-f", "mp3"]);
    command.arg(format!("icecast://source:source@127.0.0.1:{PORT}/live.mp3"));
    lab.start(machine, "source", &mut command)?;
    lab.wait_for_start((machine, "source"), "reach Icecast", |lab| listeners(lab, machine).is_ok())?;
    title(lab, machine, "first song")
}

/// Ends the source at once, as when its line breaks.
///
/// # Errors
/// There is none.
pub fn stop_source(lab: &mut Lab, machine: &str) -> Result<()> {
    lab.kill(machine, "source")?;
    // Icecast notices by itself.
    Ok(wait_for("Icecast to notice that its source is gone", START_WAIT, || listeners(lab, machine).is_err())?)
}

/// Has Icecast tell its listeners another title.
///
/// # Errors
/// It does not.
pub fn title(lab: &Lab, machine: &str, title: &str) -> Result<()> {
    let title = title.replace(' ', "%20");
    let url = format!("http://127.0.0.1:{PORT}/admin/metadata?mount=/live.mp3&mode=updinfo&song={title}");
    let curl_s = grown(CURL_WAIT).as_secs().to_string();
    lab.run(machine, "curl", &["-s", "-f", "-m", &curl_s, "-u", "admin:admin", &url]).map(drop)
}

/// Returns how many listeners Icecast has.
///
/// # Errors
/// It has no source, or does not answer.
pub fn listeners(lab: &Lab, machine: &str) -> Result<u64> {
    let status = status(lab, machine)?;
    status["icestats"]["source"]["listeners"].as_u64().context("there is no source")
}

/// Returns how many listeners Icecast had at a time at most since its source came.
///
/// # Errors
/// It has no source, or does not answer.
pub fn listeners_most(lab: &Lab, machine: &str) -> Result<u64> {
    let status = status(lab, machine)?;
    status["icestats"]["source"]["listener_peak"].as_u64().context("there is no source")
}

fn status(lab: &Lab, machine: &str) -> Result<serde_json::Value> {
    let url = format!("http://127.0.0.1:{PORT}/status-json.xsl");
    let curl_s = grown(CURL_WAIT).as_secs().to_string();
    let output = lab.run(machine, "curl", &["-s", "-f", "-m", &curl_s, &url])?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Has some listen to a server from a machine; what each hears is written to a folder of the lab's.
///
/// # Errors
/// The program is not there.
pub fn start_listening(lab: &Lab, ends: (&str, &str), listening: Listening, into: &Path) -> Result<Child> {
    Ok(listeners_command(lab, ends, listening, into)?.stdout(Stdio::piped()).spawn()?)
}

/// Has some listen as [`start_listening`], and beyond their time until [`heard`] is called.
///
/// # Errors
/// The program is not there.
pub fn keep_listening(lab: &Lab, ends: (&str, &str), listening: Listening, into: &Path) -> Result<Child> {
    let mut command = listeners_command(lab, ends, listening, into)?;
    command.arg("--until-input-ends");
    Ok(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
}

fn listeners_command(lab: &Lab, (machine, server): (&str, &str), listening: Listening, into: &Path) -> Result<Command> {
    let ip = if listening.v6 { lab.v6(server).into() } else { lab.v4(server).into() };
    let mut command = lab.command(machine, program("netserv-lab")?);
    command.args(["listeners", "--server", &host_port(ip, PORT), "--into"]).arg(into);
    for (name, number) in [
        ("--listeners", listening.listeners as u64),
        ("--titles", listening.titles as u64),
        ("--seconds", listening.seconds),
        ("--every-ms", listening.every_ms),
    ] {
        command.args([name, &number.to_string()]);
    }
    Ok(command)
}

/// Waits for listeners; those of [`keep_listening`] end once they have had their time.
///
/// # Errors
/// They could not do what they were to.
pub fn heard(listeners: Child) -> Result<Told> {
    let output = listeners.wait_with_output()?;
    ensure!(output.status.success(), "the listeners failed");
    serde_json::from_slice(&output.stdout).context("the listeners say nothing")
}

/// Decodes what listeners heard, by ffmpeg and by mpg123. Returns for how many milliseconds each of them sounds.
///
/// # Errors
/// A decoder says that something is wrong with it; all that it says is in the error.
pub fn decode(folder: &Path) -> Result<Vec<u64>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    let mut sounds_ms = Vec::new();
    for file in &files {
        let name = file.to_string_lossy();
        let ffmpeg = [
            "-nostdin", "-v", "error", "-xerror", "-f", "mp3", "-i", &name, "-ac", "1", "-ar", "8000", "-f", "s8", "-",
        ];
        for (program, args) in [("ffmpeg", &ffmpeg[..]), ("mpg123", &["-q", "-t", &name])] {
            let output = Command::new(program).args(args).output().with_context(|| program.to_owned())?;
            let said = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() || !said.trim().is_empty() {
                bail!("{program} of {name}: {}, {said}", output.status);
            }
            if program == "ffmpeg" {
                // Eight samples of a byte are a millisecond.
                sounds_ms.push(output.stdout.len() as u64 / 8);
            }
        }
    }
    Ok(sounds_ms)
}
