//! The client-side rate limit of the controller manager (upstream:
//! `flowcontrol.NewTokenBucketRateLimiter`).

use jiff::{SignedDuration, Timestamp};

/// A token bucket.
#[derive(Clone, Debug)]
pub(super) struct Limiter {
    per_second: f64,
    burst: f64,
    tokens: f64,
    at: Timestamp,
}

impl Limiter {
    /// A full bucket.
    pub(super) fn new(per_second: f64, burst: u32, now: Timestamp) -> Self {
        let burst = f64::from(burst.max(1));
        Self { per_second: per_second.max(0.001), burst, tokens: burst, at: now }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// The time at which the next token is available.
    pub(super) fn take(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        let passed = now.duration_since(self.at).as_secs_f64().max(0.0);
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst);
        self.at = self.at.max(now);
        // Sums of fractions are a little too low.
        if self.tokens > 1.0 - 1e-6 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let wait = SignedDuration::try_from_secs_f64((1.0 - self.tokens) / self.per_second);
        Err(now.saturating_add(wait.unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::at;

    #[test]
    fn a_burst_and_then_the_rate() {
        let mut limiter = Limiter::new(20.0, 30, at(0));
        let mut now = at(0);
        let mut taken = Vec::new();
        for _ in 0..70 {
            while let Err(later) = limiter.take(now) {
                assert!(later > now);
                now = later;
            }
            taken.push(now);
        }
        assert_eq!(taken.iter().filter(|at| at.as_millisecond() == 0).count(), 30);
        assert_eq!(taken[69].as_millisecond(), 2000);
        assert!(limiter.take(at(100)).is_ok(), "it fills again");
    }
}
