//! The programs that storm starts of itself.

mod jobs_node;
