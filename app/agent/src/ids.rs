// SPDX-License-Identifier: Apache-2.0
//! Names and numbers of users and groups, as `/etc/passwd` and `/etc/group` have them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Returns the number of a group, by its name or number.
pub fn group_number(group: &str) -> Option<u32> {
    number_in(group, &read("/etc/group"))
}

/// Returns the name of a group, or its number as text.
pub fn group_name(number: u32) -> String {
    name_in(number, &read("/etc/group")).unwrap_or_else(|| number.to_string())
}

/// Returns the name of a user, or its number as text.
pub fn user_name(number: u32) -> String {
    name_in(number, &read("/etc/passwd")).unwrap_or_else(|| number.to_string())
}

/// Returns the groups that a user has beside its own.
pub fn groups_of(user: &str) -> Vec<u32> {
    groups_in(user, &read("/etc/group"))
}

/// Gives a file to a group, by its name or number.
///
/// # Errors
/// There is no such group, or this process may not.
pub(crate) fn give(path: &Path, group: &str) -> Result<()> {
    let number = group_number(group).with_context(|| format!("there is no group `{group}`"))?;
    std::os::unix::fs::chown(path, None, Some(number))
        .with_context(|| format!("cannot give {} to the group `{group}`", path.display()))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Finds a number by a text as passwd(5) and group(5) describe it: name, password, number.
fn number_in(name: &str, known: &str) -> Option<u32> {
    let named = |line: &str| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    };
    name.parse().ok().or_else(|| known.lines().find_map(named))
}

fn name_in(number: u32, known: &str) -> Option<String> {
    let named = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(number)).then(|| name.to_owned())
    };
    known.lines().find_map(named)
}

fn groups_in(user: &str, known: &str) -> Vec<u32> {
    let has = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let number = fields.next()?.parse().ok()?;
        fields.next()?.split(',').any(|member| member == user).then_some(number)
    };
    known.lines().filter_map(has).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &str = "root:x:0:\nwww-data:x:33:nginx\nodd\nwww:x:many:\nlog:x:44:syslog,nginx\n";

    #[test]
    fn groups_are_found_by_name_and_number() {
        let number = |group| number_in(group, KNOWN);
        assert_eq!(
            [number("www-data"), number("44"), number("www"), number("odd"), number("")],
            [Some(33), Some(44), None, None, None]
        );
        assert_eq!((name_in(33, KNOWN), name_in(7, KNOWN)), (Some("www-data".to_owned()), None));
        assert_eq!((groups_in("nginx", KNOWN), groups_in("ngin", KNOWN)), (vec![33, 44], vec![]));
    }
}
