// SPDX-License-Identifier: Apache-2.0
//! Which libraries a program needs, as the dynamic loader says.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Mode, OFlags};

use crate::limits::LIBRARIES_MAX;

/// Returns the files that the dynamic loader would map for `program` and for the libraries `loaded` into it, with the
/// loader itself; none if the program is linked statically and loads nothing.
///
/// `loaded` find each other in `directories` first.
pub(crate) fn libraries(program: &Path, loaded: &[PathBuf], directories: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    libraries_up_to(LIBRARIES_MAX, program, loaded, directories)
}

/// As [`libraries`], with another bound of their number.
pub(crate) fn libraries_up_to(
    most: usize,
    program: &Path,
    loaded: &[PathBuf],
    directories: &[PathBuf],
) -> io::Result<Vec<PathBuf>> {
    let Some(loader) = interpreter(program)? else { return Ok(vec![]) };
    let mut command = Command::new(&loader);
    command.env_clear().arg("--list");
    if !loaded.is_empty() {
        command.arg("--preload").arg(joined(loaded)).arg("--library-path").arg(joined(directories));
    }
    let output = command.arg(program).output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("{} --list {}: {text}", loader.display(), program.display())));
    }
    let mut found = vec![loader];
    found.extend(parse_list(&String::from_utf8_lossy(&output.stdout)));
    found.sort();
    found.dedup();
    found.retain(|library| !loaded.contains(library));
    check_count(found, most)
}

/// Returns the directories of libraries as the dynamic loader wants to be told.
pub(crate) fn library_path(libraries: &[PathBuf]) -> String {
    let mut directories: Vec<String> =
        libraries.iter().filter_map(|library| Some(library.parent()?.to_str()?.to_owned())).collect();
    directories.sort();
    directories.dedup();
    directories.join(":")
}

fn joined(paths: &[PathBuf]) -> OsString {
    paths.iter().map(|path| path.as_os_str()).collect::<Vec<_>>().join(":".as_ref())
}

fn check_count(libraries: Vec<PathBuf>, most: usize) -> io::Result<Vec<PathBuf>> {
    let count = libraries.len();
    if count <= most {
        Ok(libraries)
    } else {
        Err(io::Error::other(format!("the program needs {count} libraries, over {most}")))
    }
}

/// Reads lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f…)` and `/lib64/ld-linux… (0x7f…)`.
fn parse_list(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let line = line.trim();
        let target = line.split_once(" => ").map_or(line, |(_, target)| target);
        let path = target.rsplit_once(" (0x").map_or(target, |(path, _)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

/// Returns the dynamic loader that a program names in its ELF header; nothing if it needs none.
fn interpreter(program: &Path) -> io::Result<Option<PathBuf>> {
    let mut head = vec![];
    let file = File::from(rustix::fs::open(program, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?);
    file.take(4096).read_to_end(&mut head)?;
    if head.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err(io::Error::other(format!("{} is no 64-bit little-endian ELF program", program.display())));
    }
    Ok(find_interpreter(&head))
}

fn find_interpreter(head: &[u8]) -> Option<PathBuf> {
    const PT_INTERP: usize = 3;
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let raw = head.get(at..at.checked_add(bytes)?)?;
        let value = raw.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        usize::try_from(value).ok()
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let entry = (0..count).map_while(|index| table.checked_add(index * size));
    let entry = entry.take_while(|at| number(*at, 4).is_some()).find(|at| number(*at, 4) == Some(PT_INTERP))?;
    let (offset, length) = (number(entry + 8, 8)?, number(entry + 32, 8)?);
    let name = head.get(offset..offset.checked_add(length)?)?.split(|byte| *byte == 0).next()?;
    Some(PathBuf::from(std::str::from_utf8(name).ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_loaders_list_is_read() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f3f)\n\
            \tlibgone.so => not found\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f40)\n\
            \t/lib/my dir/libx.so => /opt/my dir/libx.so (0x1)\n";
        let expected = ["/lib/x86_64-linux-gnu/libgcc_s.so.1", "/lib64/ld-linux-x86-64.so.2", "/opt/my dir/libx.so"];
        assert_eq!(parse_list(text), expected.map(PathBuf::from));
        assert_eq!(library_path(&expected.map(PathBuf::from)), "/lib/x86_64-linux-gnu:/lib64:/opt/my dir");
    }

    #[test]
    fn the_number_of_libraries_is_bounded() {
        assert!(check_count(vec![PathBuf::new(); LIBRARIES_MAX], LIBRARIES_MAX).is_ok());
        assert!(check_count(vec![PathBuf::new(); LIBRARIES_MAX + 1], LIBRARIES_MAX).is_err());
    }

    #[test]
    fn this_programs_own_loader_is_found() {
        let program = std::env::current_exe().unwrap();
        let loader = interpreter(&program).unwrap().expect("tests are linked dynamically");
        assert!(loader.is_absolute() && loader.exists(), "{}", loader.display());
        assert!(libraries(&program, &[], &[]).unwrap().contains(&loader));
    }

    #[test]
    fn damaged_programs_are_errors_and_never_panic() {
        let program = std::env::current_exe().unwrap();
        let head = fs::read(program).unwrap()[..4096].to_vec();
        for at in 0..1024 {
            for byte in [0, 0x7f, 0xff] {
                let mut damaged = head.clone();
                damaged[at] = byte;
                find_interpreter(&damaged);
                find_interpreter(&damaged[..at]);
            }
        }
        let script = tempfile::NamedTempFile::new().unwrap();
        fs::write(script.path(), "#!/bin/sh\n").unwrap();
        assert!(libraries(script.path(), &[], &[]).is_err());
    }
}
