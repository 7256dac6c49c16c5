//! XLOG: checkpoints, counters, parameters, timelines and plain page images.
//!
//! Mirrors `xlog_redo` in `src/backend/access/transam/xlog.c`, `xlogrecovery_redo` in
//! `src/backend/access/transam/xlogrecovery.c` and `src/backend/access/rmgrdesc/xlogdesc.c`.
//!
//! | opcode | record               | block references                     |
//! |--------|----------------------|--------------------------------------|
//! | 0x00   | CHECKPOINT_SHUTDOWN  | none                                 |
//! | 0x10   | CHECKPOINT_ONLINE    | none                                 |
//! | 0x20   | NOOP                 | none                                 |
//! | 0x30   | NEXTOID              | none                                 |
//! | 0x40   | SWITCH               | none                                 |
//! | 0x50   | BACKUP_END           | none                                 |
//! | 0x60   | PARAMETER_CHANGE     | none                                 |
//! | 0x70   | RESTORE_POINT        | none                                 |
//! | 0x80   | FPW_CHANGE           | none                                 |
//! | 0x90   | END_OF_RECOVERY      | none                                 |
//! | 0xA0   | FPI_FOR_HINT         | one, with an image or without        |
//! | 0xB0   | FPI                  | one or more, each with an image      |
//! | 0xD0   | OVERWRITE_CONTRECORD | none                                 |
//!
//! There is nothing to mask: images are the pages themselves.

use std::fmt;

use super::{
    Change, Effect, PageState, Parameters, ReadMode, RedoSettings, RmgrError, Target, Touch,
    TouchKind, Touches,
};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::page::Page;
use crate::types::{CheckPoint, Cursor, Lsn, Oid, ShortRead, TimeLineId, TimestampTz};

/// `MAXFNAMELEN`: bytes kept for the name of a restore point, its end mark included.
const RESTORE_POINT_NAME_BYTES: usize = 64;

/// `XLOG_*` (`src/include/catalog/pg_control.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    CheckpointShutdown,
    CheckpointOnline,
    Noop,
    NextOid,
    Switch,
    BackupEnd,
    ParameterChange,
    RestorePoint,
    FpwChange,
    EndOfRecovery,
    FpiForHint,
    Fpi,
    OverwriteContrecord,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        Some(match info & INFO_RMGR_MASK {
            0x00 => Opcode::CheckpointShutdown,
            0x10 => Opcode::CheckpointOnline,
            0x20 => Opcode::Noop,
            0x30 => Opcode::NextOid,
            0x40 => Opcode::Switch,
            0x50 => Opcode::BackupEnd,
            0x60 => Opcode::ParameterChange,
            0x70 => Opcode::RestorePoint,
            0x80 => Opcode::FpwChange,
            0x90 => Opcode::EndOfRecovery,
            0xA0 => Opcode::FpiForHint,
            0xB0 => Opcode::Fpi,
            0xD0 => Opcode::OverwriteContrecord,
            _ => return None,
        })
    }

    /// The opcode of a record to be redone. PostgreSQL passes over codes it does not know; what
    /// such a record should have done would be missing, so here they are an error.
    fn of(record: &Record<'_>) -> Result<Opcode, RmgrError> {
        Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))
    }

    fn name(self) -> &'static str {
        match self {
            Opcode::CheckpointShutdown => "CHECKPOINT_SHUTDOWN",
            Opcode::CheckpointOnline => "CHECKPOINT_ONLINE",
            Opcode::Noop => "NOOP",
            Opcode::NextOid => "NEXTOID",
            Opcode::Switch => "SWITCH",
            Opcode::BackupEnd => "BACKUP_END",
            Opcode::ParameterChange => "PARAMETER_CHANGE",
            Opcode::RestorePoint => "RESTORE_POINT",
            Opcode::FpwChange => "FPW_CHANGE",
            Opcode::EndOfRecovery => "END_OF_RECOVERY",
            Opcode::FpiForHint => "FPI_FOR_HINT",
            Opcode::Fpi => "FPI",
            Opcode::OverwriteContrecord => "OVERWRITE_CONTRECORD",
        }
    }
}

/// Reads NEXTOID.
fn parse_next_oid(main: &[u8]) -> Result<Oid, ShortRead> {
    Cursor::new("NEXTOID", main).u32("nextOid").map(Oid)
}

/// Reads BACKUP_END: where the backup began.
fn parse_backup_end(main: &[u8]) -> Result<Lsn, ShortRead> {
    Cursor::new("BACKUP_END", main).u64("startpoint").map(Lsn)
}

