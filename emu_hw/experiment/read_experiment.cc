// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "emu_hw/experiment/experiment.h"
#include "emu_hw/experiment/figure_name.h"
#include "emu_hw/experiment/run_point.h"

namespace ub::emu {
namespace {

bool is_letter_or_digit(char each) { return std::isalnum(static_cast<unsigned char>(each)) != 0; }

// Names of figures follow from it.
bool is_id(const std::string& id) {
  const auto is_allowed = [](char c) { return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_'; };
  return !id.empty() && is_letter_or_digit(id.front()) && std::all_of(id.begin(), id.end(), is_allowed);
}

template <class List>
bool has_twice(List list) {
  std::sort(list.begin(), list.end());
  return std::adjacent_find(list.begin(), list.end()) != list.end();
}

class Reader {
 public:
  Reader(const std::string& path, const Profiles& profiles) : file_(path), profiles_(profiles) {}

  Experiment read() const {
    file_.expect_keys({"id", "title", "class", "not_reproducible", "paper", "model", "workload", "measure",
                       "operations", "repeats", "sweep", "values", "set", "stacks", "series", "expected"});
    Experiment e;
    e.path = file_.path();
    e.id = file_.text("id");
    if (!is_id(e.id)) file_.fail("id", "give letters and digits, and - . _ behind the first one");
    e.title = file_.text("title");
    e.paper = file_.text_or("paper", "");
    if (file_.has("not_reproducible")) return not_reproducible(std::move(e));
    e.judged_as = class_of(file_.text("class"));
    e.model = file_.text_or("model", "two_node");
    if (find_model(e.model) == nullptr)
      file_.fail("model", "there is no " + e.model + "; there are " + names_of_models());
    e.workload = file_.text_or("workload", "");
    if (file_.has("workload") && !find_model(e.model)->has_workloads)
      file_.fail("workload", "the model " + e.model + " has none; leave it out");
    e.measure = file_.text("measure");
    e.repeats = repeats();
    e.sweep = file_.text("sweep");
    e.values = file_.numbers("values");
    if (e.values.empty()) file_.fail("values", "a sweep needs at least one value");
    if (!std::all_of(e.values.begin(), e.values.end(), [](double each) { return std::isfinite(each); }))
      file_.fail("values", "give finite numbers");
    if (has_twice(e.values)) file_.fail("values", "has one of them twice; leave one out");
    read_series(e);
    for (const Series& series : e.series)
      for (const double value : e.values) parameters_of(e, series, value, {});
    return e;
  }

 private:
  Experiment not_reproducible(Experiment e) const {
    e.not_reproducible = file_.text("not_reproducible");
    if (e.not_reproducible.empty()) file_.fail("not_reproducible", "say why");
    for (const char* key : {"class", "model", "workload", "measure", "operations", "repeats", "sweep", "values", "set",
                            "stacks", "series", "expected"})
      if (file_.has(key)) file_.fail(key, "leave it out, or not_reproducible: nothing is run here");
    return e;
  }
  Class class_of(const std::string& name) const {
    for (Class each : {Class::kExact, Class::kRandom, Class::kShape, Class::kFormula})
      if (name == std::string(1, static_cast<char>(each))) return each;
    file_.fail("class", "is X, R, S or F, not " + name);
  }
  uint64_t repeats() const {
    if (!file_.has("repeats")) return 1;
    const double count = file_.number("repeats");
    if (!(count >= 1 && count <= 1000) || count != static_cast<double>(static_cast<uint64_t>(count)))
      file_.fail("repeats", "give a whole number from 1 to 1000");
    return static_cast<uint64_t>(count);
  }
  // What all series have: [set], and `operations`, which is a parameter in a place of its own.
  Settings common() const {
    Settings set = file_.settings("set");
    if (file_.has("operations")) set["operations"] = text_of(file_.number("operations"));
    return set;
  }
  // Those of `stacks`, in their order.
  void read_series(Experiment& e) const {
    const Settings common_set = common();
    if (common_set.contains(e.sweep)) file_.fail("set." + e.sweep, "is what is swept");
    const std::vector<std::string> stacks = file_.texts("stacks");
    if (has_twice(stacks)) file_.fail("stacks", "has a name twice; name a series and its stack by [series.NAME]");
    for (const std::string& name : stacks) e.series.push_back(series_of(e, name, common_set));
    if (e.series.empty()) file_.fail("stacks", "name at least one");
    for (const char* key : {"series", "expected"}) expect_known(e, key);
    for (const Series& series : e.series) {
      if (!series.beside.empty() && !has(e, series.beside))
        file_.fail("series." + series.name + ".beside", "there is no " + series.beside + " among `stacks`");
    }
  }
  Series series_of(const Experiment& e, const std::string& name, const Settings& common_set) const {
    Series series;
    series.name = series.stack = name;
    std::string profile = name;
    Settings own;
    if (const toml::table* table = own_table(name)) {
      const std::string key = "series." + name;
      file_.expect_keys(*table, key,
                        {"profile", "stack", "set", "within", "within_percent", "decided_by", "beside", "explanation"});
      profile = file_.text_or(*table, key, "profile", name);
      if (table->contains("stack")) {
        if (table->contains("profile")) file_.fail(key + ".stack", "a profile has one; leave one of the two out");
        series.stack = file_.text_or(*table, key, "stack", "");
        profile.clear();
      }
      if (table->contains("profile") && !profiles_.contains(profile)) no_profile(key + ".profile", profile);
      own = file_.settings(key + ".set", file_.table(*table, key + ".set", "set"));
      series.within = file_.not_negative(*table, key, "within");
      series.within_percent = file_.not_negative(*table, key, "within_percent");
      if (series.within && series.within_percent) file_.fail(key + ".within", "leave it or within_percent out");
      series.decided_by = file_.text_or(*table, key, "decided_by", "");
      series.beside = file_.text_or(*table, key, "beside", "");
      series.explanation = file_.text_or(*table, key, "explanation", "");
      if (series.beside == name) file_.fail(key + ".beside", "is the series itself; name another one");
      if (!series.beside.empty() && series.explanation.empty())
        file_.fail(key + ".explanation", "say what makes it differ from " + series.beside);
    }
    if (const auto found = profiles_.find(profile); found != profiles_.end()) {
      series.stack = found->second.stack;
      series.set = found->second.set;
    }
    for (const Settings* settings : {&common_set, static_cast<const Settings*>(&own)})
      for (const auto& [parameter, text] : *settings) series.set[parameter] = text;
    if (own.contains(e.sweep)) file_.fail("series." + name + ".set." + e.sweep, "is what is swept");
    read_expected(e, series);
    return series;
  }
  void read_expected(const Experiment& e, Series& series) const {
    const toml::table* expected = file_.table("expected");
    if (expected == nullptr || !expected->contains(series.name)) return;
    const std::string key = "expected." + series.name;
    series.expected = file_.numbers(key, (*expected)[series.name].node());
    if (series.expected.size() != e.values.size())
      file_.fail(key, "has " + std::to_string(series.expected.size()) + " numbers for " +
                          std::to_string(e.values.size()) + " values");
    if (std::any_of(series.expected.begin(), series.expected.end(), [](double each) { return std::isinf(each); }))
      file_.fail(key, "give finite numbers, and nan where none is published");
    if (std::all_of(series.expected.begin(), series.expected.end(), [](double each) { return std::isnan(each); }))
      file_.fail(key, "has no number at all; leave it out");
  }
  const toml::table* own_table(const std::string& name) const {
    const toml::table* all = file_.table("series");
    if (all == nullptr || !all->contains(name)) return nullptr;
    const toml::table* table = (*all)[name].as_table();
    if (table == nullptr) file_.fail("series." + name, "is no table: write [series." + name + "]");
    return table;
  }
  void expect_known(const Experiment& e, const std::string& key) const {
    const toml::table* table = file_.table(key);
    if (table == nullptr) return;
    for (const auto& [name, value] : *table)
      if (!has(e, std::string(name.str()))) file_.fail(key + "." + std::string(name.str()), "is not among `stacks`");
  }
  static bool has(const Experiment& e, const std::string& name) {
    return std::any_of(e.series.begin(), e.series.end(), [&](const Series& series) { return series.name == name; });
  }
  [[noreturn]] void no_profile(const std::string& key, const std::string& name) const {
    std::string names;
    for (const auto& [each, profile] : profiles_) names += " " + each;
    file_.fail(key, "there is no " + name + "; there are" + names);
  }

  const TomlFile file_;
  const Profiles& profiles_;
};

}  // namespace

Experiment read_experiment(const std::string& path, const Profiles& profiles) { return Reader(path, profiles).read(); }

std::vector<Experiment> read_experiments(const std::string& directory, const Profiles& profiles) {
  std::vector<Experiment> all;
  std::map<std::string, const std::string> paths;  // by what would be the same figure
  for (const std::filesystem::path& path : toml_files_of(directory)) {
    all.push_back(read_experiment(path, profiles));
    const auto [other, is_new] = paths.emplace(figure_name_of(all.back().id), path);
    if (!is_new)
      throw BadFile(path.string() + ": id: " + other->second +
                    " has the same, but for capitals and - . _; give another one");
  }
  return all;
}

}  // namespace ub::emu
