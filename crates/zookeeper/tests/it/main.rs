//! The client on real servers, and on ones that do not keep to the protocol.

mod access;
mod hostile;
mod place;
mod requests;
mod sessions;
mod watching;
