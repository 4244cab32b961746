// SPDX-License-Identifier: Apache-2.0
//! What one version of the module tells the next: numbers and bytes, one behind the other.

/// Writes.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Appends a number.
    pub fn number(&mut self, number: u64) -> &mut Writer {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Appends bytes with their length.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Returns how many bytes there are.
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// Returns all of it.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads.
#[derive(Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Takes a number.
    pub fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_be_bytes(*number))
    }

    /// Takes a number that is a place or a time: with those of a stream's frames it is none that overflows.
    pub fn place(&mut self) -> Option<u64> {
        self.number().filter(|number| *number < PLACE_END)
    }

    /// Takes a number that is a length.
    pub fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    /// Takes bytes.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.size()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Takes a text.
    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

const PLACE_END: u64 = 1 << 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_off_is_not() {
        let mut writer = Writer::default();
        writer.number(u64::MAX).bytes(b"text").number(7);
        let bytes = writer.finish();
        let read = |bytes: &[u8]| {
            let mut reader = Reader(bytes);
            Some((reader.number()?, reader.text()?.to_owned(), reader.size()?))
        };
        assert_eq!(read(&bytes), Some((u64::MAX, "text".to_owned(), 7)));
        assert!((0..bytes.len()).all(|length| read(&bytes[..length]).is_none()));
        let mut huge = Writer::default();
        huge.number(u64::MAX);
        let huge = huge.finish();
        assert_eq!((Reader(&huge).bytes(), Reader(&huge).place()), (None, None));
    }
}
