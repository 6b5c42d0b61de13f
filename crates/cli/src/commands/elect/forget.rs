//! `frazil elect forget`.

use frazil::coord::Copied;
use frazil::coord::{Entry, Forgotten, Group, Slot};
use frazil::election::Elections;

use crate::args::ElectForgetArgs;
use crate::output::{Exit, Failure, say};

pub(super) async fn run(args: &ElectForgetArgs) -> Result<(), Failure> {
    let name = &args.name;
    let slot = Slot::named(Group::Elections, name).map_err(Failure::usage)?;
    // To open may create directories or nodes, so it is looked for first.
    let look = args.place.look().await?.read(std::slice::from_ref(&slot)).await?;
    let is_there = look.entry(&slot).is_some_and(|entry| *entry != Entry::unused(slot.clone()));
    let forgotten = match is_there {
        true => Elections::new(args.place.open(Copied::Refuse).await?).forget(name).await?,
        false => Forgotten::Unknown,
    };
    match forgotten {
        Forgotten::Done => {
            say(format_args!("{name} is forgotten"));
            Ok(())
        }
        Forgotten::Held => {
            let why = format!("{name} has a leader: see frazil elect ls, and stop it first");
            Err(Failure::new(Exit::Refused, why))
        }
        Forgotten::Recent { wait } => {
            let seconds = wait.as_millis().div_ceil(1000);
            let why = format!(
                "{name} had a leader a moment ago, and what that started may still run: run this \
                 again in {seconds} s"
            );
            Err(Failure::new(Exit::Refused, why))
        }
        Forgotten::Unknown => {
            Err(Failure::new(Exit::No, format_args!("there is no election {name:?}")))
        }
    }
}
