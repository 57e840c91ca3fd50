//! Metrics in the OpenMetrics format, for the textfile collector or a push gateway. Only features
//! that the Prometheus text format has too are used, so parsers of either format accept it.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::error::Error;
use crate::neutral;
use planner::plan::{Counters, DriftTotals, Measured, RolloutState};

/// `measured` as OpenMetrics, in the same order; `now` is when the run succeeded.
///
/// # Errors
/// Never in practice: text is written into memory.
pub fn metrics(measured: &[Measured], now: Timestamp) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("ds_plan");
    registry.register_collector(Box::new(Measures { measured: measured.to_vec(), now }));
    let mut document = String::new();
    text::encode(&mut document, &registry).map_err(Error::Metrics)?;
    Ok(document)
}

/// A collector that keeps the order of the families, which the library's own registry does not.
#[derive(Debug)]
struct Measures {
    measured: Vec<Measured>,
    now: Timestamp,
}

/// A series: the label in addition to the DaemonSet's name, and the value.
type Series = Vec<(Option<(&'static str, Cow<'static, str>)>, i64)>;

impl Collector for Measures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.family(&mut encoder, ("drift", "Deviations from git, by class.", None), |it| {
            drift(it.drift)
        })?;
        self.family(&mut encoder, ("nodes", "Nodes by state.", None), |it| nodes(it.nodes))?;
        self.family(
            &mut encoder,
            ("rollout", "1 for the current state of the rollout.", None),
            |it| {
                let states = RolloutState::ALL.into_iter();
                states
                    .map(|state| {
                        (Some(("state", state.name().into())), i64::from(state == it.rollout))
                    })
                    .collect()
            },
        )?;
        self.family(
            &mut encoder,
            ("rollout_step", "1 for the step of the policy in which the rollout waits.", None),
            |it| {
                let step = it.waiting.iter().map(|(step, _)| neutral::line(step).into_owned());
                step.map(|step| (Some(("step", step.into())), 1)).collect()
            },
        )?;
        self.family(
            &mut encoder,
            (
                "rollout_waiting",
                "Time for which the rollout has been waiting; 0 if it does not wait.",
                Some(&Unit::Seconds),
            ),
            |it| vec![(None, it.waiting.as_ref().map_or(0, |(_, seconds)| *seconds))],
        )?;
        self.family(
            &mut encoder,
            (
                "oldest_outdated_pod_age",
                "Age of the oldest outdated pod; 0 if there is none.",
                Some(&Unit::Seconds),
            ),
            |it| vec![(None, it.oldest_outdated.unwrap_or(0))],
        )?;
        let help = "Time of the last successful comparison of the cluster with git.";
        let mut success = encoder.encode_descriptor(
            "last_success_timestamp",
            help,
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        success.encode_gauge(&self.now.as_second())
    }
}

impl Measures {
    /// One family: its name, help and unit, and the series of each DaemonSet.
    fn family(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help, unit): (&'static str, &'static str, Option<&Unit>),
        series: impl Fn(&Measured) -> Series,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for measured in &self.measured {
            let namespace = neutral::line(measured.key.namespace.as_str());
            let name = neutral::line(measured.key.name.as_str());
            for (label, value) in series(measured) {
                let mut labels = vec![("namespace", &*namespace), ("daemonset", &*name)];
                labels.extend(label.as_ref().map(|(key, value)| (*key, &**value)));
                family.encode_family(&labels)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }
}

fn drift(totals: DriftTotals) -> Series {
    let DriftTotals { spec, pod, rollout, history, eligibility } = totals;
    let classes = [
        ("spec", spec),
        ("pod", pod),
        ("rollout", rollout),
        ("history", history),
        ("eligibility", eligibility),
    ];
    classes
        .into_iter()
        .map(|(class, count)| (Some(("class", class.into())), count.into()))
        .collect()
}

fn nodes(counters: Counters) -> Series {
    let Counters { desired, current, ready, updated, available, unavailable, misscheduled } =
        counters;
    let states = [
        ("desired", desired),
        ("current", current),
        ("ready", ready),
        ("updated", updated),
        ("available", available),
        ("unavailable", unavailable),
        ("misscheduled", misscheduled),
    ];
    states.into_iter().map(|(state, count)| (Some(("state", state.into())), count.into())).collect()
}

#[cfg(test)]
mod tests {
    use prometheus_parse::{Scrape, Value};

    use super::*;
    use daemonset::model::DaemonSetKey;

    fn measured(name: &str) -> Measured {
        Measured {
            key: DaemonSetKey::new("logging", name),
            drift: DriftTotals { pod: 2, ..DriftTotals::default() },
            nodes: Counters { desired: 9, ready: 8, ..Counters::default() },
            rollout: RolloutState::Waiting,
            waiting: Some((name.to_owned(), 90)),
            oldest_outdated: Some(3_600),
        }
    }

