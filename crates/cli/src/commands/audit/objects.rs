//! The verdict as JSON: an object for each finding, and one for all.

use frazil_audit::{Break, Place, Sighting};
use frazil_id::Layout;
use serde::Serialize;

use super::report::Report;
use crate::output::{Data, Failure};

#[derive(Serialize)]
#[serde(tag = "finding", rename_all = "lowercase")]
enum Finding<'a> {
    Duplicate { id: String, first: Option<At<'a>>, again: At<'a> },
    Outside { id: String, at: At<'a>, why: String },
    Order { before: Seen<'a>, after: Seen<'a>, breaks: u64 },
}

#[derive(Serialize)]
struct At<'a> {
    file: &'a str,
    line: u64,
}

#[derive(Serialize)]
struct Seen<'a> {
    id: String,
    #[serde(flatten)]
    at: At<'a>,
}

#[derive(Serialize)]
struct Whole<'a> {
    verdict: &'static str,
    layout: Layout,
    checked: u64,
    distinct: u64,
    duplicates: u64,
    outside: u64,
    order_breaks: u64,
    malformed: u64,
    unreadable: u64,
    first: Option<String>,
    last: Option<String>,
    workers: u64,
    worker_ids: Vec<WorkerIds>,
    fullest: Option<Fullest>,
    files: Vec<OneFile<'a>>,
    memory_bytes: usize,
}

#[derive(Serialize)]
struct WorkerIds {
    worker: u64,
    ids: u64,
}

#[derive(Serialize)]
struct Fullest {
    worker: u64,
    tick: u64,
    ids: u64,
}

#[derive(Serialize)]
struct OneFile<'a> {
    file: &'a str,
    ids: u64,
    order_breaks: u64,
    first_break: Option<[Seen<'a>; 2]>,
}

impl Report<'_> {
    pub(super) fn json(&self, data: &mut Data) -> Result<(), Failure> {
        let verdict = self.verdict;
        for found in &verdict.first_duplicates {
            let (first, again) = (found.first.map(|first| self.at(first)), self.at(found.again));
            data.json(&Finding::Duplicate { id: self.id(found.id), first, again })?;
        }
        for found in &verdict.first_outside {
            let (at, why) = (self.at(found.place), found.why.to_string());
            data.json(&Finding::Outside { id: self.id(found.id), at, why })?;
        }
        for (number, source) in verdict.sources.iter().enumerate().filter(|_| self.ordered) {
            if let Some(first) = source.order.first_break() {
                let [before, after] = self.pair(number, first);
                data.json(&Finding::Order { before, after, breaks: source.order.breaks() })?;
            }
        }
        data.json(&self.whole())
    }

    fn whole(&self) -> Whole<'_> {
        let verdict = self.verdict;
        let workers = verdict.census.by_worker.iter();
        let files = verdict.sources.iter().enumerate().map(|(number, source)| OneFile {
            file: &source.name,
            ids: source.ids,
            order_breaks: source.order.breaks(),
            first_break: source.order.first_break().map(|first| self.pair(number, first)),
        });
        Whole {
            verdict: self.outcome(),
            layout: verdict.layout,
            checked: verdict.checked,
            distinct: verdict.distinct,
            duplicates: verdict.duplicates,
            outside: verdict.outside,
            order_breaks: verdict.order_breaks(),
            malformed: self.malformed,
            unreadable: self.unreadable,
            first: verdict.ends.map(|(first, _)| self.time(first)),
            last: verdict.ends.map(|(_, last)| self.time(last)),
            workers: verdict.census.workers,
            worker_ids: workers
                .map(|worker| WorkerIds { worker: worker.worker, ids: worker.ids })
                .collect(),
            fullest: verdict.census.busiest.map(|busiest| Fullest {
                worker: busiest.worker,
                tick: busiest.tick,
                ids: busiest.ids,
            }),
            files: files.collect(),
            memory_bytes: verdict.memory_bytes,
        }
    }

    fn pair(&self, source: usize, first: Break) -> [Seen<'_>; 2] {
        let seen = |sighting: Sighting| Seen {
            id: self.id(sighting.id),
            at: self.at(Place { source, at: sighting.at }),
        };
        [seen(first.before), seen(first.after)]
    }

    fn at(&self, place: Place) -> At<'_> {
        let file = self.verdict.sources.get(place.source).map_or("", |source| &source.name);
        At { file, line: place.at }
    }

    fn id(&self, id: frazil_id::Id) -> String {
        id.text(self.format).to_string()
    }
}
