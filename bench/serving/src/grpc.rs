//! gRPC streams at full speed: one connection, one stream.

use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil_bench::{Table, verdict};
use frazil_wire::proto::id_service_client::IdServiceClient;
use frazil_wire::proto::{Form, IdBatch, StreamRequest};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use crate::process::Process;
use crate::{MeasurementPlan, Outcome};

/// Credit granted at a time: a tenth of a second of one lane.
const GRANT: i64 = 400_000;

pub(crate) fn report(effort: MeasurementPlan) -> Outcome {
    println!("gRPC Stream, one connection");
    let mut table = Table::new(&["lanes, form", "IDs/s", "of the cap", "bar", ""]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for (lanes, form, name, least) in [
        ("1", Form::Ids, "1, IDs", 4.0e6),
        ("1", Form::Runs, "1, runs", 4.0e6),
        ("4", Form::Runs, "4, runs", 12.0e6),
    ] {
        let node = Process::start(&["node", &format!("lanes={lanes}")])?;
        let rate = runtime.block_on(full_speed(&node.addresses[1], form, effort.span))?;
        let cap = 4.096e6 * lanes.parse::<f64>()?;
        table.row([
            name.into(),
            format!("{rate:.0}"),
            format!("{:.2}", rate / cap),
            format!("{least:.0}"),
            verdict(rate >= least).into(),
        ]);
    }
    println!("{table}");
    Ok(())
}

/// IDs a second while there is always credit.
async fn full_speed(
    address: &str,
    form: Form,
    span: Duration,
) -> Result<f64, Box<dyn std::error::Error>> {
    let mut stream = Stream::open(address, form).await?;
    stream.grant(GRANT * 2).await;
    let began = boot_time();
    let (mut received, mut owed) = (0, GRANT * 2);
    while boot_time() - began < span {
        let count = stream.next().await?;
        received += count;
        owed -= i64::try_from(count)?;
        if owed <= GRANT {
            stream.grant(GRANT).await;
            owed += GRANT;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "some hundred million")]
    Ok(received as f64 / (boot_time() - began).as_secs_f64())
}

/// A stream of IDs.
pub(crate) struct Stream {
    grants: mpsc::Sender<StreamRequest>,
    batches: tonic::Streaming<IdBatch>,
    form: Form,
}

impl Stream {
    pub(crate) async fn open(
        address: &str,
        form: Form,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let channel = Channel::from_shared(format!("http://{address}"))?.connect().await?;
        let (grants, requests) = mpsc::channel(16);
        grants.send(StreamRequest { form: form.into(), ..Default::default() }).await?;
        let batches = IdServiceClient::new(channel)
            .max_decoding_message_size(64 << 20)
            .stream(ReceiverStream::new(requests))
            .await?
            .into_inner();
        Ok(Self { grants, batches, form })
    }

    pub(crate) async fn grant(&self, credit: i64) {
        // The stream tells when it is over.
        let _ = self.grants.send(StreamRequest { credit, ..Default::default() }).await;
    }

    /// Has so many IDs sent, and waits for the last.
    pub(crate) async fn take(&mut self, count: u64) -> Result<(), Box<dyn std::error::Error>> {
        self.grant(i64::try_from(count)?).await;
        let mut missing = count;
        while missing > 0 {
            missing = missing.saturating_sub(self.next().await?);
        }
        Ok(())
    }

    /// How many IDs the next batch has.
    pub(crate) async fn next(&mut self) -> Result<u64, Box<dyn std::error::Error>> {
        let batch = self.batches.next().await.ok_or("the stream ended")??;
        Ok(match self.form {
            Form::Runs => batch.runs.iter().map(|run| u64::from(run.count)).sum(),
            _ => batch.ids.len() as u64,
        })
    }
}
