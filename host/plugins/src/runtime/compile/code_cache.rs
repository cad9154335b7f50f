//! Cache of machine code on disk: a folder in which each file begins with a MAC.
//!
//! Machine code is trusted like this program. A file is used only if a host with the same master
//! key wrote it for this component and engine. It is verified after it was read into memory.

use std::{
    fmt, fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use tempfile::NamedTempFile;

use tollhouse_platform::crypto::seal::Sealer;

/// Purpose of the MACs, which also cover file name and code.
const MAC_PURPOSE: &[u8] = b"plugin code";
const LINE_END: u8 = b'\n';

/// A code cache; cheap to clone.
#[derive(Clone)]
pub struct CodeCache {
    folder: PathBuf,
    /// Its master key authenticates the files.
    sealer: Sealer,
}

impl fmt::Debug for CodeCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeCache").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl CodeCache {
    pub fn new(folder: PathBuf, sealer: Sealer) -> CodeCache {
        CodeCache { folder, sealer }
    }

    /// Creates the folder if it is missing. Returns whether only this user can write to it.
    pub(crate) fn is_usable(&self) -> bool {
        let reason = match make_private(&self.folder) {
            Ok(()) => unusable_reason(&self.folder),
            Err(error) => Some(error.to_string()),
        };
        let Some(reason) = reason else { return true };
        let folder = self.folder.display();
        tracing::warn!(%folder, reason, "code cache is not used");
        false
    }

    /// Returns the code of a file if its MAC is valid for this name.
    pub fn read(&self, name: &str) -> Option<Bytes> {
        let kept = match fs::read(self.folder.join(name)) {
            Ok(kept) => Bytes::from(kept),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.warn_unused(name, &error.to_string());
                return None;
            }
        };
        let code = self.verify(name, &kept);
        if code.is_none() {
            self.warn_unused(name, "no host with this master key has written it");
        }
        code
    }

    fn verify(&self, name: &str, kept: &Bytes) -> Option<Bytes> {
        let end = memchr::memchr(LINE_END, kept)?;
        let (mac, code) = (std::str::from_utf8(&kept[..end]).ok()?, kept.slice(end + 1..));
        self.sealer.verify_digest(mac, &[MAC_PURPOSE, name.as_bytes(), &code[..]]).then_some(code)
    }

    /// Stores the code of a component. A failure is only logged.
    pub fn store(&self, name: &str, code: &[u8]) {
        let mac = self.sealer.digest(&[MAC_PURPOSE, name.as_bytes(), code]);
        let file = self.folder.join(name);
        if let Err(error) = write_atomically(&[mac.as_bytes(), &[LINE_END], code], &file) {
            tracing::warn!(file = %file.display(), %error, "compiled component could not be cached");
        }
    }

    pub(crate) fn warn_unused(&self, name: &str, reason: &str) {
        let file = self.folder.join(name);
        tracing::warn!(file = %file.display(), reason, "cached machine code is not used; recompiling");
    }
}

/// Replaces `file` atomically, despite crashes and concurrent writers.
fn write_atomically(parts: &[&[u8]], file: &Path) -> io::Result<()> {
    let mut unfinished = NamedTempFile::new_in(file.parent().unwrap_or(Path::new(".")))?;
    parts.iter().try_for_each(|part| unfinished.write_all(part))?;
    unfinished.as_file().sync_all()?;
    unfinished.persist(file)?;
    Ok(())
}

/// Returns why the folder is not used. A missing folder is created when it is needed.
pub fn unusable_reason(folder: &Path) -> Option<String> {
    match fs::metadata(folder) {
        Ok(found) if !found.is_dir() => Some(format!("{} is not a folder", folder.display())),
        Ok(found) if is_private(&found) => None,
        Ok(_) => Some(
            "it belongs to another user or is writable by others: empty it, own it, and set its mode to 0700"
                .to_owned(),
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(error.to_string()),
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn is_private(folder: &fs::Metadata) -> bool {
    folder.uid() == rustix::process::geteuid().as_raw() && folder.mode() & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollhouse_platform::random::Random;

    fn cache(folder: &Path) -> CodeCache {
        let sealer = Sealer::new(&"07".repeat(32), Random::seeded(1));
        CodeCache::new(folder.to_owned(), sealer.unwrap())
    }

    #[test]
    fn stored_code_is_read_under_its_own_name_only() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        for code in [&b"code\nwith a line end"[..], b""] {
            cache.store("a", code);
            assert_eq!(cache.read("a").as_deref(), Some(code));
        }
        cache.store("b", b"another code");
        fs::copy(folder.path().join("b"), folder.path().join("a")).unwrap();
        assert_eq!(cache.read("a"), None);
        fs::write(folder.path().join("a"), "code").unwrap();
        assert_eq!(cache.read("a"), None);
    }

    #[test]
    fn a_file_is_written_despite_an_unfinished_one_of_another_writer() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("d.cwasm");
        let theirs = NamedTempFile::new_in(&folder).unwrap();
        write_atomically(&[b"co", b"de"], &file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"code");
        assert_eq!(fs::read(&theirs).unwrap(), b"");
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 2);
    }

    #[test]
    fn a_folder_writable_by_others_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let is_ours = |folder: &Path| cache(folder).is_usable();
        let inside = folder.path().join("a/b");
        assert!(is_ours(&inside) && is_ours(&inside));
        for (mode, ours) in [(0o770, false), (0o707, false), (0o755, true), (0o700, true)] {
            fs::set_permissions(&inside, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_ours(&inside), ours, "{mode:o}");
        }
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(!is_ours(&folder.path().join("file")));
    }
}
