// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/spec.h"

#include <fmt/format.h>

#include <numeric>

#include "tools/common/tool_error.h"

namespace ub::ycsb {
namespace {

using tools::kExitUsage;
using tools::ToolError;

constexpr uint64_t kMostRecords = uint64_t{1} << 48;
constexpr uint64_t kMostFields = 1000, kMostLength = 16 << 20, kMostScanned = 100'000;

struct Proportion {
  Operation operation;
  const char* property;
  double otherwise;
};
constexpr Proportion kProportions[] = {{Operation::kRead, "readproportion", 0.95},
                                       {Operation::kUpdate, "updateproportion", 0.05},
                                       {Operation::kInsert, "insertproportion", 0},
                                       {Operation::kScan, "scanproportion", 0},
                                       {Operation::kReadModifyWrite, "readmodifywriteproportion", 0}};

ToolError wrong(const std::string& sentence) { return ToolError(kExitUsage, sentence); }

Length::Kind length_kind(const Properties& p, const char* name, const char* otherwise) {
  const std::string kind = p.choice(name, otherwise, {"constant", "uniform", "zipfian"});
  return kind == "constant"  ? Length::Kind::kConstant
         : kind == "uniform" ? Length::Kind::kUniform
                             : Length::Kind::kZipfian;
}

KeyChoice key_choice(const Properties& p) {
  const std::string name = p.choice("requestdistribution", "uniform",
                                    {"uniform", "zipfian", "latest", "sequential", "hotspot", "exponential"});
  return name == "uniform"      ? KeyChoice::kUniform
         : name == "zipfian"    ? KeyChoice::kZipfian
         : name == "latest"     ? KeyChoice::kLatest
         : name == "sequential" ? KeyChoice::kSequential
         : name == "hotspot"    ? KeyChoice::kHotspot
                                : KeyChoice::kExponential;
}

void read_records(const Properties& p, Spec* spec) {
  if (!p.has("recordcount")) {
    throw wrong("recordcount is missing: it says how many records the store has; give it with -p or in the file of -P");
  }
  spec->record_count = p.number("recordcount", 0, 1, kMostRecords);
  spec->operation_count = p.number("operationcount", 0, 0, kMostRecords);
  spec->insert_start = p.number("insertstart", 0, 0, kMostRecords);
  if (spec->insert_start >= spec->record_count) {
    throw wrong(fmt::format("{} lies behind all records: {}", p.describe("insertstart"), p.describe("recordcount")));
  }
  const uint64_t rest = spec->record_count - spec->insert_start;
  spec->insert_count = p.number("insertcount", rest, 1, kMostRecords);
  if (spec->insert_count > rest) {
    throw wrong(
        fmt::format("insertstart and {} together exceed {}", p.describe("insertcount"), p.describe("recordcount")));
  }
  spec->ordered_keys = p.choice("insertorder", "hashed", {"hashed", "ordered"}) == "ordered";
  spec->zero_padding = static_cast<uint32_t>(p.number("zeropadding", 1, 1, 200));
}

void read_fields(const Properties& p, Spec* spec) {
  spec->field_count = static_cast<uint32_t>(p.number("fieldcount", 10, 1, kMostFields));
  spec->field_prefix = p.text("fieldnameprefix", "field");
  const uint64_t most = p.number("fieldlength", 100, 1, kMostLength);
  const uint64_t least = p.number("minfieldlength", 1, 1, most);
  const Length::Kind kind = length_kind(p, "fieldlengthdistribution", "constant");
  spec->field_length.emplace(kind, least, most);
  spec->read_all_fields = p.flag("readallfields", true);
  spec->write_all_fields = p.flag("writeallfields", false);
  spec->data_integrity = p.flag("dataintegrity", false);
  if (spec->data_integrity && kind != Length::Kind::kConstant) {
    throw wrong(fmt::format("dataintegrity=true needs fields whose length is known, not {}",
                            p.describe("fieldlengthdistribution")));
  }
}

void read_operations(const Properties& p, Spec* spec) {
  std::string all;
  for (const auto& [operation, property, otherwise] : kProportions) {
    const double proportion = p.real(property, otherwise, 0, 1);
    spec->proportions[static_cast<size_t>(operation)] = proportion;
    all += fmt::format("{}{} {}{}", all.empty() ? "" : ", ", property, proportion,
                       p.has(property) ? "" : " (the default)");
  }
  const double sum = std::accumulate(spec->proportions.begin(), spec->proportions.end(), 0.0);
  if (sum > 1 + 1e-9) throw wrong(fmt::format("the proportions make {:.6g}, more than 1: {}", sum, all));
  if (sum <= 0) throw wrong(fmt::format("no operation has a proportion above 0: {}", all));

  spec->key_choice = key_choice(p);
  spec->hot_set_fraction = p.real("hotspotdatafraction", 0.2, 0, 1);
  spec->hot_operation_fraction = p.real("hotspotopnfraction", 0.8, 0, 1);
  spec->exponential_percentile = p.real("exponential.percentile", 95, 0.001, 99.999);
  spec->exponential_fraction = p.real("exponential.frac", 0.8571428571, 1e-9, 1);
  const uint64_t most = p.number("maxscanlength", 1000, 1, kMostScanned);
  const uint64_t least = p.number("minscanlength", 1, 1, most);
  spec->scan_length.emplace(length_kind(p, "scanlengthdistribution", "uniform"), least, most);
}

}  // namespace

Spec read_spec(const Properties& p) {
  Spec spec;
  if (const std::string workload = p.text("workload", "CoreWorkload"); !workload.ends_with("CoreWorkload")) {
    throw wrong(fmt::format("{}: CoreWorkload is the only one", p.describe("workload")));
  }
  spec.table = p.text("table", "usertable");
  read_records(p, &spec);
  read_fields(p, &spec);
  read_operations(p, &spec);
  spec.seed = p.number("seed", 1);
  return spec;
}

}  // namespace ub::ycsb
