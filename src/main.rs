//! The `pgredo` command.

fn main() {}
