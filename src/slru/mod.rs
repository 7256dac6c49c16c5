//! slru.
