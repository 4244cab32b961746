// SPDX-License-Identifier: Apache-2.0
//! Does to the body of a request what its path says, with the node's building blocks that compute.
//!
//! | request | answer |
//! |---|---|
//! | `POST /hash/ALGORITHM` | the digest in hexadecimal |
//! | `POST /hmac`, `POST /hmac/verify` | HMAC-SHA-256 with property `key`; whether the header `x-mac` has it |
//! | `POST /seal`, `POST /open` | sealed by property `key`, with the nonce in front; and back |
//! | `POST /compress/ENCODING/LEVEL`, `POST /decompress/ENCODING` | the body in `gzip`, `br` or `zstd`; and back |
//! | `POST /search/WORD,…` | start, end and word of each hit, in any case |
//! | `POST /sip` | what a SIP message holds; `POST /sip/METHOD` only whether it is of that method |
//! | `GET /count` | how many requests there were |

#![cfg(target_os = "wasi")]

use netserv_server_sdk::compress::{Compressor, Decompressor, Encoding};
use netserv_server_sdk::crypto::{self, Cipher};
use netserv_server_sdk::hash::{Algorithm, Hasher};
use netserv_server_sdk::http::{HttpModule, Request, Response};
use netserv_server_sdk::search::{self, Patterns};
use netserv_server_sdk::sip::{self, Condition, Start};
use netserv_server_sdk::{counters, http_module, log, properties};

struct Toolbox;

http_module!(Toolbox);

/// What went wrong: the status, and why.
type Failed = (u16, String);

impl HttpModule for Toolbox {
    fn handle(request: Request) -> Response {
        // A module without counters answers all the same.
        let _ = counters::add("requests", 1);
        if request.method == "GET" && request.path == "/count" {
            return Response::text(200, format!("{}\n", counters::get("requests")));
        }
        let body = match request.body(BODY_BYTES_MAX) {
            Ok(body) => body,
            Err(error) => return Response::text(413, format!("{error:?}\n")),
        };
        match answer(&request, &body) {
            Ok(bytes) => Response::new(200, bytes),
            Err((status, why)) => {
                log::log(log::Level::Debug, &format!("{} {status} {why}", request.path));
                Response::text(status, why + "\n")
            }
        }
    }
}

fn answer(request: &Request, body: &[u8]) -> Result<Vec<u8>, Failed> {
    let parts: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
    match parts[..] {
        ["hash", name] => Ok(hex(&digest(algorithm(name)?, body)?)),
        ["hmac"] => Ok(hex(&crypto::hmac_sha256(&key()?, body).map_err(bad)?)),
        ["hmac", "verify"] => verify(request.header("x-mac").unwrap_or_default(), body),
        ["seal"] => seal(body),
        ["open"] => open(body),
        ["compress", name, level] => compress(encoding(name)?, level.parse().map_err(bad)?, body),
        ["decompress", name] => decompress(encoding(name)?, body),
        ["search", words] => find(&words.split(',').collect::<Vec<_>>(), body),
        ["sip"] => describe(body),
        ["sip", method] => fits(method, body),
        _ => Err((404, "nothing here".to_owned())),
    }
}

fn digest(algorithm: Algorithm, body: &[u8]) -> Result<Vec<u8>, Failed> {
    let hasher = Hasher::new(algorithm);
    for piece in body.chunks(65_536) {
        hasher.update(piece).map_err(bad)?;
    }
    Ok(hasher.digest())
}

fn verify(mac: &[u8], body: &[u8]) -> Result<Vec<u8>, Failed> {
    let expected = hex(&crypto::hmac_sha256(&key()?, body).map_err(bad)?);
    if crypto::equal(mac.trim_ascii(), expected.trim_ascii()) {
        Ok(b"true\n".to_vec())
    } else {
        Err((403, "forged".to_owned()))
    }
}

fn seal(body: &[u8]) -> Result<Vec<u8>, Failed> {
    let nonce = crypto::random(NONCE_BYTES);
    let sealed = crypto::seal(Cipher::Chacha20Poly1305, &key()?, &nonce, body, b"").map_err(bad)?;
    Ok([nonce, sealed].concat())
}

