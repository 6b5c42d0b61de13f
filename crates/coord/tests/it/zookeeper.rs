//! The ZooKeeper store on real servers: the contract, access, and faults.

mod access;
mod amnesia;
mod clock;
mod commits;
mod conforms;
mod crowd;
mod expiry;
mod old_format;
mod outages;
mod place;
