// SPDX-License-Identifier: Apache-2.0
//! `netserv:compress/codec`, and with it `streams`.

use netserv_worker_base::compute::compress::{self, CodeError, Compressor, Decompressor};
use netserv_worker_base::limits::{COMPRESS_INPUT_BYTES_MAX, DECOMPRESS_INPUT_BYTES_MAX};
use wasmtime::component::{HasSelf, Linker, Resource};

use super::coded;
use super::state::ComputeState;
use crate::limits;
use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../../wit/deps/netserv-compress",
        inline: "package netserv:host-compress; world host { import netserv:compress/codec@1.0.0; }",
        with: {
            "netserv:compress/codec.compressor": netserv_worker_base::compute::compress::Compressor,
            "netserv:compress/codec.decompressor": netserv_worker_base::compute::compress::Decompressor,
        },
        imports: { default: trappable },
    });
}

use bindings::netserv::compress::codec::{self as wit, Encoding, Error};

type Bytes = wasmtime::Result<Result<Vec<u8>, Error>>;

/// Adds the interface to a linker, and that of streams.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    coded::add_to_linker(linker)
}

impl wit::Host for ServerState {
    fn compress(&mut self, encoding: Encoding, level: u8, bytes: Vec<u8>) -> Bytes {
        Ok(compress_all(encoding.into(), level, &bytes, &self.blocks.compute).map_err(Error::from))
    }

    fn decompress(&mut self, encoding: Encoding, bytes: Vec<u8>, output_max: u32) -> Bytes {
        let output_max = u64::from(output_max).min(limits::DECOMPRESS_AT_ONCE_BYTES_MAX);
        Ok(decompress_all(encoding.into(), &bytes, output_max, &self.blocks.compute).map_err(Error::from))
    }
}

impl wit::HostCompressor for ServerState {
    fn open(&mut self, encoding: Encoding, level: u8) -> wasmtime::Result<Result<Resource<Compressor>, Error>> {
        match Compressor::open(encoding.into(), level, &self.blocks.compute.coder_memory) {
            Ok(coder) => Ok(Ok(self.table.push(coder)?)),
            Err(error) => Ok(Err(error.into())),
        }
    }

    fn write(&mut self, coder: Resource<Compressor>, bytes: Vec<u8>) -> Bytes {
        Ok(self.table.get_mut(&coder)?.write(&bytes).map_err(Error::from))
    }

    fn flush(&mut self, coder: Resource<Compressor>) -> Bytes {
        Ok(self.table.get_mut(&coder)?.flush().map_err(Error::from))
    }

    fn finish(&mut self, coder: Resource<Compressor>) -> Bytes {
        Ok(self.table.get_mut(&coder)?.finish().map_err(Error::from))
    }

    fn drop(&mut self, coder: Resource<Compressor>) -> wasmtime::Result<()> {
        self.table.delete(coder)?;
        Ok(())
    }
}

impl wit::HostDecompressor for ServerState {
    fn open(&mut self, encoding: Encoding, output_max: u64) -> wasmtime::Result<Result<Resource<Decompressor>, Error>> {
        match Decompressor::open(encoding.into(), output_max, &self.blocks.compute.coder_memory) {
            Ok(coder) => Ok(Ok(self.table.push(coder)?)),
            Err(error) => Ok(Err(error.into())),
        }
    }

    fn write(&mut self, coder: Resource<Decompressor>, bytes: Vec<u8>) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.table.get_mut(&coder)?.write(&bytes).map_err(Error::from))
    }

    fn read(&mut self, coder: Resource<Decompressor>, max: u32) -> Bytes {
        Ok(self.table.get_mut(&coder)?.read(max as usize).map_err(Error::from))
    }

    fn finish(&mut self, coder: Resource<Decompressor>) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.table.get_mut(&coder)?.finish().map_err(Error::from))
    }

    fn drop(&mut self, coder: Resource<Decompressor>) -> wasmtime::Result<()> {
        self.table.delete(coder)?;
        Ok(())
    }
}

