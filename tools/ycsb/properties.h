// SPDX-License-Identifier: Apache-2.0
//
// Properties by name, as YCSB has them: from property files of Java and from `-p name=value`. What comes later wins.
//
// Each getter checks its value and throws ToolError (kExitUsage) with a sentence that says which property of which file
// and line is wrong, and what would be right. Names that nobody asked for are probably typing errors: `unread` tells
// them.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ub::ycsb {

class Properties {
 public:
  // ToolError if the file cannot be read, or if a line has no name.
  void read_file(const std::string& path);
  // The text of a property file, whose name is for error sentences.
  void read_text(std::string_view text, const std::string& name);
  // "name=value", of a command line.
  void set_pair(const std::string& pair);
  void set(const std::string& name, const std::string& value, const std::string& origin);

  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::string choice(const std::string& name, const std::string& otherwise,
                     std::initializer_list<const char*> choices) const;
  uint64_t number(const std::string& name, uint64_t otherwise, uint64_t least = 0, uint64_t most = UINT64_MAX) const;
  double real(const std::string& name, double otherwise, double least, double most) const;
  bool flag(const std::string& name, bool otherwise) const;

  // "recordcount=12x (workloada:3)", for sentences of those who find more wrong with it.
  std::string describe(const std::string& name) const;
  // Those that no getter was asked for.
  std::vector<std::string> unread() const;
  // All names and values.
  std::map<std::string, std::string> values() const;

 private:
  struct Entry {
    std::string value, origin;
    mutable bool read = false;
  };
  const Entry* find(const std::string& name) const;

  std::map<std::string, Entry> entries_;
};

}  // namespace ub::ycsb
