// SPDX-License-Identifier: Apache-2.0
//! Parts of a stream in two qualities, by their names.

/// What is asked for of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// What names the qualities.
    Master,
    /// The list of a quality.
    List(Quality),
    /// A segment, by its name.
    Segment(String),
}

/// One of the two qualities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// As many pixels as the clip has.
    High,
    /// Fewer.
    Low,
}

impl Part {
    /// Reads the last part of a path.
    pub fn read(name: &str) -> Option<Part> {
        let rest = name.strip_prefix("hls")?;
        if rest == ".m3u8" {
            return Some(Part::Master);
        }
        let rest = rest.strip_prefix('-')?;
        if let Some(list) = rest.strip_suffix(".m3u8") {
            return Quality::of(list).map(Part::List);
        }
        let segment = rest.strip_suffix(".ts")?;
        let mut words = segment.split('-');
        let [quality, number, digest] = [words.next()?, words.next()?, words.next()?];
        let is_number = (1..=4).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
        let is_digest = digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_segment = Quality::of(quality).is_some() && is_number && is_digest && words.next().is_none();
        is_segment.then(|| Part::Segment(segment.to_owned()))
    }
}

impl Quality {
    /// Both, in the order of a job's outputs.
    pub const ALL: [Quality; 2] = [Quality::High, Quality::Low];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Quality::High => "high",
            Quality::Low => "low",
        }
    }

    fn of(name: &str) -> Option<Quality> {
        Quality::ALL.into_iter().find(|quality| quality.name() == name)
    }

    /// Returns how many lines its pictures have; 0 for as many as the clip.
    pub fn height(self) -> u32 {
        match self {
            Quality::High => 0,
            Quality::Low => 240,
        }
    }

    /// Returns bits per second of its pictures, and of its sound.
    pub fn bit_rates(self) -> [u32; 2] {
        match self {
            Quality::High => [2_000_000, 128_000],
            Quality::Low => [400_000, 64_000],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_by_their_names() {
        for (name, part) in [
            ("hls.m3u8", Some(Part::Master)),
            ("hls-high.m3u8", Some(Part::List(Quality::High))),
            ("hls-low.m3u8", Some(Part::List(Quality::Low))),
            ("hls-low-0-0123456789abcdef.ts", Some(Part::Segment("low-0-0123456789abcdef".to_owned()))),
            ("hls-middle.m3u8", None),
            ("hls-.m3u8", None),
            ("hls.ts", None),
            ("hls-low-0.ts", None),
            ("hls-low--0123456789abcdef.ts", None),
            ("hls-low-12345-0123456789abcdef.ts", None),
            ("hls-low-1-0123456789abcde.ts", None),
            ("hls-low-1-0123456789abcdef-2.ts", None),
            ("hls-low-1-0123456789abc\ndf.ts", None),
            ("a.m3u8", None),
            ("", None),
        ] {
            assert_eq!(Part::read(name), part, "{name}");
        }
    }
}
