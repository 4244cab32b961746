// SPDX-License-Identifier: Apache-2.0
//! Which files of a crate import which, as its `use` lines and paths say.
//!
//! A name that a file only hands on (`pub use`) counts for the file that defines it: a `mod.rs` which lists what its folder
//! offers imports nothing by that. Test modules are left out, and so are `src/bin` and a `main.rs` beside a `lib.rs`, which are
//! crates of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What one file imports.
#[derive(Debug, Default)]
pub struct Imports {
    /// Files of the same crate, relative to its `src`.
    pub files: BTreeSet<PathBuf>,
    /// Paths of other crates, such as `std::fs::File`.
    pub outside: BTreeSet<String>,
}

/// Returns what each file below a crate's `src` imports; files are relative to it.
pub fn imports(src: &Path) -> BTreeMap<PathBuf, Imports> {
    let mut sources = BTreeMap::new();
    read(src, Path::new(""), &mut sources);
    let tests: Vec<Segments> = sources.values().flat_map(|source: &Source| source.tests.clone()).collect();
    sources.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
    let sources = Sources(sources);
    sources.0.values().map(|source| (source.file.clone(), sources.imports_of(source))).collect()
}

/// Returns the groups of files that import each other, directly or by way of others.
pub fn circles(imports: &BTreeMap<PathBuf, Imports>) -> Vec<BTreeSet<PathBuf>> {
    let reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> =
        imports.keys().map(|file| (file, reached(imports, file))).collect();
    let mut circles = BTreeSet::new();
    for (file, others) in &reached {
        let circle: BTreeSet<PathBuf> =
            others.iter().filter(|other| reached[**other].contains(file)).map(|other| (*other).clone()).collect();
        if !circle.is_empty() {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reached<'a>(imports: &'a BTreeMap<PathBuf, Imports>, from: &'a PathBuf) -> BTreeSet<&'a PathBuf> {
    let (mut found, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(file) = next.pop() {
        next.extend(imports.get(file).into_iter().flat_map(|one| &one.files).filter(|file| found.insert(*file)));
    }
    found
}

type Segments = Vec<String>;

/// One file's module.
struct Source {
    file: PathBuf,
    module: Segments,
    /// Without comments, tests and `use` declarations.
    code: String,
    /// Names that it imports, each with its path, and whether it hands them on.
    uses: Vec<(String, Segments, bool)>,
    children: BTreeSet<String>,
    /// The modules below it that are only there for tests.
    tests: Vec<Segments>,
}

/// All modules of a crate, by their paths.
struct Sources(BTreeMap<Segments, Source>);

impl Sources {
    fn imports_of(&self, source: &Source) -> Imports {
        let mut imports = Imports::default();
        let mut add = |path: &Segments| match self.file_of(source, path, 0) {
            Some(file) if file == source.file => {}
            Some(file) => _ = imports.files.insert(file),
            None => _ = imports.outside.insert(path.join("::")),
        };
        for (name, path, handed_on) in &source.uses {
            let absolute = absolute(source, path);
            if absolute.as_ref().is_some_and(|path| self.0.contains_key(path)) {
                // A module by itself: what is taken from it decides.
                for rest in paths_from(&source.code, name) {
                    add(&path.iter().cloned().chain(rest.into_iter().skip(1)).collect());
                }
            }
            if !handed_on || has_word(&source.code, name) {
                add(path);
            }
        }
        let roots = ["crate", "super", "self"].into_iter().chain(source.children.iter().map(String::as_str));
        roots.flat_map(|root| paths_from(&source.code, root)).for_each(|path| add(&path));
        imports
    }

    /// Returns the file that defines what a path names; nothing if that is in another crate.
    fn file_of(&self, from: &Source, path: &Segments, depth: usize) -> Option<PathBuf> {
        let path = absolute(from, path)?;
        let length = (0..=path.len()).rev().find(|length| self.0.contains_key(&path[..*length]))?;
        let source = &self.0[&path[..length]];
        let handed_on = path.get(length).and_then(|item| {
            let mut uses = source.uses.iter().filter(|(_, _, handed_on)| *handed_on);
            uses.find(|(name, ..)| name == item)
        });
        match handed_on {
            Some((_, path, _)) if depth < 8 => self.file_of(source, path, depth + 1),
            _ => Some(source.file.clone()),
        }
    }
}

/// Returns a path from the crate's root; nothing for one that begins in another crate.
fn absolute(source: &Source, path: &Segments) -> Option<Segments> {
    let first = path.first()?;
    let mut base = match first.as_str() {
        "crate" => vec![],
        "self" | "super" => source.module.clone(),
        child if source.children.contains(child) => return Some([&source.module[..], path].concat()),
        _ => return None,
    };
    for segment in path {
        match segment.as_str() {
            "crate" | "self" | "*" => {}
            "super" => _ = base.pop(),
            name => base.push(name.to_owned()),
        }
    }
    Some(base)
}

fn read(src: &Path, folder: &Path, sources: &mut BTreeMap<Segments, Source>) {
    for entry in std::fs::read_dir(src.join(folder)).unwrap().flatten() {
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            if path != Path::new("bin") {
                read(src, &path, sources);
            }
        } else if path == Path::new("main.rs") && src.join("lib.rs").exists() {
            // It is above all others, and none of them can import it.
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = parse(&path, &std::fs::read_to_string(entry.path()).unwrap());
            sources.insert(source.module.clone(), source);
        }
    }
}

fn parse(file: &Path, text: &str) -> Source {
    let mut module: Segments = file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|name| name == "mod") || module == ["lib"] || module == ["main"] {
        module.pop();
    }
    let text = &text[..tests_begin(text)];
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let (mut code, mut uses, mut children, mut tests) = (String::new(), Vec::new(), BTreeSet::new(), Vec::new());
    let (mut declaration, mut is_test) = (String::new(), false);
    for line in lines {
        let words = line.trim_start();
        let item = without_visibility(words);
        if let Some(name) = item.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            children.insert(name.to_owned());
            tests.extend(is_test.then(|| [&module[..], &[name.to_owned()]].concat()));
        } else if !declaration.is_empty() || item.starts_with("use ") {
            declaration += words;
        } else {
            code += item;
            code.push('\n');
        }
        is_test = words == "#[cfg(test)]";
        if declaration.ends_with(';') {
            let (head, tree) = declaration.split_once("use ").unwrap();
            for (name, path) in expand(tree) {
                uses.push((name, path, !head.is_empty()));
            }
            declaration.clear();
        }
    }
    Source { file: file.to_owned(), module, code, uses, children, tests }
}

/// Returns where the first module for tests begins that is in this file: they are its last items.
fn tests_begin(text: &str) -> usize {
    const HEAD: &str = "#[cfg(test)]\n";
    let is_module = |place: &usize| {
        let item = text[place + HEAD.len()..].lines().next().unwrap_or_default();
        without_visibility(item).starts_with("mod ") && item.ends_with('{')
    };
    text.match_indices(HEAD).map(|(place, _)| place).find(is_module).unwrap_or(text.len())
}

/// Returns an item without the word `pub`, and without the path of whom that is for.
fn without_visibility(item: &str) -> &str {
    match item.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ").map_or(item, |(_, item)| item),
        None => item.strip_prefix("pub ").unwrap_or(item),
    }
}

