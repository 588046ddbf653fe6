//! boltkv.
fn main() {}
