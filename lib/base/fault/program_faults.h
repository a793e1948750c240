// SPDX-License-Identifier: Apache-2.0
//
// The program's part of a plan at work: occasions go in, verdicts come out. Each rule counts the occasions that it is
// about, whatever others decide; if several choose the same one, the first in the text has it.
//
// Thread: the caller serialises.
#pragma once

#include "lib/base/fault/plan.h"

namespace ub::fault {

class ProgramFaults {
 public:
  explicit ProgramFaults(const ProgramPlan& plan)
      : completions_(at_work(plan.completions)), posts_(at_work(plan.posts)) {}

  // A completion that succeeded: the status that it gets instead, if any.
  std::optional<CrStatus> completion(const Occasion& occasion) {
    const CompletionRule* rule = choose(completions_, occasion);
    if (rule == nullptr) return {};
    ++counts_.completions;
    return rule->status;
  }
  // A request or receive that could be posted: why it is refused, if it is.
  std::optional<PostError> post(const Occasion& occasion) {
    const PostRule* rule = choose(posts_, occasion);
    if (rule == nullptr) return {};
    ++counts_.posts;
    return rule->error;
  }
  const ProgramCounts& counts() const { return counts_; }

 private:
  template <class Rule>
  struct AtWork {
    Rule rule;
    Selector selector;
  };

  template <class Rule>
  static std::vector<AtWork<Rule>> at_work(const std::vector<Rule>& rules) {
    std::vector<AtWork<Rule>> all;
    for (const Rule& rule : rules) all.push_back({rule, Selector(rule.choice)});
    return all;
  }

  template <class Rule>
  static const Rule* choose(std::vector<AtWork<Rule>>& rules, const Occasion& occasion) {
    const Rule* first = nullptr;
    for (AtWork<Rule>& each : rules) {
      if (each.rule.filter.fits(occasion) && each.selector.next() && first == nullptr) first = &each.rule;
    }
    return first;
  }

  std::vector<AtWork<CompletionRule>> completions_;
  std::vector<AtWork<PostRule>> posts_;
  ProgramCounts counts_;
};

}  // namespace ub::fault