/// Returns the names that a `use` declaration binds, each with its path.
fn expand(tree: &str) -> Vec<(String, Segments)> {
    let tree = tree.trim().trim_end_matches([';', ',']).trim();
    if let Some((base, list)) = tree.split_once('{') {
        let base: Segments = base.split("::").map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect();
        let list = list.strip_suffix('}').unwrap();
        let mut found = Vec::new();
        for part in split(list) {
            for (name, path) in expand(part) {
                let own = path == ["self"];
                let path = if own { base.clone() } else { [&base[..], &path].concat() };
                found.push((if own { base.last().cloned().unwrap_or_default() } else { name }, path));
            }
        }
        return found;
    }
    let (path, name) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name.trim())));
    let path: Segments = path.split("::").map(|part| part.trim().to_owned()).collect();
    vec![(name.map_or_else(|| path.last().cloned().unwrap_or_default(), str::to_owned), path)]
}

/// Splits a list at its own commas, not at those of lists in it.
pub fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (place, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..place]);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

/// Returns the paths in the code that begin with a name.
fn paths_from(code: &str, name: &str) -> Vec<Segments> {
    let start = format!("{name}::");
    let starts = code.match_indices(&start).map(|(place, _)| place);
    let starts = starts.filter(|place| !code[..*place].ends_with(|c: char| is_word(c) || c == ':'));
    starts.map(|place| segments(&code[place..])).collect()
}

