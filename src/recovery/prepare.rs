//! Before anything is written: what the directory is, where redo starts, and where the WAL ends.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Observer, RecoveryError, RecoveryOptions, Refusal};
use crate::decode::Record;
use crate::format::WalFormat;
use crate::pgdata::DataDir;
use crate::pgdata::control::{CONTROL_FILE_BYTES, CONTROL_FILE_PATH, ControlFile, DbState};
use crate::pgdata::lockfile::{self, LockFile};
use crate::redo::RedoError;
use crate::rmgr::{self, Change};
use crate::sys::{Kernel, found};
use crate::types::{CheckPoint, Lsn, RmgrId};
use crate::wal::{
    Batch, EndOfWal, EndReason, History, LaterWal, RawRecord, SegmentSource, WalLayout, WalReader,
};

/// Records and bytes read at a time.
pub(super) const BATCH_RECORDS: usize = 1 << 16;
pub(super) const BATCH_BYTES: usize = 16 << 20;

const MAX_VERSION_BYTES: u64 = 64;

/// Files that ask for another kind of recovery.
const ARCHIVE_RECOVERY_FILES: [&str; 4] = [
    "backup_label",
    "recovery.signal",
    "standby.signal",
    "recovery.conf",
];

/// What [`Recovery::prepare`] found.
#[derive(Debug)]
pub enum Prepared {
    /// The cluster was shut down; there is nothing to do, and nothing was done.
    NothingToDo(Box<ControlFile>),
    /// A recovery can begin.
    Ready(Box<Recovery>),
}

/// All of the WAL that will be replayed, read once.
#[derive(Debug, Clone)]
pub struct Survey {
    /// Records from the start of redo on.
    pub records: u64,
    /// Start of the last record, or of the checkpoint if there is none.
    pub last_record: Lsn,
    /// Where and why the WAL ends.
    pub end: EndOfWal,
    /// WAL that exists after its end.
    pub later: LaterWal,
    /// Locations of the tablespaces that records create, those inside the data directory left out.
    pub tablespaces: Vec<PathBuf>,
}

/// A recovery that was prepared.
#[derive(Debug)]
pub struct Recovery {
    pub(super) dir: DataDir,
    pub(super) options: RecoveryOptions,
    pub(super) control: ControlFile,
    pub(super) checkpoint: CheckPoint,
    pub(super) checkpoint_lsn: Lsn,
    pub(super) source: SegmentSource,
    /// Where the first record to redo is looked for.
    pub(super) redo_start: Lsn,
    pub(super) survey: Survey,
}

impl Recovery {
    /// Looks at the directory and reads the WAL. Nothing is written.
    pub fn prepare(
        kernel: &Kernel,
        options: RecoveryOptions,
        observer: &mut dyn Observer,
    ) -> Result<Prepared, RecoveryError> {
        let root = options.data_directory.clone();
        let control = read_control(kernel, &root, options.strict, observer)?;
        check_version(kernel, &root, &control)?;
        let dir = DataDir::new(kernel.clone(), &root, control.format)?;
        match lockfile::check_lock_file(&dir).map_err(Refusal::from)? {
            LockFile::Absent => {}
            LockFile::Stale { pid } => {
                observer.log(&format!(
                    "lock file \"postmaster.pid\" is left over from process {pid}"
                ));
            }
        }
        for file in ARCHIVE_RECOVERY_FILES {
            if kernel.exists(&dir.path(file))? {
                return Err(Refusal::ArchiveRecovery(file).into());
            }
        }
        if control.state == DbState::Startup {
            return Err(Refusal::State(control.state).into());
        }
        if control.state == DbState::Shutdowned {
            return Ok(Prepared::NothingToDo(Box::new(control)));
        }
        let mut recovery = Recovery::locate(dir, options, control)?;
        recovery.survey = recovery.survey_wal()?;
        recovery.judge_end(observer)?;
        Ok(Prepared::Ready(Box::new(recovery)))
    }

