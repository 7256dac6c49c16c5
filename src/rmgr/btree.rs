//! btree.

use super::{Effect, PageState, RedoSettings, RmgrError, Touch};
use crate::decode::Record;
use crate::page::Page;
use crate::types::BlockNumber;

pub(super) fn identify(_info: u8) -> Option<&'static str> {
    None
}
pub(super) fn desc(_record: &Record<'_>, _out: &mut String) -> Result<(), RmgrError> {
    Ok(())
}
pub(super) fn mask(_page: &mut Page, _block: BlockNumber) {}
pub(super) fn redo(
    record: &Record<'_>,
    _touch: &Touch,
    _state: PageState,
    _page: &mut Page,
    _settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    Err(RmgrError::UnknownOpcode(record.info))
}
