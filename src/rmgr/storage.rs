//! storage.

use super::{Change, RmgrError};
use crate::decode::Record;

pub(super) fn identify(_info: u8) -> Option<&'static str> {
    None
}
pub(super) fn desc(_record: &Record<'_>, _out: &mut String) -> Result<(), RmgrError> {
    Ok(())
}
pub(super) fn changes<'w>(
    _record: &Record<'w>,
    _out: &mut Vec<Change<'w>>,
) -> Result<(), RmgrError> {
    Ok(())
}
