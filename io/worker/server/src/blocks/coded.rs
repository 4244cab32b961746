// SPDX-License-Identifier: Apache-2.0
//! `netserv:compress/streams`: streams that are compressed while they are read.

use std::sync::Arc;

use bytes::Bytes;
use netserv_worker_base::compute::compress::{CodeError, Compressor};
use tokio::time::Instant;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::{DynInputStream, InputStream, Pollable, StreamError, StreamResult};

use crate::limits::{CODED_FLUSH_AFTER, CODED_FLUSH_AT_LAST, CODED_PIECE_BYTES, CODED_TRIES_MAX};
use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: ["../../../wit/deps/netserv-compress", "../../../wit/deps/wasi-io", "../../../wit/deps/netserv-compress-1.1"],
        inline: "package netserv:host-coded; world host { import netserv:compress/streams@1.1.0; }",
        with: {
            "netserv:compress/codec.compressor": netserv_worker_base::compute::compress::Compressor,
            "wasi:io": wasmtime_wasi::p2::bindings::io,
        },
        imports: { default: trappable },
        require_store_data_send: true,
    });

    pub(super) use netserv::compress1_1_0::streams as wit;
}

use bindings::wit;

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn coded(
        &mut self,
        coder: Resource<Compressor>,
        source: Resource<DynInputStream>,
    ) -> wasmtime::Result<Resource<DynInputStream>> {
        if self.blocks.coding.find(source.rep()).is_some() {
            return Err(wasmtime::format_err!("a stream that is compressed is not compressed once more"));
        }
        self.blocks.lending.forget(source.rep());
        let of_job = self.blocks.media.find(source.rep());
        self.blocks.media.forget(source.rep());
        let source = self.table.delete(source)?;
        let coder = self.table.delete(coder)?;
        let (coded, mark) = Coded::new(coder, source);
        let stream: DynInputStream = Box::new(coded);
        let stream = self.table.push(stream)?;
        self.blocks.coding.note(stream.rep(), &mark);
        if let Some(is_handed_over) = of_job {
            self.blocks.media.note(stream.rep(), &is_handed_over);
        }
        Ok(stream)
    }
}

/// A stream that gives what another one does, compressed.
struct Coded {
    /// Nothing once one of them has ended.
    ends: Option<(Compressor, DynInputStream)>,
    /// What is compressed and was not read yet.
    coded: Bytes,
    held: Option<Held>,
    _mark: Arc<()>,
}

/// What the coder has taken, and its reader may not have got.
#[derive(Clone, Copy)]
struct Held {
    /// When the first of it came.
    first: Instant,
    /// When the last of it came.
    last: Instant,
}

impl Held {
    /// Returns when it is to go on if nothing more comes.
    fn due(self) -> Instant {
        (self.last + CODED_FLUSH_AFTER).min(self.first + CODED_FLUSH_AT_LAST)
    }
}

impl Coded {
    /// Returns a stream, and what lives as long as it does.
    fn new(coder: Compressor, source: DynInputStream) -> (Coded, Arc<()>) {
        let mark = Arc::new(());
        let coded = Coded { ends: Some((coder, source)), coded: Bytes::new(), held: None, _mark: Arc::clone(&mark) };
        (coded, mark)
    }

