// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/profiles/toml_file.h"

#include <algorithm>
#include <cmath>

namespace ub::emu {

std::vector<std::filesystem::path> toml_files_of(const std::string& directory) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (entry.path().extension() == ".toml") paths.push_back(entry.path());
  if (error)
    throw BadFile("\"" + directory + "\": " + error.message() +
                  "; name the directory by --experiments or --profiles");
  if (paths.empty()) throw BadFile(directory + ": has no files *.toml; name another directory");
  std::sort(paths.begin(), paths.end());
  return paths;
}

TomlFile::TomlFile(const std::string& path) : path_(path) {
  try {
    table_ = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw BadFile(path + ":" + std::to_string(at.line) + ": " + std::string(error.description()));
  }
}

void TomlFile::fail(std::string_view key, const std::string& why) const {
  throw BadFile(path_ + ": " + std::string(key) + ": " + why);
}

void TomlFile::expect_keys(const toml::table& table, const std::string& name,
                           const std::vector<std::string_view>& keys) const {
  for (const auto& [key, value] : table) {
    if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
    std::string names;
    for (std::string_view each : keys) names += (names.empty() ? "" : ", ") + std::string(each);
    fail((name.empty() ? "" : name + ".") + std::string(key.str()), "there is no such key; there are " + names);
  }
}

std::string TomlFile::text(std::string_view key) const {
  const auto value = table_[key].value<std::string>();
  if (!value) fail(key, "is missing, or no text in quotation marks");
  return *value;
}

std::string TomlFile::text_or(const toml::table& table, const std::string& name, std::string_view key,
                              std::string_view otherwise) const {
  if (!table.contains(key)) return std::string(otherwise);
  const auto value = table[key].value<std::string>();
  if (!value) fail(name + "." + std::string(key), "is no text in quotation marks");
  return *value;
}

std::optional<double> TomlFile::not_negative(const toml::table& table, const std::string& name,
                                         std::string_view key) const {
  if (!table.contains(key)) return {};
  const auto value = table[key].value<double>();
  if (!value || !(*value >= 0) || !std::isfinite(*value))
    fail(name + "." + std::string(key), "give a number from 0 on");
  return value;
}

std::string TomlFile::text_or(std::string_view key, std::string_view otherwise) const {
  return has(key) ? text(key) : std::string(otherwise);
}

double TomlFile::number(std::string_view key) const {
  const auto value = table_[key].value<double>();
  if (!value) fail(key, "is missing, or no number");
  return *value;
}

std::vector<double> TomlFile::numbers(const std::string& key, const toml::node* node) const {
  const toml::array* array = node == nullptr ? nullptr : node->as_array();
  if (array == nullptr) fail(key, "is missing, or no list of numbers");
  std::vector<double> all;
  for (const toml::node& each : *array) {
    const auto value = each.value<double>();
    if (!value) fail(key, "is no list of numbers");
    all.push_back(*value);
  }
  return all;
}

std::vector<std::string> TomlFile::texts(std::string_view key) const {
  const toml::array* array = table_[key].as_array();
  if (array == nullptr) fail(key, "is missing, or no list of texts");
  std::vector<std::string> all;
  for (const toml::node& each : *array) {
    const auto value = each.value<std::string>();
    if (!value) fail(key, "is no list of texts");
    all.push_back(*value);
  }
  return all;
}

const toml::table* TomlFile::table(const toml::table& in, const std::string& key, std::string_view last) const {
  const toml::node* node = in.get(last);
  if (node != nullptr && node->as_table() == nullptr) fail(key, "is no table: write [" + key + "]");
  return node == nullptr ? nullptr : node->as_table();
}

Settings TomlFile::settings(const std::string& key, const toml::table* table) const {
  Settings settings;
  if (table == nullptr) return settings;
  for (const auto& [name, node] : *table) {
    const std::string parameter(name.str());
    if (const auto text = node.value_exact<std::string>()) {
      settings[parameter] = *text;
    } else if (const auto number = node.value<double>()) {
      settings[parameter] = text_of(*number);
    } else {
      fail(key + "." + parameter, "is neither a number nor a text");
    }
  }
  return settings;
}

}  // namespace ub::emu