/// Reads FPW_CHANGE: full_page_writes from here on.
fn parse_fpw_change(main: &[u8]) -> Result<bool, ShortRead> {
    Cursor::new("FPW_CHANGE", main).bool("fullPageWrites")
}

/// Reads PARAMETER_CHANGE (`xl_parameter_change`, 28 bytes with two of padding at the end).
fn parse_parameters(main: &[u8]) -> Result<Parameters, ShortRead> {
    let mut c = Cursor::new("xl_parameter_change", main);
    let parameters = Parameters {
        max_connections: c.i32("MaxConnections")?,
        max_worker_processes: c.i32("max_worker_processes")?,
        max_wal_senders: c.i32("max_wal_senders")?,
        max_prepared_xacts: c.i32("max_prepared_xacts")?,
        max_locks_per_xact: c.i32("max_locks_per_xact")?,
        wal_level: c.i32("wal_level")?,
        wal_log_hints: c.bool("wal_log_hints")?,
        track_commit_timestamp: c.bool("track_commit_timestamp")?,
    };
    c.skip("padding", 2)?;
    Ok(parameters)
}

/// Main data of RESTORE_POINT (`xl_restore_point`, 72 bytes). A target for recovery to stop at,
/// nothing to redo. The time at offset 0 is not printed.
#[doc(alias = "xl_restore_point")]
struct RestorePoint<'w> {
    /// Offset 8: up to the first zero byte, in the encoding of the server.
    name: &'w [u8],
}

impl<'w> RestorePoint<'w> {
    fn parse(main: &'w [u8]) -> Result<RestorePoint<'w>, ShortRead> {
        let mut c = Cursor::new("xl_restore_point", main);
        c.skip("rp_time", 8)?;
        let name = c.bytes("rp_name", RESTORE_POINT_NAME_BYTES)?;
        let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        Ok(RestorePoint { name: &name[..end] })
    }
}

/// Main data of END_OF_RECOVERY (`xl_end_of_recovery`, 16 bytes).
#[doc(alias = "xl_end_of_recovery")]
struct EndOfRecovery {
    /// Offset 0: when.
    end_time: TimestampTz,
    /// Offset 8: the timeline that begins.
    this_tli: TimeLineId,
    /// Offset 12: the timeline that ends.
    prev_tli: TimeLineId,
}

impl EndOfRecovery {
    fn parse(main: &[u8]) -> Result<EndOfRecovery, ShortRead> {
        let mut c = Cursor::new("xl_end_of_recovery", main);
        Ok(EndOfRecovery {
            end_time: TimestampTz(c.i64("end_time")?),
            this_tli: TimeLineId(c.u32("ThisTimeLineID")?),
            prev_tli: TimeLineId(c.u32("PrevTimeLineID")?),
        })
    }
}

impl fmt::Display for EndOfRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tli {}; prev tli {}; time {}",
            self.this_tli, self.prev_tli, self.end_time
        )
    }
}

/// Main data of OVERWRITE_CONTRECORD (`xl_overwrite_contrecord`, 16 bytes).
#[doc(alias = "xl_overwrite_contrecord")]
struct OverwriteContrecord {
    /// Offset 0: the record that was given up.
    overwritten_lsn: Lsn,
    /// Offset 8: when.
    overwrite_time: TimestampTz,
}

impl OverwriteContrecord {
    fn parse(main: &[u8]) -> Result<OverwriteContrecord, ShortRead> {
        let mut c = Cursor::new("xl_overwrite_contrecord", main);
        Ok(OverwriteContrecord {
            overwritten_lsn: Lsn(c.u64("overwritten_lsn")?),
            overwrite_time: TimestampTz(c.i64("overwrite_time")?),
        })
    }
}

impl fmt::Display for OverwriteContrecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "lsn {}; time {}",
            self.overwritten_lsn, self.overwrite_time
        )
    }
}

/// The description of a checkpoint, which ends with its `kind`.
fn describe_checkpoint(main: &[u8], kind: &str) -> Result<String, ShortRead> {
    let c = CheckPoint::parse(main)?;
    Ok(format!(
        "redo {}; tli {}; prev tli {}; fpw {}; xid {}:{}; oid {}; multi {}; offset {}; \
         oldest xid {} in DB {}; oldest multi {} in DB {}; \
         oldest/newest commit timestamp xid: {}/{}; oldest running xid {}; {kind}",
        c.redo,
        c.this_tli,
        c.prev_tli,
        c.full_page_writes,
        c.next_xid.epoch(),
        c.next_xid.xid(),
        c.next_oid,
        c.next_multi,
        c.next_multi_offset,
        c.oldest_xid,
        c.oldest_xid_db,
        c.oldest_multi,
        c.oldest_multi_db,
        c.oldest_commit_ts_xid,
        c.newest_commit_ts_xid,
        c.oldest_active_xid,
    ))
}

