// SPDX-License-Identifier: Apache-2.0
//! The program beside the requests: makes events of what the packet part says that it counted.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use net_monitor::kept::Totals;
use netserv_server_sdk::{channel, messages, resident};

use crate::limits::{HISTORY_S, READING_SHARE};
use crate::{json, page};

fn run() {
    let mut feed = Feed { before: None, read: None, not_before: Instant::now() };
    loop {
        messages::subscribe().block();
        let mut is_flushed = false;
        // However many wait, they say the same.
        while messages::receive().is_some() {
            is_flushed = true;
        }
        if is_flushed {
            feed.publish();
        }
    }
}

resident!(run);

/// What was published last.
struct Feed {
    before: Option<(Instant, Totals)>,
    /// The totals of the tables.
    read: Option<Totals>,
    /// When all entries may be read again.
    not_before: Instant,
}

impl Feed {
    /// Without room in the channel, the next events may have some.
    fn publish(&mut self) {
        let (now, totals) = (Instant::now(), page::totals());
        if let Some((at, before)) = self.before.replace((now, totals)) {
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or_default();
            let rates = json::rates(ms(since_1970), ms(now.duration_since(at)), &before, &totals);
            // By its key, a second gives way to the one of ten minutes later.
            let key = format!("rates {}", since_1970.as_secs() % HISTORY_S);
            let _ = channel::publish(page::TOPIC, json::event("rates", &rates).as_bytes(), Some(key.as_bytes()));
        }
        if self.read != Some(totals) && now >= self.not_before {
            let tables = json::event("tables", &page::tables());
            let _ = channel::publish(page::TOPIC, tables.as_bytes(), Some(b"tables"));
            self.read = Some(totals);
            self.not_before = Instant::now() + now.elapsed() * (READING_SHARE - 1);
        }
    }
}
