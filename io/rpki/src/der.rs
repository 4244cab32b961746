// SPDX-License-Identifier: Apache-2.0
//! The little that is read of DER here and not by the crate (X.690).

pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OID: u8 = 0x06;
pub(crate) const IA5_STRING: u8 = 0x16;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const CONTEXT_0: u8 = 0xA0;

/// Values that follow each other.
pub(crate) struct Values<'a>(pub(crate) &'a [u8]);

impl<'a> Values<'a> {
    /// Takes the content of the next value, if it has this tag.
    pub(crate) fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, rest) = self.0.split_first()?;
        let (length, rest) = length(rest)?;
        let (content, rest) = rest.split_at_checked(length)?;
        (*found == tag).then(|| self.0 = rest)?;
        Some(content)
    }

    /// Returns `value` if nothing is left.
    pub(crate) fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

/// Takes a length of less than 2^32 in its shortest form (X.690 §10.1).
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let octets = match first {
        0..=0x7F => return Some((usize::from(*first), rest)),
        0x81..=0x84 => usize::from(first & 0x7F),
        _ => return None,
    };
    let (octets, rest) = rest.split_at_checked(octets)?;
    let length = octets.iter().fold(0, |length, octet| length << 8 | usize::from(*octet));
    let is_shortest = octets.first() != Some(&0) && length > 0x7F;
    is_shortest.then_some((length, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_in_order_and_whole() {
        let long = [&[SEQUENCE, 0x81, 0x80][..], &[7; 0x80], &[INTEGER, 1, 5]].concat();
        let mut values = Values(&long);
        assert_eq!(values.take(INTEGER), None);
        assert_eq!(values.take(SEQUENCE).unwrap(), [7; 0x80]);
        assert_eq!(values.end(()), None);
        assert_eq!(values.take(INTEGER), Some(&[5][..]));
        assert_eq!((values.take(INTEGER), values.end(1)), (None, Some(1)));
        for bad in [&[][..], &[0x30], &[0x30, 1], &[0x30, 0x80, 0, 0], &[0x30, 0x81, 1, 0], &[0x30, 0x82, 0, 0x80]] {
            assert_eq!(Values(bad).take(SEQUENCE), None, "{bad:?}");
        }
        assert_eq!(Values(&[0x30, 0x85, 0, 0, 0, 0, 0]).take(SEQUENCE), None);
        assert_eq!(Values(&[0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF, 0]).take(SEQUENCE), None);
    }
}
