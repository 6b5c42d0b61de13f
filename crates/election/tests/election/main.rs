//! Elections on every store: who leads, who notices, and what happens when things break.

mod adding;
mod asking;
mod new_namespaces;
mod callbacks;
mod frozen;
mod heartbeats;
mod leading;
mod log;
mod outages;
mod running;
mod stage;
mod stopping;
mod waking;
