//! The annotations that `ds-apply` writes on DaemonSets and ControllerRevisions.

/// The commit that a DaemonSet was applied from; its revisions inherit the annotation.
pub const COMMIT_ANNOTATION: &str = "ds-plan.dev/commit";

/// The annotation of every DaemonSet applied from a source: its `--source-id`.
pub const SOURCE_ID_ANNOTATION: &str = "ds-plan.dev/source-id";

/// The annotation with the files and folders of the source, separated by commas.
pub const SOURCE_PATHS_ANNOTATION: &str = "ds-plan.dev/source-paths";

/// The annotation with the repository of the source, as `HOST/PATH`, if it is known.
pub const SOURCE_REPOSITORY_ANNOTATION: &str = "ds-plan.dev/source-repository";

/// The annotation of a DaemonSet whose rollout is paused or aborted; its value is a
/// [`PausedRollout`](crate::plan::PausedRollout) as JSON.
pub const ROLLOUT_ANNOTATION: &str = "ds-plan.dev/rollout";

/// The digest of the plan that a DaemonSet was applied by; its revisions inherit the annotation.
pub const PLAN_DIGEST_ANNOTATION: &str = "ds-plan.dev/plan-digest";
