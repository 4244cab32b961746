// SPDX-License-Identifier: Apache-2.0
//! NAT traversal (object 7, RFC 5971 A.3.8): what GIST-aware NATs changed on the way.

use super::Mri;
use super::error::ValueError;
use super::reader::{Reader, pad};

/// What GIST-aware NATs changed on the way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NatTraversal {
    /// The MRI as the querying node wrote it.
    pub mri: Mri,
    /// The first half of the object header of each translated object.
    pub translated: Vec<u16>,
    /// One opaque entry per NAT.
    pub nats: Vec<Vec<u8>>,
}

impl NatTraversal {
    pub(super) fn parse(value: &[u8]) -> Result<NatTraversal, ValueError> {
        let mut reader = Reader::new(value);
        let [mri_words, type_count, nat_count, _reserved] = reader.array()?;
        let mri_at = reader.position();
        let mri = Mri::parse(reader.take(4 * usize::from(mri_words))?)
            .map_err(|error| ValueError { offset: error.offset + mri_at, ..error })?;
        let translated = (0..type_count).map(|_| reader.u16()).collect::<Result<_, _>>()?;
        reader.align()?;
        let nats = (0..nat_count).map(|_| parse_nat(&mut reader)).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(NatTraversal { mri, translated, nats })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let mut mri = Vec::new();
        self.mri.emit_value(&mut mri);
        let mri_words = u8::try_from(mri.len() / 4).expect("a translated MRI has at most 255 words");
        let type_count = u8::try_from(self.translated.len()).expect("a NAT translates at most 255 objects");
        let nat_count = u8::try_from(self.nats.len()).expect("a path has at most 255 NATs");
        out.extend_from_slice(&[mri_words, type_count, nat_count, 0]);
        out.extend_from_slice(&mri);
        for half_header in &self.translated {
            out.extend_from_slice(&half_header.to_be_bytes());
        }
        pad(out);
        for nat in &self.nats {
            let bytes = u16::try_from(nat.len()).expect("what a NAT says fits an object");
            out.extend_from_slice(&bytes.to_be_bytes());
            out.extend_from_slice(nat);
            pad(out);
        }
    }
}

fn parse_nat(reader: &mut Reader<'_>) -> Result<Vec<u8>, ValueError> {
    let bytes = usize::from(reader.u16()?);
    let nat = reader.take(bytes)?.to_vec();
    reader.align()?;
    Ok(nat)
}