fn open(body: &[u8]) -> Result<Vec<u8>, Failed> {
    let (nonce, sealed) = body.split_at_checked(NONCE_BYTES as usize).ok_or((400, "too short".to_owned()))?;
    crypto::open(Cipher::Chacha20Poly1305, &key()?, nonce, sealed, b"").map_err(bad)
}

fn compress(encoding: Encoding, level: u8, body: &[u8]) -> Result<Vec<u8>, Failed> {
    let coder = Compressor::open(encoding, level).map_err(bad)?;
    let mut output = Vec::new();
    for piece in body.chunks(65_536) {
        output.extend(coder.write(piece).map_err(bad)?);
    }
    output.extend(coder.finish().map_err(bad)?);
    Ok(output)
}

fn decompress(encoding: Encoding, body: &[u8]) -> Result<Vec<u8>, Failed> {
    let coder = Decompressor::open(encoding, BODY_BYTES_MAX as u64).map_err(bad)?;
    let mut output = Vec::new();
    for piece in body.chunks(65_536) {
        coder.write(piece).map_err(bad)?;
        loop {
            let read = coder.read(65_536).map_err(bad)?;
            if read.is_empty() {
                break;
            }
            output.extend(read);
        }
    }
    coder.finish().map_err(bad)?;
    Ok(output)
}

fn find(words: &[&str], body: &[u8]) -> Result<Vec<u8>, Failed> {
    let list: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let patterns = Patterns::compile(&list, true).map_err(bad)?;
    let hits = patterns.find(body, 100).map_err(bad)?;
    // A word that is not there in any case is not there as it is.
    if hits.is_empty() && search::find(body, words[0].as_bytes()).map_err(bad)?.is_some() {
        return Err((500, "found and not found".to_owned()));
    }
    let lines = hits.iter().map(|hit| format!("{} {} {}\n", hit.start, hit.end, words[hit.pattern as usize]));
    Ok(lines.collect::<String>().into_bytes())
}

fn describe(body: &[u8]) -> Result<Vec<u8>, Failed> {
    let message = sip::parse(body).map_err(bad)?;
    let first = match &message.start {
        Start::Request((method, uri)) => format!("request {method} {uri}"),
        Start::Response((status, reason)) => format!("response {status} {reason}"),
    };
    let headers: Vec<_> = message.headers.iter().map(|header| format!("{}: {}\n", header.name, header.value)).collect();
    let text = format!("{first}\n{}{} {:?} {:?}\n", headers.concat(), message.call_id, message.cseq, message.body);
    Ok(text.into_bytes())
}

fn fits(method: &str, body: &[u8]) -> Result<Vec<u8>, Failed> {
    let condition = Condition { methods: vec![method.to_owned()], status: None, headers: Vec::new() };
    let found = sip::first_match(body, &[condition]).map_err(bad)?;
    Ok(format!("{}\n", found.is_some()).into_bytes())
}

fn key() -> Result<Vec<u8>, Failed> {
    let text = properties::get("key").ok_or((500, "property `key` is missing".to_owned()))?;
    netserv_server_sdk::hash::digest(Algorithm::Sha256, text.as_bytes()).map_err(bad)
}

fn algorithm(name: &str) -> Result<Algorithm, Failed> {
    match name {
        "sha1" => Ok(Algorithm::Sha1),
        "sha256" => Ok(Algorithm::Sha256),
        "sha512" => Ok(Algorithm::Sha512),
        "md5" => Ok(Algorithm::Md5),
        "crc32" => Ok(Algorithm::Crc32),
        "xxh3" => Ok(Algorithm::Xxh3),
        _ => Err((404, format!("no algorithm {name}"))),
    }
}

fn encoding(name: &str) -> Result<Encoding, Failed> {
    match name {
        "gzip" => Ok(Encoding::Gzip),
        "br" => Ok(Encoding::Br),
        "zstd" => Ok(Encoding::Zstd),
        _ => Err((404, format!("no encoding {name}"))),
    }
}

fn bad(error: impl std::fmt::Debug) -> Failed {
    (400, format!("{error:?}"))
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    (digits + "\n").into_bytes()
}

const BODY_BYTES_MAX: usize = 4 << 20;
const NONCE_BYTES: u32 = 12;
