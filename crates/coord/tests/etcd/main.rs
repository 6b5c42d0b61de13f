//! The etcd store on real servers: the contract, faults, and who is let in.

mod access;
mod commits;
mod conformance;
mod crowd;
mod failover;
mod faults;
mod forgetting;
#[expect(dead_code, reason = "a real store writes nothing into the diary")]
#[path = "../keeper/lane.rs"]
mod lane;
mod upgrade;
mod wiped;
mod world;
