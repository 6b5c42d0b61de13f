//! The plan of a measurement: what is asked, how often and for how long.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use frazil_id::Layout;
use hyper::http::HeaderValue;

use crate::address::Address;
use crate::error::Error;
use crate::observer::Pages;

/// A measurement of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The server.
    pub address: Address,
    /// Which request is sent.
    pub call: Call,
    /// IDs in one request.
    pub batch: u64,
    /// A scope that the server declares.
    pub scope: Option<String>,
    /// Connections to the server.
    pub connections: usize,
    /// Threads that share the connections: as many as there are cores by default.
    pub threads: usize,
    /// How long is asked before anything counts.
    pub warm_up: Duration,
    /// How long is measured.
    pub duration: Duration,
    /// Requests in a second over all connections; none where each waits for the answer before it.
    pub rate: Option<u64>,
    /// How long a request may take before it is given up.
    pub timeout: Duration,
    /// Whether all IDs are proved to be distinct and in order.
    pub verify: bool,
    /// Whether gRPC is to send runs instead of single IDs.
    pub runs: bool,
    /// The layout to check IDs by, for a server that does not say its own.
    pub layout: Layout,
    /// The layout that the server must have, if it says its own.
    pub expected_layout: Option<Layout>,
    /// How TLS is spoken, where the address has it.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// The server's process on this machine, whose CPU time and memory are read.
    pub pid: Option<u32>,
    /// The node's own pages over HTTP.
    pub pages: Option<Arc<dyn Pages>>,
    /// Whether somebody named those pages, so that it is an error if they tell nothing.
    pub are_pages_named: bool,
    pub(crate) key: Option<HeaderValue>,
}

/// Which request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// `POST /v1/ids`.
    Http(Accept),
    /// gRPC `Next`.
    Next,
    /// Grants of a gRPC stream, so many open at a time.
    Stream(usize),
    /// `ID.NEXT`, so many commands at a time.
    Resp(usize),
}

/// The form of the answers over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// JSON with metadata.
    Json,
    /// One ID per line.
    Text,
    /// Big-endian 64-bit numbers.
    Binary,
}

impl Plan {
    /// Single IDs on 8 connections for 10 seconds, after a warm-up of one.
    pub fn new(address: Address, call: Call) -> Self {
        Self {
            address,
            call,
            batch: 1,
            scope: None,
            connections: 8,
            threads: cores(),
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(10),
            rate: None,
            timeout: Duration::from_secs(10),
            verify: false,
            runs: false,
            layout: Layout::FRAZIL,
            expected_layout: None,
            tls: None,
            pid: None,
            pages: None,
            are_pages_named: false,
            key: None,
        }
    }

    /// Shows the server an API key with every request; nothing prints it.
    ///
    /// # Errors
    ///
    /// It has characters that no key has.
    pub fn set_key(&mut self, key: &str) -> Result<(), Error> {
        let bad = |_| Error::usage("the key has characters that no key has: is it the right file?");
        let mut key = HeaderValue::from_str(key).map_err(bad)?;
        key.set_sensitive(true);
        self.key = Some(key);
        Ok(())
    }

    /// The key as text, which it is by what made it.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_ref().and_then(|key| key.to_str().ok())
    }

    /// What is asked, in a few words.
    pub(crate) fn request(&self) -> String {
        let runs = if self.runs { " of runs" } else { "" };
        match self.call {
            Call::Http(Accept::Binary) => "HTTP binary".to_owned(),
            Call::Http(Accept::Json) => "HTTP JSON".to_owned(),
            Call::Http(Accept::Text) => "HTTP text".to_owned(),
            Call::Next => format!("gRPC Next{runs}"),
            Call::Stream(depth) => format!("gRPC Stream{runs}, {depth} open"),
            Call::Resp(depth) => format!("RESP ID.NEXT, pipeline {depth}"),
        }
    }

    /// Threads are of use as long as each has a connection.
    pub(crate) fn threads(&self) -> usize {
        self.connections.min(self.threads).max(1)
    }
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}
