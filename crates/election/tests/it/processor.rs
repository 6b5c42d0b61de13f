//! Jobs over nodes: what the models of this got wrong, faults, and rolling restarts, on every
//! store.

mod balance;
mod crew;
mod failing;
mod gate;
mod handover;
mod journal;
mod losses;
mod options;
mod quota;
