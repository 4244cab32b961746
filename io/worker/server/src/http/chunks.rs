// SPDX-License-Identifier: Apache-2.0
//! Where a body in chunks ends (RFC 9112 §7.1).

/// What comes next of such a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunks {
    /// The size of a chunk; nothing without a digit.
    Size(Option<u64>),
    /// The rest of the line with a chunk's size.
    Extension(u64),
    /// So many bytes of a chunk.
    Data(u64),
    /// The end of the line behind a chunk.
    DataEnd,
    /// A line behind the last chunk, of which something has come or not.
    Trailer(bool),
    /// Nothing.
    Ended,
}

impl Chunks {
    /// Returns that of a body of which nothing has come.
    pub fn begin() -> Chunks {
        Chunks::Size(None)
    }

    /// Returns how many of these bytes are the body's; nothing if they are no chunks.
    pub fn take(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut taken = 0;
        while taken < bytes.len() && *self != Chunks::Ended {
            if let Chunks::Data(left) = *self {
                let of_chunk = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - taken);
                taken += of_chunk;
                let left = left - of_chunk as u64;
                *self = if left == 0 { Chunks::DataEnd } else { Chunks::Data(left) };
                continue;
            }
            *self = self.after(bytes[taken])?;
            taken += 1;
        }
        Some(taken)
    }

    fn after(self, byte: u8) -> Option<Chunks> {
        Some(match (self, byte) {
            (Chunks::Size(Some(0)) | Chunks::Extension(0), b'\n') => Chunks::Trailer(false),
            (Chunks::Size(Some(size)) | Chunks::Extension(size), b'\n') => Chunks::Data(size),
            (Chunks::Size(Some(size)), b'\r' | b' ' | b'\t' | b';') => Chunks::Extension(size),
            (Chunks::Size(size), digit) => {
                let digit = char::from(digit).to_digit(16)?;
                Chunks::Size(Some(size.unwrap_or(0).checked_mul(16)? + u64::from(digit)))
            }
            (Chunks::DataEnd, b'\n') => Chunks::Size(None),
            (Chunks::DataEnd, b'\r') | (Chunks::Extension(_), _) => self,
            (Chunks::Trailer(false), b'\n') => Chunks::Ended,
            (Chunks::Trailer(true), b'\n') => Chunks::Trailer(false),
            (Chunks::Trailer(_), b'\r') => self,
            (Chunks::Trailer(_), _) => Chunks::Trailer(true),
            (Chunks::DataEnd | Chunks::Data(_) | Chunks::Ended, _) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a body ends where it does, in whatever pieces it comes.
    #[test]
    fn chunks_end_where_they_do() {
        for body in [
            "0\r\n\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
            "A;name=\"value\"\r\n0123456789\r\n1 \r\n\n\r\n000\r\nx-sum: 0\r\ny: \r\n\r\n",
            "3\r\n\r\n0\r\n0\r\n\r\n",
        ] {
            let all = [body.as_bytes(), b"GET / HTTP/1.1\r\n"].concat();
            for piece in 1..=all.len() {
                let (mut chunks, mut taken) = (Chunks::begin(), 0);
                for bytes in all.chunks(piece) {
                    let of_body = chunks.take(bytes).unwrap();
                    taken += of_body;
                    if of_body < bytes.len() {
                        break;
                    }
                }
                assert_eq!((taken, chunks), (body.len(), Chunks::Ended), "{body:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn what_is_no_chunk_is_said_so() {
        for body in ["\r\n", "x\r\n", "-1\r\n", "1\r\nab\r\n", "10000000000000000\r\n", "5 5\r\nhello5"] {
            assert_eq!(Chunks::begin().take(body.as_bytes()), None, "{body:?}");
        }
    }
}
