//! pgdata.
