//! Temporary files for download, in a local folder or in an S3-compatible bucket for all hosts.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{StreamExt, stream::BoxStream};
pub use object_store::buffered::BufWriter;
use object_store::{
    ObjectStore, ObjectStoreExt, aws::AmazonS3Builder, local::LocalFileSystem, path::Path,
};

use crate::{clock::Timestamp, crypto::tls, random::Random};

/// Size of an upload part. At most two parts of a file are in memory.
const PART_BYTES: usize = 8 << 20;
/// Age at which a file is swept from a folder: its link has expired, or its host crashed.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// The location of files is invalid, or they cannot be read or written now.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("files must be a folder or s3://BUCKET[/PREFIX]")]
    InvalidLocation,
    #[error("{0}")]
    Store(#[from] object_store::Error),
    #[error("{0}")]
    Folder(#[from] io::Error),
}

pub type Result<T> = std::result::Result<T, FilesError>;

/// The location of files. Cheap to clone.
#[derive(Clone)]
pub enum Files {
    /// Created on first use.
    Folder(PathBuf),
    Bucket {
        store: Arc<dyn ObjectStore>,
        prefix: Path,
    },
}

impl Files {
    /// Opens `s3://BUCKET[/PREFIX]`, with region, endpoint and credentials from the standard
    /// `AWS_…` variables, or a folder. Does not connect yet.
    pub fn new(place: &str) -> Result<Files> {
        let Some(bucket) = place.strip_prefix("s3://") else {
            let is_folder = !place.is_empty() && !place.contains("://");
            let folder = is_folder.then(|| Files::Folder(place.into()));
            return folder.ok_or(FilesError::InvalidLocation);
        };
        let (bucket, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
        if bucket.is_empty() {
            return Err(FilesError::InvalidLocation);
        }
        tls::install_provider();
        let store = AmazonS3Builder::from_env().with_bucket_name(bucket).build()?;
        Ok(Files::Bucket { store: Arc::new(store), prefix: prefix.into() })
    }

    /// Creates a file, which appears only when it is finished.
    pub fn create(&self, name: &str) -> Result<BufWriter> {
        let (store, path) = self.locate(name)?;
        Ok(BufWriter::with_capacity(store, path, PART_BYTES).with_max_concurrency(1))
    }

    /// Returns the bytes of a file; `None` if it does not exist.
    pub async fn read(&self, name: &str) -> Result<Option<BoxStream<'static, io::Result<Bytes>>>> {
        let (store, path) = self.locate(name)?;
        match store.get(&path).await {
            Ok(found) => {
                Ok(Some(found.into_stream().map(|part| part.map_err(io::Error::other)).boxed()))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file if it exists, and in a folder also what a crashed host left of it.
    pub async fn remove(&self, name: &str) -> Result<()> {
        let (store, path) = self.locate(name)?;
        if let Files::Folder(folder) = self {
            match fs::remove_file(folder.join(format!("{name}#1"))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        match store.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes generated files older than 24 hours from a folder, and returns their number. Other
    /// files stay. A bucket needs a lifecycle rule of its own.
    pub fn sweep(&self, now: Timestamp) -> Result<u64> {
        let Files::Folder(folder) = self else { return Ok(0) };
        let files = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            files => files?,
        };
        let mut swept = 0;
        for file in files {
            let file = file?;
            if is_generated_name(&file.file_name().to_string_lossy())
                && let Ok(changed) = file.metadata().and_then(|about| about.modified())
                && DateTime::<Utc>::from(changed) < now.to_datetime() - MAX_AGE
            {
                // Another host may have removed it first.
                swept += u64::from(fs::remove_file(file.path()).is_ok());
            }
        }
        Ok(swept)
    }

    fn locate(&self, name: &str) -> Result<(Arc<dyn ObjectStore>, Path)> {
        match self {
            Files::Bucket { store, prefix } => Ok((store.clone(), prefix.clone().join(name))),
            Files::Folder(folder) => {
                // The files contain personal data: only this user may read them.
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                let store = LocalFileSystem::new_with_prefix(folder)?;
                Ok((Arc::new(store), name.into()))
            }
        }
    }
}

/// Returns an unguessable name for a new file.
pub fn new_name(random: &Random) -> String {
    format!("{}.csv", hex::encode(random.bytes::<20>()))
}

/// Returns whether [`new_name`] made a name. Incomplete files have `#` and a number behind it.
fn is_generated_name(name: &str) -> bool {
    let name = name.split_once('#').map_or(name, |(name, _)| name);
    let digits = name.strip_suffix(".csv").unwrap_or_default();
    digits.len() == 40 && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_folder_or_a_bucket() {
        for (place, fine) in [
            ("files", true),
            ("/var/lib/tollhouse/files", true),
            ("s3://bucket", true),
            ("s3://bucket/a/prefix", true),
            ("", false),
            ("s3://", false),
            ("s3:///prefix", false),
            ("https://bucket.example", false),
        ] {
            assert_eq!(Files::new(place).is_ok(), fine, "{place}");
        }
    }

    #[test]
    fn only_generated_file_names_are_recognized() {
        let name = new_name(&Random::seeded(1));
        assert!(is_generated_name(&name) && is_generated_name(&format!("{name}#1")), "{name}");
        for other in ["tollhouse.db", "tollhouse.db-lock", "backup.csv", "", "x", &name[1..], "#1"]
        {
            assert!(!is_generated_name(other), "{other}");
        }
    }
}
