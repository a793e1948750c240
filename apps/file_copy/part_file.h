// SPDX-License-Identifier: Apache-2.0
//
// A file that is being received: DIRECTORY/.NAME.<random>.part, which nobody had before. It is removed at the end
// unless it got its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ub::apps {

class PartFile {
 public:
  // Takes the room on the disk. `overwrite`: NAME may exist.
  PartFile(const std::string& directory, const std::string& name, uint64_t bytes, bool overwrite);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  void append(const std::byte* data, uint64_t bytes);
  // It is complete: gives it its name. `sync`: once it is on the disk.
  void commit(bool sync);

 private:
  void check_target() const;
  void reserve(uint64_t bytes) const;
  void check_untouched() const;
  void rename_to_target() const;

  std::string path_, part_;
  bool overwrite_, committed_ = false;
  int fd_ = -1;
  uint64_t written_ = 0;
};

}  // namespace ub::apps
