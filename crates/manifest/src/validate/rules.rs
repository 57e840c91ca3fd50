//! Rules of single fields as rows of tables, in upstream's order.

use super::at::At;
use super::formats::Format;

/// Fields with their rules. A field may be a path, as in [`At::each`].
pub(super) type Rules = &'static [(&'static str, Rule)];

/// The values that a field may have, in the order in which upstream lists them.
type Values = &'static [&'static str];

/// A rule of one field.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// Not empty.
    Required,
    /// Not empty, for this reason.
    RequiredBecause(&'static str),
    /// Not set, for this reason.
    Forbidden(&'static str),
    /// Empty, for this reason.
    Empty(&'static str),
    /// One of these; an absent value is an empty string.
    OneOf(Values),
    /// Absent, or one of these.
    OneOfIfSet(Values),
    /// Not empty, and one of these.
    RequiredOneOf(Values),
    /// In this format; an absent value is an empty string.
    Follows(Format),
    /// Absent, or in this format.
    FollowsIfSet(Format),
    /// Empty, or in this format.
    FollowsIfNotEmpty(Format),
    /// Not empty, and in this format.
    RequiredFollows(Format),
    /// 0 or more (upstream: `ValidateNonnegativeField`).
    NotNegative,
    /// Absent, or from the first number to the second.
    Within(i32, i32),
    /// Absent, or a struct with these rules.
    Fields(Rules),
    /// Absent, or validated by this function.
    Check(fn(&At<'_>)),
}

impl At<'_> {
    /// Applies each row of a table to its field.
    pub(super) fn check_fields(&self, rules: &[(&str, Rule)]) {
        for (field, rule) in rules {
            self.each(field).iter().for_each(|at| at.check(*rule));
        }
    }

    /// Applies one rule.
    pub(super) fn check(&self, rule: Rule) {
        match rule {
            Rule::Required => self.required_if(self.is_empty(), ""),
            Rule::RequiredBecause(why) => self.required_if(self.is_empty(), why),
            Rule::Forbidden(why) => self.forbidden_if(self.is_set(), why),
            Rule::Empty(why) => self.forbidden_if(!self.is_empty(), why),
            Rule::RequiredOneOf(_) | Rule::RequiredFollows(_) if self.is_empty() => {
                self.required("");
            }
            Rule::FollowsIfNotEmpty(_) if self.is_empty() => {}
            Rule::OneOfIfSet(_)
            | Rule::FollowsIfSet(_)
            | Rule::Within(..)
            | Rule::Fields(_)
            | Rule::Check(_)
                if !self.is_set() => {}
            Rule::OneOf(known) | Rule::OneOfIfSet(known) | Rule::RequiredOneOf(known) => {
                if !known.contains(&self.text()) {
                    self.not_supported(known);
                }
            }
            Rule::Follows(format)
            | Rule::FollowsIfSet(format)
            | Rule::FollowsIfNotEmpty(format)
            | Rule::RequiredFollows(format) => self.text_follows(self.text(), format),
            Rule::NotNegative => {
                self.invalid_if(self.int() < 0, "must be greater than or equal to 0");
            }
            Rule::Within(low, high) => {
                let why = format!("must be between {low} and {high}, inclusive");
                self.invalid_if(!(low.into()..=high.into()).contains(&self.int()), &why);
            }
            Rule::Fields(rules) => self.check_fields(rules),
            Rule::Check(check) => check(self),
        }
    }
}
