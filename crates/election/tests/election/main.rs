//! Elections on every store: who leads, who notices, and what happens when things break.

mod callbacks;
mod frozen;
mod leading;
mod outages;
mod stage;
