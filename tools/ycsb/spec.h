// SPDX-License-Identifier: Apache-2.0
//
// What a workload is, out of its properties: YCSB's names and defaults. Units are in the names, or are those of YCSB.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "tools/ycsb/distribution.h"
#include "tools/ycsb/operation.h"
#include "tools/ycsb/properties.h"

namespace ub::ycsb {

enum class KeyChoice { kUniform, kZipfian, kLatest, kSequential, kHotspot, kExponential };

struct Spec {
  std::string table;
  uint64_t record_count = 0;
  uint64_t operation_count = 0;  // 0: until the time is over
  uint64_t insert_start = 0, insert_count = 0;

  uint32_t field_count = 10;
  std::string field_prefix;
  std::optional<Length> field_length;
  bool read_all_fields = true, write_all_fields = false;
  bool data_integrity = false;

  std::array<double, kOperations> proportions{};  // as given, by operation; at least one is above 0
  KeyChoice key_choice = KeyChoice::kUniform;
  double hot_set_fraction = 0, hot_operation_fraction = 0;
  double exponential_percentile = 0, exponential_fraction = 0;
  std::optional<Length> scan_length;
  bool ordered_keys = false;
  uint32_t zero_padding = 1;

  uint64_t seed = 0;

  double proportion(Operation operation) const { return proportions[static_cast<size_t>(operation)]; }
};

// ToolError (kExitUsage): a property is missing, has a bad value, or contradicts another one.
Spec read_spec(const Properties& properties);

}  // namespace ub::ycsb
