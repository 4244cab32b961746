// SPDX-License-Identifier: Apache-2.0
//! What the head of a picture says.

/// Returns the width of a PNG or JPEG picture; nothing if the bytes do not say it.
pub fn width(bytes: &[u8]) -> Option<u32> {
    if let Some(png) = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n") {
        let header = png.strip_prefix(&[0, 0, 0, 13])?.strip_prefix(b"IHDR")?;
        return Some(u32::from_be_bytes(header.get(..4)?.try_into().ok()?));
    }
    let mut rest = bytes.strip_prefix(&[0xff, 0xd8])?;
    loop {
        // Any number of fill bytes stand before a marker (ITU-T T.81 §B.1.1.2).
        rest = rest.strip_prefix(&[0xff])?;
        let (marker, after) = rest.split_first()?;
        match marker {
            0xff => {}
            // A frame (§B.2.2), but for tables that have numbers among its markers.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some(u16::from_be_bytes(after.get(5..7)?.try_into().ok()?).into());
            }
            0x01 | 0xd0..=0xd7 => rest = after,
            _ => {
                let length = u16::from_be_bytes(after.get(..2)?.try_into().ok()?);
                rest = after.get(usize::from(length.max(2))..)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_found_in_heads() {
        let png = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\x68".as_slice(), &[8, 2, 0, 0, 0]].concat();
        assert_eq!(width(&png), Some(640));
        let jpeg = [
            &[0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2][..],
            &[0xff, 0xff, 0xc4, 0, 3, 9],
            &[0xff, 0xc2, 0, 11, 8, 0x01, 0x68, 0x02, 0x80, 1],
        ]
        .concat();
        assert_eq!(width(&jpeg), Some(640));
        for whole in [png, jpeg] {
            for length in 0..whole.len() {
                // Whatever is cut off, nothing panics.
                let _ = width(&whole[..length]);
            }
            assert_eq!(width(&whole[..12]), None);
        }
        for odd in
            [&b""[..], b"GIF89a", b"\xff\xd8", b"\xff\xd8\xff", b"\xff\xd8\xff\xe0\0\0\xff\xe0\0\0", b"\xff\xd8abc"]
        {
            assert_eq!(width(odd), None);
        }
    }
}
