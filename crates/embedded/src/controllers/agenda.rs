//! The queue of work: in the order of time, and of insertion in case of a tie, so that the same
//! cluster always has the same history (upstream: `workqueue`, which also keeps each item once).

use std::collections::BTreeMap;

use jiff::Timestamp;

/// Work items, each at most once.
#[derive(Debug)]
pub(super) struct Agenda<W> {
    due: BTreeMap<(Timestamp, u64), W>,
    places: BTreeMap<W, (Timestamp, u64)>,
    added: u64,
}

impl<W: Clone + Ord> Agenda<W> {
    pub(super) fn new() -> Self {
        Self { due: BTreeMap::new(), places: BTreeMap::new(), added: 0 }
    }

    /// Adds work at that time. Work that is queued already is done at the earlier of both times.
    pub(super) fn add(&mut self, at: Timestamp, work: W) {
        match self.places.get(&work) {
            Some((before, _)) if *before <= at => {}
            Some(_) | None => self.put(at, work),
        }
    }

    /// Moves work to that time, whether it was queued or not.
    pub(super) fn put(&mut self, at: Timestamp, work: W) {
        self.remove(&work);
        let place = (at, self.added);
        self.added += 1;
        self.due.insert(place, work.clone());
        self.places.insert(work, place);
    }

    /// Removes work.
    pub(super) fn remove(&mut self, work: &W) {
        if let Some(place) = self.places.remove(work) {
            self.due.remove(&place);
        }
    }

    /// The time of the next work item.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next work item that is due by now.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<W> {
        self.next_due().filter(|due| *due <= now)?;
        let (_, work) = self.due.pop_first()?;
        self.places.remove(&work);
        Some(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::at;

    #[test]
    fn the_earlier_time_wins_and_ties_keep_insertion_order() {
        let mut agenda = Agenda::new();
        for (when, work) in [(5, "a"), (3, "b"), (3, "c"), (2, "a"), (9, "b"), (7, "d")] {
            agenda.add(at(when), work);
        }
        agenda.put(at(8), "c");
        agenda.remove(&"d");
        let mut order = Vec::new();
        while let Some(due) = agenda.next_due() {
            assert_eq!(agenda.pop(due - std::time::Duration::from_secs(1)), None);
            order.push((due, agenda.pop(due).unwrap()));
        }
        assert_eq!(order, [(at(2), "a"), (at(3), "b"), (at(8), "c")]);
    }
}
