// SPDX-License-Identifier: Apache-2.0
//! Which line of a project's file something is about.

/// Finds the line that a text of what is wrong is about: the section and the key that it names.
pub fn line_about(text: &str, detail: &str) -> Option<usize> {
    let quoted = detail.split('`').nth(1).unwrap_or_default();
    for (named, section, key) in [
        ("server.listen", "server", "listen"),
        ("server.drain", "server", "drain"),
        ("server.intercept-tls", "server", "intercept-tls"),
        ("server.intercept", "server", "intercept"),
        ("server.tls", "server", "tls"),
        ("server.tls", "server.tls", ""),
        ("service.chain", "service", "chain"),
        ("chain", "service", "chain"),
        ("`dependencies`", "", "dependencies"),
        ("filters", "packet", "filters"),
        ("[packet]", "packet", ""),
        ("[server]", "server", ""),
        ("[service]", "service", ""),
        ("property", "properties", quoted),
        ("properties", "properties", ""),
    ] {
        if detail.contains(named)
            && let Some(line) = line_of(text, section, key)
        {
            return Some(line);
        }
    }
    None
}

/// Returns the line in which a key of a section of a TOML text is, from 1; with an empty key, that of the section.
pub fn line_of(text: &str, section: &str, key: &str) -> Option<usize> {
    let mut current = String::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            current = name.trim_matches(['[', ' ']).to_owned();
            if key.is_empty() && current == section {
                return Some(index + 1);
            }
        } else if !key.is_empty()
            && current == section
            && line.split('=').next().is_some_and(|name| name.trim().trim_matches('"') == key)
            && line.contains('=')
        {
            return Some(index + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_section_and_key() {
        let text =
            "manifest = 1\n[packet]\nabi = 1 # abi\n\n[server]\nlisten = [\n]\n[server.tls]\ncertificate=\"a\"\n";
        for (section, key, expected) in [
            ("", "manifest", Some(1)),
            ("packet", "", Some(2)),
            ("packet", "abi", Some(3)),
            ("server", "listen", Some(6)),
            ("server", "abi", None),
            ("server.tls", "certificate", Some(9)),
            ("", "listen", None),
        ] {
            assert_eq!(line_of(text, section, key), expected, "{section} {key}");
        }
        assert_eq!(line_about(text, "server.listen has `tcp`; write a protocol"), Some(6));
        assert_eq!(line_about(text, "[packet] has no `abi`"), Some(2));
        assert_eq!(line_about(text, "something else"), None);
    }
}
