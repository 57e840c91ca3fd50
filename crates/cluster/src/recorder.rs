//! Records a cluster: a `List` in kubectl's format with reduced objects, and a header with the time
//! and the cluster.
//!
//! Objects are reduced as they arrive and collected in a spool (in memory, on disk when they are
//! many), because a list that expires in the middle starts again. Only the file's owner can read
//! it: templates may contain secrets. Not here: the fields that are kept (`slim`).

mod slim;

use std::ffi::OsStr;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde_json::Value;
use tempfile::{NamedTempFile, SpooledTempFile};

use super::decode::{Encoded, KUBE_SYSTEM};
use super::header::{self, Header, HeaderCluster};
use super::list::{List, Sink};
use super::live::{LiveCluster, Records, Scope};
use super::request::Accept;
use super::{Error, Kind, ObjectError};
use daemonset::model::mask::Salt;
use daemonset::model::{FAILED_TEMPLATES_ANNOTATION, STEPS_ANNOTATION, Uid};
use host::special_file;

/// The annotations of the leases that are recorded: other controllers hold leases, too.
const LEASE_ANNOTATIONS: [&str; 2] = [FAILED_TEMPLATES_ANNOTATION, STEPS_ANNOTATION];

/// The bytes of one list that are kept in memory.
const IN_MEMORY: usize = 8 << 20;

/// The recorded objects of a cluster, ready to be written.
#[derive(Debug)]
pub struct Recorded {
    header: Header,
    spools: Vec<(Kind, Spool)>,
}

impl LiveCluster {
    /// Reads the cluster for a recording. With a salt, secret values in templates and revisions
    /// are replaced by digests. `now` is the local time, for a server that sends no `Date`.
    ///
    /// # Errors
    /// As [`LiveCluster::snapshot`]; or the spool cannot be written.
    pub async fn record(
        &self,
        scope: &Scope,
        mask: Option<Salt>,
        now: Timestamp,
    ) -> Result<Recorded, Error> {
        let spool = || Spool::new(self.requests.server.clone(), mask);
        let mut lists = self.lists(scope, Records::WhereSeen, spool).await?;
        lists.read.extend(self.read_all(scope.pod_warnings(), &spool).await?);
        let uid = lists.read.iter().find_map(|(_, spool)| spool.kube_system.clone());
        let [services, leases] = [Kind::Service, Kind::Lease].map(|kind| lists.has_all(kind));
        let header = Header {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            observed_at: self.requests.server_clock().unwrap_or(now),
            cluster: HeaderCluster {
                name: self.name().map(str::to_owned),
                uid,
                version: lists.version,
            },
            scope: scope.namespaces(),
            all_namespaces: lists.namespaces,
            services,
            leases,
            records: lists.records,
            salt: mask,
        };
        let spools = lists.read.into_iter().map(|(List { kind, .. }, spool)| (kind, spool));
        Ok(Recorded { header, spools: spools.collect() })
    }
}

impl Recorded {
    /// The same with this salt in its header: its values were masked before the cluster was read,
    /// as in the copy of a masked recording.
    #[must_use]
    pub fn masked_before(mut self, salt: Option<Salt>) -> Self {
        self.header.salt = self.header.salt.or(salt);
        self
    }

    /// The number of objects of each kind.
    pub fn counts(&self) -> Vec<(Kind, usize)> {
        let of = |kind| self.spools.iter().filter(move |(of, _)| *of == kind);
        Kind::ALL
            .into_iter()
            .map(|kind| (kind, of(kind).map(|(_, spool)| spool.objects).sum()))
            .collect()
    }

