// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/experiment/comparison.h"
#include "emu_hw/report/html.h"
#include "emu_hw/report/number_text.h"
#include "emu_hw/report/page_parts.h"
#include "emu_hw/running/sha256.h"

namespace ub::emu {
namespace {

// `html`, and the reason when somebody asks for it.
std::string with_reason(const std::string& html, const std::string& reason) {
  if (reason.empty()) return html;
  return html + " <details class=\"reason\"><summary>why</summary>" + escaped(reason) + "</details>";
}

// One item for all series of an experiment that have the verdict: "F44 bf, dma beside: why".
std::string exception(const Experiment& e, const ExperimentResult& result, Verdict verdict) {
  std::string names, reasons, former;
  for (size_t s = 0; s < e.series.size(); ++s) {
    const Series& series = e.series[s];
    if (result.series[s].judgement.verdict != verdict) continue;
    names += (names.empty() ? "" : ", ") + series.name;
    if (verdict == Verdict::kExplained || verdict == Verdict::kOutOfClass)
      names += " (" + percent_text(furthest_of(e, series, result.series[s]).percent()) + ")";
    if (series.explanation != former) reasons += " " + series.explanation;
    former = series.explanation;
  }
  if (names.empty()) return "";
  return with_reason(link("#" + anchor_of(e), e.id) + " " + escaped(names) + " " + verdict_html(verdict), reasons);
}

std::string exceptions_html(const Report& report) {
  std::vector<std::string> items;
  for (const Verdict verdict : {Verdict::kOutOfClass, Verdict::kInvalid, Verdict::kExplained, Verdict::kBeside})
    for (size_t e = 0; e < report.experiments.size(); ++e) {
      std::string item = exception(report.experiments[e], report.results[e], verdict);
      if (!item.empty()) items.push_back(std::move(item));
    }
  return items.empty() ? paragraph("None: all series with data are in their class.") : list_of(items);
}

std::string not_reproducible_html(const Report& report) {
  std::vector<std::string> items;
  for (const Experiment& e : report.experiments)
    if (!e.not_reproducible.empty())
      items.push_back(with_reason(link("#" + anchor_of(e), e.id) + " " + escaped(e.title), e.not_reproducible));
  return items.empty() ? paragraph("Nothing of what was run.") : list_of(items);
}

std::string tiles(const Report& report) {
  const Counts counts = counts_of(report.experiments, report.results);
  std::string html;
  const auto add = [&](Verdict verdict, const char* what) {
    const auto found = counts.find(verdict);
    const std::string count = std::to_string(found == counts.end() ? 0 : found->second);
    html += "<div class=\"tile\"><b>" + count + "</b><span>" + what + "</span></div>\n";
  };
  add(Verdict::kInClass, "series in class");
  add(Verdict::kExplained, "out, explained");
  add(Verdict::kOutOfClass, "out of class");
  add(Verdict::kInvalid, "invalid");
  add(Verdict::kBeside, "beside, not judged");
  add(Verdict::kNoData, "without published data");
  add(Verdict::kNotReproducible, "entries not reproducible");
  return "<div class=\"tiles\">\n" + html + "</div>\n";
}

std::string deciders_html(const Report& report) {
  std::string deciders;
  for (const auto& [decider, names] : deciders_of(report.experiments))
    deciders += (deciders.empty() ? "" : ", ") + decider + " (" + std::to_string(names.size()) + ")";
  if (deciders.empty()) return "";
  return paragraph("What decides, in so many series: " + deciders +
                       ". In the others it is the core that carries live packets, with the costs of the parts, but for "
                       "formulas and what has no NIC.",
                   "note");
}

std::string conclusions() {
  const std::string may = list_of(
      {"how latency and rate follow from the costs of the parts that an operation passes, and from nothing else;",
       "how stacks compare under the same costs, and how that changes with a link, a payload, a cache or a policy;",
       "that the published figures in class follow from the published costs and the protocol core of this project."});
  const std::string may_not = list_of(
      {"how fast some hardware is: the costs are the paper’s, not measured on silicon;",
       "anything about area, timing closure or the time of an operating system;",
       "what a NIC that works on several operations at once would do, where the engine is serial, as in the reference;",
       "that a series without published data is right: it is a prediction of the model."});
  return "<div class=\"two\">\n<div>" + element("h3", "What may be concluded") + may + "</div>\n<div>" +
         element("h3", "What may not") + may_not + "</div>\n</div>\n";
}

std::string overrides_html(const Provenance& provenance) {
  if (provenance.overrides.empty()) return "";
  std::string values;
  for (const auto& [name, text] : provenance.overrides) values += (values.empty() ? "" : ", ") + name + " = " + text;
  return element("div",
                 "Run with other values: <code>" + escaped(values) +
                     "</code>. The verdicts compare another machine with the published one.",
                 "banner");
}

std::string facts(const Provenance& provenance) {
  std::string sums;
  Table table({"file", "SHA-256"});
  for (const auto& [name, hash] : provenance.inputs) {
    sums += hash + "  " + name + "\n";
    table.add_row({escaped(name), "<code>" + escaped(hash) + "</code>"});
  }
  const auto fact = [](const char* name, const std::string& value) {
    return "<dt>" + std::string(name) + "</dt><dd>" + value + "</dd>\n";
  };
  return "<dl class=\"facts\">\n" + fact("version and commit", escaped(provenance.version)) +
         fact("seed", escaped(provenance.seed)) +
         fact("inputs", std::to_string(provenance.inputs.size()) + " files, together <span class=\"hash\">" +
                            sha256_of(sums) + "</span>") +
         "</dl>\n<details><summary>Hash of each input</summary>\n" + table.html() + "</details>\n";
}

}  // namespace

std::string first_screen(const Report& report) {
  return element("h1", "Emulation in virtual time: results beside the paper") +
         paragraph(
             "UB and RoCE hosts, run by the protocol core of this project between models of hardware. Filled "
             "marks are results, hollow ones are published.",
             "lead") +
         overrides_html(report.provenance) + conclusions() + tiles(report) + deciders_html(report) +
         facts(report.provenance) + "<div class=\"two\">\n<div>" + element("h3", "Exceptions") +
         exceptions_html(report) + "</div>\n<div>" + element("h3", "Not reproducible by software") +
         not_reproducible_html(report) + "</div>\n</div>\n";
}

}  // namespace ub::emu
