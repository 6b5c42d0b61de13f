//! The client on a real etcd, and the generated code.

mod generated;
mod login;
mod requests;
mod watching;