    /// Writes it to a file atomically, compressed when the name ends in `.gz`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(self, path: &Path) -> Result<(), Error> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let write = || -> io::Result<()> {
            if let Some(stream) = special_file::open(path)? {
                let mut plain = BufWriter::new(stream);
                self.write(&mut plain)?;
                return plain.flush();
            }
            // Temporary files are readable only by their owner; persisting keeps the mode.
            let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
            if path.extension() == Some(OsStr::new("gz")) {
                let mut packed = GzEncoder::new(BufWriter::new(&mut file), Compression::default());
                self.write(&mut packed)?;
                packed.finish()?.flush()?;
            } else {
                let mut plain = BufWriter::new(&mut file);
                self.write(&mut plain)?;
                plain.flush()?;
            }
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(Error::Write)
    }

    /// Writes it as JSON, one object per line.
    ///
    /// # Errors
    /// `out` cannot be written, or the spool cannot be read.
    pub fn write_to(self, out: impl Write) -> Result<(), Error> {
        self.write(out).map_err(Error::Write)
    }

    fn write(self, mut out: impl Write) -> io::Result<()> {
        let header = serde_json::to_string(&self.header)?;
        write!(out, r#"{{"apiVersion":"v1","kind":"List","{}":{header},"#, header::KEY)?;
        out.write_all(br#""items":["#)?;
        let mut separator = "\n";
        for (_, mut spool) in self.spools.into_iter().filter(|(_, spool)| spool.objects > 0) {
            out.write_all(separator.as_bytes())?;
            spool.copy_to(&mut out)?;
            separator = ",\n";
        }
        out.write_all(b"\n]}\n")
    }
}

/// The reduced objects of one list, one per line, separated by commas.
#[derive(Debug)]
struct Spool {
    server: Arc<str>,
    mask: Option<Salt>,
    file: SpooledTempFile,
    objects: usize,
    kube_system: Option<Uid>,
    record: bool,
}

impl Spool {
    fn new(server: Arc<str>, mask: Option<Salt>) -> Self {
        let file = SpooledTempFile::new(IN_MEMORY);
        Self { server, mask, file, objects: 0, kube_system: None, record: false }
    }

    fn copy_to(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.file.rewind()?;
        io::copy(&mut self.file, out)?;
        Ok(())
    }

    fn append(&mut self, object: &Value) -> io::Result<()> {
        if self.objects > 0 {
            self.file.write_all(b",\n")?;
        }
        self.objects += 1;
        serde_json::to_writer(&mut self.file, object)?;
        Ok(())
    }
}

impl Sink for Spool {
    /// Always JSON, of which a recording keeps parts.
    fn accepts(_kind: Kind) -> Accept {
        Accept::Json
    }

    fn object(&mut self, kind: Kind, index: usize, object: Encoded<'_>) -> Result<(), Error> {
        let read = |json| serde_json::from_str(json).map_err(|error| error.to_string());
        let whole: Value = object.json().and_then(read).map_err(|reason| Error::Object {
            origin: self.server.clone(),
            object: ObjectError { kind, index, name: None, path: String::new(), reason },
        })?;
        let metadata = &whole["metadata"];
        if kind == Kind::Namespace && metadata["name"] == KUBE_SYSTEM {
            self.kube_system = metadata["uid"].as_str().map(Uid::from);
        }
        let has_note = |key: &&str| !metadata["annotations"][*key].is_null();
        if kind == Kind::Lease && !LEASE_ANNOTATIONS.iter().any(has_note) {
            return Ok(());
        }
        if kind == Kind::Event && !is_pod_warning(&whole) {
            return Ok(());
        }
        if kind == Kind::ControllerRevision {
            let mut owners = metadata["ownerReferences"].as_array().into_iter().flatten();
            self.record |= owners.any(|owner| owner["kind"] == Kind::DaemonSetRecord.as_str());
        }
        self.append(&slim::slim(kind, whole, self.mask.as_ref())).map_err(Error::Write)
    }

    /// Only pages of protobuf are decoded apart, of which a recording has no objects.
    fn append(&mut self, page: Self) {
        debug_assert_eq!(page.objects, 0, "an object of protobuf is an error");
    }

    fn has_seen_record(&self) -> bool {
        self.record
    }
}

/// Whether an event matches the field selector, which not every server evaluates.
fn is_pod_warning(event: &Value) -> bool {
    event["involvedObject"]["kind"] == "Pod" && event["type"] == "Warning"
}
