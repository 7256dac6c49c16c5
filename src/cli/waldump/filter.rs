//! Which records are wanted.

use super::super::error::CliError;
use super::args::{WaldumpArgs, scan_three, scan_u32};
use crate::decode::Record;
use crate::rmgr::RMGRS;
use crate::types::{BlockNumber, ForkNumber, Oid, RelFileLocator, RmgrId, TransactionId};

/// First id of the resource managers of extensions (`RM_MIN_CUSTOM_ID`).
pub(super) const FIRST_CUSTOM_RMGR: u8 = 128;

/// What a record must be or touch; all that is given must hold, for one and the same block where
/// it is about blocks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Filter {
    /// None means all.
    rmgrs: Vec<RmgrId>,
    xid: Option<TransactionId>,
    locator: Option<RelFileLocator>,
    fork: Option<ForkNumber>,
    block: Option<BlockNumber>,
    /// It has a page image.
    fullpage: bool,
}

impl Filter {
    pub(super) fn from_args(args: &WaldumpArgs) -> Result<Filter, CliError> {
        let rmgrs: Result<_, CliError> = args.rmgr.iter().map(|name| rmgr_named(name)).collect();
        let filter = Filter {
            rmgrs: rmgrs?,
            xid: given(
                &args.xid,
                |text| scan_u32(text).map(TransactionId),
                |text| {
                    CliError::bad_argument(format!(
                        "invalid transaction ID specification: \"{text}\""
                    ))
                },
            )?,
            locator: given(&args.relation, locator, |text| {
                CliError::bad_argument(format!("invalid relation specification: \"{text}\""))
                    .detail("Expecting \"tablespace OID/database OID/relation filenode\".")
            })?,
            fork: given(&args.fork, fork_named, |text| {
                CliError::bad_argument(format!("invalid fork name: \"{text}\""))
            })?,
            block: given(&args.block, block, |text| {
                CliError::bad_argument(format!("invalid block number: \"{text}\""))
            })?,
            fullpage: args.fullpage,
        };
        if filter.block.is_some() && filter.locator.is_none() {
            return Err(CliError::bad_argument(
                "option -B/--block requires option -R/--relation to be specified",
            ));
        }
        Ok(filter)
    }

    /// Whether the record is wanted.
    pub(super) fn accepts(&self, record: &Record<'_>) -> bool {
        let about_blocks = self.locator.is_some() || self.fork.is_some();
        (self.rmgrs.is_empty() || self.rmgrs.contains(&record.rmid))
            && self.xid.is_none_or(|xid| xid == record.xid)
            && (!about_blocks || self.accepts_a_block(record))
            && (!self.fullpage || record.blocks.iter().any(|block| block.image.is_some()))
    }

    /// `XLogRecordMatchesRelationBlock`.
    fn accepts_a_block(&self, record: &Record<'_>) -> bool {
        record.blocks.iter().any(|block| {
            let tag = block.tag;
            self.locator.is_none_or(|locator| locator == tag.locator)
                && self.fork.is_none_or(|fork| fork == tag.fork)
                && self.block.is_none_or(|number| number == tag.block)
        })
    }
}

/// An option's value, if it is given.
fn given<T>(
    text: &Option<String>,
    parse: impl Fn(&str) -> Option<T>,
    wrong: impl Fn(&str) -> CliError,
) -> Result<Option<T>, CliError> {
    match text.as_deref() {
        None => Ok(None),
        Some(text) => parse(text).map(Some).ok_or_else(|| wrong(text)),
    }
}

fn locator(text: &str) -> Option<RelFileLocator> {
    let [spc, db, rel] = scan_three(text)?.map(Oid);
    // Shared relations have no database.
    (spc != Oid(0) && rel != Oid(0)).then_some(RelFileLocator { spc, db, rel })
}

fn block(text: &str) -> Option<BlockNumber> {
    scan_u32(text).filter(|number| *number != BlockNumber::MAX)
}

fn fork_named(name: &str) -> Option<ForkNumber> {
    ForkNumber::ALL.into_iter().find(|fork| fork.name() == name)
}

/// Case does not matter; an extension's resource manager is called `custom128` to `custom255`.
fn rmgr_named(name: &str) -> Result<RmgrId, CliError> {
    let custom = name.strip_prefix("custom").and_then(|number| {
        let digits = number
            .bytes()
            .take(3)
            .take_while(u8::is_ascii_digit)
            .count();
        number[..digits].parse::<u32>().ok()
    });
    if let Some(id) = custom {
        return match u8::try_from(id) {
            Ok(id) if id >= FIRST_CUSTOM_RMGR => Ok(RmgrId(id)),
            _ => Err(CliError::bad_argument(format!(
                "custom resource manager \"{name}\" does not exist"
            ))),
        };
    }
    match RMGRS.iter().position(|r| r.name.eq_ignore_ascii_case(name)) {
        Some(at) => Ok(RmgrId(at as u8)),
        None => Err(CliError::bad_argument(format!(
            "resource manager \"{name}\" does not exist"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::record;
    use super::*;

    #[test]
    fn names_of_resource_managers() {
        assert_eq!(rmgr_named("heap2").unwrap(), RmgrId(9));
        assert_eq!(rmgr_named("custom200").unwrap(), RmgrId(200));
        for bad in ["", "custom1", "custom256", "nothing"] {
            assert!(rmgr_named(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn block_conditions_must_hold_for_one_block() {
        // Blocks: 4 of the main fork and 4 of the visibility map of 1663/5/2606.
        let mut record = record();
        record.blocks[1].tag.block = 0;
        let filter = |fork, number| Filter {
            locator: record.blocks[0].tag.locator.into(),
            fork,
            block: number,
            ..Filter::default()
        };
        assert!(filter(None, Some(4)).accepts(&record));
        assert!(filter(Some(ForkNumber::Vm), Some(0)).accepts(&record));
        assert!(!filter(Some(ForkNumber::Vm), Some(4)).accepts(&record));
        assert!(!filter(Some(ForkNumber::Fsm), None).accepts(&record));
        let other = RelFileLocator {
            rel: Oid(1),
            ..record.blocks[0].tag.locator
        };
        let filter = Filter {
            locator: Some(other),
            ..Filter::default()
        };
        assert!(!filter.accepts(&record));
    }

    #[test]
    fn other_conditions() {
        let record = record();
        let wanted = |rmgrs, xid, fullpage| {
            let filter = Filter {
                rmgrs,
                xid,
                fullpage,
                ..Filter::default()
            };
            filter.accepts(&record)
        };
        assert!(wanted(vec![], None, false));
        assert!(wanted(
            vec![RmgrId(1), RmgrId(128)],
            Some(TransactionId(764)),
            false
        ));
        assert!(!wanted(vec![RmgrId(1)], None, false));
        assert!(!wanted(vec![], Some(TransactionId(765)), false));
        assert!(!wanted(vec![], None, true));
    }

    #[test]
    fn specifications() {
        assert!(locator("1663/0/1259").is_some());
        assert!(locator("0/5/1259").is_none() && locator("1663/5/0").is_none());
        assert_eq!(block("4294967295"), None);
        assert_eq!(fork_named("vm"), Some(ForkNumber::Vm));
        assert_eq!(fork_named("VM"), None);
    }
}
