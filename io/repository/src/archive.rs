// SPDX-License-Identifier: Apache-2.0
//! The tar file around an image layout: read strictly, written the same way every time.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};

use netserv_model::limits::{BLOB_BYTES_MAX, PACKAGE_BYTES_MAX, PACKAGE_ENTRIES_MAX};
use netserv_model::{Digest, Refusal, RefusalKind};
use tar::EntryType;

use crate::oci::{bad, check_layout, digest_of};

/// Where blobs are.
const BLOBS: &str = "blobs/sha256/";

/// An image layout without meaning: its index and its blobs, which have the digests they are named by.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    pub(crate) index: Vec<u8>,
    pub(crate) blobs: BTreeMap<Digest, Vec<u8>>,
}

impl Archive {
    /// Reads a tar file.
    ///
    /// Only the files of an image layout may be in it, each once, and folders around them: no links, no devices, no
    /// sparse files, no extension headers, no other names.
    pub(crate) fn read(bytes: &[u8]) -> Result<Archive, Refusal> {
        if u64::try_from(bytes.len()).is_ok_and(|bytes| bytes > PACKAGE_BYTES_MAX) {
            let detail = format!("the package has {} bytes, at most {PACKAGE_BYTES_MAX}", bytes.len());
            return Err(Refusal::new(RefusalKind::PackageTooLarge, detail));
        }
        let mut parts = Parts::default();
        let mut archive = tar::Archive::new(Cursor::new(bytes));
        let entries = archive.entries().map_err(not_tar)?.raw(true);
        for (count, entry) in entries.enumerate() {
            if count >= PACKAGE_ENTRIES_MAX {
                return Err(bad(format!("more than {PACKAGE_ENTRIES_MAX} entries")));
            }
            parts.take(entry.map_err(not_tar)?)?;
        }
        check_layout(&parts.layout.ok_or_else(|| bad("no oci-layout: not an image layout in a tar file"))?)?;
        Ok(Archive { index: parts.index.ok_or_else(|| bad("no index.json"))?, blobs: parts.blobs })
    }

    /// Writes the tar file; the same content gives the same bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        append(&mut builder, "oci-layout", crate::oci::LAYOUT.as_bytes());
        append(&mut builder, "index.json", &self.index);
        for (digest, blob) in &self.blobs {
            append(&mut builder, &blob_name(digest), blob);
        }
        builder.into_inner().expect("writing to memory does not fail")
    }
}

#[derive(Default)]
struct Parts {
    layout: Option<Vec<u8>>,
    index: Option<Vec<u8>>,
    blobs: BTreeMap<Digest, Vec<u8>>,
}

impl Parts {
    fn take(&mut self, mut entry: tar::Entry<'_, Cursor<&[u8]>>) -> Result<(), Refusal> {
        let path = entry.path_bytes();
        let name = str::from_utf8(&path).map_err(|_| bad("an entry's name is not text"))?.to_owned();
        drop(path);
        let name = name.strip_prefix("./").unwrap_or(&name);
        let kind = entry.header().entry_type();
        if kind == EntryType::Directory && ["", "blobs", "blobs/", "blobs/sha256", "blobs/sha256/"].contains(&name) {
            return Ok(());
        }
        if kind != EntryType::Regular {
            return Err(bad(format!("entry `{}` is neither file nor folder of an image layout", short(name))));
        }
        let twice = match name {
            "oci-layout" => self.layout.replace(content(&mut entry, name)?).is_some(),
            "index.json" => self.index.replace(content(&mut entry, name)?).is_some(),
            _ => {
                let digest = blob_digest(name)?;
                let blob = content(&mut entry, name)?;
                if digest_of(&blob) != digest {
                    return Err(bad(format!("blob {digest} has another content than its name says")));
                }
                self.blobs.insert(digest, blob).is_some()
            }
        };
        if twice { Err(bad(format!("entry `{}` is there twice", short(name)))) } else { Ok(()) }
    }
}

