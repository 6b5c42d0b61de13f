//! `frazil workers rotate` and `frazil workers release`.

use std::time::Duration;

use frazil_wire::Rotated;

use super::nodes::{Look, Target};
use crate::args::{ReleaseArgs, RotateArgs};
use crate::output::{Data, Exit, Failure, say};
use crate::remote::Server;
use crate::words::printable;

pub(super) async fn run(args: &RotateArgs) -> Result<(), Failure> {
    let server = match args.target.find().await? {
        Target::Idle(name) => {
            let name = printable(&name);
            let why = format_args!("{name} holds no worker: there is nothing to move");
            return Err(Failure::new(Exit::No, why));
        }
        Target::At(server, _) => server,
    };
    let path = match args.worker {
        None => "/v1/node:rotate".to_owned(),
        Some(worker) => format!("/v1/workers/{worker}:release"),
    };
    print(&ask(&server, &path, args.patience)?, args.json)
}

pub(super) async fn release(args: &ReleaseArgs) -> Result<(), Failure> {
    let server = match &args.server.server {
        Some(url) => Server::new(url, &args.server)?,
        None => {
            let nodes = Look::at(&args.place).await?.nodes().await?;
            let (name, node) = nodes.holding(args.worker)?;
            Server::new(node.address(name)?, &args.server)?
        }
    };
    let worker = args.worker;
    let path = match args.token {
        None => format!("/v1/workers/{worker}:release"),
        Some(token) => format!("/v1/workers/{worker}:release?token={token}"),
    };
    print(&ask(&server, &path, args.patience)?, args.json)
}

fn ask(server: &Server, path: &str, patience: Duration) -> Result<Rotated, Failure> {
    server.try_post(path, patience)?.map_err(|problem| server.said_no(&problem))
}

/// One line for each lane: the worker that it left, and the one that it has now.
fn print(rotated: &Rotated, json: bool) -> Result<(), Failure> {
    let mut data = Data::new();
    if json {
        data.json(rotated)?;
    } else {
        for moved in &rotated.moved {
            data.text(format_args!("{} {}", moved.from, moved.to))?;
        }
    }
    data.flush()?;
    let name = printable(&rotated.node);
    for moved in &rotated.moved {
        say(format_args!("{name} has released worker {} and holds {}", moved.from, moved.to));
    }
    if rotated.moved.is_empty() {
        say(format_args!("{name} holds no worker: nothing has moved"));
    }
    Ok(())
}
