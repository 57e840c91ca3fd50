//! The number of pods that one sync creates and deletes, and the batches (upstream: `syncNodes`,
//! `BurstReplicas`, `SlowStartInitialBatchSize`).

/// Maximum number of creations, and of deletions, of one sync; the rest waits for later syncs.
pub const BURST: usize = 250;

/// The sizes of the batches in which `count` pods are created: 1, 2, 4, 8 and so on, at most
/// [`BURST`] in total. After a batch with an error the following ones are skipped, so that equal
/// failures on all nodes cost few requests.
pub fn slow_start(count: usize) -> impl Iterator<Item = usize> {
    let mut left = count.min(BURST);
    let mut portion = 1;
    std::iter::from_fn(move || {
        let size = portion.min(left);
        left -= size;
        portion *= 2;
        (size > 0).then_some(size)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_double_up_to_the_burst() {
        for (count, want) in [
            (0, vec![]),
            (1, vec![1]),
            (10, vec![1, 2, 4, 3]),
            (1000, vec![1, 2, 4, 8, 16, 32, 64, 123]),
        ] {
            assert_eq!(slow_start(count).collect::<Vec<_>>(), want, "{count}");
        }
    }

    #[test]
    fn a_quota_of_ten_costs_fifteen_calls() {
        // TestSimpleDaemonSetPodCreateErrors: 100 nodes, the eleventh creation fails.
        let mut created = 0;
        let calls: usize = slow_start(100)
            .take_while(|portion| {
                let going = created < 10;
                created += portion;
                going
            })
            .sum();
        assert_eq!(calls, 15);
    }
}
