// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a project or with code, said with the line of the project's file and the fix.

use netserv_model::Refusal;
use netserv_model::dependency::BLOCKS_ALWAYS;
use netserv_project::line_about;
use netserv_repository::{Part, package};

use super::code::{Code, Kind};
use super::files::refused;
use super::source::{PartFile, Source};
use crate::exit::Failure;
use crate::output::Output;

/// Looks at the code of a part: is it what the project says, and do nodes of this version run it?
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
    let (memory, most) = (code.memory_bytes.unwrap_or(0), source.project.manifest.limits.memory_bytes);
    if memory > most {
        let place = source.at(source.place("limits", "memory-bytes"));
        let cause = format!("{place}{} begins with {memory} bytes of memory, and may have {most}", file.path.display());
        return Err(Failure::new(cause, format!("write `memory-bytes = {memory}` or more below [limits]")));
    }
    let declared = source.project.manifest.packet.as_ref().map(|packet| packet.abi).filter(|_| !wants_component);
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
    // Packet modules may import it without a use for it: SDKs do so for all modules.
    let is_usual = |block: &str| !wants_component && block == "messages";
    // Calls of this one say that it is not there: modules may do without.
    let is_optional = |block: &str| block == "media" || BLOCKS_ALWAYS.contains(&block);
    let known = |block: &str| source.project.manifest.dependencies.iter().any(|one| one.block == *block);
    for block in code.blocks.iter().filter(|block| !known(block) && !is_usual(block) && !is_optional(block)) {
        let place = source.at(source.place("", "dependencies"));
        output.note(format!("{place}add \"{block}>=1\" to `dependencies`, since {} imports it", file.path.display()));
    }
    Ok(())
}

/// Names the file that cannot be packaged: the project's, or the part that is refused by itself too.
pub fn not_packaged(source: &Source, files: &[PartFile], refusal: &Refusal) -> Failure {
    if let Some(detail) = refusal.detail.strip_prefix("manifest: ") {
        let place = source.at(line_about(&source.text, detail));
        return Failure::new(format!("{place}{detail}"), format!("mend {}", source.shown()));
    }
    if let Some(detail) = refusal.detail.strip_prefix("the manifest has ") {
        // A part that the project asks for is missing.
        let line = line_about(&source.text, detail);
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
        let built = package::build(source.project.manifest.clone(), &[(file.part, file.bytes.as_slice())]);
        built.is_err_and(|alone| alone == *refusal)
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
