// SPDX-License-Identifier: Apache-2.0
//! Rules of modules: which packets they see, and which connections they take over.

use netserv_model::WantedFilter;
use netserv_model::effect::FilterId;
use netserv_model::manifest::Manifest;

use crate::policy::filters;

/// One filter, with its rules' names once they are installed: one, or one for each address of the container.
#[derive(Debug)]
pub(crate) struct ModuleRule {
    pub(crate) kind: RuleKind,
    pub(crate) filter: WantedFilter,
    pub(crate) ids: Vec<FilterId>,
}

impl ModuleRule {
    /// Returns the rules of a module that are still to be installed: of its packets, then of its connections.
    pub(crate) fn all_of(filters: &[WantedFilter], manifest: Option<&Manifest>) -> Vec<ModuleRule> {
        let intercept = manifest.map(|manifest| filters::without_repetitions(manifest.intercept())).unwrap_or_default();
        let rule = |kind: RuleKind| move |filter: WantedFilter| ModuleRule { kind, filter, ids: Vec::new() };
        let packets = filters.iter().cloned().map(rule(RuleKind::Show));
        packets.chain(intercept.into_iter().map(WantedFilter::from).map(rule(RuleKind::Intercept))).collect()
    }

    /// Returns the filters of packets among some rules.
    pub(crate) fn shown(rules: &[ModuleRule]) -> Vec<WantedFilter> {
        let shown = rules.iter().filter(|rule| rule.kind == RuleKind::Show);
        shown.map(|rule| rule.filter.clone()).collect()
    }

    /// Returns whether two rules are of one kind and filter.
    pub(crate) fn is_same(&self, other: &ModuleRule) -> bool {
        (self.kind, &self.filter) == (other.kind, &other.filter)
    }
}

/// What happens with what a rule's filter matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleKind {
    /// The module sees the packets.
    Show,
    /// The module takes the connections over.
    Intercept,
}
