//! The task that gives jobs away when another node has too few.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::Token;
use frazil_coord::internal::time::boot_time;
use tokio::sync::watch;
use tokio::time::sleep;

use super::balance::{Balance, BalanceStep, Balancer};
use super::node::Node;
use super::stopped;

/// Where orders to give a leadership away are sent, by job.
pub(super) type HandoverOrders = BTreeMap<String, watch::Sender<Option<Token>>>;

/// Looks at every view, and orders at most one job away at a time.
pub(super) async fn run(
    node: Arc<Node>,
    balance: Balance,
    orders: HandoverOrders,
    mut stop: watch::Receiver<bool>,
) {
    let mut views = node.elections.view();
    let mut balancer = Balancer::new(balance);
    loop {
        let parsed = node.parsed(&views.borrow_and_update());
        let now = boot_time();
        let step = balancer.look(&parsed.cluster, &node.mark, &node.quota.running(), now);
        let pause = match step {
            BalanceStep::Even => Duration::from_hours(24),
            BalanceStep::LookAt(at) => at.saturating_sub(now),
            BalanceStep::GiveAway(job) => {
                // The leadership that was seen, and no other.
                if let (Some(order), Some(token)) = (orders.get(&job), parsed.tokens.get(&job)) {
                    tracing::debug!(job, %token, "another node has too few jobs");
                    order.send_replace(Some(*token));
                }
                balance.pause
            }
        };
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            Ok(()) = views.changed() => {}
            () = sleep(pause) => {}
        }
    }
}