fn compress_all(
    encoding: compress::Encoding,
    level: u8,
    bytes: &[u8],
    state: &ComputeState,
) -> Result<Vec<u8>, CodeError> {
    let mut coder = Compressor::open(encoding, level, &state.coder_memory)?;
    let mut output = coder.write(bytes)?;
    output.extend(coder.finish()?);
    Ok(output)
}

fn decompress_all(
    encoding: compress::Encoding,
    bytes: &[u8],
    output_max: u64,
    state: &ComputeState,
) -> Result<Vec<u8>, CodeError> {
    if bytes.len() > COMPRESS_INPUT_BYTES_MAX {
        return Err(CodeError::TooLarge);
    }
    let mut coder = Decompressor::open(encoding, output_max, &state.coder_memory)?;
    let mut output = Vec::new();
    for piece in bytes.chunks(DECOMPRESS_INPUT_BYTES_MAX) {
        coder.write(piece)?;
        loop {
            let read = coder.read(usize::MAX)?;
            if read.is_empty() {
                break;
            }
            output.extend(read);
        }
    }
    coder.finish()?;
    Ok(output)
}

impl From<Encoding> for compress::Encoding {
    fn from(encoding: Encoding) -> compress::Encoding {
        match encoding {
            Encoding::Gzip => compress::Encoding::Gzip,
            Encoding::Br => compress::Encoding::Brotli,
            Encoding::Zstd => compress::Encoding::Zstd,
        }
    }
}

impl From<CodeError> for Error {
    fn from(error: CodeError) -> Error {
        match error {
            CodeError::Invalid => Error::Invalid,
            CodeError::TooLarge => Error::TooLarge,
            CodeError::Quota => Error::Quota,
            CodeError::Busy => Error::Busy,
            CodeError::Finished => Error::Finished,
        }
    }
}

#[cfg(test)]
mod tests {
    use netserv_worker_base::limits::{COMPRESS_MEMORY_BYTES_MAX, GZIP_ENCODER_BYTES};
    use wit::{Host as _, HostCompressor, HostDecompressor};

    use super::*;
    use crate::blocks::testing::state;
    use crate::module::{CoderMemory, Shared};

    #[test]
    fn coders_are_bounded_by_the_memory_of_their_container_alone() {
        let memory = CoderMemory::of(64 << 20);
        let shared = |module: &_| Shared { coder_memory: memory.clone(), ..Shared::for_tests(module) };
        let (mut one, mut other) = (state(shared), state(shared));
        let compressor = |state: &mut ServerState| HostCompressor::open(state, Encoding::Gzip, 1).unwrap();
        let mut coders = Vec::new();
        while let Ok(coder) = compressor(&mut one) {
            coders.push(coder);
        }
        assert_eq!(coders.len(), (16 << 20) / GZIP_ENCODER_BYTES);
        assert!(matches!(compressor(&mut other), Err(Error::Quota)), "another module of the container");
        assert!(matches!(one.compress(Encoding::Gzip, 1, vec![]).unwrap(), Err(Error::Quota)));
        HostCompressor::drop(&mut one, coders.pop().unwrap()).unwrap();
        assert!(HostDecompressor::open(&mut other, Encoding::Gzip, 1).unwrap().is_ok());
        assert_eq!(CoderMemory::of(u64::MAX).0.left(), COMPRESS_MEMORY_BYTES_MAX);
    }

    #[test]
    fn what_is_decompressed_at_once_is_bounded() {
        let mut state = state(Shared::for_tests);
        let mut zeros = |length| state.compress(Encoding::Gzip, 9, vec![0; length]).unwrap().unwrap();
        let most = usize::try_from(limits::DECOMPRESS_AT_ONCE_BYTES_MAX).unwrap();
        // A member of the stream for each piece that may be compressed in one call.
        let whole = zeros(COMPRESS_INPUT_BYTES_MAX).repeat(most / COMPRESS_INPUT_BYTES_MAX);
        let longer = [&whole[..], &zeros(1)].concat();
        let mut decompress = |bytes| state.decompress(Encoding::Gzip, bytes, u32::MAX).unwrap();
        assert_eq!(decompress(whole).unwrap().len(), most);
        assert!(matches!(decompress(longer), Err(Error::TooLarge)));
    }
}
