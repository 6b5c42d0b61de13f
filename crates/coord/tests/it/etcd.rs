//! The etcd store on real servers: the contract, faults, and who is let in.

mod access;
mod commits;
mod conformance;
mod crowd;
mod failover;
mod faults;
mod forgetting;
mod upgrade;
mod wiped;
mod world;
