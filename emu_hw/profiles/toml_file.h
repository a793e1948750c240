// SPDX-License-Identifier: Apache-2.0
//
// A TOML file of the emulation, a profile or an experiment, read key by key. What is wrong is thrown as BadFile, with
// file, key and remedy.
#pragma once

#include <toml++/toml.h>

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

class BadFile : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

// In the order of their names. Throws BadFile if there is none.
std::vector<std::filesystem::path> toml_files_of(const std::string& directory);

class TomlFile {
 public:
  explicit TomlFile(const std::string& path);

  [[noreturn]] void fail(std::string_view key, const std::string& why) const;
  // There are no others, in the file or in a table of it, whose name is for the message.
  void expect_keys(const std::vector<std::string_view>& keys) const { expect_keys(table_, "", keys); }
  void expect_keys(const toml::table& table, const std::string& name, const std::vector<std::string_view>& keys) const;

  bool has(std::string_view key) const { return table_.contains(key); }
  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  // Of a table of the file, whose name is for the message.
  std::string text_or(const toml::table& table, const std::string& name, std::string_view key,
                      std::string_view otherwise) const;
  std::optional<double> not_negative(const toml::table& table, const std::string& name, std::string_view key) const;
  double number(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const { return numbers(std::string(key), table_[key].node()); }
  std::vector<double> numbers(const std::string& key, const toml::node* node) const;
  std::vector<std::string> texts(std::string_view key) const;
  // Null: there is none.
  const toml::table* table(std::string_view key) const { return table(table_, std::string(key), key); }
  // Of another table; `key` is all of its name, and `last` the end.
  const toml::table* table(const toml::table& in, const std::string& key, std::string_view last) const;
  // Names of parameters with their values; empty if there is no such table.
  Settings settings(std::string_view key) const { return settings(std::string(key), table(key)); }
  Settings settings(const std::string& key, const toml::table* table) const;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  toml::table table_;
};

}  // namespace ub::emu
