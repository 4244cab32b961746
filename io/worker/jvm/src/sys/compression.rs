// SPDX-License-Identifier: Apache-2.0
//! Compressed streams of bundles: the natives of `org.netserv.host.compute.CompressionNative`.

use std::sync::Mutex;

use jni_sys::{JNIEnv, jboolean, jbyteArray, jclass, jint, jlong};
use netserv_worker_base::compute::compress::{CodeError, Compressor, Decompressor, Encoding};
use netserv_worker_base::error::HostError;
use netserv_worker_base::limits::DECOMPRESS_INPUT_BYTES_MAX;

use super::call::{Bytes, Failure, answer, call, natives};
use super::compute::budget;
use super::env::{Env, Thrown};
use super::natives::method;
use crate::handles::Handles;

static PACKED: Handles<Mutex<Compressor>> = Handles::new();
static UNPACKED: Handles<Mutex<Decompressor>> = Handles::new();

natives! { c"org/netserv/host/compute/CompressionNative";
    compress = c"compress", c"(II)J", (env, encoding: jint, level: jint) -> jlong {
        let stream = Compressor::open(encoding_of(encoding)?, u8::try_from(level).unwrap_or(0), budget());
        kept(&PACKED, stream)
    }
    pack = c"pack", c"(J[BII)[B", (env, stream: jlong, from: Bytes, start: jint, length: jint) -> jbyteArray {
        let bytes = from.part(env, start, length, DECOMPRESS_INPUT_BYTES_MAX)?;
        answer(env, Some(&with(&PACKED, stream, |stream| stream.write(&bytes))?))
    }
    flush = c"flush", c"(JZ)[B", (env, stream: jlong, is_last: jboolean) -> jbyteArray {
        let rest = if is_last { Compressor::finish } else { Compressor::flush };
        answer(env, Some(&with(&PACKED, stream, rest)?))
    }
    decompress = c"decompress", c"(IJ)J", (env, encoding: jint, output_max: jlong) -> jlong {
        let stream = Decompressor::open(encoding_of(encoding)?, u64::try_from(output_max).unwrap_or(0), budget());
        kept(&UNPACKED, stream)
    }
    feed = c"feed", c"(J[BI)V", (env, stream: jlong, from: Bytes, length: jint) -> () {
        let bytes = from.part(env, 0, length, DECOMPRESS_INPUT_BYTES_MAX)?;
        with(&UNPACKED, stream, |stream| stream.write(&bytes))
    }
    read = c"read", c"(J[BII)I", (env, stream: jlong, into: Bytes, start: jint, length: jint) -> jint {
        let most = usize::try_from(length).unwrap_or(0);
        let bytes = with(&UNPACKED, stream, |stream| stream.read(most))?;
        into.put(env, start, &bytes)?;
        Ok(jint::try_from(bytes.len()).unwrap_or(0))
    }
    finish = c"finish", c"(J)V", (env, stream: jlong) -> () {
        with(&UNPACKED, stream, Decompressor::finish)
    }
    release = c"release", c"(J)V", (env, stream: jlong) -> () {
        drop((PACKED.release(stream), UNPACKED.release(stream)));
        Ok(())
    }
}

/// Returns the encoding of a constant of `Compression.Encoding`.
fn encoding_of(ordinal: jint) -> Result<Encoding, Failure> {
    let encoding = usize::try_from(ordinal).ok().and_then(|ordinal| Encoding::ALL.get(ordinal));
    Ok(*encoding.ok_or(HostError::Invalid)?)
}

fn kept<T>(streams: &Handles<Mutex<T>>, stream: Result<T, CodeError>) -> Result<jlong, Failure> {
    let number = stream.ok().and_then(|stream| streams.keep(Mutex::new(stream)));
    number.ok_or_else(|| Failure::Block(c"QUOTA", "the container has no memory for one more stream".to_owned()))
}

fn with<T, U>(
    streams: &Handles<Mutex<T>>,
    stream: jlong,
    work: impl FnOnce(&mut T) -> Result<U, CodeError>,
) -> Result<U, Failure> {
    let stream = streams.get(stream).ok_or_else(|| Failure::Io("the stream is closed".to_owned()))?;
    // A stream in which something panicked is of no use.
    let worked = stream.lock().map_err(|_| CodeError::Invalid).and_then(|mut stream| work(&mut stream));
    worked.map_err(|error| {
        Failure::Io(match error {
            CodeError::Invalid => "the bytes are not of this encoding, or end early".to_owned(),
            CodeError::TooLarge => "more bytes come out than are allowed".to_owned(),
            CodeError::Busy | CodeError::Quota | CodeError::Finished => error.to_string(),
        })
    })
}