fn content(entry: &mut tar::Entry<'_, Cursor<&[u8]>>, name: &str) -> Result<Vec<u8>, Refusal> {
    let size = entry.header().entry_size().map_err(not_tar)?;
    if size > BLOB_BYTES_MAX {
        let detail = format!("entry `{}` has {size} bytes, at most {BLOB_BYTES_MAX}", short(name));
        return Err(Refusal::new(RefusalKind::PackageTooLarge, detail));
    }
    let mut content = Vec::new();
    entry.read_to_end(&mut content).map_err(not_tar)?;
    if u64::try_from(content.len()) != Ok(size) {
        return Err(bad(format!("entry `{}` ends after {} of {size} bytes", short(name), content.len())));
    }
    Ok(content)
}

fn blob_digest(name: &str) -> Result<Digest, Refusal> {
    let digest = name.strip_prefix(BLOBS).and_then(|hex| format!("sha256:{hex}").parse().ok());
    digest.ok_or_else(|| bad(format!("entry `{}` does not belong to an image layout", short(name))))
}

/// Writes an archive blob by blob, as they come: the index is known last.
pub(crate) struct ArchiveWriter<'a> {
    out: &'a mut dyn Write,
}

impl<'a> ArchiveWriter<'a> {
    /// Begins one.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn begin(out: &'a mut dyn Write) -> io::Result<ArchiveWriter<'a>> {
        let mut writer = ArchiveWriter { out };
        writer.put("oci-layout", crate::oci::LAYOUT.as_bytes())?;
        Ok(writer)
    }

    /// Writes a blob that is there.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn blob(&mut self, digest: &Digest, blob: &[u8]) -> io::Result<()> {
        self.put(&blob_name(digest), blob)
    }

    /// Writes a blob of so many bytes, which `write` is to give.
    ///
    /// # Errors
    /// Those of `out` as `failed` makes them, those of `write`, or there are more bytes or fewer.
    pub(crate) fn blob_from<E>(
        &mut self,
        digest: &Digest,
        bytes: u64,
        failed: impl Fn(io::Error) -> E,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        self.out.write_all(header(&blob_name(digest), bytes).as_bytes()).map_err(&failed)?;
        let mut counted = Counted { out: &mut *self.out, left: bytes };
        write(&mut counted)?;
        if counted.left > 0 {
            return Err(failed(io::Error::other(format!("blob {digest} lacks {} bytes", counted.left))));
        }
        self.pad(bytes).map_err(failed)
    }

    /// Writes the index, and the end.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn end(mut self, index: &[u8]) -> io::Result<()> {
        self.put("index.json", index)?;
        self.out.write_all(&[0; 1024])
    }

    fn put(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let bytes = u64::try_from(content.len()).expect("a length fits 64 bits");
        self.out.write_all(header(name, bytes).as_bytes())?;
        self.out.write_all(content)?;
        self.pad(bytes)
    }

    fn pad(&mut self, bytes: u64) -> io::Result<()> {
        let rest = usize::try_from(bytes.wrapping_neg() % 512).expect("less than a block");
        self.out.write_all(&[0; 512][..rest])
    }
}

/// Passes on no more bytes than there may be.
struct Counted<'a> {
    out: &'a mut dyn Write,
    left: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.checked_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let left = left.ok_or_else(|| io::Error::other("there are more bytes than was said"))?;
        self.out.write_all(bytes)?;
        self.left = left;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn blob_name(digest: &Digest) -> String {
    let text = digest.to_string();
    format!("{BLOBS}{}", text.strip_prefix("sha256:").expect("digests are written so"))
}

fn append(builder: &mut tar::Builder<Vec<u8>>, name: &str, content: &[u8]) {
    let header = header(name, u64::try_from(content.len()).expect("a length fits 64 bits"));
    builder.append(&header, content).expect("writing to memory does not fail");
}

fn header(name: &str, bytes: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_path(name).expect("the names of an image layout are short");
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_cksum();
    header
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn not_tar(error: io::Error) -> Refusal {
    bad(format!("not a whole tar file: {error}"))
}

fn short(name: &str) -> String {
    name.chars().take(100).collect()
}
