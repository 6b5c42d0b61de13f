//! The Redis store against real servers: the contract, the errors, the faults.

mod clock;
mod conformance;
mod crowd;
mod deaf;
mod durability;
mod entering;
mod failover;
mod lab;
mod outage;
mod primitive;
mod replicas;
mod restart;
mod rules;
mod settling;
mod upgrade;
