//! What is shown of a plan, a drift report and a rollout, and in which words: plain structs, made
//! by pure functions from the documents of `planner`. Text, Markdown and HTML only lay them out, so
//! no renderer computes anything that another one computes too.
//!
//! Escaping, and leaving out what a format has no room for, is the renderers' part. Values of fields
//! are shortened here, because every format shortens them alike.

mod checks;
mod daemon_set;
mod drift;
mod duration;
mod effect;
mod fields;
mod nodes;
mod notice;
mod origin;
mod pace;
mod plan;
mod ranges;
mod risk;
mod rollout;
mod steps;
mod timeline;

pub(crate) use checks::{
    asked_about, checks_headline, counted, role_words, sparkline, values, verdict_words,
};
pub(crate) use daemon_set::{DaemonSetView, WaveView, asked_words, change_words};
pub(crate) use drift::{
    CLASSES, DaemonSetDriftView, DeviationView, DriftView, FieldDrift, NodeState, class_heads,
    totals_words,
};
pub(crate) use duration::roughly;
pub(crate) use effect::effect;
pub(crate) use fields::{FieldValue, FieldView, Row, diff_lines, field_title, mark_end};
pub(crate) use nodes::{
    BY_RISK, NodeGroup, NodeRow, Whereabouts, done, fate, groups, happens, node_words, sentence,
    whereabouts,
};
pub(crate) use notice::{Notice, number_of};
pub(crate) use origin::{Origin, few, some_of};
pub(crate) use plan::PlanView;
pub(crate) use planner::plan::{
    Action, ActionTotals, BaseChange, Change, DriftClass, FieldChange, SpanKind,
};
pub(crate) use ranges::{NodeRange, fold, natural_order};
pub(crate) use rollout::{BudgetUse, RolloutNode, RolloutState, RolloutView, Series};
pub(crate) use steps::StepView;
pub(crate) use timeline::{Bar, TimelineRow, TimelineView};
