// SPDX-License-Identifier: Apache-2.0
//! Ed25519 key files: PKCS#8 in PEM, readable by their owner alone.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey, KeypairBytes};
use netserv_model::PublicKey;
use rand::TryRng;

use crate::exit::{Failure, OrFail};

/// Bytes of a key file at most; a PKCS#8 Ed25519 key has about 120.
const KEY_FILE_BYTES_MAX: u64 = 16 * 1024;

/// Returns the user's own key file: `$XDG_CONFIG_HOME/netserv/key.pem`, or below `~/.config`.
///
/// # Errors
/// Neither variable names a directory.
pub fn default_path() -> Result<PathBuf, Failure> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = directory("XDG_CONFIG_HOME").or_else(|| directory("HOME").map(|home| home.join(".config")));
    let missing = || Failure::new("neither XDG_CONFIG_HOME nor HOME names a directory", "name the key file");
    config.map(|config| config.join("netserv/key.pem")).ok_or_else(missing)
}

/// Makes a new key from the system's random source.
///
/// # Errors
/// The system has no randomness to give.
pub fn generate() -> Result<SigningKey, Failure> {
    let mut secret = [0; 32];
    fill_random(&mut secret)?;
    Ok(SigningKey::from_bytes(&secret))
}

/// Fills a buffer from the system's random source.
///
/// # Errors
/// The system has no randomness to give.
pub fn fill_random(bytes: &mut [u8]) -> Result<(), Failure> {
    let filled = rand::rngs::SysRng.try_fill_bytes(bytes);
    filled.or_fail("cannot read random bytes", "check that the getrandom system call is allowed here")
}

/// Writes a key to a new file with mode 0600; an existing file stays as it is.
///
/// # Errors
/// The file exists or cannot be made.
pub fn write_new(path: &Path, key: &SigningKey) -> Result<(), Failure> {
    // Without the public half it is PKCS#8 version 1, which OpenSSL reads too.
    let pair = KeypairBytes { secret_key: key.to_bytes(), public_key: None };
    let pem = pair.to_pkcs8_pem(LineEnding::LF).or_fail("cannot encode the key", "report this as a bug")?;
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
        made.or_fail(format!("cannot make {}", parent.display()), "choose another place with --out")?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(exists(path)),
        Err(error) => {
            let cause = format!("cannot make {}: {error}", path.display());
            return Err(Failure::new(cause, "choose another place with --out"));
        }
    };
    let written = file.write_all(pem.as_bytes()).and_then(|()| file.sync_all());
    written.or_fail(format!("cannot write {}", path.display()), "make room on the disk and delete the unfinished file")
}

/// Returns the failure for a key file that is already there.
pub fn exists(path: &Path) -> Failure {
    let cause = format!("{} exists and is not overwritten", path.display());
    Failure::new(cause, "choose another file with --out, or move the old key away")
}

/// Reads a key file.
///
/// # Errors
/// It cannot be read, is readable by others, or holds no Ed25519 key.
pub fn read(path: &Path) -> Result<SigningKey, Failure> {
    let shown = path.display();
    let missing = "make a key with `netserv key new`, or name the file with --key";
    let mut file = std::fs::File::open(path).or_fail(format!("cannot read the key file {shown}"), missing)?;
    let metadata = file.metadata().or_fail(format!("cannot read the key file {shown}"), missing)?;
    if metadata.mode() & 0o077 != 0 {
        let cause = format!("the key file {shown} has mode {:04o}, so others can use it", metadata.mode() & 0o7777);
        return Err(Failure::new(cause, format!("chmod 600 {shown}")));
    }
    let mut pem = String::new();
    let read = (&mut file).take(KEY_FILE_BYTES_MAX).read_to_string(&mut pem);
    let not_pem = "give a PKCS#8 PEM file with an Ed25519 key, as `netserv key new` makes";
    read.or_fail(format!("cannot read the key file {shown}"), not_pem)?;
    SigningKey::from_pkcs8_pem(&pem)
        .map_err(|_| Failure::new(format!("{shown} holds no Ed25519 private key in PKCS#8 PEM"), not_pem))
}

/// Returns the public half.
pub fn public(key: &SigningKey) -> PublicKey {
    PublicKey(key.verifying_key().to_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_file_is_private_and_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/key.pem");
        let key = generate().unwrap();
        write_new(&path, &key).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(read(&path).unwrap(), key);
        let again = write_new(&path, &generate().unwrap()).unwrap_err();
        assert!(again.cause.contains("not overwritten"), "{again:?}");
        assert_eq!(read(&path).unwrap(), key);
    }

    #[test]
    fn a_key_that_others_can_read_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        write_new(&path, &generate().unwrap()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let failure = read(&path).unwrap_err();
        assert!(failure.cause.contains("0640"), "{failure:?}");
        assert!(failure.fix.starts_with("chmod 600 "), "{failure:?}");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        for text in ["", "not a key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            assert!(read(&path).unwrap_err().cause.contains("no Ed25519"), "{text}");
        }
        std::fs::write(&path, "x".repeat(usize::try_from(KEY_FILE_BYTES_MAX).unwrap() + 1)).unwrap();
        assert!(read(&path).is_err());
    }
}