fn segments(code: &str) -> Segments {
    let end = code.find(|c: char| !is_word(c) && c != ':').unwrap_or(code.len());
    code[..end].split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn has_word(code: &str, word: &str) -> bool {
    let is_whole = |place: usize| !code[..place].ends_with(is_word) && !code[place + word.len()..].starts_with(is_word);
    code.match_indices(word).any(|(place, _)| is_whole(place))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

mod tests {
    use super::*;

    /// Writes a crate's files, and returns its circles.
    fn check(files: &[(&str, &str)], expected: &[&[&str]]) {
        let src = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = src.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = circles(&imports(src.path()));
        let expected: Vec<BTreeSet<PathBuf>> =
            expected.iter().map(|circle| circle.iter().map(PathBuf::from).collect()).collect();
        assert_eq!(found, expected, "{files:?}");
    }

    #[test]
    fn files_that_import_each_other_are_found() {
        let root = ("lib.rs", "mod a;\nmod b;\n");
        check(
            &[root, ("a.rs", "use crate::b::B;"), ("b.rs", "use super::a;\nfn f() { a::g() }")],
            &[&["a.rs", "b.rs"]],
        );
        check(&[root, ("a.rs", "use crate::b::B;"), ("b.rs", "fn f() { super::a::g() }")], &[&["a.rs", "b.rs"]]);
        check(&[root, ("a.rs", "use crate::{\n    b::{B, C},\n};"), ("b.rs", "// use crate::a::A;\n")], &[]);
        check(
            &[root, ("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}")],
            &[],
        );
        let support =
            "#[cfg(test)]\npub mod support {\n    use super::*;\n}\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}";
        check(&[root, ("a.rs", "use crate::b::B;"), ("b.rs", support)], &[]);
        let tested = ("lib.rs", "mod a;\n#[cfg(test)]\nmod b;");
        check(&[tested, ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")], &[]);
        check(&[root, ("a.rs", "use crate::b::B;"), ("b.rs", "pub(in crate::a) fn f() {}")], &[]);
        check(&[root, ("a.rs", "use crate::C;"), ("main.rs", "mod a;\nuse a::A;\nconst C: A = 0;")], &[]);
        check(&[("lib.rs", "mod a;\nconst C: u8 = a::A;"), ("a.rs", "use crate::C;")], &[&["a.rs", "lib.rs"]]);
    }

    #[test]
    fn a_name_that_is_handed_on_counts_for_the_file_that_defines_it() {
        let handed = ("lib.rs", "mod a;\nmod b;\npub use a::A;\n");
        check(&[handed, ("a.rs", "use crate::b::B;"), ("b.rs", "")], &[]);
        check(&[handed, ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::A;")], &[&["a.rs", "b.rs"]]);
        let used = ("lib.rs", "mod a;\npub use a::A;\npub type T = A;\n");
        check(&[used, ("a.rs", "use super::T;")], &[&["a.rs", "lib.rs"]]);
        let folder = ("m/mod.rs", "mod x;\nmod y;\npub(crate) use x::X;\n");
        check(
            &[("lib.rs", "mod m;\n"), folder, ("m/x.rs", "use super::y::Y;"), ("m/y.rs", "use super::X as Z;")],
            &[&["m/x.rs", "m/y.rs"]],
        );
    }

    #[test]
    fn what_is_of_other_crates_is_told_apart() {
        let src = tempfile::tempdir().unwrap();
        std::fs::write(src.path().join("lib.rs"), "use std::fs::{self, File};\nuse crate::x;\n").unwrap();
        let found = imports(src.path()).remove(Path::new("lib.rs")).unwrap();
        assert_eq!(found.outside, BTreeSet::from(["std::fs", "std::fs::File"].map(str::to_owned)));
        assert!(found.files.is_empty());
    }
}
