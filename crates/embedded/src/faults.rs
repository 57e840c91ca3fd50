//! Faults of the API server, as configured in the faults document.
//!
//! Faulty requests are chosen randomly by the seed and the number of the request: the same run
//! always has the same faults. Not here: the effect of a fault (`http`), faults of images and nodes
//! (`controllers`).

use std::time::Duration;

use super::controllers::Chance;
use super::{Fault, Hook, Objects, Reason, Route, Seen, Status, Store};
use daemonset::model::{ApiFault, FaultyAnswer};

/// Chooses the faults of requests.
pub(super) struct FaultyApi {
    faults: Vec<ApiFault>,
    chance: Chance,
    elapsed: Box<dyn Fn() -> Duration + Send>,
}

impl FaultyApi {
    /// `elapsed` returns the time since the start of the rehearsal.
    pub(super) fn new(
        faults: Vec<ApiFault>,
        seed: u64,
        elapsed: impl Fn() -> Duration + Send + 'static,
    ) -> Self {
        Self { faults, chance: Chance::new(seed), elapsed: Box::new(elapsed) }
    }

    /// The faulty answers to a request.
    fn striking(&self, request: &Seen) -> impl Iterator<Item = &FaultyAnswer> {
        let elapsed = (self.elapsed)();
        self.faults.iter().enumerate().filter_map(move |(number, fault)| {
            let words = [number.to_string(), request.number.to_string()];
            let share = self.chance.share(&["api", &words[0], &words[1]]);
            let struck = fault.when.contains(elapsed)
                && concerns(fault, request)
                && share * 100.0 < fault.percent;
            struck.then_some(&fault.answer)
        })
    }
}

impl Hook for FaultyApi {
    fn before(&mut self, request: &Seen, _store: &Store) -> Vec<Fault> {
        self.striking(request).filter_map(|answer| before(*answer, request)).collect()
    }

    fn after(&mut self, request: &Seen, _code: u16, _store: &Store) -> Vec<Fault> {
        let lost = self.striking(request).any(|answer| *answer == FaultyAnswer::Lost);
        if lost { vec![Fault::Break] } else { Vec::new() }
    }
}

/// `true` if the fault applies to requests like this one.
fn concerns(fault: &ApiFault, request: &Seen) -> bool {
    let resource = match &request.route {
        Route::Objects(Objects { kind, .. }) => kind.resource(),
        Route::AccessReview => "selfsubjectaccessreviews",
        Route::Version => "",
    };
    let has = |list: &[String], word: &str| list.is_empty() || list.iter().any(|it| it == word);
    has(&fault.verbs, request.verb) && has(&fault.resources, resource)
}

fn before(answer: FaultyAnswer, request: &Seen) -> Option<Fault> {
    match answer {
        FaultyAnswer::Refused(code) => Some(Fault::Answer(refused(code))),
        FaultyAnswer::Late(by) => Some(Fault::Delay(by.0)),
        FaultyAnswer::Conflict => match &request.route {
            Route::Objects(Objects { kind, name, .. }) => {
                Some(Fault::Answer(Status::modified(*kind, name)))
            }
            Route::AccessReview | Route::Version => None,
        },
        FaultyAnswer::Cut(after) => Some(Fault::CutAfter(after.0)),
        FaultyAnswer::Lost => None,
    }
}

fn refused(code: u16) -> Status {
    let mut status = Status::new(Reason::InternalError, "the rehearsal makes this request fail");
    status.code = code;
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn seen(number: u64, verb: &'static str, kind: Kind) -> Seen {
        let route = Route::Objects(Objects {
            kind,
            namespace: "ns".to_owned(),
            name: "it".to_owned(),
            subresource: String::new(),
        });
        Seen { number, verb, route, dry_run: false, user: "me".to_owned(), body: Vec::new() }
    }

    fn api(faults: &[&str]) -> FaultyApi {
        let faults = faults.iter().map(|text| serde_saphyr::from_str(text).unwrap()).collect();
        FaultyApi::new(faults, 1, || Duration::from_mins(1))
    }

    #[test]
    fn faults_apply_to_matching_requests() {
        let store = Store::new(1);
        let before = |fault: &str, verb| api(&[fault]).before(&seen(0, verb, Kind::Pod), &store);
        for (fault, verb, want) in [
            ("{answer: {late: 2s}}", "get", vec![Fault::Delay(Duration::from_secs(2))]),
            ("{answer: {late: 2s}, verbs: [list]}", "get", vec![]),
            ("{answer: {late: 2s}, resources: [nodes]}", "get", vec![]),
            ("{answer: {late: 2s}, when: {from: 61s}}", "get", vec![]),
            ("{answer: {late: 2s}, percent: 0}", "get", vec![]),
            ("{answer: {cut: 9s}}", "watch", vec![Fault::CutAfter(Duration::from_secs(9))]),
            ("{answer: lost}", "delete", vec![]),
        ] {
            assert_eq!(before(fault, verb), want, "{fault}");
        }
        let answered = |fault: &str| match before(fault, "delete").pop() {
            Some(Fault::Answer(status)) => status.code,
            other => panic!("{other:?}"),
        };
        assert_eq!(answered("{answer: {refused: 503}}"), 503);
        assert_eq!(answered("{answer: conflict}"), 409);
        let lost = api(&["{answer: lost}"]).after(&seen(0, "delete", Kind::Pod), 200, &store);
        assert_eq!(lost, [Fault::Break]);
    }

    #[test]
    fn the_percentage_is_met_by_the_same_requests_each_time() {
        let store = Store::new(1);
        let struck = || -> Vec<u64> {
            let mut api = api(&["{answer: {refused: 503}, percent: 20}"]);
            (0..1000)
                .filter(|n| !api.before(&seen(*n, "get", Kind::Pod), &store).is_empty())
                .collect()
        };
        assert!((150..250).contains(&struck().len()), "{}", struck().len());
        assert_eq!(struck(), struck());
    }
}
