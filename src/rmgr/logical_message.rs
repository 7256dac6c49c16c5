//! LogicalMessage: messages for logical decoding, nothing to redo
//! (`src/backend/replication/logical/message.c`,
//! `src/backend/access/rmgrdesc/logicalmsgdesc.c`).
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x00 MESSAGE | [`Message`] | none |

use super::fields::append;
use super::{Change, RmgrError};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::types::Cursor;

const MESSAGE: u8 = 0x00;

/// `xl_logical_message`, 24 bytes, the prefix and the payload. Offset 0 holds the database,
/// which only decoding asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_logical_message")]
struct Message<'w> {
    /// Offset 4.
    transactional: bool,
    /// Offset 24: `prefix_size` bytes (offset 8), here without the NUL at their end.
    prefix: &'w [u8],
    /// `message_size` bytes (offset 16) after the prefix.
    payload: &'w [u8],
}

impl<'w> Message<'w> {
    fn decode(data: &'w [u8]) -> Result<Message<'w>, RmgrError> {
        let mut c = Cursor::new("xl_logical_message", data);
        c.skip("dbId", 4)?;
        let transactional = c.bool("transactional")?;
        c.skip("padding", 3)?;
        // A size beyond the address space is beyond the record as well.
        let prefix_size = usize::try_from(c.u64("prefix_size")?).unwrap_or(usize::MAX);
        let message_size = usize::try_from(c.u64("message_size")?).unwrap_or(usize::MAX);
        let prefix = match c.bytes("prefix", prefix_size)?.split_last() {
            Some((0, prefix)) => prefix,
            _ => return Err(RmgrError::corrupt("message prefix does not end with a NUL")),
        };
        Ok(Message {
            transactional,
            prefix,
            payload: c.bytes("message", message_size)?,
        })
    }
}

pub(super) fn identify(info: u8) -> Option<&'static str> {
    (info & INFO_RMGR_MASK == MESSAGE).then_some("MESSAGE")
}

/// `logicalmsg_redo`, which looks at the opcode only.
pub(super) fn changes<'w>(
    record: &Record<'w>,
    _out: &mut Vec<Change<'w>>,
) -> Result<(), RmgrError> {
    match record.rmgr_info() {
        MESSAGE => Ok(()),
        _ => Err(RmgrError::UnknownOpcode(record.info)),
    }
}

/// `logicalmsg_desc`.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    if record.rmgr_info() != MESSAGE {
        return Ok(());
    }
    let message = Message::decode(record.main_data)?;
    let kind = if message.transactional {
        "transactional"
    } else {
        "non-transactional"
    };
    // As C prints a string, up to the first NUL.
    let prefix = message.prefix.split(|&b| b == 0).next().unwrap_or(&[]);
    let prefix = String::from_utf8_lossy(prefix);
    let bytes = message.payload.len();
    append(
        out,
        format_args!("{kind}, prefix \"{prefix}\"; payload ({bytes} bytes): "),
    );
    for (i, byte) in message.payload.iter().enumerate() {
        let separator = if i == 0 { "" } else { " " };
        append(out, format_args!("{separator}{byte:02X}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing_changes::{abuse, changes, hex, record, text};
    use super::*;

    const LOGICAL_MESSAGE: u8 = 21;

    #[test]
    fn message() {
        let data =
            hex("05000000 01 000000 0500000000000000 0500000000000000 70726566 00 68656C6C6F");
        let r = record(LOGICAL_MESSAGE, 0x00, &data);
        assert_eq!(
            text(&r),
            "MESSAGE transactional, prefix \"pref\"; payload (5 bytes): 68 65 6C 6C 6F"
        );
        assert_eq!(changes(&r), Ok(vec![]));
        abuse(LOGICAL_MESSAGE, 0x00, &data, data.len());
    }

    #[test]
    fn empty_message() {
        let data = hex("05000000 00 000000 0100000000000000 0000000000000000 00");
        let r = record(LOGICAL_MESSAGE, 0x00, &data);
        assert_eq!(
            text(&r),
            "MESSAGE non-transactional, prefix \"\"; payload (0 bytes): "
        );
        abuse(LOGICAL_MESSAGE, 0x00, &data, data.len());
    }

    #[test]
    fn sizes_beyond_the_record_and_a_prefix_without_end_are_errors() {
        for sizes in [
            "FFFFFFFFFFFFFFFF 0000000000000000",
            "0100000000000000 FFFFFFFFFFFFFFFF",
            "0000000000000000 0100000000000000",
        ] {
            let data = hex(&format!("05000000 01 000000 {sizes} 00"));
            let r = record(LOGICAL_MESSAGE, 0x00, &data);
            assert!(desc(&r, &mut String::new()).is_err(), "{sizes}");
        }
    }

    #[test]
    fn unknown_opcodes_are_errors() {
        let unknown = changes(&record(LOGICAL_MESSAGE, 0x10, &[0; 32]));
        assert_eq!(unknown, Err(RmgrError::UnknownOpcode(0x10)));
    }
}
