//! Elections on every store: who leads, who notices, and what happens when things break.

mod adding;
mod asking;
mod callbacks;
mod frozen;
mod heartbeats;
mod leading;
mod log;
mod new_namespaces;
mod outages;
mod running;
mod stopping;
mod waking;
