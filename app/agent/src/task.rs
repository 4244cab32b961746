// SPDX-License-Identifier: Apache-2.0
//! Tasks that somebody has.

use tokio::task::JoinHandle;

/// A task that ends when it is dropped.
pub struct Task<T = ()>(pub JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
