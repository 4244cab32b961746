// SPDX-License-Identifier: Apache-2.0
//! Counters of packets by destination: what planes have in common, and one that has none.

use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::{DestinationCount, DestinationCounters, DriverError, limits};

/// Returns the prefixes without those that are there twice, and without bits behind their lengths.
///
/// # Errors
/// [`DriverError::PrefixesFull`] if there are more than [`limits::COUNTED_PREFIXES_MAX`].
pub(crate) fn distinct(prefixes: &[IpNet]) -> Result<Vec<IpNet>, DriverError> {
    let distinct: BTreeSet<IpNet> = prefixes.iter().map(IpNet::trunc).collect();
    match distinct.len() > limits::COUNTED_PREFIXES_MAX {
        true => Err(DriverError::PrefixesFull(distinct.len())),
        false => Ok(distinct.into_iter().collect()),
    }
}

/// The counters of a plane that has none.
pub(crate) struct Uncounted;

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
