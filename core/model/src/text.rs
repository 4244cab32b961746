// SPDX-License-Identifier: Apache-2.0
//! Text of others, made fit to be shown: in logs, refusals, and on terminals.

use std::fmt::Write as _;

/// Returns the text as one line that looks like what it is: line ends and tabs become spaces, and what steers a terminal,
/// turns the order of other characters or cannot be seen is escaped, such as `\u{202e}`. Once more changes nothing.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => line.push(' '),
            _ if is_hidden(c) => write!(line, "{}", c.escape_unicode()).expect("writing to a String cannot fail"),
            _ => line.push(c),
        }
    }
    line
}

/// Returns whether a character is not seen itself, but may change how others are: controls, those that set the direction
/// of text (Unicode Standard Annex 9), spaces without a width, variation by tags.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_is_one_line_that_steers_nothing() {
        for (text, expected) in [
            ("plain, with ünïcödé and 中文", "plain, with ünïcödé and 中文"),
            ("a\r\nb\tc\u{85}d\u{2028}e\u{2029}f\u{b}g", "a  b c d e f g"),
            ("\u{1b}[31mred\u{9b}2J\u{7}\u{7f}", r"\u{1b}[31mred\u{9b}2J\u{7}\u{7f}"),
            ("user\u{202e}nimda\u{202c}", r"user\u{202e}nimda\u{202c}"),
            ("\u{2066}a\u{2069}\u{200f}\u{61c}", r"\u{2066}a\u{2069}\u{200f}\u{61c}"),
            ("ad\u{200b}min\u{feff}\u{ad}\u{e0041}", r"ad\u{200b}min\u{feff}\u{ad}\u{e0041}"),
            ("", ""),
        ] {
            assert_eq!(one_line(text), expected);
            assert_eq!(one_line(expected), expected);
        }
    }

    #[test]
    fn every_character_that_sets_a_direction_or_is_a_control_is_escaped() {
        let directions =
            ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}').chain("\u{61c}\u{200e}\u{200f}".chars());
        let controls = ('\0'..='\u{9f}').filter(|c| c.is_control());
        for c in directions.chain(controls) {
            assert!(is_hidden(c), "{c:?}");
            assert!(one_line(&c.to_string()).chars().all(|c| c.is_ascii_graphic() || c == ' '), "{c:?}");
        }
        assert!("\u{e9}e\u{301}\u{a0}\u{3000}".chars().all(|c| !is_hidden(c)), "accents and wide spaces are seen");
    }
}
