// SPDX-License-Identifier: Apache-2.0
//! NAT traversal (object 7, RFC 5971 A.3.8): what GIST-aware NATs changed on the way.

use std::net::IpAddr;

use super::error::ValueError;
use super::reader::{Reader, pad};
use super::{Message, Mri, Nli, ObjectType};

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
    /// Returns whether NATs translated an object of this type.
    pub fn has_translated(&self, object: ObjectType) -> bool {
        self.translated.iter().any(|half_header| half_header & TYPE_MASK == object.number())
    }

    /// Returns how many bytes its value has on the wire.
    pub fn value_bytes(&self) -> usize {
        let mut value = Vec::new();
        self.emit(&mut value);
        value.len()
    }

    /// Does to a message what a GIST-aware NAT does (RFC 5971 §7.2.2): puts the addresses that the NAT gives in place of those
    /// in MRI and NLI, and says so in this object, with a note of the NAT's own. Ports stay. Returns whether it could: the
    /// message is in Q-mode, its routing method is known, and all addresses keep their IP version.
    pub fn translate(message: &mut Message, note: &[u8], address: impl Fn(IpAddr) -> IpAddr) -> bool {
        let (Some(mri), Some(nli)) = (&message.mri, &message.nli) else { return false };
        let Mri::PathCoupled(flow) = mri else { return false };
        let translated = flow.clone().with_addresses(address(flow.source()), address(flow.destination()));
        let Some(translated) = translated.filter(|_| message.context_free) else { return false };
        let configuration = message.stack_configuration.as_ref().map(|_| ObjectType::StackConfiguration);
        let types = [Some(ObjectType::Mri), Some(ObjectType::Nli), configuration].into_iter().flatten();
        let types: Vec<u16> = types.map(ObjectType::number).collect();
        let nli = Nli { address: address(nli.address), ..nli.clone() };
        let mut object = message.nat_traversal.take().unwrap_or_else(|| NatTraversal {
            mri: mri.clone(),
            translated: types.clone(),
            nats: Vec::new(),
        });
        object.translated.retain(|half_header| types.contains(&(half_header & TYPE_MASK)));
        object.nats.push(note.to_vec());
        message.nat_traversal = Some(object);
        (message.mri, message.nli) = (Some(Mri::PathCoupled(translated)), Some(nli));
        true
    }

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

/// The object's type in the first half of its header (RFC 5971 A.2).
const TYPE_MASK: u16 = 0x0FFF;

fn parse_nat(reader: &mut Reader<'_>) -> Result<Vec<u8>, ValueError> {
    let bytes = usize::from(reader.u16()?);
    let nat = reader.take(bytes)?.to_vec();
    reader.align()?;
    Ok(nat)
}
