// SPDX-License-Identifier: Apache-2.0
//! Playlists (RFC 8216 §4), and what is kept of them.

use std::fmt::Write as _;

use crate::process::limits::{SEGMENT_MS, SEGMENTS_MAX};
use crate::process::part::Quality;

/// What segments there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Whether no further ones come.
    pub is_whole: bool,
    /// Milliseconds of each, by quality.
    pub durations: [Vec<u32>; 2],
}

impl Lists {
    /// Returns whether both qualities can be begun with.
    pub fn is_begun(&self) -> bool {
        self.durations.iter().all(|durations| !durations.is_empty())
    }

    /// Adds a segment; not if there are too many.
    pub fn push(&mut self, place: usize, duration_ms: u32) -> bool {
        let Some(durations) = self.durations.get_mut(place).filter(|durations| durations.len() < SEGMENTS_MAX) else {
            return false;
        };
        durations.push(duration_ms);
        true
    }

    /// Returns what is kept.
    pub fn encode(&self) -> String {
        let mut text = String::from(if self.is_whole { WHOLE } else { GROWS });
        for durations in &self.durations {
            text.push('\n');
            let numbers: Vec<String> = durations.iter().map(u32::to_string).collect();
            text.push_str(&numbers.join(" "));
        }
        text
    }

    /// Reads what [`Lists::encode`] wrote; nothing if it is something else.
    pub fn decode(text: &str) -> Option<Lists> {
        let mut lines = text.split('\n');
        let is_whole = match lines.next()? {
            WHOLE => true,
            GROWS => false,
            _ => return None,
        };
        let mut durations =
            || -> Option<Vec<u32>> { lines.next()?.split_whitespace().map(|number| number.parse().ok()).collect() };
        let lists = Lists { is_whole, durations: [durations()?, durations()?] };
        lines.next().is_none().then_some(lists)
    }

    /// Returns the list of a quality.
    pub fn playlist(&self, quality: Quality, digest: &str) -> String {
        let [high, low] = &self.durations;
        let durations = match quality {
            Quality::High => high,
            Quality::Low => low,
        };
        // It must not change while a list grows, so that only segments that are much longer show.
        let longest = durations.iter().copied().max().unwrap_or(0).max(SEGMENT_MS + 999).div_ceil(1000);
        let kind = if self.is_whole { "VOD" } else { "EVENT" };
        let mut text = format!(
            "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:{longest}\n#EXT-X-PLAYLIST-TYPE:{kind}\n\
             #EXT-X-START:TIME-OFFSET=0\n"
        );
        for (number, ms) in durations.iter().enumerate() {
            let name = segment(quality, number, digest);
            // Writing to a string does not fail.
            let _ = writeln!(text, "#EXTINF:{}.{:03},\nhls-{name}.ts", ms / 1000, ms % 1000);
        }
        if self.is_whole {
            text.push_str("#EXT-X-ENDLIST\n");
        }
        text
    }
}

/// Returns a segment's name.
pub fn segment(quality: Quality, number: usize, digest: &str) -> String {
    format!("{}-{number}-{digest}", quality.name())
}

/// Returns what names the qualities.
pub fn master() -> String {
    let mut text = "#EXTM3U\n#EXT-X-VERSION:3\n".to_owned();
    for quality in Quality::ALL {
        // Packets take a tenth more.
        let rate = quality.bit_rates().iter().sum::<u32>() / 10 * 11;
        let _ = writeln!(text, "#EXT-X-STREAM-INF:BANDWIDTH={rate}\nhls-{}.m3u8", quality.name());
    }
    text
}

const WHOLE: &str = "whole";
const GROWS: &str = "grows";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_kept_and_shown() {
        let mut lists = Lists::default();
        assert!(lists.push(0, 4000) && !lists.is_begun());
        assert!(lists.push(1, 4000) && lists.push(1, 1040) && lists.is_begun() && !lists.push(2, 1));
        assert_eq!(Lists::decode(&lists.encode()), Some(lists.clone()));
        assert_eq!(
            lists.playlist(Quality::Low, "d"),
            "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:5\n#EXT-X-PLAYLIST-TYPE:EVENT\n#EXT-X-START:TIME-OFFSET=0\n\
             #EXTINF:4.000,\nhls-low-0-d.ts\n#EXTINF:1.040,\nhls-low-1-d.ts\n"
        );
        lists.is_whole = true;
        assert_eq!(Lists::decode(&lists.encode()), Some(lists.clone()));
        assert!(lists.playlist(Quality::High, "d").ends_with("\n#EXTINF:4.000,\nhls-high-0-d.ts\n#EXT-X-ENDLIST\n"));
        for odd in ["", "whole", "whole\n1", "whole\n1\n2\n3", "whole\nx\n2", "other\n1\n2"] {
            assert_eq!(Lists::decode(odd), None, "{odd}");
        }
        assert!(master().contains("BANDWIDTH=2340800\nhls-high.m3u8\n"));
    }

    #[test]
    fn segments_are_bounded() {
        let mut lists = Lists::default();
        for _ in 0..SEGMENTS_MAX {
            assert!(lists.push(0, 1));
        }
        assert!(!lists.push(0, 1) && lists.push(1, 1));
    }
}
