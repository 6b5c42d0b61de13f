//! The ZooKeeper store on real servers: the contract, access, and faults.

mod access;
mod amnesia;
mod conforms;
mod crowd;
mod expiry;
mod outages;
mod place;
