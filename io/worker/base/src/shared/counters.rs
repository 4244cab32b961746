// SPDX-License-Identifier: Apache-2.0
//! Counters that a module keeps by name, and that people see.

use std::collections::BTreeMap;

use crate::error::HostError;
use crate::limits;

/// The counters of one instance. A module opens a counter once by name, and then uses its number.
#[derive(Debug, Default)]
pub struct Counters {
    values: Vec<u64>,
    numbers: BTreeMap<String, usize>,
}

impl Counters {
    /// Returns the number of the counter of that name, making it at 0 if need be.
    ///
    /// # Errors
    /// A name that is not 1–64 bytes of printable UTF-8, or more than `max` counters.
    pub fn open(&mut self, name: &[u8], max: u32) -> Result<usize, HostError> {
        if name.len() > limits::COUNTER_NAME_BYTES_MAX {
            return Err(HostError::TooLarge);
        }
        let name = std::str::from_utf8(name).map_err(|_| HostError::Invalid)?;
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(HostError::Invalid);
        }
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        if self.values.len() >= max as usize {
            return Err(HostError::Quota);
        }
        self.numbers.insert(name.to_owned(), self.values.len());
        self.values.push(0);
        Ok(self.values.len() - 1)
    }

    /// Adds to a counter, wrapping.
    ///
    /// # Errors
    /// There is no counter of that number.
    pub fn add(&mut self, number: usize, amount: u64) -> Result<(), HostError> {
        let value = self.values.get_mut(number).ok_or(HostError::NotFound)?;
        *value = value.wrapping_add(amount);
        Ok(())
    }

    /// Sets a counter.
    ///
    /// # Errors
    /// There is no counter of that number.
    pub fn set(&mut self, number: usize, value: u64) -> Result<(), HostError> {
        *self.values.get_mut(number).ok_or(HostError::NotFound)? = value;
        Ok(())
    }

    /// Returns a counter's value; 0 if there is none of that name.
    pub fn value(&self, name: &str) -> u64 {
        self.numbers.get(name).map_or(0, |number| self.values[*number])
    }

    /// Returns all counters by name.
    pub fn all(&self) -> BTreeMap<String, u64> {
        self.numbers.iter().map(|(name, number)| (name.clone(), self.values[*number])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_opened_by_name_and_bounded() {
        let mut counters = Counters::default();
        let first = counters.open(b"first", 2).unwrap();
        let second = counters.open("zweiter Zähler".as_bytes(), 2).unwrap();
        assert_eq!(counters.open(b"first", 2), Ok(first));
        assert_eq!(counters.open(b"third", 2), Err(HostError::Quota));
        counters.add(first, 3).unwrap();
        counters.add(first, u64::MAX).unwrap();
        counters.set(second, 7).unwrap();
        assert_eq!(counters.add(2, 1), Err(HostError::NotFound));
        assert_eq!(counters.set(usize::MAX, 1), Err(HostError::NotFound));
        assert_eq!(counters.all(), BTreeMap::from([("first".to_owned(), 2), ("zweiter Zähler".to_owned(), 7)]));
    }

    #[test]
    fn names_are_printable_and_short() {
        let mut counters = Counters::default();
        assert_eq!(counters.open(b"", 9), Err(HostError::Invalid));
        assert_eq!(counters.open(b"a\nb", 9), Err(HostError::Invalid));
        assert_eq!(counters.open(b"\xff", 9), Err(HostError::Invalid));
        assert!(counters.open(&[b'a'; limits::COUNTER_NAME_BYTES_MAX], 9).is_ok());
        assert_eq!(counters.open(&[b'a'; limits::COUNTER_NAME_BYTES_MAX + 1], 9), Err(HostError::TooLarge));
    }
}
