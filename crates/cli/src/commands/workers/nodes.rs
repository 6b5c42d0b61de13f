//! The nodes behind the workers of a namespace: who they are, what they hold, where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use frazil::coord::internal::SlotState;
use frazil::coord::internal::time::unix_ms;
use frazil::coord::{Meta, Store, Versioned};
use frazil_server::AdminAddress;

use super::pool::Pool;
use super::view::View;
use crate::args::{PlaceArg, TargetArg};
use crate::output::{Exit, Failure};
use crate::remote::Server;
use crate::words::printable;

/// A store that is looked at again and again.
pub(super) struct Look {
    store: Arc<dyn Store>,
    meta: Versioned<Meta>,
}

/// A node as the store knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeView {
    /// The workers that it holds, sorted.
    pub(super) workers: Vec<u32>,
    /// Where it says that it is administered.
    addresses: BTreeSet<AdminAddress>,
}

/// The nodes of a namespace by name, those included that hold nothing any more.
pub(super) struct Nodes(BTreeMap<String, NodeView>);

impl Look {
    pub(super) async fn at(place: &PlaceArg) -> Result<Self, Failure> {
        let (store, meta) = place.look_at_namespace().await?;
        Ok(Self { store, meta })
    }

    pub(super) async fn pool(&self) -> Result<Pool, Failure> {
        Ok(Pool::read(self.store.as_ref(), self.meta.clone(), unix_ms()).await?)
    }

    pub(super) async fn nodes(&self) -> Result<Nodes, Failure> {
        Ok(Nodes::of(&self.pool().await?.views))
    }
}

impl Nodes {
    pub(super) fn of(views: &[View]) -> Self {
        let this_host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let mut nodes: BTreeMap<String, NodeView> = BTreeMap::new();
        for view in views {
            let Some(holder) = &view.holder else { continue };
            let node = nodes.entry(holder.clone()).or_default();
            if view.state == SlotState::Held {
                node.workers.push(view.worker);
                node.addresses.extend(AdminAddress::of(&view.info, &this_host));
            }
        }
        Self(nodes)
    }

    /// What a node holds; nothing if nobody has its name.
    pub(super) fn held_by(&self, name: &str) -> Vec<u32> {
        self.0.get(name).map(|node| node.workers.clone()).unwrap_or_default()
    }

    /// The node of a name, which somebody must have.
    pub(super) fn named(&self, name: &str) -> Result<&NodeView, Failure> {
        self.0.get(name).ok_or_else(|| {
            let name = printable(name);
            Failure::new(Exit::No, format_args!("there is no node {name}; {}", self.names()))
        })
    }

    /// The node that holds a worker, with its name.
    pub(super) fn holding(&self, worker: u32) -> Result<(&str, &NodeView), Failure> {
        let found = self.0.iter().find(|(_, node)| node.workers.contains(&worker));
        found.map(|(name, node)| (name.as_str(), node)).ok_or_else(|| {
            Failure::new(Exit::No, format_args!("nobody holds worker {worker}; {}", self.names()))
        })
    }

    /// Who holds workers, in a sentence.
    pub(super) fn names(&self) -> String {
        let holders = self.0.iter().filter(|(_, node)| !node.workers.is_empty());
        let names: Vec<_> = holders.map(|(name, _)| printable(name)).collect();
        match names.is_empty() {
            true => "no node holds a worker".to_owned(),
            false => format!("the nodes that hold workers are {}", names.join(", ")),
        }
    }
}

impl NodeView {
    /// Where it is asked.
    pub(super) fn address(&self, name: &str) -> Result<&str, Failure> {
        let name = printable(name);
        let mut all = self.addresses.iter();
        match (all.next(), all.next()) {
            (Some(AdminAddress::Here(url)), None) => Ok(url),
            (Some(AdminAddress::OnlyFrom { host, url }), None) => {
                Err(Failure::usage(format_args!(
                    "{name} is reached at {} from the machine {} alone: run this there, or start the \
                 node with --advertise URL or --admin ADDR that are reached from here",
                    printable(url),
                    printable(host)
                )))
            }
            (None, _) => Err(Failure::usage(format_args!(
                "{name} does not say where it is reached: start it with --advertise URL, or name \
                 its address with --server"
            ))),
            (Some(_), Some(_)) => Err(Failure::usage(format_args!(
                "several nodes are called {name}: name the address of one with --server"
            ))),
        }
    }
}

/// A node that is asked to do something.
pub(super) enum Target {
    /// It is known by this name, and holds no worker.
    Idle(String),
    /// It is asked here; its name, if it was found by that.
    At(Server, Option<String>),
}

impl TargetArg {
    /// Finds the node, in the store unless its address is given.
    pub(super) async fn find(&self) -> Result<Target, Failure> {
        let name = match (&self.server.server, &self.node) {
            (Some(url), None) => {
                let server = Server::new(url, &self.server)?;
                return Ok(Target::At(server, None));
            }
            (None, Some(name)) => name,
            // One of them may come from the environment, and the wrong node would be asked.
            _ => {
                return Err(Failure::usage(
                    "name a node, or its address with --server or FRAZIL_SERVER: one of the two",
                ));
            }
        };
        let nodes = Look::at(&self.place).await?.nodes().await?;
        let node = nodes.named(name)?;
        if node.workers.is_empty() {
            return Ok(Target::Idle(name.clone()));
        }
        let server = Server::new(node.address(name)?, &self.server)?;
        Ok(Target::At(server, Some(name.clone())))
    }
}

/// Workers in a list: `worker 7`, `workers 7, 9`.
pub(super) fn listed(workers: &[u32]) -> String {
    let numbers: Vec<_> = workers.iter().map(ToString::to_string).collect();
    let thing = if workers.len() == 1 { "worker" } else { "workers" };
    format!("{thing} {}", numbers.join(", "))
}
