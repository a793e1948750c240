// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/budget.h"
#include "emu_hw/report/csv.h"
#include "emu_hw/report/report.h"
#include "emu_hw/report/timeline.h"
#include "emu_hw/report/trace.h"
#include "emu_hw/running/whole_file.h"

namespace ub::emu {
namespace {

void make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw BadFile(path + ": " + error.message() + "; name another directory by -o");
}

std::string figures_in(const std::string& directory) { return directory + "/figures"; }

}  // namespace

void expect_report_writable(const std::string& directory) {
  make_directory(figures_in(directory));
  expect_writable(directory + "/index.html");
}

void write_report(const Report& report, const std::string& directory) {
  const std::string figures = figures_in(directory);
  make_directory(figures);
  for (const std::vector<Figure>& of_experiment : report.figures)
    for (const Figure& figure : of_experiment) write_whole(figures + "/" + figure.name + ".svg", figure.svg.file());
  if (!report.ledgers.empty()) {
    write_whole(figures + "/budget.svg", drawn_budget(report.ledgers).file());
    write_whole(figures + "/timeline.svg", drawn_timeline(report.ledgers).file());
    write_whole(directory + "/trace.json", trace_of(report.ledgers));
  }
  write_whole(directory + "/values.csv", csv_of_values(report.experiments, report.results));
  write_whole(directory + "/curves.csv", csv_of_curves(report.experiments, report.results));
  write_whole(directory + "/index.html", page_of(report));
}

}  // namespace ub::emu