    #[test]
    fn each_metric_is_a_family() {
        let now = "2026-08-01T12:00:00Z".parse().unwrap();
        insta::assert_snapshot!(metrics(&[measured("agent")], now).unwrap(), @r#"
        # HELP ds_plan_drift Deviations from git, by class.
        # TYPE ds_plan_drift gauge
        ds_plan_drift{namespace="logging",daemonset="agent",class="spec"} 0
        ds_plan_drift{namespace="logging",daemonset="agent",class="pod"} 2
        ds_plan_drift{namespace="logging",daemonset="agent",class="rollout"} 0
        ds_plan_drift{namespace="logging",daemonset="agent",class="history"} 0
        ds_plan_drift{namespace="logging",daemonset="agent",class="eligibility"} 0
        # HELP ds_plan_nodes Nodes by state.
        # TYPE ds_plan_nodes gauge
        ds_plan_nodes{namespace="logging",daemonset="agent",state="desired"} 9
        ds_plan_nodes{namespace="logging",daemonset="agent",state="current"} 0
        ds_plan_nodes{namespace="logging",daemonset="agent",state="ready"} 8
        ds_plan_nodes{namespace="logging",daemonset="agent",state="updated"} 0
        ds_plan_nodes{namespace="logging",daemonset="agent",state="available"} 0
        ds_plan_nodes{namespace="logging",daemonset="agent",state="unavailable"} 0
        ds_plan_nodes{namespace="logging",daemonset="agent",state="misscheduled"} 0
        # HELP ds_plan_rollout 1 for the current state of the rollout.
        # TYPE ds_plan_rollout gauge
        ds_plan_rollout{namespace="logging",daemonset="agent",state="complete"} 0
        ds_plan_rollout{namespace="logging",daemonset="agent",state="unfinished"} 0
        ds_plan_rollout{namespace="logging",daemonset="agent",state="waiting"} 1
        ds_plan_rollout{namespace="logging",daemonset="agent",state="paused"} 0
        ds_plan_rollout{namespace="logging",daemonset="agent",state="aborted"} 0
        # HELP ds_plan_rollout_step 1 for the step of the policy in which the rollout waits.
        # TYPE ds_plan_rollout_step gauge
        ds_plan_rollout_step{namespace="logging",daemonset="agent",step="agent"} 1
        # HELP ds_plan_rollout_waiting_seconds Time for which the rollout has been waiting; 0 if it does not wait.
        # TYPE ds_plan_rollout_waiting_seconds gauge
        # UNIT ds_plan_rollout_waiting_seconds seconds
        ds_plan_rollout_waiting_seconds{namespace="logging",daemonset="agent"} 90
        # HELP ds_plan_oldest_outdated_pod_age_seconds Age of the oldest outdated pod; 0 if there is none.
        # TYPE ds_plan_oldest_outdated_pod_age_seconds gauge
        # UNIT ds_plan_oldest_outdated_pod_age_seconds seconds
        ds_plan_oldest_outdated_pod_age_seconds{namespace="logging",daemonset="agent"} 3600
        # HELP ds_plan_last_success_timestamp_seconds Time of the last successful comparison of the cluster with git.
        # TYPE ds_plan_last_success_timestamp_seconds gauge
        # UNIT ds_plan_last_success_timestamp_seconds seconds
        ds_plan_last_success_timestamp_seconds 1785585600
        # EOF
        "#);
    }

    #[test]
    fn a_parser_reads_the_same_numbers() {
        let now = "2026-08-01T12:00:00Z".parse().unwrap();
        let hostile = "a\"} 1\n# TYPE x counter\nx{\\";
        let text = metrics(&[measured("agent"), measured(hostile)], now).unwrap();
        let lines = text.lines().map(|line| Ok(line.to_owned()));
        let read = Scrape::parse(lines).unwrap().samples;
        let value = |metric: &str, labels: &[(&str, &str)]| {
            let found = read.iter().filter(|sample| {
                sample.metric == metric
                    && labels.iter().all(|(key, value)| sample.labels.get(key) == Some(value))
            });
            found.map(|sample| sample.value.clone()).collect::<Vec<_>>()
        };
        let agent = ("daemonset", "agent");
        for (metric, label, want) in [
            ("ds_plan_drift", ("class", "pod"), 2.0),
            ("ds_plan_drift", ("class", "spec"), 0.0),
            ("ds_plan_nodes", ("state", "desired"), 9.0),
            ("ds_plan_rollout", ("state", "waiting"), 1.0),
            ("ds_plan_rollout_step", ("step", "agent"), 1.0),
            ("ds_plan_rollout_waiting_seconds", agent, 90.0),
            ("ds_plan_rollout", ("state", "aborted"), 0.0),
            ("ds_plan_oldest_outdated_pod_age_seconds", agent, 3_600.0),
        ] {
            assert_eq!(value(metric, &[agent, label]), [Value::Gauge(want)], "{metric} {label:?}");
        }
        let success = value("ds_plan_last_success_timestamp_seconds", &[]);
        assert_eq!(success, [Value::Gauge(1_785_585_600.0)]);
        let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(series.len(), 2 * (5 + 7 + 5 + 1 + 1 + 1) + 1, "{text}");
        assert!(series.iter().all(|line| line.starts_with("ds_plan_")), "a forged line: {text}");
    }
}
