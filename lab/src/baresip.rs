// SPDX-License-Identifier: Apache-2.0
//! Phones in a lab: baresip plays a tone into each call, takes calls by itself, and keeps what it hears.

use std::f64::consts::TAU;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::netns::Lab;
use crate::patience::wait_for;

/// Samples a second of G.711.
const RATE: u32 = 8000;
/// How long the tone is; no call of a lab is longer.
const TONE_S: u32 = 60;
/// The tone's amplitude, of 32,767.
const AMPLITUDE: f64 = 12_000.0;
/// Bytes before the samples of a WAV file.
const WAV_HEADER_BYTES: usize = 44;
/// Where it takes commands.
const CONTROL_PORT: u16 = 4444;
/// How long taking a call, or ending one, may take.
const WAIT: Duration = Duration::from_secs(20);
/// What its modules are, and that it shows no meters.
const CONFIG: &str = "poll_method epoll\nstatmode_default off\n\
    audio_player aubridge,none\naudio_alert aubridge,none\n\
    ausrc_format s16\nauplay_format s16\nauenc_format s16\naudec_format s16\n\
    module_path /usr/lib/baresip/modules\nmodule aufile.so\nmodule aubridge.so\nmodule g711.so\nmodule sndfile.so\n\
    module_tmp account.so\nmodule_app menu.so\nmodule_app ctrl_tcp.so\n";

/// Returns the password of a machine's phone.
pub fn password(machine: &str) -> String {
    format!("{machine}-secret")
}

impl Lab {
    /// Starts a phone on a machine, which registers under the machine's name at a server every few seconds, as phones behind a NAT do. It
    /// knows no other version of IP than that of the server's address. Returns once it is registered.
    ///
    /// # Errors
    /// baresip is missing, or the server does not take it.
    pub fn start_baresip(&mut self, machine: &str, server: IpAddr, tone_hz: u32) -> Result<()> {
        let dir = self.baresip_dir(machine);
        std::fs::create_dir_all(&dir)?;
        let tone = dir.join("tone.wav");
        std::fs::write(&tone, wav(tone_hz))?;
        let host = if server.is_ipv6() { format!("[{server}]") } else { server.to_string() };
        let config = format!(
            "{CONFIG}audio_source aufile,{}\nsnd_path {}\nctrl_tcp_listen 127.0.0.1:{CONTROL_PORT}\n",
            tone.display(),
            dir.display()
        );
        let account = format!(
            "<sip:{machine}@{host}>;auth_user={machine};auth_pass={};regint=3;answermode=auto;audio_codecs=PCMU/8000/1\n",
            password(machine)
        );
        for (name, text) in [("config", config), ("accounts", account), ("contacts", String::new())] {
            std::fs::write(dir.join(name), text)?;
        }
        let before = self.said(machine, "200 OK");
        let mut command = self.command(machine, "baresip");
        command.arg(if server.is_ipv6() { "-6" } else { "-4" }).arg("-f").arg(&dir);
        self.start(machine, "baresip", &mut command)?;
        self.wait_for_start((machine, "baresip"), "register", |lab| lab.said(machine, "200 OK") > before)
    }

    /// Has one phone call another one for a while, and hang up.
    ///
    /// # Errors
    /// The call is not taken, or does not end.
    pub fn call_for(&self, caller: &str, callee: &str, server: IpAddr, time: Duration) -> Result<()> {
        let both = |text: &str| [self.said(caller, text), self.said(callee, text)];
        let host = if server.is_ipv6() { format!("[{server}]") } else { server.to_string() };
        for (command, argument, told, time) in [
            ("dial", format!("sip:{callee}@{host}"), "Call established", time),
            ("hangup", String::new(), "terminated (duration", Duration::ZERO),
        ] {
            let before = both(told);
            self.command_baresip(caller, command, &argument)?;
            let what = format!("{caller} and {callee} to say `{told}`");
            let waited = wait_for(&what, WAIT, || both(told).iter().zip(before).all(|(now, before)| *now > before));
            let logs = || [caller, callee].map(|phone| self.log(phone, "baresip")).join("\n");
            waited.map_err(|gave_up| gave_up.seeing(logs()))?;
            std::thread::sleep(time);
        }
        Ok(())
    }

