// SPDX-License-Identifier: Apache-2.0
//
// A report that people look at: one page that needs nothing but itself, its figures as files, all data as CSV and JSON,
// and a trace of one operation.
#pragma once

#include <string>
#include <vector>

#include "emu_hw/report/figure.h"
#include "emu_hw/report/ledgers.h"
#include "emu_hw/running/provenance.h"

namespace ub::emu {

struct Report {
  Provenance provenance;
  std::vector<Experiment> experiments;
  std::vector<ExperimentResult> results;     // as the experiments
  std::vector<std::vector<Figure>> figures;  // as the experiments
  std::vector<LedgerOfStack> ledgers;        // may be empty
};

// The page, as HTML.
std::string page_of(const Report&);

// Before it takes time to find out what to write: makes the directory, and throws BadFile if it cannot be written.
void expect_report_writable(const std::string& directory);

// All files, in a directory that is made if there is none: index.html, figures/*.svg, values.csv, curves.csv,
// trace.json. Throws BadFile.
void write_report(const Report&, const std::string& directory);

}  // namespace ub::emu
