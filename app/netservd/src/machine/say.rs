// SPDX-License-Identifier: Apache-2.0
//! Writing to standard output for commands, whose reader may be gone: `netservd doctor | head -1`.

use std::fmt;
use std::io::{self, Write as _};

/// Writes a line, if anybody reads it.
pub fn line(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Writes a text as it is, if anybody reads it.
pub fn text(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
