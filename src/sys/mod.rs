//! sys.
