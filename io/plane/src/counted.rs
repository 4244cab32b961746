// SPDX-License-Identifier: Apache-2.0
//! Counters of packets by destination: their contract, what planes have in common, and one that has none.

use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::{DriverError, limits};

/// What came for the destinations of a prefix since the plane began to count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DestinationCount {
    /// Packets, whatever becomes of them.
    pub packets: u64,
    /// Those that are the opening segments of TCP connections: SYN without ACK.
    pub syns: u64,
}

/// Counters of packets by their destinations, kept by the plane as packets come in, before any filter and any ring.
///
/// A packet is counted once for each prefix that its destination is in. The plane counts nothing else, and a plane without
/// prefixes spends nothing on it. Later fragments count as packets, never as opening segments.
pub trait DestinationCounters: Send + Sync {
    /// Counts packets for these prefixes from here on, each from zero, in place of those before. **Required.**
    ///
    /// # Errors
    /// Refuses more than [`limits::COUNTED_PREFIXES_MAX`](crate::limits::COUNTED_PREFIXES_MAX); says why the plane did not take them.
    /// Then nothing is counted.
    fn count(&self, prefixes: &[IpNet]) -> Result<(), DriverError>;

    /// Returns what came for each prefix, in the order in which they were given. **Required.**
    ///
    /// # Errors
    /// The plane does not tell.
    fn read(&self) -> Result<Vec<DestinationCount>, DriverError>;
}

/// Returns the prefixes without those that are there twice, and without bits behind their lengths.
///
/// # Errors
/// [`DriverError::PrefixesFull`] if there are more than [`limits::COUNTED_PREFIXES_MAX`].
pub fn distinct(prefixes: &[IpNet]) -> Result<Vec<IpNet>, DriverError> {
    let distinct: BTreeSet<IpNet> = prefixes.iter().map(IpNet::trunc).collect();
    match distinct.len() > limits::COUNTED_PREFIXES_MAX {
        true => Err(DriverError::PrefixesFull(distinct.len())),
        false => Ok(distinct.into_iter().collect()),
    }
}

/// The counters of a plane that has none.
pub struct Uncounted;

impl DestinationCounters for Uncounted {
    fn count(&self, prefixes: &[IpNet]) -> Result<(), DriverError> {
        if distinct(prefixes)?.is_empty() {
            return Ok(());
        }
        let why = "this driver has none".to_owned();
        Err(DriverError::Unsupported { what: "a counter of packets by destination", why })
    }

    fn read(&self) -> Result<Vec<DestinationCount>, DriverError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_prefixes_max_different_prefixes_are_counted() {
        let prefix = |n: usize| format!("10.0.{n}.7/24").parse::<IpNet>().unwrap();
        let most: Vec<IpNet> = (0..limits::COUNTED_PREFIXES_MAX).map(prefix).collect();
        let twice = [most.clone(), most.clone()].concat();
        assert_eq!(distinct(&twice).unwrap().len(), limits::COUNTED_PREFIXES_MAX);
        assert_eq!(distinct(&twice).unwrap()[1], "10.0.1.0/24".parse().unwrap());
        let more = [most, vec![prefix(200)]].concat();
        assert!(matches!(distinct(&more), Err(DriverError::PrefixesFull(count)) if count == more.len()));
        assert!(Uncounted.count(&[]).is_ok() && Uncounted.count(&[prefix(1)]).is_err());
    }
}