    /// Finds the checkpoint and where redo starts.
    fn locate(
        dir: DataDir,
        options: RecoveryOptions,
        control: ControlFile,
    ) -> Result<Recovery, RecoveryError> {
        let layout = WalLayout {
            segment_bytes: control.xlog_seg_size.into(),
            system_identifier: control.system_identifier,
            format: control.format,
        };
        let mut directories = options.wal_directories.clone();
        directories.push(dir.path("pg_wal"));
        // Right after a promotion the checkpoint is still on the old timeline.
        let tli = control
            .min_recovery_point_tli
            .max(control.check_point_copy.this_tli);
        let history = History::load(dir.kernel(), &directories, tli)?;
        let source = SegmentSource::new(dir.kernel().clone(), layout, directories, history);
        let checkpoint_lsn = control.check_point;
        let (checkpoint, after) = read_checkpoint(&source, checkpoint_lsn)?;
        let bad = |why: String| Refusal::BadCheckpoint {
            lsn: checkpoint_lsn,
            why,
        };
        if source.history().timeline_of(checkpoint_lsn) != Some(checkpoint.this_tli) {
            let why = format!(
                "its timeline {} does not lead to {tli}",
                checkpoint.this_tli
            );
            return Err(bad(why).into());
        }
        if !checkpoint.next_xid.xid().is_normal() {
            return Err(bad("invalid next transaction ID".to_owned()).into());
        }
        let redo_start = match checkpoint.redo {
            redo if redo > checkpoint_lsn => {
                return Err(bad(format!("redo {redo} lies after it")).into());
            }
            redo if redo == checkpoint_lsn => after,
            redo => redo,
        };
        let end = EndOfWal {
            lsn: after,
            reason: EndReason::Limit,
            torn: None,
        };
        let later = LaterWal::default();
        let survey = Survey {
            records: 0,
            last_record: checkpoint_lsn,
            end,
            later,
            tablespaces: Vec::new(),
        };
        Ok(Recovery {
            dir,
            options,
            control,
            checkpoint,
            checkpoint_lsn,
            source,
            redo_start,
            survey,
        })
    }

    /// A reader at the first record to redo.
    pub(super) fn reader(&self) -> WalReader {
        let reader = WalReader::new(self.source.clone(), self.redo_start);
        if self.redo_start > self.checkpoint_lsn {
            // The record that follows the checkpoint must say so.
            return reader.following(self.checkpoint_lsn);
        }
        reader
    }

    /// Reads all WAL from the start of redo to its end, so that what forbids a recovery is known
    /// before the first write.
    fn survey_wal(&self) -> Result<Survey, RecoveryError> {
        let mut reader = self.reader();
        let mut batch = Batch::lean();
        let mut records = 0;
        let mut tablespaces = Vec::new();
        let mut scratch = Vec::new();
        let end = loop {
            reader.fill(&mut batch, BATCH_RECORDS, BATCH_BYTES)?;
            for (index, (lsn, rmid)) in batch.rmgrs().enumerate() {
                check_rmgr(rmid, lsn)?;
                if rmid == RmgrId::TABLESPACE {
                    let layout = self.source.layout();
                    let raw = batch.record_in(index, &mut scratch, layout);
                    tablespaces.extend(self.created_tablespace(raw)?);
                }
            }
            records += batch.len() as u64;
            if let Some(end) = batch.end() {
                break end.clone();
            }
        };
        if records == 0 && self.checkpoint.redo < self.checkpoint_lsn {
            return Err(Refusal::NoRedo {
                redo: self.checkpoint.redo,
                checkpoint: self.checkpoint_lsn,
                why: end.reason,
            }
            .into());
        }
        let later = reader.later_wal(&end)?;
        let last_record = match records {
            0 => self.checkpoint_lsn,
            _ => reader.last_record(),
        };
        Ok(Survey {
            records,
            last_record,
            end,
            later,
            tablespaces,
        })
    }

    fn created_tablespace(&self, raw: RawRecord<'_>) -> Result<Option<PathBuf>, RecoveryError> {
        let record = self.decode(raw)?;
        let mut changes = Vec::new();
        rmgr::changes(&record, &mut changes).map_err(|e| RedoError::new(&record, None, e))?;
        Ok(match changes.first() {
            Some(Change::CreateTablespace { path, .. }) if !path.is_empty() => {
                Some(PathBuf::from(OsStr::from_bytes(path)))
            }
            _ => None,
        })
    }

    /// Tells the crash's own end of WAL from damage.
    fn judge_end(&self, observer: &mut dyn Observer) -> Result<(), RecoveryError> {
        let end = &self.survey.end;
        if end.reason.is_foreign() {
            return Err(Refusal::ForeignWal(end.reason.clone()).into());
        }
        let layout = self.source.layout();
        if let Some(later) = self.survey.later.segments.first() {
            let text = format!(
                "WAL ends at {} ({}), but segment {} follows, which was begun only when everything \
                 before it was safe on disk: WAL is damaged or missing, and what it committed is \
                 lost unless a good copy is supplied",
                end.lsn,
                end.reason,
                later.file_name(layout)
            );
            if self.options.strict {
                return Err(Refusal::Strict(text).into());
            }
            observer.warning(&text);
        } else if let Some(page) = self.survey.later.last_page {
            observer.log(&format!(
                "valid WAL pages follow the end of WAL at {}, the last one at {page}; a crash may \
                 leave that behind",
                end.lsn
            ));
        }
        Ok(())
    }

