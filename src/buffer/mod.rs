//! buffer.
