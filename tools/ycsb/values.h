// SPDX-License-Identifier: Apache-2.0
//
// What fields hold: printable random bytes, or with dataintegrity=true the text that YCSB derives from key and field,
// so that whoever reads it can check it. Thread: one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/prng.h"
#include "tools/ycsb/record.h"
#include "tools/ycsb/spec.h"

namespace ub::ycsb {

class Values {
 public:
  explicit Values(const Spec& spec);  // which must stay

  // Appends a new value for the field of that record; `field` may be RecordFormat::kAllFields.
  void append(std::string* record, std::string_view key, int32_t field, Prng& random);
  // Does the record hold just the fields that were asked for, with the values that dataintegrity=true gives them?
  bool check(std::string_view record, std::string_view key, int32_t field);

 private:
  void append_one(std::string* record, std::string_view key, uint32_t field, Prng& random);
  void write_derived(std::string_view key, uint32_t field, char* to, size_t length) const;

  const Spec& spec_;
  RecordFormat format_;
  std::vector<std::string> field_names_;
  std::string expected_;
};

}  // namespace ub::ycsb
