//! The JSON schemas of the documents, generated from their types. A test compares them with the
//! files under `schemas/`.

use schemars::generate::SchemaSettings;

use crate::data::json;
use crate::error::Error;
use daemonset::model::{Faults, RolloutPolicy};
use planner::check_answers::CheckAnswers;
use planner::check_report::CheckReport;
use planner::plan::{Diff, Drift, Explanation, History, Plan, StatusReport};
use planner::rollout::RunEvent;

/// A document that has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// The output of `ds-plan plan -o json`.
    Plan,
    /// The output of `ds-plan status -o json`.
    Status,
    /// The output of `ds-plan explain -o json`.
    Explanation,
    /// The output of `ds-plan history -o json`.
    History,
    /// The output of `ds-plan diff -o json`.
    Diff,
    /// The output of `ds-plan drift -o json`.
    Drift,
    /// One line of the output of `ds-apply -o json`.
    RunEvent,
    /// A `RolloutPolicy`, which `ds-plan` reads in addition to DaemonSets.
    RolloutPolicy,
    /// The input of `ds-apply --rehearse --fault`.
    Faults,
    /// The output of `ds-plan checks -o json`.
    CheckReport,
    /// The output of `ds-plan checks --record`, and the input of `ds-apply --rehearse
    /// --check-answers`.
    CheckAnswers,
}

impl Document {
    /// Every document.
    pub const ALL: [Self; 11] = [
        Self::Plan,
        Self::Status,
        Self::Explanation,
        Self::History,
        Self::Diff,
        Self::Drift,
        Self::RunEvent,
        Self::RolloutPolicy,
        Self::Faults,
        Self::CheckReport,
        Self::CheckAnswers,
    ];

    /// Its name on the command line and in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Status => "status",
            Self::Explanation => "explanation",
            Self::History => "history",
            Self::Diff => "diff",
            Self::Drift => "drift",
            Self::RunEvent => "run-event",
            Self::RolloutPolicy => "rollout-policy",
            Self::Faults => "faults",
            Self::CheckReport => "check-report",
            Self::CheckAnswers => "check-answers",
        }
    }
}

/// The schema of `document`, in JSON Schema 2020-12.
pub fn schema(document: Document) -> Result<String, Error> {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let schema = match document {
        Document::Plan => generator.into_root_schema_for::<Plan>(),
        Document::Status => generator.into_root_schema_for::<StatusReport>(),
        Document::Explanation => generator.into_root_schema_for::<Explanation>(),
        Document::History => generator.into_root_schema_for::<History>(),
        Document::Diff => generator.into_root_schema_for::<Diff>(),
        Document::Drift => generator.into_root_schema_for::<Drift>(),
        Document::RunEvent => generator.into_root_schema_for::<RunEvent>(),
        Document::RolloutPolicy => generator.into_root_schema_for::<RolloutPolicy>(),
        Document::Faults => generator.into_root_schema_for::<Faults>(),
        Document::CheckReport => generator.into_root_schema_for::<CheckReport>(),
        Document::CheckAnswers => generator.into_root_schema_for::<CheckAnswers>(),
    };
    json(&schema)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::data::json_line;
    use crate::examples::{self, past};

    #[test]
    fn examples_fit_their_schemas_and_only_those() {
        let examples = [
            (Document::Plan, json(&examples::rollout()).unwrap()),
            (Document::Plan, json(&examples::guarded()).unwrap()),
            (Document::Status, json(&examples::status()).unwrap()),
            (Document::Explanation, json(&examples::explanation()).unwrap()),
            (Document::History, json(&past::history()).unwrap()),
            (Document::Diff, json(&past::diff()).unwrap()),
            (Document::Drift, json(&past::drift()).unwrap()),
            (Document::CheckReport, json(&examples::checks::checks()).unwrap()),
            (Document::RunEvent, json(&examples::run::events()[0]).unwrap()),
        ];
        for document in Document::ALL {
            let schema: Value = serde_json::from_str(&schema(document).unwrap()).unwrap();
            let validator = jsonschema::validator_for(&schema).unwrap();
            for (of, text) in &examples {
                let errors: Vec<String> = validator
                    .iter_errors(&serde_json::from_str(text).unwrap())
                    .map(|error| format!("{}: {error}", error.instance_path()))
                    .collect();
                assert_eq!(errors.is_empty(), *of == document, "{document:?} {of:?} {errors:?}");
            }
        }
    }

    #[test]
    fn each_kind_of_event_fits_its_schema() {
        let schema: Value = serde_json::from_str(&schema(Document::RunEvent).unwrap()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for event in examples::run::events() {
            let line = json_line(&event).unwrap();
            assert_eq!(line.lines().count(), 1, "{line}");
            let mut event: Value = serde_json::from_str(&line).unwrap();
            let errors: Vec<String> =
                validator.iter_errors(&event).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{line}{errors:?}");
            event["event"] = "unknown".into();
            assert!(!validator.is_valid(&event), "{line}");
        }
    }

    #[test]
    fn a_reason_needs_its_data() {
        let schema: Value = serde_json::from_str(&schema(Document::Plan).unwrap()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut plan: Value = serde_json::from_str(&json(&examples::rollout()).unwrap()).unwrap();
        let reason = &mut plan["daemonSets"][1]["nodes"][0]["reasons"][0];
        assert_eq!(reason["code"], "outdated");
        reason["code"] = "maxUnavailableReached".into();
        assert!(!validator.is_valid(&plan), "a budget without numbers is valid");
    }

    #[test]
    fn written_documents_are_read_back() {
        for plan in [examples::rollout(), examples::guarded()] {
            let read: Plan = serde_json::from_str(&json(&plan).unwrap()).unwrap();
            assert_eq!(read, plan);
        }
    }
}