    /// Has the coder take the next piece of the source, or learn that there is none. Returns whether there may be more at once.
    fn step(&mut self) -> StreamResult<bool> {
        let (coder, source) = self.ends.as_mut().ok_or(StreamError::Closed)?;
        let now = Instant::now();
        let coded = match source.read(CODED_PIECE_BYTES) {
            Ok(bytes) if bytes.is_empty() => match self.held {
                Some(held) if held.due() <= now => {
                    self.held = None;
                    coder.flush()
                }
                Some(_) | None => return Ok(false),
            },
            Ok(bytes) => {
                let first = self.held.map_or(now, |held| held.first);
                self.held = Some(Held { first, last: now });
                coder.write(&bytes)
            }
            Err(StreamError::Closed) => {
                self.held = None;
                let rest = coder.finish();
                self.ends = None;
                rest
            }
            Err(error) => {
                self.ends = None;
                return Err(error);
            }
        };
        match coded {
            Ok(bytes) => self.coded = bytes.into(),
            // Its module had it finish before.
            Err(CodeError::Finished) => self.ends = None,
            Err(error) => {
                self.ends = None;
                return Err(StreamError::LastOperationFailed(wasmtime::Error::new(error)));
            }
        }
        Ok(true)
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for Coded {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        for _ in 0..CODED_TRIES_MAX {
            if !self.coded.is_empty() || !self.step()? {
                break;
            }
        }
        Ok(self.coded.split_to(size.min(self.coded.len())))
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Coded {
    async fn ready(&mut self) {
        if !self.coded.is_empty() {
            return;
        }
        let Some((_, source)) = &mut self.ends else { return };
        match self.held {
            Some(held) => {
                // Either way there is something to do.
                let _ = tokio::time::timeout_at(held.due(), source.ready()).await;
            }
            None => source.ready().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use netserv_worker_base::compute::compress::{Decompressor, Encoding};
    use netserv_worker_base::limits;

    use super::*;
    use crate::blocks::testing::state;
    use crate::module::{CoderMemory, Shared};

    /// Goal: what goes in comes out again, whatever pieces it comes in, and in small reads.
    #[tokio::test]
    async fn what_a_source_gives_comes_out_compressed() {
        let text: Vec<u8> = (0..300_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
        for encoding in Encoding::ALL {
            for size in [1 << 20, 700] {
                let pieces = text.chunks(50_000).map(Bytes::copy_from_slice).collect();
                let mut stream = coded(encoding, Source { pieces, end: Some(StreamError::Closed) });
                let (coded, end) = all(&mut stream, size).await;
                assert!(matches!(end, StreamError::Closed) && coded.len() < text.len() / 2);
                assert!(decoded(encoding, &coded) == text, "{encoding:?}");
            }
        }
    }

    /// Goal: what came before a silence can be read then, though the stream goes on.
    #[tokio::test]
    async fn what_came_before_a_silence_goes_on() {
        for encoding in Encoding::ALL {
            let mut stream = coded(encoding, Source { pieces: [Bytes::from_static(b"data: 1\n\n")].into(), end: None });
            let begun = Instant::now();
            let mut got = Vec::new();
            loop {
                got.extend(stream.read(1000).unwrap());
                if started(encoding, &got) == b"data: 1\n\n" {
                    break;
                }
                let waited = tokio::time::timeout(Duration::from_secs(5), stream.ready()).await;
                assert!(waited.is_ok(), "{encoding:?}: {got:?}");
            }
            assert!(begun.elapsed() >= CODED_FLUSH_AFTER);
            assert!(tokio::time::timeout(4 * CODED_FLUSH_AFTER, stream.ready()).await.is_err(), "it flushes once");
        }
    }

    #[tokio::test]
    async fn a_source_that_fails_fails_its_reader() {
        let broken = StreamError::LastOperationFailed(wasmtime::format_err!("x"));
        let pieces = [Bytes::from_static(b"begun")].into();
        let mut stream = coded(Encoding::Gzip, Source { pieces, end: Some(broken) });
        assert!(matches!(all(&mut stream, 100).await.1, StreamError::LastOperationFailed(_)));
        assert!(matches!(stream.read(1), Err(StreamError::Closed)), "once");
    }

    /// Goal: who drips without a pause waits no longer than [`CODED_FLUSH_AT_LAST`].
    #[test]
    fn what_is_held_goes_on_after_a_silence_or_at_last() {
        let first = Instant::now();
        let due = |last: Duration| Held { first, last: first + last }.due() - first;
        assert_eq!(due(Duration::ZERO), CODED_FLUSH_AFTER);
        assert_eq!(due(CODED_FLUSH_AFTER), 2 * CODED_FLUSH_AFTER);
        assert_eq!(due(CODED_FLUSH_AT_LAST), CODED_FLUSH_AT_LAST);
    }

    /// Goal: what ends a worker by its stack cannot be built. Method: a stream over a stream, and one whose source has ended.
    #[test]
    fn a_compressed_stream_is_not_compressed_once_more() {
        let mut state = state(Shared::for_tests);
        let source: DynInputStream = Box::new(Source { pieces: VecDeque::new(), end: None });
        let mut stream = state.table.push(source).unwrap();
        let coder = |state: &mut ServerState| {
            let coder = Compressor::open(Encoding::Gzip, 1, &state.blocks.compute.coder_memory).unwrap();
            state.table.push(coder).unwrap()
        };
        let first = coder(&mut state);
        stream = wit::Host::coded(&mut state, first, stream).unwrap();
        assert!(state.blocks.coding.find(stream.rep()).is_some());
        let second = coder(&mut state);
        assert!(wit::Host::coded(&mut state, second, stream).is_err());

        let mut ended = coded(Encoding::Gzip, Source { pieces: VecDeque::new(), end: Some(StreamError::Closed) });
        while ended.read(1000).is_ok() {}
        assert!(ended.ends.is_none(), "its source is gone with it");
    }

    /// Goal: one call costs bounded work, also of a coder that gives nothing for a long time.
    #[test]
    fn one_read_takes_so_much_of_its_source_at_most() {
        struct Endless(Arc<AtomicUsize>);
        #[wasmtime_wasi::async_trait]
        impl Pollable for Endless {
            async fn ready(&mut self) {}
        }
        #[wasmtime_wasi::async_trait]
        impl InputStream for Endless {
            fn read(&mut self, size: usize) -> StreamResult<Bytes> {
                self.0.fetch_add(size, Ordering::Relaxed);
                Ok(Bytes::from(vec![0; size]))
            }
        }
        let taken = Arc::new(AtomicUsize::new(0));
        let coder = Compressor::open(Encoding::Gzip, 4, &CoderMemory::of(u64::MAX).0).unwrap();
        let mut stream = Coded::new(coder, Box::new(Endless(Arc::clone(&taken)))).0;
        // The head of the stream, and then nothing for long.
        while stream.read(1000).unwrap().is_empty() {}
        let mut most = 0;
        for _ in 0..20 {
            let before = taken.load(Ordering::Relaxed);
            let _ = stream.read(usize::MAX).unwrap();
            most = most.max(taken.load(Ordering::Relaxed) - before);
        }
        assert_eq!(most, CODED_TRIES_MAX * CODED_PIECE_BYTES);
    }

    #[test]
    fn a_coder_that_has_finished_makes_an_empty_stream_and_its_memory_is_given_back() {
        let memory = CoderMemory::of(64 << 20);
        let left = memory.0.left();
        let mut coder = Compressor::open(Encoding::Gzip, 1, &memory.0).unwrap();
        coder.finish().unwrap();
        let mut stream = Coded::new(coder, Box::new(Source { pieces: [Bytes::from_static(b"x")].into(), end: None })).0;
        assert_eq!(memory.0.left(), left - limits::GZIP_ENCODER_BYTES);
        assert!(matches!(stream.read(1), Err(StreamError::Closed)));
        assert_eq!(memory.0.left(), left);
    }

    fn coded(encoding: Encoding, source: Source) -> Coded {
        let coder = Compressor::open(encoding, 4, &CoderMemory::of(u64::MAX).0).unwrap();
        Coded::new(coder, Box::new(source)).0
    }

    async fn all(stream: &mut Coded, size: usize) -> (Vec<u8>, StreamError) {
        let mut got = Vec::new();
        loop {
            match stream.read(size) {
                Ok(bytes) => got.extend(bytes),
                Err(error) => return (got, error),
            }
            stream.ready().await;
        }
    }

    fn decoded(encoding: Encoding, bytes: &[u8]) -> Vec<u8> {
        let mut coder = Decompressor::open(encoding, u64::MAX, &CoderMemory::of(u64::MAX).0).unwrap();
        let mut text = Vec::new();
        for piece in bytes.chunks(limits::DECOMPRESS_INPUT_BYTES_MAX) {
            coder.write(piece).unwrap();
            while let Some(read) = Some(coder.read(usize::MAX).unwrap()).filter(|read| !read.is_empty()) {
                text.extend(read);
            }
        }
        coder.finish().unwrap();
        text
    }

    /// Returns what can be decompressed of the beginning of a stream.
    fn started(encoding: Encoding, bytes: &[u8]) -> Vec<u8> {
        let mut coder = Decompressor::open(encoding, u64::MAX, &CoderMemory::of(u64::MAX).0).unwrap();
        if bytes.is_empty() || coder.write(bytes).is_err() {
            return Vec::new();
        }
        coder.read(usize::MAX).unwrap_or_default()
    }

    /// A source that gives these pieces, and then ends, or is silent.
    struct Source {
        pieces: VecDeque<Bytes>,
        end: Option<StreamError>,
    }

    #[wasmtime_wasi::async_trait]
    impl Pollable for Source {
        async fn ready(&mut self) {
            if self.pieces.is_empty() && self.end.is_none() {
                std::future::pending::<()>().await;
            }
        }
    }

    #[wasmtime_wasi::async_trait]
    impl InputStream for Source {
        fn read(&mut self, size: usize) -> StreamResult<Bytes> {
            match self.pieces.front_mut() {
                Some(first) => {
                    let piece = first.split_to(size.min(first.len()));
                    if first.is_empty() {
                        self.pieces.pop_front();
                    }
                    Ok(piece)
                }
                None => self.end.take().map_or(Ok(Bytes::new()), Err),
            }
        }
    }
}