    /// Returns the pitch of what a phone heard in its last call, in hertz.
    ///
    /// # Errors
    /// It heard nothing.
    pub fn heard_hz(&self, machine: &str) -> Result<f64> {
        let files = std::fs::read_dir(self.baresip_dir(machine))?.flatten().map(|entry| entry.path());
        let is_heard = |path: &PathBuf| path.to_string_lossy().ends_with("-dec.wav");
        let last = files.filter(is_heard).max().with_context(|| format!("{machine} heard nothing"))?;
        pitch(&std::fs::read(last)?).with_context(|| format!("{machine} heard nothing"))
    }

    fn command_baresip(&self, machine: &str, command: &str, argument: &str) -> Result<()> {
        let text = serde_json::json!({ "command": command, "params": argument }).to_string();
        let mut nc = self.command(machine, "nc");
        nc.args(["-q", "1", "-w", "2", "127.0.0.1", &CONTROL_PORT.to_string()]);
        let mut nc = nc.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot run nc")?;
        // A netstring.
        nc.stdin.take().context("nc has no input")?.write_all(format!("{}:{text},", text.len()).as_bytes())?;
        let told = nc.wait_with_output()?.stdout;
        let told = String::from_utf8_lossy(&told);
        ensure!(told.contains("\"ok\":true"), "{machine}: {command} {argument}: {told}");
        Ok(())
    }

    /// Returns how often a phone has said something.
    fn said(&self, machine: &str, text: &str) -> usize {
        self.log(machine, "baresip").matches(text).count()
    }

    fn baresip_dir(&self, machine: &str) -> PathBuf {
        Path::new(self.dir()).join(format!("{machine}-baresip"))
    }
}

/// Returns a tone as a WAV file.
#[allow(clippy::cast_possible_truncation, reason = "the amplitude is that of a sample")]
fn wav(hz: u32) -> Vec<u8> {
    let samples = RATE * TONE_S;
    let mut bytes = Vec::with_capacity(WAV_HEADER_BYTES + 2 * samples as usize);
    bytes.extend_from_slice(b"RIFF");
    bytes.extend_from_slice(&(36 + 2 * samples).to_le_bytes());
    bytes.extend_from_slice(b"WAVEfmt ");
    bytes.extend_from_slice(&16_u32.to_le_bytes());
    // Plain samples, of one channel.
    bytes.extend_from_slice(&[1, 0, 1, 0]);
    bytes.extend_from_slice(&RATE.to_le_bytes());
    bytes.extend_from_slice(&(2 * RATE).to_le_bytes());
    bytes.extend_from_slice(&[2, 0, 16, 0]);
    bytes.extend_from_slice(b"data");
    bytes.extend_from_slice(&(2 * samples).to_le_bytes());
    for sample in 0..samples {
        let phase = f64::from(sample) * f64::from(hz) / f64::from(RATE) * TAU;
        bytes.extend_from_slice(&((AMPLITUDE * phase.sin()) as i16).to_le_bytes());
    }
    bytes
}

/// Returns the pitch of a WAV file as [`wav`] makes it, by how often it goes up through zero.
fn pitch(wav: &[u8]) -> Option<f64> {
    let (samples, _) = wav.get(WAV_HEADER_BYTES..)?.as_chunks::<2>();
    let samples: Vec<i16> = samples.iter().map(|sample| i16::from_le_bytes(*sample)).collect();
    let rises = samples.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
    (rises > 0).then(|| rises as f64 * f64::from(RATE) / samples.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pitch_of_a_tone_is_found() {
        for hz in [440, 1000] {
            let found = pitch(&wav(hz)).unwrap();
            assert!((found - f64::from(hz)).abs() < 1.0, "{found} of {hz}");
        }
        assert_eq!(pitch(&[0; 1000]), None);
        assert_eq!(pitch(&[0; 10]), None);
    }
}
