// SPDX-License-Identifier: Apache-2.0
//! What viewers choose.

use std::fmt;

/// How a video is shown: what a device can, and what its network carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quality {
    /// Pixels in a row, and rows, that pictures fit into.
    pub size: (u32, u32),
    /// Pictures in a second.
    pub rate: u32,
    /// Their colours.
    pub colours: Colours,
    /// How coarse they are, from the best on; those of the palette are as they are.
    pub coarseness: u32,
}

/// The colours of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Colours {
    /// All, as JPEG.
    Full,
    /// None, as JPEG.
    Grey,
    /// Those of a palette of 256, as PNG.
    Palette,
}

/// The sizes that there are.
pub const SIZES: [(u32, u32); 6] = [(80, 60), (160, 120), (240, 180), (320, 240), (480, 360), (640, 480)];
/// The rates that there are.
pub const RATES: [u32; 6] = [1, 2, 5, 10, 15, 25];
/// How coarse JPEGs can be.
pub const COARSENESSES: [u32; 3] = [3, 8, 20];

impl Default for Quality {
    fn default() -> Quality {
        Quality { size: (160, 120), rate: 10, colours: Colours::Full, coarseness: 8 }
    }
}

impl Quality {
    /// Returns this one with what a text names, such as `size=320x240&rate=5&colours=grey&coarseness=3`: in any order, with spaces or
    /// `&` between. Others than these names are no part of it.
    ///
    /// # Errors
    /// Something is none of what there is.
    pub fn with(self, text: &str) -> Result<Quality, String> {
        let mut quality = self;
        for (name, value) in pairs(text) {
            let number = || value.parse::<u32>().unwrap_or(0);
            let known = match name {
                "size" => {
                    SIZES.iter().find(|size| format!("{}x{}", size.0, size.1) == value).map(|size| quality.size = *size)
                }
                "rate" => RATES.contains(&number()).then(|| quality.rate = number()),
                "coarseness" => COARSENESSES.contains(&number()).then(|| quality.coarseness = number()),
                "colours" => Colours::parse(value).map(|colours| quality.colours = colours),
                _ => Some(()),
            };
            if known.is_none() {
                return Err(format!("no such {name}; there are {}", choices(name)));
            }
        }
        // What makes no difference makes no job of its own.
        if quality.colours == Colours::Palette {
            quality.coarseness = Quality::default().coarseness;
        }
        Ok(quality)
    }

    /// Returns the media type of its pictures.
    pub fn media_type(self) -> &'static str {
        match self.colours {
            Colours::Full | Colours::Grey => "image/jpeg",
            Colours::Palette => "image/png",
        }
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quality { size, rate, colours, coarseness } = self;
        write!(f, "size={}x{}&rate={rate}&colours={}&coarseness={coarseness}", size.0, size.1, colours.name())
    }
}

impl Colours {
    /// All of them.
    pub const ALL: [Colours; 3] = [Colours::Full, Colours::Grey, Colours::Palette];

    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Colours::Full => "full",
            Colours::Grey => "grey",
            Colours::Palette => "palette",
        }
    }

    fn parse(text: &str) -> Option<Colours> {
        Colours::ALL.into_iter().find(|colours| colours.name() == text)
    }
}

/// Returns whether a text names anything of a quality.
pub fn names_some(text: &str) -> bool {
    pairs(text).any(|(name, _)| matches!(name, "size" | "rate" | "colours" | "coarseness"))
}

/// Returns what is before and behind each equals sign.
pub fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(['&', ' ', '\n', '\r', '\t']).filter_map(|pair| pair.split_once('='))
}

fn choices(name: &str) -> String {
    let numbers = |all: &[u32]| all.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match name {
        "size" => SIZES.map(|(width, height)| format!("{width}x{height}")).join(", "),
        "rate" => numbers(&RATES),
        "coarseness" => numbers(&COARSENESSES),
        _ => Colours::ALL.map(Colours::name).join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_another_and_the_rest_stays() {
        let usual = Quality::default();
        assert_eq!(usual.with("").unwrap(), usual);
        let grey = usual.with("viewer=a&colours=grey rate=25").unwrap();
        assert_eq!(grey, Quality { colours: Colours::Grey, rate: 25, ..usual });
        assert_eq!(grey.with("size=320x240").unwrap().size, (320, 240));
        assert_eq!(usual.with(&grey.to_string()).unwrap(), grey);
        let palette = usual.with("colours=palette&coarseness=3").unwrap();
        assert_eq!((palette.coarseness, palette.media_type()), (usual.coarseness, "image/png"));
        assert!(names_some("x=1&rate=0") && !names_some("viewer=rate"));
    }

    #[test]
    fn what_there_is_not_is_said() {
        for text in
            ["size=1x1", "size=320x240x", "rate=0", "rate=-1", "rate=60", "colours=", "colours=red", "coarseness=1"]
        {
            let name = text.split('=').next().unwrap();
            assert!(Quality::default().with(text).unwrap_err().starts_with(&format!("no such {name}")), "{text}");
        }
    }
}
