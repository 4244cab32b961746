// SPDX-License-Identifier: Apache-2.0
//! What a packet module says of its state, or is told, while it is asked to.

use netserv_model::limits::STATE_BYTES_MAX;
use netserv_worker_base::error::HostError;

/// The state that goes through an instance.
#[derive(Debug, Default)]
pub enum Carried {
    /// None: the instance is not in `netserv_export` or `netserv_import`.
    #[default]
    Nothing,
    /// What it wrote so far.
    Out(Vec<u8>),
    /// What it is told, and how much of it was read.
    In(Vec<u8>, usize),
}

impl Carried {
    /// Takes a piece of what the module says.
    ///
    /// # Errors
    /// The module was not asked, or says more than [`STATE_BYTES_MAX`]; the piece is not taken then.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), HostError> {
        let Carried::Out(said) = self else { return Err(HostError::Invalid) };
        if (said.len() + piece.len()) as u64 > STATE_BYTES_MAX {
            return Err(HostError::TooLarge);
        }
        said.extend_from_slice(piece);
        Ok(())
    }

    /// Returns the next bytes of what the module is told, `most` at most; none at the end.
    ///
    /// # Errors
    /// There is nothing that it is told.
    pub fn read(&self, most: u32) -> Result<&[u8], HostError> {
        let Carried::In(told, at) = self else { return Err(HostError::Invalid) };
        let rest = &told[*at..];
        let most = usize::try_from(most.min(i32::MAX as u32)).unwrap_or(usize::MAX);
        Ok(&rest[..rest.len().min(most)])
    }

    /// Takes note that so many of those bytes were read.
    pub fn go_on(&mut self, bytes: usize) {
        if let Carried::In(told, at) = self {
            *at = (*at + bytes).min(told.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_says_64_mib_at_most_and_only_when_it_is_asked() {
        assert_eq!(Carried::Nothing.write(b"x"), Err(HostError::Invalid));
        let mut out = Carried::Out(Vec::new());
        let quarter = vec![0; usize::try_from(STATE_BYTES_MAX / 4).unwrap()];
        for _ in 0..4 {
            assert_eq!(out.write(&quarter), Ok(()));
        }
        assert_eq!(out.write(b"x"), Err(HostError::TooLarge));
        assert_eq!(out.write(b""), Ok(()));
    }

    #[test]
    fn what_a_module_is_told_is_read_once() {
        let mut told = Carried::In(b"abc".to_vec(), 0);
        assert_eq!(told.read(2), Ok(b"ab".as_slice()));
        told.go_on(2);
        assert_eq!(told.read(u32::MAX), Ok(b"c".as_slice()));
        told.go_on(1);
        assert_eq!(told.read(9), Ok(b"".as_slice()));
        assert_eq!(Carried::Nothing.read(1), Err(HostError::Invalid));
    }
}
