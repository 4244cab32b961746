// SPDX-License-Identifier: Apache-2.0
//! The ng protocol of rtpengine: a cookie, a space, and a dictionary in bencode or JSON; the answer has the same cookie.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use crate::limits::{ANSWER_MS, ANSWERS_BYTES_MAX, ANSWERS_MAX, COOKIE_BYTES_MAX};
use crate::value::{Dict, Value};
use crate::{bencode, json};

/// A request, or an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// What tells it from others of its client.
    pub cookie: &'a [u8],
    /// How it is written.
    pub form: Form,
    /// What it says; why it says nothing.
    pub dict: Result<Dict, &'static str>,
}

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Bencode.
    Bencode,
    /// JSON.
    Json,
}

impl<'a> Message<'a> {
    /// Reads a datagram; nothing if it has no cookie, so that it cannot be answered.
    pub fn parse(datagram: &'a [u8]) -> Option<Message<'a>> {
        let length = datagram.iter().take(COOKIE_BYTES_MAX + 1).position(|byte| *byte == b' ').filter(|at| *at > 0)?;
        let (cookie, body) = (&datagram[..length], &datagram[length + 1..]);
        let (form, value, why) = match body.first() {
            Some(b'{') => (Form::Json, json::parse(body), "Could not decode JSON dictionary"),
            Some(b'd') => (Form::Bencode, bencode::parse(body), "Could not decode bencode dictionary"),
            Some(_) | None => (Form::Bencode, None, "Invalid NG data format"),
        };
        let dict = match value {
            Some(Value::Dict(dict)) => Ok(dict),
            Some(Value::Int(_) | Value::Text(_) | Value::List(_)) | None => Err(why),
        };
        Some(Message { cookie, form, dict })
    }

    /// Writes the answer to it.
    pub fn answer(&self, value: &Value) -> Vec<u8> {
        let mut bytes = [self.cookie, b" "].concat();
        match self.form {
            Form::Bencode => bencode::emit(value, &mut bytes),
            Form::Json => {
                let mut text = String::new();
                json::emit(value, &mut text);
                bytes.extend_from_slice(text.as_bytes());
            }
        }
        bytes
    }
}

/// Returns what says that a request failed.
pub fn error(reason: &str) -> Value {
    Value::dict([("result", Value::text("error")), ("error-reason", Value::text(reason))])
}

/// Answers, for requests that come again: each is carried out once.
#[derive(Debug, Default)]
pub struct Answers {
    known: BTreeMap<(SocketAddr, Vec<u8>), Vec<u8>>,
    order: VecDeque<(u64, SocketAddr, Vec<u8>)>,
    bytes: usize,
}

impl Answers {
    /// Returns the answer that a request of that cookie got.
    pub fn find(&mut self, client: SocketAddr, cookie: &[u8], now_ms: u64) -> Option<&[u8]> {
        while self.order.front().is_some_and(|(until, ..)| *until <= now_ms) {
            self.forget();
        }
        self.known.get(&(client, cookie.to_vec())).map(Vec::as_slice)
    }

    /// Keeps an answer, for which the oldest ones give way.
    pub fn keep(&mut self, client: SocketAddr, cookie: &[u8], answer: &[u8], now_ms: u64) {
        while self.order.len() >= ANSWERS_MAX || !self.order.is_empty() && self.bytes + answer.len() > ANSWERS_BYTES_MAX
        {
            self.forget();
        }
        if self.known.insert((client, cookie.to_vec()), answer.to_vec()).is_none() {
            self.bytes += answer.len();
            self.order.push_back((now_ms + ANSWER_MS, client, cookie.to_vec()));
        }
    }

    fn forget(&mut self) {
        let Some((_, client, cookie)) = self.order.pop_front() else { return };
        self.bytes -= self.known.remove(&(client, cookie)).map_or(0, |answer| answer.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_answered_in_their_own_form() {
        let pong = Value::dict([("result", Value::text("pong"))]);
        for (request, answer) in [
            (&b"1_2 d7:command4:pinge"[..], &b"1_2 d6:result4:ponge"[..]),
            (b"1_2 {\"command\":\"ping\"}", b"1_2 {\"result\":\"pong\"}"),
        ] {
            let message = Message::parse(request).unwrap();
            assert_eq!(message.dict, Ok(Value::dict([("command", Value::text("ping"))]).as_dict().unwrap().clone()));
            assert_eq!(message.answer(&pong), answer);
        }
        let failed = Message::parse(b"1 d7:comman").unwrap();
        assert_eq!(failed.dict, Err("Could not decode bencode dictionary"));
        let answer = failed.answer(&error(failed.dict.clone().unwrap_err()));
        assert_eq!(answer, b"1 d12:error-reason35:Could not decode bencode dictionary6:result5:errore");
        assert_eq!(Message::parse(b"1 {]").unwrap().dict, Err("Could not decode JSON dictionary"));
        for other in [&b"1 "[..], b"1 le", b"1 hello"] {
            assert_eq!(Message::parse(other).unwrap().dict, Err("Invalid NG data format"));
        }
    }

    #[test]
    fn what_has_no_cookie_is_no_message() {
        let long = |length| [vec![b'c'; length], b" de".to_vec()].concat();
        assert!(Message::parse(&long(COOKIE_BYTES_MAX)).is_some());
        for bad in [&b""[..], b"d7:command4:pinge", b" de", &long(COOKIE_BYTES_MAX + 1)] {
            assert_eq!(Message::parse(bad), None);
        }
    }

    #[test]
    fn answers_are_kept_for_a_while_and_bounded() {
        let mut answers = Answers::default();
        let client = |port| SocketAddr::from(([192, 0, 2, 7], port));
        answers.keep(client(1), b"a", b"one", 0);
        assert_eq!(answers.find(client(1), b"a", 1), Some(&b"one"[..]));
        assert_eq!(answers.find(client(2), b"a", 1), None);
        assert_eq!(answers.find(client(1), b"b", 1), None);
        assert_eq!(answers.find(client(1), b"a", ANSWER_MS), None);
        for number in 0..=ANSWERS_MAX {
            answers.keep(client(1), &number.to_be_bytes(), b"x", 0);
        }
        assert_eq!((answers.known.len(), answers.order.len(), answers.bytes), (ANSWERS_MAX, ANSWERS_MAX, ANSWERS_MAX));
        answers.keep(client(1), b"long", &vec![0; ANSWERS_BYTES_MAX], 0);
        assert_eq!((answers.known.len(), answers.bytes), (1, ANSWERS_BYTES_MAX));
    }
}
