// SPDX-License-Identifier: Apache-2.0
#include "dataplane/config_file.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <tuple>
#include <utility>

// Header only: do not compile this file with the flags of tomlplusplus.pc, which ask for its shared library.
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "dataplane/config_checks.h"
#include "dataplane/config_key.h"
#include "dataplane/config_names.h"

namespace ub::configuration {

using std::chrono::nanoseconds;

namespace {

const char* type_name(toml::node_type type) {
  switch (type) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a float";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

Parsed wrong_type(const Key& key, const char* expected, const toml::node& found) {
  return {{}, key.full_name() + ": expected " + expected + ", found " + type_name(found.type())};
}

Parsed parse_node(const Key& key, const toml::node& node) {
  const auto* text = node.as_string();
  const auto* integer = node.as_integer();
  switch (key.type) {
    case KeyType::String:
      if (text == nullptr) return wrong_type(key, "a string", node);
      return parse_text(key, text->get());
    case KeyType::Bool:
      if (!node.is_boolean()) return wrong_type(key, "true or false", node);
      return {node.as_boolean()->get(), {}};
    case KeyType::U32:
      if (integer == nullptr) return wrong_type(key, "an integer", node);
      return parse_text(key, std::to_string(integer->get()));
    case KeyType::Bytes:
      if (integer != nullptr && integer->get() < 0) return {{}, out_of_range(key, std::to_string(integer->get()))};
      if (integer != nullptr) return {static_cast<uint64_t>(integer->get()), {}};
      if (text != nullptr) return parse_text(key, text->get());
      return wrong_type(key, "an integer or a string such as \"8MiB\"", node);
    case KeyType::Duration:
      if (text != nullptr) return parse_text(key, text->get());
      if (integer != nullptr && integer->get() == 0) return {nanoseconds(0), {}};
      return wrong_type(key, "a string with unit such as \"4ms\"", node);
    case KeyType::List: {
      if (!node.is_array()) return wrong_type(key, "an array of strings", node);
      StringList list;
      for (const toml::node& element : *node.as_array()) {
        if (key.rule == "core" && element.is_integer()) {
          list.push_back(std::to_string(element.as_integer()->get()));
          continue;
        }
        if (!element.is_string()) return wrong_type(key, "an array of strings", element);
        list.push_back(element.as_string()->get());
      }
      return {std::move(list), {}};
    }
  }
  return {};
}

class FileLoader {
 public:
  FileLoader(LoadedConfig* config, std::vector<std::string>* errors) : config_(config), errors_(errors) {}

  void load(const std::string& path, const Environment::File& file) {
    if (file.status != Environment::FileStatus::kOk) {
      errors_->push_back(path + ": cannot be read: " + file.text);
      return;
    }
    config_->files.push_back(path);
    try {
      load_table(path, toml::parse(std::string_view(file.text), std::string_view(path)));
    } catch (const toml::parse_error& error) {
      errors_->push_back(position(path, error.source()) + "syntax error: " + std::string(error.description()));
    }
  }

 private:
  struct FileError {
    uint32_t line, column;
    std::string text;
    bool operator<(const FileError& other) const { return std::tie(line, column) < std::tie(other.line, other.column); }
  };

  static std::string position(const std::string& path, const toml::source_region& region) {
    return path + ":" + std::to_string(region.begin.line) + ":" + std::to_string(region.begin.column) + ": ";
  }

  // The table iterates by name; people read errors by line.
  void load_table(const std::string& path, const toml::table& root) {
    file_errors_.clear();
    for (const auto& [section_name, node] : root) load_section(path, section_name, node);
    std::sort(file_errors_.begin(), file_errors_.end());
    for (FileError& error : file_errors_) errors_->push_back(std::move(error.text));
  }

  void load_section(const std::string& path, const toml::key& name, const toml::node& node) {
    const std::string section(name.str());
    const bool known =
        std::any_of(keys().begin(), keys().end(), [&](const Key& key) { return key.section == section; });
    if (!known && node.is_table()) {
      add_error(path, name.source(), "unknown section " + quoted(section) + did_you_mean_section(section));
    } else if (!known) {
      add_error(path, name.source(),
                "unknown key " + quoted(section) + did_you_mean(concat(".", section), &Key::full_name));
    } else if (!node.is_table()) {
      add_error(path, name.source(), quoted(section) + " is a section: write [" + section + "]");
    } else {
      for (const auto& [key_name, value] : *node.as_table()) load_key(path, section, key_name, value);
    }
  }

  void load_key(const std::string& path, const std::string& section, const toml::key& name, const toml::node& node) {
    for (size_t i = 0; i < keys().size(); ++i) {
      if (keys()[i].section != section || keys()[i].name != name.str()) continue;
      const std::string source = path + ":" + std::to_string(name.source().begin.line);
      const std::string error = put_in_force(i, parse_node(keys()[i], node), source, config_);
      if (!error.empty()) add_error(path, name.source(), error);
      return;
    }
    const std::string wrong = section + "." + std::string(name.str());
    add_error(path, name.source(), "unknown key " + quoted(wrong) + did_you_mean(wrong, &Key::full_name));
  }

  void add_error(const std::string& path, const toml::source_region& region, const std::string& text) {
    file_errors_.push_back({region.begin.line, region.begin.column, position(path, region) + text});
  }

  LoadedConfig* config_;
  std::vector<std::string>* errors_;
  std::vector<FileError> file_errors_;
};

}  // namespace

void load_file(const std::string& path, const Environment::File& file, LoadedConfig* config,
               std::vector<std::string>* errors) {
  FileLoader(config, errors).load(path, file);
}

}  // namespace ub::configuration
