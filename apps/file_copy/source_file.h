// SPDX-License-Identifier: Apache-2.0
//
// The file to be sent. What it does not yield is a ToolError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ub::apps {

class SourceFile {
 public:
  explicit SourceFile(const std::string& path);
  ~SourceFile();
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  uint64_t bytes() const { return bytes_; }  // when it was opened
  void read(uint64_t offset, std::byte* to, uint64_t bytes) const;
  // ToolError if it has become longer or shorter meanwhile.
  void check_size() const;

 private:
  void check_kind();
  bool has_byte_at(uint64_t offset) const;

  std::string path_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

}  // namespace ub::apps
