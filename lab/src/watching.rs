// SPDX-License-Identifier: Apache-2.0
//! A browser that plays a site's film.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::patience::wait_for;
use crate::videosite::VideoSite;

/// What a browser had in the end.
pub struct Watched {
    /// The host that its page is from.
    pub host: String,
    /// A picture of the page at the moment that it sought, in PNG.
    pub picture: Vec<u8>,
    /// One of the film alone.
    pub frame: Vec<u8>,
    /// How bright each pixel of the film's picture is, line by line.
    pub pixels: Vec<u8>,
}

impl Watched {
    /// Returns how many pixels are clearly others than in another picture of the same film, in the upper three quarters and below.
    ///
    /// # Errors
    /// The pictures have other sizes.
    pub fn differs(&self, other: &Watched) -> Result<(usize, usize)> {
        ensure!(
            self.pixels.len() == other.pixels.len(),
            "the pictures have {} and {} pixels",
            self.pixels.len(),
            other.pixels.len()
        );
        let is_other: Vec<bool> =
            self.pixels.iter().zip(&other.pixels).map(|(a, b)| a.abs_diff(*b) > CLEARLY).collect();
        let (above, below) = is_other.split_at(is_other.len() / 4 * 3);
        let count = |part: &[bool]| part.iter().filter(|is_other| **is_other).count();
        Ok((count(above), count(below)))
    }
}

/// More than what coding makes of a pixel.
const CLEARLY: u8 = 60;

/// How long each step may take, on a machine that is not busy.
const STEP_WAIT: Duration = Duration::from_secs(60);

/// Has a browser open the site's page, wherever that is in the end, play the film, and seek to a second.
///
/// # Errors
/// It does not; the error says what it does not.
pub fn watch(site: &VideoSite, viewer: &str, seek_s: u32) -> Result<Watched> {
    let url = format!("http://{}/video/index.html", site.lab.v4("sender"));
    let mut browser = Browser::open(&site.lab, viewer, &url)?;
    step(&mut browser, "play", "document.getElementById('film')?.currentTime > 0.3")?;
    let is_buffered = format!(
        "(film => film.buffered.length > 0 && film.buffered.end(0) > {seek_s})(document.getElementById('film'))"
    );
    step(&mut browser, "get the film up to there", &is_buffered)?;
    let seek = format!(
        "(film => {{ film.pause(); film.currentTime = {seek_s}; return true; }})(document.getElementById('film'))"
    );
    step(&mut browser, "seek", &seek)?;
    let is_there = format!(
        "(film => film.currentTime == {seek_s} && !film.seeking && film.readyState >= 2)(document.getElementById('film'))"
    );
    step(&mut browser, "arrive where it sought", &is_there)?;
    // Controls fade.
    browser.evaluate("document.getElementById('film').controls = false")?;
    let foreign =
        "performance.getEntriesByType('resource').filter(one => !one.name.startsWith(location.origin)).length";
    ensure!(browser.evaluate(foreign)? == json!(0), "the page asks others than the node");
    let host = browser.evaluate("location.host")?.as_str().context("the page has no host")?.to_owned();
    let rectangle = "(({x, y, width, height}) => JSON.stringify({x, y, width, height, scale: 1}))\
        (document.getElementById('film').getBoundingClientRect())";
    let clip: Value = serde_json::from_str(browser.evaluate(rectangle)?.as_str().context("the film has no place")?)?;
    let picture = shot(&mut browser, &json!({}))?;
    let frame = shot(&mut browser, &json!({ "clip": clip }))?;
    let pixels = browser.evaluate(PIXELS)?.as_str().and_then(base64).context("the film's picture cannot be read")?;
    Ok(Watched { host, picture, frame, pixels })
}

/// Returns how bright each pixel is, in Base64.
const PIXELS: &str = "(film => {
    const canvas = new OffscreenCanvas(film.videoWidth, film.videoHeight).getContext('2d');
    canvas.drawImage(film, 0, 0);
    const colours = canvas.getImageData(0, 0, film.videoWidth, film.videoHeight).data;
    let text = '';
    for (let at = 0; at < colours.length; at += 4) text += String.fromCharCode((colours[at] + colours[at + 1] + colours[at + 2]) / 3);
    return btoa(text);
})(document.getElementById('film'))";

/// Has a browser beside the site open the agent's page, and returns a picture of it once it shows what nodes count.
///
/// # Errors
/// It does not show that.
pub fn page(site: &VideoSite) -> Result<Vec<u8>> {
    let mut browser = Browser::open(&site.lab, "sender", "http://127.0.0.1:8271/")?;
    let counts = "[...document.querySelectorAll('#sites tbody tr')].some(row => row.cells[6].textContent > '0')";
    step(&mut browser, "show what nodes count", counts)?;
    shot(&mut browser, &json!({}))
}

/// Waits until an expression in the page is true.
fn step(browser: &mut Browser, what: &str, expression: &str) -> Result<()> {
    let mut last = Ok(Value::Null);
    let waited = wait_for(&format!("the browser to {what}"), STEP_WAIT, || {
        last = browser.evaluate(expression);
        !matches!(&last, Ok(value) if *value != json!(true))
    });
    let value = last?;
    Ok(waited.map_err(|gave_up| gave_up.seeing(format!("{expression} is {value}")))?)
}

/// Returns a picture of a browser's page, as PNG unless the parameters of `Page.captureScreenshot` say otherwise.
///
/// # Errors
/// There is none.
pub fn shot(browser: &mut Browser, parameters: &Value) -> Result<Vec<u8>> {
    let answer = browser.call("Page.captureScreenshot", parameters)?;
    let picture = answer["data"].as_str().and_then(base64);
    picture.context("the browser makes no picture")
}

/// Reads Base64 (RFC 4648 §4); nothing if it is none.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for byte in group {
            let value = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        bits <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        for (text, expected) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmE=", "fooba")] {
            assert_eq!(base64(text).as_deref(), Some(expected.as_bytes()), "{text}");
        }
        assert_eq!(base64("Zm9v!"), None);
    }
}
