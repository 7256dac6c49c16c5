//! Unlogged relations are empty after a recovery (`src/backend/storage/file/reinit.c`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use super::DataDir;
use crate::sys::{Create, SysResult};
use crate::types::ForkNumber;

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 16;
/// `OIDCHARS`: digits of the largest relation number.
const MAX_DIGITS: usize = 10;

/// Before the replay: removes every fork of relations that have an init fork, except that one
/// (`UNLOGGED_RELATION_CLEANUP`).
pub fn remove_unlogged_relations(dir: &DataDir) -> SysResult<()> {
    for database in dir.database_dirs()? {
        let entries = dir.entries(&database)?;
        let names = || entries.iter().filter_map(|e| RelationName::parse(&e.name));
        let unlogged: BTreeSet<u32> = names()
            .filter(|name| name.fork == ForkNumber::Init)
            .map(|name| name.number)
            .collect();
        for name in names() {
            if name.fork != ForkNumber::Init && unlogged.contains(&name.number) {
                dir.kernel().unlink_if_any(&database.join(name.text))?;
            }
        }
    }
    Ok(())
}

/// After the replay: copies every init fork to the main fork (`UNLOGGED_RELATION_INIT`). Init
/// forks must have been written before.
pub fn init_unlogged_relations(dir: &DataDir, sync: bool) -> SysResult<()> {
    for database in dir.database_dirs()? {
        let entries = dir.entries(&database)?;
        let mut copied = false;
        for name in entries.iter().filter_map(|e| RelationName::parse(&e.name)) {
            if name.fork == ForkNumber::Init {
                let main = database.join(name.main());
                copy_file(dir, &database.join(name.text), &main, sync)?;
                copied = true;
            }
        }
        if copied && sync {
            dir.kernel().sync_dir(&database)?;
        }
    }
    Ok(())
}

fn copy_file(dir: &DataDir, from: &Path, to: &Path, sync: bool) -> SysResult<()> {
    let kernel = dir.kernel();
    let source = kernel.open_read(from)?;
    let target = kernel.create(to, Create::Truncate, dir.file_mode())?;
    source.copy_to(&target, &mut vec![0; COPY_BYTES])?;
    if sync {
        target.fsync()?;
    }
    Ok(())
}

/// The name of a file of a relation that is not temporary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RelationName<'a> {
    text: &'a str,
    number: u32,
    fork: ForkNumber,
    /// `.N` of a later segment, or nothing.
    segment: &'a str,
}

impl<'a> RelationName<'a> {
    /// `parse_filename_for_nontemp_relation`: a number, a fork, a segment.
    pub(super) fn parse(name: &'a OsStr) -> Option<RelationName<'a>> {
        let text = name.to_str()?;
        let digits = leading_digits(text);
        if digits > MAX_DIGITS {
            return None;
        }
        let number = text[..digits].parse().ok()?;
        let (fork, segment) = parse_fork_and_segment(&text[digits..])?;
        Some(RelationName {
            text,
            number,
            fork,
            segment,
        })
    }

    /// The name of the same segment of the main fork.
    fn main(&self) -> String {
        let number = &self.text[..leading_digits(self.text)];
        format!("{number}{}", self.segment)
    }
}

/// What follows the number in the name of a relation's file.
pub(super) fn parse_fork_and_segment(text: &str) -> Option<(ForkNumber, &str)> {
    let suffixed = ForkNumber::ALL
        .into_iter()
        .filter(|f| *f != ForkNumber::Main);
    let (fork, segment) = suffixed
        .filter_map(|fork| Some((fork, text.strip_prefix(fork.file_suffix())?)))
        .next()
        .unwrap_or((ForkNumber::Main, text));
    let number = segment.strip_prefix('.');
    let well_formed = match number {
        Some(number) => !number.is_empty() && leading_digits(number) == number.len(),
        None => segment.is_empty(),
    };
    well_formed.then_some((fork, segment))
}

pub(super) fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::WalFormat;
    use crate::sys::Kernel;

    #[test]
    fn names() {
        let parse = |name: &'static str| {
            RelationName::parse(OsStr::new(name)).map(|n| (n.number, n.fork, n.main()))
        };
        let some = |number, fork, main: &str| Some((number, fork, main.to_owned()));
        assert_eq!(parse("16384"), some(16384, ForkNumber::Main, "16384"));
        assert_eq!(parse("16384.1"), some(16384, ForkNumber::Main, "16384.1"));
        assert_eq!(parse("7_fsm.12"), some(7, ForkNumber::Fsm, "7.12"));
        assert_eq!(parse("7_vm"), some(7, ForkNumber::Vm, "7"));
        assert_eq!(parse("7_init.3"), some(7, ForkNumber::Init, "7.3"));
        for bad in [
            "",
            "a",
            "_init",
            "7_",
            "7_ini",
            "7_initx",
            "7.",
            "7.x",
            "7_vm.1x",
            "t3_7",
            "12345678901",
            "4294967296",
            "PG_VERSION",
            "pg_filenode.map",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn unlogged_relations_are_emptied_everywhere_but_in_global() {
        let root = tempfile::tempdir().unwrap();
        let dir = DataDir::new(Kernel::new(), root.path(), WalFormat::ALL[0]).unwrap();
        let tablespace = format!(
            "pg_tblspc/16390/{}/5",
            WalFormat::ALL[0].tablespace_directory()
        );
        let places = ["base/5", tablespace.as_str(), "base/pgsql_tmp", "global"];
        for place in places {
            let place = root.path().join(place);
            std::fs::create_dir_all(&place).unwrap();
            for name in [
                "10",
                "10.1",
                "10_fsm",
                "10_vm",
                "10_init",
                "10_init.1",
                "11",
                "10x",
            ] {
                std::fs::write(place.join(name), name).unwrap();
            }
        }
        // Neither is a tablespace or database: they are left alone.
        std::fs::write(root.path().join("base/99"), "").unwrap();
        remove_unlogged_relations(&dir).unwrap();
        let exists = |place: &str, name: &str| root.path().join(place).join(name).exists();
        for (place, kept) in places.into_iter().zip([false, false, true, true]) {
            for name in ["10", "10.1", "10_fsm", "10_vm"] {
                assert_eq!(exists(place, name), kept, "{place}/{name}");
            }
            assert!(exists(place, "10_init") && exists(place, "11") && exists(place, "10x"));
        }
        let big = vec![7; COPY_BYTES + 1];
        std::fs::write(root.path().join("base/5/10_init"), &big).unwrap();
        init_unlogged_relations(&dir, true).unwrap();
        let read = |name: &str| std::fs::read(root.path().join("base/5").join(name)).unwrap();
        assert_eq!(read("10"), big);
        assert_eq!(read("10.1"), b"10_init.1");
        assert!(!exists("base/5", "10_vm"));
        assert!(exists(&tablespace, "10"));
    }
}
