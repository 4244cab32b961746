// SPDX-License-Identifier: Apache-2.0
//! The standard input of programs that a lab starts: its end tells them to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns what is set once the standard input has ended; a thread reads it until then.
pub fn watch_end() -> Arc<AtomicBool> {
    let has_ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&has_ended);
    std::thread::spawn(move || {
        // An input that fails has ended, too.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        seen.store(true, Ordering::Relaxed);
    });
    has_ended
}