    /// What reading the WAL found.
    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    /// The control file as it was found.
    pub fn control(&self) -> &ControlFile {
        &self.control
    }

    /// Where the first record to redo is.
    pub fn redo_start(&self) -> Lsn {
        self.redo_start
    }
}

fn read_control(
    kernel: &Kernel,
    root: &Path,
    strict: bool,
    observer: &mut dyn Observer,
) -> Result<ControlFile, RecoveryError> {
    let path = root.join(CONTROL_FILE_PATH);
    let Some(bytes) = found(kernel.read_file(&path, CONTROL_FILE_BYTES as u64))? else {
        return Err(Refusal::NotADataDirectory {
            path: root.to_owned(),
            why: "global/pg_control is missing".to_owned(),
        }
        .into());
    };
    let control = ControlFile::parse(&bytes).map_err(Refusal::from)?;
    if let Some(at) = control.first_stray_byte(&bytes) {
        let text = format!(
            "pg_control has a byte {:#04x} at {at}, where every server writes zeros: the file was \
             damaged, although not in its fields",
            bytes[at]
        );
        if strict {
            return Err(Refusal::Strict(text).into());
        }
        observer.warning(&text);
    }
    Ok(control)
}

/// PG_VERSION and pg_control must name the same major.
fn check_version(kernel: &Kernel, root: &Path, control: &ControlFile) -> Result<(), RecoveryError> {
    let path: PathBuf = root.join("PG_VERSION");
    let Some(bytes) = found(kernel.read_file(&path, MAX_VERSION_BYTES))? else {
        return Err(Refusal::NotADataDirectory {
            path: root.to_owned(),
            why: format!(
                "PG_VERSION is missing (supported majors: {})",
                WalFormat::supported()
            ),
        }
        .into());
    };
    let text = String::from_utf8_lossy(&bytes);
    let major = control.format.version;
    if text.trim_end() != major.0.to_string() {
        let file = text.lines().next().unwrap_or_default().to_owned();
        return Err(Refusal::Version {
            file,
            control: major.to_string(),
        }
        .into());
    }
    Ok(())
}

/// `ReadCheckpointRecord`: the checkpoint at `lsn`, and where the record after it is looked for.
fn read_checkpoint(source: &SegmentSource, lsn: Lsn) -> Result<(CheckPoint, Lsn), RecoveryError> {
    let none = |why: String| Refusal::NoCheckpoint { lsn, why };
    let mut reader = WalReader::new(source.clone(), lsn);
    let mut batch = Batch::new();
    reader.fill(&mut batch, 1, BATCH_BYTES)?;
    if batch.is_empty() {
        let why = batch
            .end()
            .map_or_else(String::new, |end| end.reason.to_string());
        return Err(none(why).into());
    }
    let raw = batch.record(0);
    let record = Record::decode(raw, source.layout().format).map_err(|e| none(e.to_string()))?;
    let mut changes = Vec::new();
    rmgr::changes(&record, &mut changes).map_err(|e| none(e.to_string()))?;
    match changes.first() {
        Some(Change::ShutdownCheckpoint(body)) if body.redo == lsn => Ok((*body, raw.end_lsn)),
        Some(Change::OnlineCheckpoint(body)) => Ok((*body, raw.end_lsn)),
        Some(Change::ShutdownCheckpoint(body)) => {
            let why = format!("shutdown checkpoint with redo {}", body.redo);
            Err(Refusal::BadCheckpoint { lsn, why }.into())
        }
        _ => Err(none(format!("the record there is {}", rmgr::identify(&record))).into()),
    }
}

/// A record that could not be redone must be known before the first write.
fn check_rmgr(id: RmgrId, lsn: Lsn) -> Result<(), Refusal> {
    match rmgr::rmgr(id) {
        Ok(_) => Ok(()),
        Err(_) => {
            let rmgr = format!("resource manager {id} of an extension");
            Err(Refusal::UnsupportedRmgr { lsn, rmgr })
        }
    }
}
