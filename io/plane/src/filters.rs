// SPDX-License-Identifier: Apache-2.0
//! The book-keeping of filters that all drivers share.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use netserv_model::Filter;
use netserv_model::effect::FilterId;

use crate::{Change, DriverError, limits};

/// Makes the changes to a table of filters; after an error the table is not to be used.
pub fn apply(filters: &mut BTreeMap<FilterId, Filter>, changes: &[Change<'_>]) -> Result<(), DriverError> {
    for change in changes {
        match *change {
            Change::Install(id, filter) | Change::InstallClosed(id, filter) => {
                let full = filters.len() >= limits::FILTERS_MAX;
                match filters.entry(id) {
                    Entry::Occupied(_) => return Err(DriverError::FilterExists(id)),
                    Entry::Vacant(_) if full => return Err(DriverError::FiltersFull),
                    Entry::Vacant(entry) => entry.insert(filter.clone()),
                };
            }
            Change::Remove(id) => {
                filters.remove(&id).ok_or(DriverError::FilterUnknown(id))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_filters_max_filters_and_no_more() {
        let filter: Filter = "udp".parse().unwrap();
        let mut filters = BTreeMap::new();
        for id in 0..limits::FILTERS_MAX {
            apply(&mut filters, &[Change::Install(FilterId(u64::try_from(id).unwrap()), &filter)]).unwrap();
        }
        let one_more = Change::Install(FilterId(u64::MAX), &filter);
        assert!(matches!(apply(&mut filters, &[one_more]), Err(DriverError::FiltersFull)));
        apply(&mut filters, &[Change::Remove(FilterId(0)), one_more]).unwrap();
    }

    #[test]
    fn names_are_used_once() {
        let filter: Filter = "udp".parse().unwrap();
        let mut filters = BTreeMap::new();
        let install = Change::Install(FilterId(1), &filter);
        assert!(matches!(apply(&mut filters, &[install, install]), Err(DriverError::FilterExists(FilterId(1)))));
        let gone = apply(&mut filters, &[Change::Remove(FilterId(1)), Change::Remove(FilterId(1))]);
        assert!(matches!(gone, Err(DriverError::FilterUnknown(FilterId(1)))));
    }
}
