// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dataplane/config.h"
#include "tools/admin/commands.h"
#include "tools/admin/doctor.h"

namespace ub::tools {
namespace {

const char* word_of(Verdict v) {
  switch (v) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kSkipped:
      return "skipped";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kProblem:
      return "problem";
  }
  return "?";
}

size_t count(const Findings& findings, Verdict v) {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(), [v](const Finding& f) { return f.verdict == v; }));
}

void print(const Findings& findings) {
  size_t width = 0;
  for (const Finding& f : findings) width = std::max(width, f.item.size());
  for (const Finding& f : findings) {
    fmt::print("{:<8} {:<{}}  {}\n", word_of(f.verdict), f.item, width, f.found);
    if (!f.advice.empty()) fmt::print("{:<8} {:<{}}  -> {}\n", "", "", width, f.advice);
  }
  fmt::print("\n");
  const char* between = "";
  for (const Verdict v : {Verdict::kOk, Verdict::kSkipped, Verdict::kWarning, Verdict::kProblem}) {
    fmt::print("{}{} {}", between, word_of(v), count(findings, v));
    between = ", ";
  }
  fmt::print("\n");
}

void print_json(const Findings& findings) {
  nlohmann::ordered_json document;
  document["findings"] = nlohmann::ordered_json::array();
  for (const Finding& f : findings) {
    document["findings"].push_back(
        {{"item", f.item}, {"verdict", word_of(f.verdict)}, {"found", f.found}, {"advice", f.advice}});
  }
  for (const Verdict v : {Verdict::kOk, Verdict::kSkipped, Verdict::kWarning, Verdict::kProblem})
    document[word_of(v)] = count(findings, v);
  fmt::print("{}\n", document.dump(2));
}

}  // namespace

int examine(const DoctorOptions& options) {
  const ConfigResult loaded = load_config();
  const Config in_force = loaded.config ? static_cast<const Config&>(*loaded.config) : Config{};
  const HostFacts facts = look_at_host(loaded, in_force);
  if (options.listen) return answer_doctors(in_force, facts, options.port);
  Findings findings = judge_host(facts, in_force);
  if (!options.peer.empty()) {
    const Findings more = judge_peer(look_at_peer(in_force, facts, options.peer, options.port));
    findings.insert(findings.end(), more.begin(), more.end());
  }
  options.json ? print_json(findings) : print(findings);
  return count(findings, Verdict::kProblem) == 0 ? 0 : 1;
}

}  // namespace ub::tools
