// SPDX-License-Identifier: Apache-2.0
#include <toml++/toml.h>

#include <algorithm>

#include "emu_hw/experiment/experiment.h"

namespace ub::emu {
namespace {

constexpr std::string_view kKnown[] = {"id",     "title",  "class", "measure", "workload", "operations", "repeats",
                                       "sweep", "values", "set",   "stacks",  "expected"};

constexpr const char* kNamesOfKeys =
    "id, title, class, measure, workload, operations, repeats, sweep, values, set, stacks, expected";

class Reader {
 public:
  Reader(std::string path, const toml::table& table) : path_(std::move(path)), table_(table) {}

  Experiment read() const {
    for (const auto& [key, value] : table_) {
      if (std::find(std::begin(kKnown), std::end(kKnown), key.str()) == std::end(kKnown))
        fail(key.str(), std::string("there is no such key; there are ") + kNamesOfKeys);
    }
    Experiment e;
    e.path = path_;
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
    if (const toml::table* set = table_of("set")) {
      for (const auto& [key, value] : *set) {
        const std::string name(key.str());
        e.set[name] = number("set." + name, value);
      }
    }
    read_series(e);
    if (e.set.contains(e.sweep)) fail("set." + e.sweep, "is what is swept");
    return e;
  }

 private:
  [[noreturn]] void fail(std::string_view key, const std::string& why) const {
    throw BadExperiment(path_ + ": " + std::string(key) + ": " + why);
  }
  std::string text(std::string_view key) const {
    const auto value = table_[key].value<std::string>();
    if (!value) fail(key, "is missing, or no text in quotation marks");
    return *value;
  }
  uint64_t count(std::string_view key, uint64_t otherwise) const {
    if (!table_[key]) return otherwise;
    const auto value = table_[key].value_exact<int64_t>();
    if (!value || *value < 1) fail(key, "give a whole number, at least 1");
    return static_cast<uint64_t>(*value);
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
    const toml::table* expected = table_of("expected");
    for (const toml::node& node : *stacks) {
      Series series{node.value_or(std::string()), {}};
      const bool has_data = expected != nullptr && expected->contains(series.stack);
      if (has_data) series.expected = numbers("expected." + series.stack, (*expected)[series.stack].as_array());
      if (has_data && series.expected.size() != e.values.size())
        fail("expected." + series.stack, "has " + std::to_string(series.expected.size()) + " numbers for " +
                                             std::to_string(e.values.size()) + " values");
      e.series.push_back(std::move(series));
    }
    if (expected == nullptr) return;
    for (const auto& [stack, data] : *expected) {
      const auto is_it = [&, name = stack.str()](const Series& series) { return series.stack == name; };
      if (std::none_of(e.series.begin(), e.series.end(), is_it))
        fail("expected." + std::string(stack.str()), "this stack is not among `stacks`");
    }
  }
  const toml::table* table_of(std::string_view key) const {
    if (table_[key] && table_[key].as_table() == nullptr) fail(key, "is no table: write [" + std::string(key) + "]");
    return table_[key].as_table();
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
