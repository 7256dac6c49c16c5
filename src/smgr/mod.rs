//! smgr.
