//! The suite catches every defect of the catalogue that a store can have: the naive control.

pub(crate) mod defect;
pub(crate) mod store;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use frazil_conformance::{self as conformance, Subject, Violation};
use frazil_coord::internal::Tenure;
use frazil_coord::{Error, Namespace, Slot, Store};

use self::defect::Defect;
use self::store::Naive;

/// Those of the catalogue that can be seen at a store; the others are of whoever keeps a tenure.
const AT_STORES: [&str; 12] =
    ["D1", "D2", "D3", "D8", "D9", "D11", "D13", "D14", "D15", "D16", "D19", "D20"];

#[derive(Debug)]
struct Control {
    defect: Option<Defect>,
    stores: Mutex<HashMap<Namespace, Naive>>,
}

impl Control {
    fn new(defect: Option<Defect>) -> Self {
        Self { defect, stores: Mutex::default() }
    }

    fn of(&self, namespace: &Namespace) -> Naive {
        let mut stores = self.stores.lock().unwrap();
        stores.entry(namespace.clone()).or_insert_with(|| Naive::new(self.defect)).clone()
    }
}

#[async_trait]
impl Subject for Control {
    async fn open(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(self.of(namespace).client()))
    }

    async fn lapse(&self, _: &Arc<dyn Store>, tenure: &Tenure) -> Result<(), Violation> {
        for store in self.stores.lock().unwrap().values() {
            store.expire(&tenure.slot);
        }
        Ok(())
    }

    async fn forget(&self, namespace: &Namespace, slot: &Slot) -> Result<(), Violation> {
        self.of(namespace).lose(slot);
        Ok(())
    }

    async fn wipe(&self, namespace: &Namespace) -> Result<(), Violation> {
        self.of(namespace).wipe();
        Ok(())
    }

    async fn unreachable(&self, of: &Namespace) -> Result<Option<Arc<dyn Store>>, Violation> {
        Ok(Some(Arc::new(self.of(of).cut_off())))
    }
}

/// The cases that claim to catch this defect, and those of them that do.
async fn caught(defect: Defect) -> (Vec<&'static str>, Vec<&'static str>) {
    let (mut claiming, mut failed) = (Vec::new(), Vec::new());
    for case in conformance::cases() {
        if case.catches.contains(&defect.id()) {
            claiming.push(case.name);
            if case.check(&Control::new(Some(defect))).await.is_err() {
                failed.push(case.name);
            }
        }
    }
    (claiming, failed)
}

#[tokio::test]
async fn without_a_defect_the_control_conforms() {
    conformance::run(&Control::new(None)).await.unwrap();
}

#[tokio::test]
async fn every_defect_is_caught_by_a_case_that_says_so() {
    for defect in Defect::ALL {
        let (_, failed) = caught(defect).await;
        println!("{} {defect:?}: {failed:?}", defect.id());
        assert!(!failed.is_empty(), "{defect:?} passes every case that claims {}", defect.id());
    }
}

#[tokio::test]
async fn every_case_catches_every_defect_that_it_names() {
    let mut proven: BTreeSet<(&str, &str)> = BTreeSet::new();
    for defect in Defect::ALL {
        let (_, failed) = caught(defect).await;
        proven.extend(failed.into_iter().map(|case| (case, defect.id())));
    }
    for case in conformance::cases() {
        for id in case.catches {
            assert!(proven.contains(&(case.name, id)), "{case:?} does not catch {id}");
        }
    }
}

#[test]
fn the_suite_and_the_control_cover_the_same_part_of_the_catalogue() {
    let expected = BTreeSet::from(AT_STORES);
    let claimed: BTreeSet<&str> =
        conformance::cases().iter().flat_map(|case| case.catches).copied().collect();
    let shown: BTreeSet<&str> = Defect::ALL.iter().map(|defect| defect.id()).collect();
    assert_eq!(claimed, expected);
    assert_eq!(shown, expected);
}