fn describe_parameters(main: &[u8]) -> Result<String, ShortRead> {
    let p = parse_parameters(main)?;
    let wal_level = match p.wal_level {
        0 => "minimal",
        1 => "replica",
        2 => "logical",
        _ => "?",
    };
    let on_off = |on| if on { "on" } else { "off" };
    Ok(format!(
        "max_connections={} max_worker_processes={} max_wal_senders={} max_prepared_xacts={} \
         max_locks_per_xact={} wal_level={wal_level} wal_log_hints={} track_commit_timestamp={}",
        p.max_connections,
        p.max_worker_processes,
        p.max_wal_senders,
        p.max_prepared_xacts,
        p.max_locks_per_xact,
        on_off(p.wal_log_hints),
        on_off(p.track_commit_timestamp),
    ))
}

/// `xlog_identify`.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(Opcode::name)
}

/// `xlog_desc`. An unknown operation has no description.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let Some(opcode) = Opcode::from_info(record.info) else {
        return Ok(());
    };
    let main = record.main_data;
    let text = match opcode {
        Opcode::CheckpointShutdown => describe_checkpoint(main, "shutdown")?,
        Opcode::CheckpointOnline => describe_checkpoint(main, "online")?,
        Opcode::NextOid => parse_next_oid(main)?.to_string(),
        Opcode::BackupEnd => parse_backup_end(main)?.to_string(),
        Opcode::ParameterChange => describe_parameters(main)?,
        Opcode::RestorePoint => String::from_utf8_lossy(RestorePoint::parse(main)?.name).into(),
        Opcode::FpwChange => parse_fpw_change(main)?.to_string(),
        Opcode::EndOfRecovery => EndOfRecovery::parse(main)?.to_string(),
        Opcode::OverwriteContrecord => OverwriteContrecord::parse(main)?.to_string(),
        Opcode::Noop | Opcode::Switch | Opcode::FpiForHint | Opcode::Fpi => String::new(),
    };
    out.push_str(&text);
    Ok(())
}

/// Images are all that redo of XLOG records does to pages. A hint-bit image is left out when
/// full_page_writes was off: the hint then is lost, and the page is not even read.
pub(super) fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    let opcode = Opcode::of(record)?;
    for block in &record.blocks {
        match (opcode, block.image) {
            (Opcode::Fpi | Opcode::FpiForHint, Some(image)) if image.apply => out.push(Touch {
                tag: block.tag,
                kind: TouchKind::Image,
                read: ReadMode::Normal,
                target: Target::Block(block.id),
            }),
            (Opcode::FpiForHint, None) => {}
            (Opcode::Fpi | Opcode::FpiForHint, _) => {
                return Err(RmgrError::corrupt(format!(
                    "block reference {} of {} has no image to restore",
                    block.id,
                    opcode.name()
                )));
            }
            _ => {
                return Err(RmgrError::corrupt(format!(
                    "{} has a block reference",
                    opcode.name()
                )));
            }
        }
    }
    Ok(())
}

/// `xlog_redo` for images: restoring them is all there is to do.
pub(super) fn redo(
    record: &Record<'_>,
    _touch: &Touch,
    state: PageState,
    _page: &mut Page,
    _settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    match (Opcode::of(record)?, state) {
        (Opcode::Fpi | Opcode::FpiForHint, PageState::Restored) => Ok(Effect::none()),
        (opcode, _) => Err(RmgrError::corrupt(format!(
            "{} on a page that was not restored from an image",
            opcode.name()
        ))),
    }
}

