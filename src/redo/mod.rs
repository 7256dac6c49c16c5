//! redo.
