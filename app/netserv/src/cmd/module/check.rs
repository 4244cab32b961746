// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a manifest or with code, said with the line of the manifest and the fix.

use std::path::Path;

use netserv_model::Refusal;
use netserv_repository::Part;
use netserv_repository::package;

use super::build::{PartFile, Source};
use super::code::{Code, Kind};
use super::package::refused;
use crate::exit::Failure;
use crate::output::Output;

/// Looks at the code of a part: is it what the manifest says, and do nodes of this version run it?
///
/// # Errors
/// It is not, or they do not.
pub fn code(source: &Source, file: &PartFile, output: &Output) -> Result<(), Failure> {
    match file.part {
        Part::Core | Part::Component => {}
        Part::Bundle | Part::Tls => return Ok(()),
    }
    // What is no WebAssembly at all is said by whoever packages it.
    let Ok(code) = Code::read(&file.bytes) else { return Ok(()) };
    let place = source.place("build", file.key());
    let wants_component = file.part == Part::Component;
    if code.kind.is_component() != wants_component {
        let (is, key) = if wants_component { ("a core module", "wasm") } else { ("a component", "component") };
        let cause = format!("{}`{}` names {}, which is {is}", source.at(place), file.key(), file.path.display());
        let fix = format!("write `{key} = …` for it; packets go to a core module, connections to a component");
        return Err(Failure::new(cause, fix));
    }
    if let Some(skew) = code.skew() {
        return Err(Failure::new(format!("{} {}", file.path.display(), skew.cause), skew.fix));
    }
    let declared = source.manifest.packet.as_ref().map(|packet| packet.abi).filter(|_| !wants_component);
    if let (Some(abi), Some(declared)) = (code.abi, declared.filter(|declared| *declared > 0))
        && abi != declared
    {
        let place = source.at(source.place("packet", "abi"));
        let cause = format!("{place}`abi` is {declared}, but {} was built for {abi}", file.path.display());
        return Err(Failure::new(cause, format!("write `abi = {abi}`")));
    }
    if code.kind == Kind::Component {
        let cause = format!("{} exports nothing that a node calls", file.path.display());
        let fix = "export wasi:http/incoming-handler, netserv:tcp/handler or wasi:cli/run";
        return Err(Failure::new(cause, fix));
    }
    // Packet modules may import these without a use for them: SDKs do so for all modules.
    let usual = ["clock", "log", "messages", "random"];
    let is_usual = |block: &String| !wants_component && usual.contains(&block.as_str());
    let known = |block: &String| source.manifest.dependencies.iter().any(|one| one.block == *block);
    for block in code.blocks.iter().filter(|block| !known(block) && !is_usual(block)) {
        let place = source.at(source.place("", "dependencies"));
        output.note(format!("{place}add \"{block}>=1\" to `dependencies`, since {} imports it", file.path.display()));
    }
    Ok(())
}

/// Says what is wrong with a manifest; with the line, if it is known.
pub fn bad_manifest(path: &Path, text: &str, refusal: &Refusal) -> Failure {
    let shown = path.display();
    let detail = refusal.detail.strip_prefix("netserv.toml: ").unwrap_or(&refusal.detail);
    if detail.starts_with("line ") {
        return Failure::new(format!("{shown}: {detail}"), format!("mend {shown}"));
    }
    let line = place_of(text, detail).map(|line| format!("line {line}: ")).unwrap_or_default();
    Failure::new(format!("{shown}: {line}{detail}"), format!("mend {shown}"))
}

/// Finds the line that a text of what is wrong is about: the section and the key that it names.
fn place_of(text: &str, detail: &str) -> Option<usize> {
    let quoted = detail.split('`').nth(1).unwrap_or_default();
    for (named, section, key) in [
        ("server.listen", "server", "listen"),
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
        ("`manifest", "", "manifest"),
    ] {
        if detail.contains(named)
            && let Some(line) = line_of(text, section, key)
        {
            return Some(line);
        }
    }
    None
}

/// Names the file that cannot be packaged: the manifest, or the part that is refused by itself too.
pub fn not_packaged(source: &Source, files: &[PartFile], refusal: &Refusal) -> Failure {
    if refusal.detail.starts_with("netserv.toml: ") {
        return bad_manifest(&source.path, &source.text, refusal);
    }
    if let Some(detail) = refusal.detail.strip_prefix("netserv.toml has ") {
        // A part that the manifest asks for is missing.
        let line = place_of(&source.text, detail);
        let key = detail.split("`[build] ").nth(1).and_then(|rest| rest.split('`').next());
        let fix = match key {
            Some(key) => format!("add `{key} = \"FILE\"` below [build] in {}, or remove the section", source.shown()),
            None => format!("mend {}", source.shown()),
        };
        return Failure::new(format!("{}there is {detail}", source.at(line)), fix);
    }
    let alone = |file: &&PartFile| {
        // A certificate alone is no package.
        if file.part == Part::Tls {
            return refusal.detail.contains("PEM");
        }
        package::build(&source.text, &[(file.part, file.bytes.as_slice())]).is_err_and(|alone| alone == *refusal)
    };
    let cause = |file: &PartFile| format!("{}: {}", file.path.display(), refusal.detail);
    match files.iter().find(alone) {
        Some(file) => Failure::new(
            cause(file),
            match file.part {
                Part::Core => "name a WebAssembly file: `wasm` below [build] in netserv.toml, or --wasm",
                Part::Component => "name a component: `component` below [build] in netserv.toml, or --component",
                Part::Bundle => "name an OSGi bundle: `bundle` below [build] in netserv.toml, or --bundle",
                Part::Tls => "name PEM files: `certificate` and `key` of `server.tls` in netserv.toml",
            },
        ),
        None => refused(&source.path, refusal),
    }
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
        assert_eq!(place_of(text, "server.listen has `tcp`; write a protocol"), Some(6));
        assert_eq!(place_of(text, "[packet] has no `abi`"), Some(2));
        assert_eq!(place_of(text, "something else"), None);
    }
}
