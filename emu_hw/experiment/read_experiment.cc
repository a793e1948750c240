// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "emu_hw/experiment/experiment.h"
#include "emu_hw/experiment/run_point.h"

namespace ub::emu {
namespace {

class Reader {
 public:
  Reader(const std::string& path, const Profiles& profiles) : file_(path), profiles_(profiles) {}

  Experiment read() const {
    file_.expect_keys({"id", "title", "class", "not_reproducible", "paper", "model", "workload", "measure",
                       "operations", "repeats", "sweep", "values", "set", "stacks", "series", "expected"});
    Experiment e;
    e.path = file_.path();
    e.id = file_.text("id");
    e.title = file_.text("title");
    e.paper = file_.text_or("paper", "");
    e.not_reproducible = file_.text_or("not_reproducible", "");
    if (!e.not_reproducible.empty()) return e;
    e.judged_as = class_of(file_.text("class"));
    e.model = file_.text_or("model", "two_node");
    if (find_model(e.model) == nullptr)
      file_.fail("model", "there is no " + e.model + "; there are " + names_of_models());
    e.workload = file_.text_or("workload", "");
    e.measure = file_.text("measure");
    e.repeats = repeats();
    e.sweep = file_.text("sweep");
    e.values = file_.numbers("values");
    if (e.values.empty()) file_.fail("values", "a sweep needs at least one value");
    read_series(e);
    for (const Series& series : e.series)
      for (const double value : e.values) parameters_of(e, series, value, {});
    return e;
  }

 private:
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
    for (const std::string& name : file_.texts("stacks")) e.series.push_back(series_of(e, name, common_set));
    if (e.series.empty()) file_.fail("stacks", "name at least one");
    for (const char* key : {"series", "expected"}) expect_known(e, key);
    for (const Series& series : e.series) {
      const std::string key = "series." + series.name + ".beside";
      if (!series.beside.empty() && !has(e, series.beside))
        file_.fail(key, "there is no " + series.beside + " among `stacks`");
      if (series.beside == series.name) file_.fail(key, "name another series");
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
      expect_types(*table, key);
      profile = table->at_path("profile").value_or(name);
      if (const auto stack = (*table)["stack"].value<std::string>()) {
        if (table->contains("profile")) file_.fail(key + ".stack", "a profile has one; leave one of the two out");
        series.stack = *stack;
        profile.clear();
      }
      if (table->contains("profile") && !profiles_.contains(profile)) no_profile(key + ".profile", profile);
      own = file_.settings(key + ".set", (*table)["set"].as_table());
      series.within = (*table)["within"].value<double>();
      series.within_percent = (*table)["within_percent"].value<double>();
      series.decided_by = (*table)["decided_by"].value_or(std::string());
      series.beside = (*table)["beside"].value_or(std::string());
      series.explanation = (*table)["explanation"].value_or(std::string());
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
  void expect_types(const toml::table& table, const std::string& key) const {
    for (const char* each : {"profile", "stack", "decided_by", "beside", "explanation"})
      if (table.contains(each) && !table[each].is_string())
        file_.fail(key + "." + each, "is no text in quotation marks");
    for (const char* each : {"within", "within_percent"})
      if (table.contains(each) && !table[each].is_number()) file_.fail(key + "." + each, "is no number");
    if (table.contains("set") && !table["set"].is_table())
      file_.fail(key + ".set", "is no table: write { NAME = VALUE }");
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
  std::map<std::string, std::string> paths;  // of the experiments, by their names
  for (const std::filesystem::path& path : toml_files_of(directory)) {
    all.push_back(read_experiment(path, profiles));
    const Experiment& e = all.back();
    if (const auto [other, is_new] = paths.emplace(e.id, e.path); !is_new)
      throw BadFile(e.path + ": id: " + other->second + " has " + e.id + ", too; give another one");
  }
  return all;
}

}  // namespace ub::emu
