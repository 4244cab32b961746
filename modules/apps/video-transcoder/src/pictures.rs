// SPDX-License-Identifier: Apache-2.0
//! Tells pictures apart that come one behind the other: JPEG (ISO/IEC 10918-1 annex B) and PNG (RFC 2083).

use crate::limits::PICTURE_BYTES_MAX;

/// Takes bytes, and gives whole pictures.
#[derive(Debug, Default)]
pub struct Pictures {
    bytes: Vec<u8>,
    /// Up to where it is known that the first picture does not end.
    seen: usize,
}

/// Bytes that are no pictures, or one that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPicture;

impl Pictures {
    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next picture that has come whole.
    ///
    /// # Errors
    /// What comes is none, or too large.
    pub fn poll(&mut self) -> Result<Option<Vec<u8>>, NoPicture> {
        let step: fn(&[u8], usize) -> Option<Step> = match self.bytes.first() {
            None => return Ok(None),
            Some(0xff) if self.bytes.get(1).is_none_or(|next| *next == 0xd8) => jpeg,
            Some(0x89) => png,
            Some(_) => return Err(NoPicture),
        };
        loop {
            match step(&self.bytes, self.seen).ok_or(NoPicture)? {
                Step::To(next) => self.seen = next,
                Step::Incomplete if self.bytes.len() > PICTURE_BYTES_MAX => return Err(NoPicture),
                Step::Incomplete => return Ok(None),
                Step::End(end) => {
                    self.seen = 0;
                    // It takes no more memory than it needs.
                    return Ok(Some(self.bytes.drain(..end).collect()));
                }
            }
        }
    }
}

enum Step {
    /// The next part begins here.
    To(usize),
    /// It is not known yet where.
    Incomplete,
    /// The picture ends here.
    End(usize),
}

/// A marker at this place, or bytes of coded pixels up to the next one; nothing if there is neither.
fn jpeg(bytes: &[u8], at: usize) -> Option<Step> {
    let rest = bytes.get(at..)?;
    let Some(place) = rest.iter().position(|byte| *byte == 0xff) else {
        return Some(if rest.is_empty() { Step::Incomplete } else { Step::To(bytes.len()) });
    };
    let at = at + place;
    let Some(marker) = bytes.get(at + 1) else { return Some(Step::Incomplete) };
    match marker {
        // A byte of pixels, a fill byte, or a marker without a length.
        0x00 | 0x01 | 0xd0..=0xd8 => Some(Step::To(at + 2)),
        0xff => Some(Step::To(at + 1)),
        0xd9 => Some(Step::End(at + 2)),
        _ => {
            let Some(length) = bytes.get(at + 2..at + 4) else { return Some(Step::Incomplete) };
            let next = at + 2 + usize::from(u16::from_be_bytes([length[0], length[1]]).max(2));
            Some(if next <= bytes.len() { Step::To(next) } else { Step::Incomplete })
        }
    }
}

fn png(bytes: &[u8], at: usize) -> Option<Step> {
    if at == 0 {
        let known = bytes.len().min(SIGNATURE.len());
        return match bytes[..known] == SIGNATURE[..known] {
            true if known == SIGNATURE.len() => Some(Step::To(known)),
            true => Some(Step::Incomplete),
            false => None,
        };
    }
    let Some(head) = bytes.get(at..at + 8) else { return Some(Step::Incomplete) };
    let length = usize::try_from(u32::from_be_bytes([head[0], head[1], head[2], head[3]])).ok()?;
    if length > PICTURE_BYTES_MAX {
        return None;
    }
    let next = at + 12 + length;
    Some(match next <= bytes.len() {
        false => Step::Incomplete,
        true if &head[4..] == b"IEND" => Step::End(next),
        true => Step::To(next),
    })
}

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_told_apart_however_they_come() {
        let all = [jpeg_of(3000), png_of(2000), jpeg_of(10), png_of(0)];
        let stream = all.concat();
        for size in [1, 2, 3, 7, 188, 1000, stream.len()] {
            let mut pictures = Pictures::default();
            let mut found = Vec::new();
            for piece in stream.chunks(size) {
                pictures.push(piece);
                while let Some(picture) = pictures.poll().unwrap() {
                    found.push(picture);
                }
            }
            assert_eq!(found, all, "pieces of {size}");
        }
    }

    #[test]
    fn what_is_none_is_said_to_be() {
        for bytes in [&b"\xff\xd9\xff\xd9"[..], b"GIF89a", b"\x89PNX", b"\x89PNG\r\n\x1a\n\xff\xff\xff\xffIDAT", b"\0"]
        {
            let mut pictures = Pictures::default();
            pictures.push(bytes);
            assert_eq!(pictures.poll(), Err(NoPicture), "{bytes:?}");
        }
        let mut endless = Pictures::default();
        endless.push(&[0xff, 0xd8]);
        let mut pieces = 0;
        while endless.poll() == Ok(None) {
            endless.push(&[7; 4096]);
            pieces += 1;
        }
        assert_eq!(pieces, PICTURE_BYTES_MAX / 4096);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut state = 88_172_645_463_325_252_u64;
        for _ in 0..2000 {
            let mut pictures = Pictures::default();
            pictures.push(if state & 1 == 0 { &[0xff, 0xd8] } else { &SIGNATURE });
            for _ in 0..20 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let bytes = state.to_be_bytes();
                let marked = [0xff, bytes[1], 0, bytes[2]];
                pictures.push(if state & 6 == 0 { &marked } else { &bytes });
                if pictures.poll().is_err() {
                    break;
                }
            }
        }
    }

    fn jpeg_of(pixels: usize) -> Vec<u8> {
        let mut bytes = vec![0xff, 0xd8, 0xff, 0xe0, 0, 6, 0xff, 0xd9, 1, 2, 0xff, 0xda, 0, 3, 9];
        bytes.extend((0..pixels).map(|n| u8::try_from(n % 255).unwrap()));
        bytes.extend([0xff, 0, 0xff, 0xd3, 7, 0xff, 0xd9]);
        bytes
    }

    fn png_of(length: usize) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        for (kind, length) in [(b"IHDR", 13), (b"IDAT", length), (b"IEND", 0)] {
            bytes.extend(u32::try_from(length).unwrap().to_be_bytes());
            bytes.extend(kind);
            bytes.extend(std::iter::repeat_n(0xff, length + 4));
        }
        bytes
    }
}
