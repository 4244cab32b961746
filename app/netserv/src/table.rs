// SPDX-License-Identifier: Apache-2.0
//! Tables of text: columns as wide as their widest cell, notes below a row.

use crate::exit::one_line;
use crate::output::{Output, Style};

/// Rows under headings.
pub struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Row>,
}

struct Row {
    cells: Vec<(Style, String)>,
    notes: Vec<String>,
}

impl Table {
    /// Builds a table without rows.
    pub fn new(headings: &[&'static str]) -> Table {
        Table { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = (Style, String)>) {
        let cells: Vec<_> = cells.into_iter().map(|(style, text)| (style, one_line(&text))).collect();
        assert_eq!(cells.len(), self.headings.len(), "a row has as many cells as there are headings");
        self.rows.push(Row { cells, notes: Vec::new() });
    }

    /// Adds a line below the last row, indented to the second column.
    pub fn note(&mut self, text: impl AsRef<str>) {
        let row = self.rows.last_mut().expect("a note stands below a row");
        row.notes.push(one_line(text.as_ref()));
    }

    /// Writes the table.
    pub fn write(&self, output: &mut Output) {
        let widths = self.widths();
        let headings = self.headings.iter().map(|heading| (Style::Bold, *heading));
        let line = format_row(output, headings, &widths);
        output.line(line);
        for row in &self.rows {
            let line = format_row(output, row.cells.iter().map(|(style, text)| (*style, text.as_str())), &widths);
            output.line(line);
            for note in &row.notes {
                output.line(format!("{:indent$}{note}", "", indent = widths[0] + 2));
            }
        }
    }

    fn widths(&self) -> Vec<usize> {
        let column = |at: usize| {
            let cells = self.rows.iter().map(move |row| row.cells[at].1.chars().count());
            cells.chain([self.headings[at].len()]).max().unwrap_or_default()
        };
        (0..self.headings.len()).map(column).collect()
    }
}

fn format_row<'a>(output: &Output, cells: impl Iterator<Item = (Style, &'a str)>, widths: &[usize]) -> String {
    let mut line = String::new();
    let mut gap = 0;
    for ((style, text), width) in cells.zip(widths) {
        line.extend(std::iter::repeat_n(' ', gap));
        line.push_str(&output.paint(style, text));
        gap = width - text.chars().count() + 2;
    }
    line
}

/// A cell without a style.
#[allow(clippy::needless_pass_by_value, reason = "reads better without a borrow of each number")]
pub fn plain(text: impl ToString) -> (Style, String) {
    (Style::Plain, text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_support::captured;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["N", "NAME", "SAYS"]);
        table.row([plain(1), plain("a"), plain("yes")]);
        table.note("why: so");
        table.row([plain(10), plain("bögen"), plain("evil\u{1b}[2J")]);
        let (mut output, text) = captured(false, false);
        table.write(&mut output);
        assert_eq!(text.text(), "N   NAME   SAYS\n1   a      yes\n    why: so\n10  bögen  evil\\u{1b}[2J\n");
    }
}
