// SPDX-License-Identifier: Apache-2.0
//! The least bundle there is: a jar file with a manifest and nothing else.

const MANIFEST_NAME: &[u8] = b"META-INF/MANIFEST.MF";
const MANIFEST: &[u8] =
    b"Manifest-Version: 1.0\r\nBundle-ManifestVersion: 2\r\nBundle-SymbolicName: org.netserv.empty\r\n\r\n";

/// Returns the bytes of a bundle without classes.
pub fn empty_bundle() -> Vec<u8> {
    let entry = entry();
    let mut jar = Vec::new();
    jar.extend_from_slice(b"PK\x03\x04");
    jar.extend_from_slice(&entry);
    jar.extend_from_slice(MANIFEST_NAME);
    jar.extend_from_slice(MANIFEST);
    let directory = jar.len();
    jar.extend_from_slice(b"PK\x01\x02\x0a\0");
    jar.extend_from_slice(&entry);
    // No comment, on disk 0, no attributes, at offset 0.
    jar.extend_from_slice(&[0; 14]);
    jar.extend_from_slice(MANIFEST_NAME);
    let directory_length = jar.len() - directory;
    jar.extend_from_slice(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    for number in [directory_length, directory] {
        jar.extend_from_slice(&word(number));
    }
    jar.extend_from_slice(&[0; 2]);
    jar
}

/// What a file's header and the directory have in common: version 1.0, stored as it is, on 1980-01-01, checksum and
/// lengths.
fn entry() -> Vec<u8> {
    let mut entry = vec![10, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
    entry.extend_from_slice(&checksum(MANIFEST).to_le_bytes());
    for length in [MANIFEST.len(), MANIFEST.len(), MANIFEST_NAME.len()] {
        entry.extend_from_slice(&word(length));
    }
    // The length of the name has 16 bits, and so has that of what there may be beside it: nothing.
    entry
}

fn word(number: usize) -> [u8; 4] {
    u32::try_from(number).expect("a jar file of some hundred bytes").to_le_bytes()
}

/// Returns the CRC-32 of ZIP files.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_zip_files() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn the_lengths_lead_from_part_to_part() {
        let jar = empty_bundle();
        let number = |at: usize| usize::try_from(u32::from_le_bytes(jar[at..at + 4].try_into().unwrap())).unwrap();
        let end = jar.len() - 22;
        let (length, directory) = (number(end + 12), number(end + 16));
        assert_eq!(&jar[directory..directory + 4], b"PK\x01\x02");
        assert_eq!(directory + length, end);
        assert_eq!(number(18), MANIFEST.len());
        assert_eq!(&jar[30..30 + MANIFEST_NAME.len()], MANIFEST_NAME);
        assert_eq!(30 + MANIFEST_NAME.len() + MANIFEST.len(), directory);
    }
}
