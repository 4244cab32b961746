// SPDX-License-Identifier: Apache-2.0
//! What is counted for each site. With the property `hosts`, each of them has counters of its own, and the totals are sums of these.

use netserv_server_sdk::{counters, properties};

/// What is counted for each site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Requests that were answered from the cache.
    Hits,
    /// Requests for which the origin was asked.
    Misses,
    /// Bytes of bodies that viewers got of the cache.
    SavedBytes,
    /// Bytes of bodies that came from the origin.
    OriginBytes,
}

impl Counted {
    const ALL: [Counted; 4] = [Counted::Hits, Counted::Misses, Counted::SavedBytes, Counted::OriginBytes];

    const fn name(self) -> &'static str {
        match self {
            Counted::Hits => "hits",
            Counted::Misses => "misses",
            Counted::SavedBytes => "saved-bytes",
            Counted::OriginBytes => "origin-bytes",
        }
    }

    /// Returns the counter's name for a site: `hits`, or `hits www.example.org`.
    pub fn of(self, label: &str) -> String {
        if label.is_empty() { self.name().to_owned() } else { format!("{} {label}", self.name()) }
    }
}

/// Adds to what is counted for the site of a label.
pub fn add(label: &str, counted: Counted, amount: u64) {
    // A counter over its quota costs nothing but the count.
    let _ = counters::add(&counted.of(label), amount);
}

/// Returns the property `hosts`, if it names some.
pub fn hosts() -> Option<String> {
    properties::get("hosts").filter(|hosts| !hosts.trim().is_empty())
}

/// Returns what a host's counters have behind their names; nothing without a list of hosts.
pub fn label(authority: &str, hosts: Option<&str>) -> String {
    let Some(hosts) = hosts else { return String::new() };
    let host = hosts.split_whitespace().take(SITES_MAX).find(|host| host.eq_ignore_ascii_case(authority));
    host.map_or_else(|| OTHERS.to_owned(), |host| short(&host.to_ascii_lowercase()))
}

/// Makes the totals of what is counted for each site.
pub fn sum_up() {
    let Some(hosts) = hosts() else { return };
    let mut labels: Vec<String> =
        hosts.split_whitespace().take(SITES_MAX).map(|host| label(host, Some(&hosts))).collect();
    labels.push(OTHERS.to_owned());
    labels.sort();
    labels.dedup();
    for counted in Counted::ALL {
        let sum = labels.iter().map(|label| counters::get(&counted.of(label))).fold(0, u64::wrapping_add);
        let _ = counters::set(counted.name(), sum);
    }
}

/// Returns the end of a name that is too long for a counter's: domains differ more at theirs than hosts do at their begin.
fn short(host: &str) -> String {
    let skipped = host.chars().count().saturating_sub(LABEL_CHARS_MAX);
    host.chars().skip(skipped).filter(char::is_ascii_graphic).collect()
}

/// Sites that have counters of their own.
const SITES_MAX: usize = 64;
/// Characters of a host in a counter's name, of which all have 64.
const LABEL_CHARS_MAX: usize = 48;
/// What the counters of all other hosts have behind their names.
const OTHERS: &str = "others";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_the_list_have_counters_of_their_own() {
        let hosts = Some("www.Example.org b.example:81");
        assert_eq!(label("WWW.example.org", hosts), "www.example.org");
        assert_eq!(label("b.example:81", hosts), "b.example:81");
        assert_eq!(label("evil.example", hosts), OTHERS);
        assert_eq!(label("evil.example", None), "");
        assert_eq!((&*Counted::Hits.of(""), &*Counted::OriginBytes.of("a")), ("hits", "origin-bytes a"));
        let long = format!("{}.example", "x".repeat(100));
        let label = label(&long, Some(&long));
        assert!(label.ends_with("xx.example"));
        assert!(Counted::ALL.iter().all(|counted| counted.of(&label).len() <= 64));
        let many: Vec<String> = (0..=SITES_MAX).map(|at| format!("h{at}.example")).collect();
        let many = many.join(" ");
        assert_eq!(super::label(&format!("h{SITES_MAX}.example"), Some(&many)), OTHERS);
        assert_eq!(super::label("h0.example", Some(&many)), "h0.example");
    }
}
