// SPDX-License-Identifier: Apache-2.0
//! What is counted, as JSON: what `/data.json` answers, and what the page's events carry.

use std::fmt::Write as _;

use net_monitor::kept::Totals;

use crate::table::{Count, Largest, Table};

/// Returns all that the page shows, but for rates: of each kind the largest rows, and the rest as a sum.
pub fn tables(node: &str, place: &str, totals: &Totals, table: &Table) -> String {
    let Count { bytes, packets } = table.all;
    let mut json = format!(
        "{{\"node\":{},\"place\":{},\"seen\":{},\"sample\":{},\
         \"counted\":{{\"keys\":{},\"packets\":{packets},\"bytes\":{bytes}}},\
         \"not_counted\":{{\"sampled_away\":{},\"not_ip\":{},\"no_room\":{{\"packets\":{},\"bytes\":{}}}}}",
        text(node),
        text(place),
        totals.seen,
        totals.sample,
        table.keys,
        totals.sampled_away(),
        totals.not_ip,
        totals.no_room,
        totals.no_room_bytes,
    );
    rows(&mut json, "sources", &table.sources(), |source| format!("\"source\":\"{source}\""));
    rows(&mut json, "destinations", &table.destinations(), |destination| format!("\"destination\":\"{destination}\""));
    rows(&mut json, "ttls", &table.ttls(), |ttl| format!("\"ttl\":{ttl}"));
    rows(&mut json, "flows", &table.flows(), |(source, destination, ttl)| {
        format!("\"source\":\"{source}\",\"destination\":\"{destination}\",\"ttl\":{ttl}")
    });
    json.push('}');
    json
}

/// Returns what was counted within so many milliseconds, for each second; `at_ms` is in milliseconds since 1970.
pub fn rates(at_ms: u64, within_ms: u64, before: &Totals, after: &Totals) -> String {
    let within_ms = u128::from(within_ms.max(WITHIN_MS_MIN));
    // Tenths, in whole numbers: what writes others is a tenth of the module's code.
    let tenths = |before: u64, after: u64| u128::from(after.saturating_sub(before)) * 10_000 / within_ms;
    let in_tenths = |tenths: u128| format!("{}.{}", tenths / 10, tenths % 10);
    let not_counted = |totals: &Totals| totals.seen.saturating_sub(totals.counted);
    format!(
        "{{\"at\":{}.{:03},\"packets\":{},\"bytes\":{},\"not_counted\":{}}}",
        at_ms / 1000,
        at_ms % 1000,
        in_tenths(tenths(before.counted, after.counted)),
        tenths(before.bytes, after.bytes) / 10,
        in_tenths(tenths(not_counted(before), not_counted(after))),
    )
}

/// Returns a server-sent event.
pub fn event(kind: &str, json: &str) -> String {
    format!("event: {kind}\ndata: {json}\n\n")
}

fn rows<K>(json: &mut String, name: &str, largest: &Largest<K>, key: impl Fn(&K) -> String) {
    let counts = |Count { bytes, packets }: Count| format!("\"packets\":{packets},\"bytes\":{bytes}");
    let rows: Vec<String> =
        largest.rows.iter().map(|(row, count)| format!("{{{},{}}}", key(row), counts(*count))).collect();
    let rest = counts(largest.rest);
    // A string takes all there is.
    let _ =
        write!(json, ",\"{name}\":{{\"rows\":[{}],\"rest\":{{\"rows\":{},{rest}}}}}", rows.join(","), largest.others);
}

/// Returns a text in quotes (RFC 8259 §7).
fn text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// What is told in a shorter time counts as told in this one.
const WITHIN_MS_MIN: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::EVENT_BYTES_MAX;

    #[test]
    fn tables_are_told_with_what_is_not_in_them() {
        let mut table = Table::default();
        table.add(b"10.1.0.1 2001:db8::2 61", b"30 3 300");
        let totals = Totals { seen: 40, counted: 3, bytes: 300, not_ip: 1, no_room: 2, no_room_bytes: 77, sample: 10 };
        let json = tables("n\"1", "a\\\n", &totals, &table);
        let expected = "{\"node\":\"n\\\"1\",\"place\":\"a\\\\\\u000a\",\"seen\":40,\"sample\":10,\
            \"counted\":{\"keys\":1,\"packets\":3,\"bytes\":300},\
            \"not_counted\":{\"sampled_away\":34,\"not_ip\":1,\"no_room\":{\"packets\":2,\"bytes\":77}},\
            \"sources\":{\"rows\":[{\"source\":\"10.1.0.1\",\"packets\":3,\"bytes\":300}],\"rest\":{\"rows\":0,\"packets\":0,\"bytes\":0}},\
            \"destinations\":{\"rows\":[{\"destination\":\"2001:db8::2\",\"packets\":3,\"bytes\":300}],\"rest\":{\"rows\":0,\"packets\":0,\"bytes\":0}},\
            \"ttls\":{\"rows\":[{\"ttl\":61,\"packets\":3,\"bytes\":300}],\"rest\":{\"rows\":0,\"packets\":0,\"bytes\":0}},\
            \"flows\":{\"rows\":[{\"source\":\"10.1.0.1\",\"destination\":\"2001:db8::2\",\"ttl\":61,\"packets\":3,\"bytes\":300}],\
            \"rest\":{\"rows\":0,\"packets\":0,\"bytes\":0}}}";
        assert_eq!(json, expected);
    }

    #[test]
    fn rates_are_of_a_second_and_tell_what_was_not_counted_apart() {
        let before = Totals { seen: 100, counted: 50, bytes: 1000, ..Totals::default() };
        let after = Totals { seen: 130, counted: 70, bytes: 5000, ..Totals::default() };
        let expected = "{\"at\":1795219200.007,\"packets\":10.0,\"bytes\":2000,\"not_counted\":5.0}";
        assert_eq!(rates(1_795_219_200_007, 2000, &before, &after), expected);
        assert!(rates(0, 0, &before, &after).contains("\"packets\":200.0"));
    }

    /// The longest addresses and numbers in more rows than are shown.
    #[test]
    fn the_largest_event_fits_into_the_channel() {
        let mut table = Table::default();
        for number in 0..300_u16 {
            let address = |last: u16| format!("2001:db8:1111:2222:3333:4444:{:x}:{last:x}", 0xf000 + number);
            let name = format!("{} {} {}", address(0x1111), address(0x2222), number % 256);
            let value = format!("{0} {0} {0}", u64::MAX - u64::from(number));
            table.add(name.as_bytes(), value.as_bytes());
        }
        let most = u64::MAX;
        let totals = Totals {
            seen: most,
            counted: 0,
            bytes: most,
            not_ip: most,
            no_room: most,
            no_room_bytes: most,
            sample: most,
        };
        let event = event("tables", &tables(&"n".repeat(64), &"\u{1}".repeat(128), &totals, &table));
        assert!(event.len() > EVENT_BYTES_MAX / 2 && event.len() <= EVENT_BYTES_MAX, "{}", event.len());
    }
}
