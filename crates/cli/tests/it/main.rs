//! The command as its users see it: verbs, the server's process, and what both say.

mod audit;
mod bench;
mod cli;
mod config;
mod console;
mod contexts;
mod desk;
mod doctor;
mod elect;
mod files;
mod jobs;
mod keys;
mod leasing;
mod logged;
mod logs;
mod promises;
mod scopes;
mod secrets;
mod serve;
mod servers;
mod serving;
mod shell;
mod stock_clients;
mod stored_keys;
mod verbs;
mod wrong_times;