/// `xlog_redo` and `xlogrecovery_redo` for everything else.
pub(super) fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    let main = record.main_data;
    out.push(match Opcode::of(record)? {
        Opcode::CheckpointShutdown => Change::ShutdownCheckpoint(CheckPoint::parse(main)?),
        Opcode::CheckpointOnline => Change::OnlineCheckpoint(CheckPoint::parse(main)?),
        Opcode::NextOid => Change::NextOid(parse_next_oid(main)?),
        Opcode::BackupEnd => Change::BackupEnd {
            start: parse_backup_end(main)?,
        },
        Opcode::ParameterChange => Change::Parameters(parse_parameters(main)?),
        Opcode::FpwChange => Change::FullPageWrites(parse_fpw_change(main)?),
        Opcode::EndOfRecovery => {
            let xlrec = EndOfRecovery::parse(main)?;
            Change::EndOfRecovery {
                time: xlrec.end_time.0,
                this_tli: xlrec.this_tli,
                prev_tli: xlrec.prev_tli,
            }
        }
        Opcode::OverwriteContrecord => Change::OverwriteContrecord {
            overwritten: OverwriteContrecord::parse(main)?.overwritten_lsn,
        },
        Opcode::Noop | Opcode::Switch | Opcode::RestorePoint | Opcode::FpiForHint | Opcode::Fpi => {
            return Ok(());
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::btree::testing::{Noise, block, desc, record, redo_block_in};
    use crate::types::FullTransactionId;

    /// The main data of a record with each opcode that has some, and its text.
    fn samples() -> Vec<(u8, Vec<u8>, &'static str)> {
        let checkpoint = CheckPoint {
            redo: Lsn(0x1_5000_0028),
            this_tli: TimeLineId(2),
            prev_tli: TimeLineId(1),
            full_page_writes: true,
            next_xid: FullTransactionId(0x1_0000_02E0),
            next_oid: Oid(24576),
            oldest_xid_db: Oid(1),
            ..CheckPoint::default()
        }
        .to_bytes();
        let shutdown = "redo 1/50000028; tli 2; prev tli 1; fpw true; xid 1:736; oid 24576; \
                        multi 0; offset 0; oldest xid 0 in DB 1; oldest multi 0 in DB 0; \
                        oldest/newest commit timestamp xid: 0/0; oldest running xid 0; shutdown";
        let online = "redo 1/50000028; tli 2; prev tli 1; fpw true; xid 1:736; oid 24576; \
                      multi 0; offset 0; oldest xid 0 in DB 1; oldest multi 0 in DB 0; \
                      oldest/newest commit timestamp xid: 0/0; oldest running xid 0; online";
        let mut parameters = Vec::new();
        for n in [100i32, 8, 10, -1, 64, 1] {
            parameters.extend(n.to_le_bytes());
        }
        parameters.extend([1, 0, 0, 0]);
        let mut restore_point = vec![0; 72];
        restore_point[8..14].copy_from_slice(b"before");
        vec![
            (0x00, checkpoint.to_vec(), shutdown),
            (0x10, checkpoint.to_vec(), online),
            (0x30, vec![0, 0x80, 0, 0], "32768"),
            (0x50, vec![0x28, 0, 0, 2, 0, 0, 0, 0], "0/2000028"),
            (
                0x60,
                parameters,
                "max_connections=100 max_worker_processes=8 max_wal_senders=10 \
                 max_prepared_xacts=-1 max_locks_per_xact=64 wal_level=replica wal_log_hints=on \
                 track_commit_timestamp=off",
            ),
            (0x70, restore_point, "before"),
            (0x80, vec![0], "false"),
        ]
    }

    fn changes_of(record: &Record<'_>) -> Result<Vec<String>, RmgrError> {
        let mut out = Vec::new();
        changes(record, &mut out)?;
        Ok(out.iter().map(|change| format!("{change:?}")).collect())
    }

    #[test]
    fn texts_are_those_of_pg_waldump() {
        for (info, main, text) in samples() {
            assert_eq!(desc(&record("XLOG", info, &main, &[])).as_deref(), Ok(text));
        }
        for info in [0x20, 0x40, 0xA0, 0xB0, 0xC0] {
            assert_eq!(desc(&record("XLOG", info, &[], &[])).as_deref(), Ok(""));
        }
        let mut main = [0; 16];
        main[8] = 3;
        main[12] = 2;
        let time = TimestampTz(0).to_string();
        let text = desc(&record("XLOG", 0x90, &main, &[])).unwrap();
        assert_eq!(text, format!("tli 3; prev tli 2; time {time}"));
        main = [0; 16];
        main[..4].copy_from_slice(&[0x18, 0xFF, 0xFF, 1]);
        let text = desc(&record("XLOG", 0xD0, &main, &[])).unwrap();
        assert_eq!(text, format!("lsn 0/1FFFF18; time {time}"));
    }

    #[test]
    fn names_follow_the_opcodes() {
        let names: Vec<_> = (0..16).map(|high| identify(high << 4 | 0x0F)).collect();
        assert_eq!(names[0], Some("CHECKPOINT_SHUTDOWN"));
        assert_eq!(names[10], Some("FPI_FOR_HINT"));
        assert_eq!(names[12], None);
        assert_eq!(names[13], Some("OVERWRITE_CONTRECORD"));
        assert_eq!(names.iter().flatten().count(), 13);
    }

    #[test]
    fn changes_carry_what_the_record_says() {
        let debug = |change: Change<'_>| vec![format!("{change:?}")];
        for (info, main, _) in samples() {
            let got = changes_of(&record("XLOG", info, &main, &[])).unwrap();
            let expected = match info {
                0x00 => debug(Change::ShutdownCheckpoint(
                    CheckPoint::parse(&main).unwrap(),
                )),
                0x10 => debug(Change::OnlineCheckpoint(CheckPoint::parse(&main).unwrap())),
                0x30 => debug(Change::NextOid(Oid(32768))),
                0x50 => debug(Change::BackupEnd {
                    start: Lsn(0x200_0028),
                }),
                0x60 => debug(Change::Parameters(Parameters {
                    max_connections: 100,
                    max_worker_processes: 8,
                    max_wal_senders: 10,
                    max_prepared_xacts: -1,
                    max_locks_per_xact: 64,
                    wal_level: 1,
                    wal_log_hints: true,
                    track_commit_timestamp: false,
                })),
                0x80 => debug(Change::FullPageWrites(false)),
                _ => vec![],
            };
            assert_eq!(got, expected, "{info:#x}");
        }
        let main = [9, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0];
        assert_eq!(
            changes_of(&record("XLOG", 0x90, &main, &[])).unwrap(),
            debug(Change::EndOfRecovery {
                time: 9,
                this_tli: TimeLineId(3),
                prev_tli: TimeLineId(2),
            })
        );
        assert_eq!(
            changes_of(&record("XLOG", 0xD0, &main, &[])).unwrap(),
            debug(Change::OverwriteContrecord {
                overwritten: Lsn(9)
            })
        );
        let unknown = changes_of(&record("XLOG", 0xC0, &main, &[]));
        assert_eq!(unknown, Err(RmgrError::UnknownOpcode(0xC0)));
    }

    #[test]
    fn every_truncation_is_an_error() {
        let mut all = samples();
        all.push((0x90, vec![0; 16], ""));
        all.push((0xD0, vec![0; 16], ""));
        for (info, main, _) in all {
            for len in 0..main.len() {
                let record = record("XLOG", info, &main[..len], &[]);
                assert!(desc(&record).is_err(), "{info:#x} {len}");
                // Restore points change nothing, so nothing of them is read.
                assert_eq!(
                    changes_of(&record).is_err(),
                    info != 0x70,
                    "{info:#x} {len}"
                );
            }
        }
    }

    #[test]
    fn only_images_touch_pages() {
        let touched = |info, blocks: &[_]| {
            let mut out = Touches::new();
            touches(&record("XLOG", info, &[], blocks), &mut out).map(|()| out)
        };
        let with = block(0, 7, &[]).with_image(true);
        let without = block(1, 8, &[]);
        let fpi = touched(0xB0, &[with]).unwrap();
        assert_eq!(fpi.len(), 1);
        assert_eq!((fpi[0].kind, fpi[0].tag.block), (TouchKind::Image, 7));
        assert_eq!(touched(0xA0, &[with]).unwrap(), fpi);
        assert!(touched(0xA0, &[without]).unwrap().is_empty());
        for (info, block) in [
            (0xB0, without),
            (0xB0, block(0, 7, &[]).with_image(false)),
            (0xA0, block(0, 7, &[]).with_image(false)),
            (0x20, with),
        ] {
            assert!(touched(info, &[block]).is_err(), "{info:#x}");
        }
    }

    #[test]
    fn redo_leaves_restored_pages_alone_and_accepts_no_others() {
        let mut page = Page::zeroed();
        for info in [0xA0, 0xB0] {
            let record = record("XLOG", info, &[], &[block(0, 0, &[]).with_image(true)]);
            let mut redo = |state| redo_block_in(state, &record, 0, &mut page);
            assert_eq!(redo(PageState::Restored), Ok(Effect::none()));
            assert!(redo(PageState::Needs).is_err());
            assert!(redo(PageState::Done).is_err());
        }
    }

    #[test]
    fn noise_is_never_a_panic() {
        let mut noise = Noise(1);
        for i in 0..2000u32 {
            let main = noise.bytes(i as usize % 100);
            let record = record("XLOG", noise.next() as u8, &main, &[]);
            let _ = desc(&record);
            let _ = changes_of(&record);
        }
    }
}
