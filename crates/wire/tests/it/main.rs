//! What is on the wire: the same in every language (`vectors`) and for every version (`golden`).

mod generated;
mod golden;
mod vectors;
