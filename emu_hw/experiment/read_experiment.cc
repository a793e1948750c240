// SPDX-License-Identifier: Apache-2.0
#include <toml++/toml.h>

#include <algorithm>

#include "emu_hw/experiment/experiment.h"

namespace ub::emu {
namespace {

constexpr std::string_view kKnown[] = {"id",     "title",  "class", "measure", "workload", "operations", "repeats",
                                       "sweep", "values", "set",   "stacks",  "expected"};

class Reader {
 public:
  Reader(std::string path, const toml::table& table) : path_(std::move(path)), table_(table) {}

  Experiment read() const {
    for (const auto& [key, value] : table_) {
      if (std::find(std::begin(kKnown), std::end(kKnown), key.str()) == std::end(kKnown))
        fail(key.str(), "there is no such key");
    }
    Experiment e;
    e.id = text("id");
    e.title = text("title");
    e.judged_as = class_of(text("class"));
    e.measure = measure_of(text("measure"));
    e.workload = text("workload");
    e.operations = count("operations", e.operations);
    e.repeats = count("repeats", e.repeats);
    e.sweep = text("sweep");
    e.values = numbers("values", table_["values"].as_array());
    if (e.values.empty()) fail("values", "a sweep needs at least one value");
    if (const toml::table* set = table_["set"].as_table()) {
      for (const auto& [key, value] : *set) {
        const std::string name(key.str());
        e.set[name] = number("set." + name, value);
      }
    }
    read_series(e);
    return e;
  }

 private:
  [[noreturn]] void fail(std::string_view key, const std::string& why) const {
    throw BadExperiment(path_ + ": " + std::string(key) + ": " + why);
  }
  std::string text(std::string_view key) const {
    const auto value = table_[key].value<std::string>();
    if (!value) fail(key, "is missing, or no text");
    return *value;
  }
  uint64_t count(std::string_view key, uint64_t otherwise) const {
    const int64_t value = table_[key].value_or(static_cast<int64_t>(otherwise));
    if (value < 1) fail(key, "is at least 1");
    return static_cast<uint64_t>(value);
  }
  double number(std::string_view key, const toml::node& node) const {
    const auto value = node.value<double>();
    if (!value) fail(key, "is no number");
    return *value;
  }
  std::vector<double> numbers(std::string_view key, const toml::array* array) const {
    if (array == nullptr) fail(key, "is missing, or no list of numbers");
    std::vector<double> all;
    for (const toml::node& node : *array) all.push_back(number(key, node));
    return all;
  }
  Class class_of(const std::string& name) const {
    for (Class each : {Class::kExact, Class::kRandom, Class::kShape, Class::kFormula})
      if (name == std::string(1, static_cast<char>(each))) return each;
    fail("class", "is X, R, S or F, not " + name);
  }
  Measure measure_of(const std::string& name) const {
    if (name == "mean_ns") return Measure::kMeanNs;
    if (name == "mops") return Measure::kMops;
    fail("measure", "is mean_ns or mops, not " + name);
  }
  // Those of `stacks` in their order; data by the name of the stack.
  void read_series(Experiment& e) const {
    const toml::array* stacks = table_["stacks"].as_array();
    if (stacks == nullptr || stacks->empty()) fail("stacks", "name at least one stack");
    const toml::table* expected = table_["expected"].as_table();
    for (const toml::node& node : *stacks) {
      Series series{node.value_or(std::string()), {}};
      const toml::array* data = expected != nullptr ? (*expected)[series.stack].as_array() : nullptr;
      if (data != nullptr) series.expected = numbers("expected." + series.stack, data);
      if (data != nullptr && series.expected.size() != e.values.size())
        fail("expected." + series.stack, "has " + std::to_string(series.expected.size()) + " numbers for " +
                                             std::to_string(e.values.size()) + " values");
      e.series.push_back(std::move(series));
    }
  }

  const std::string path_;
  const toml::table& table_;
};

}  // namespace

Experiment read_experiment(const std::string& path) {
  try {
    const toml::table table = toml::parse_file(path);
    return Reader(path, table).read();
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw BadExperiment(path + ":" + std::to_string(at.line) + ": " + std::string(error.description()));
  }
}

}  // namespace ub::emu
