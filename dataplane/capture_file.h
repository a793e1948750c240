// SPDX-License-Identifier: Apache-2.0
//
// The file of a capture, or several of which only the last ones stay. It is made by this process and for its user
// alone, and never in place of another one.
//
// Thread: one, which may wait for the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "lib/ipc/fd.h"

namespace ub {

class CaptureFile {
 public:
  CaptureFile() = default;
  explicit CaptureFile(ipc::Fd fd) : fd_(std::move(fd)) {}  // one that is open already; empty

  // `files`: 0: it is this path; else the first of several, whose number stands before the ending of its name. False
  // and `*why`: the file exists, or cannot be made.
  bool open(const std::string& path, uint32_t files, std::string* why);
  // The next one, and takes away the one that is `files` before it.
  bool open_next(std::string* why);

  // All of it, or nothing where that can be had; false and `*why`: the disk is full, for example.
  bool write(std::span<const std::byte> blocks, std::string* why);
  void close() { fd_.reset(); }

  uint64_t bytes() const { return bytes_; }  // of the file that is open
  uint32_t number() const { return number_; }
  // Of the file that is open.
  std::string path() const { return path_of(number_); }

 private:
  std::string path_of(uint32_t number) const;

  ipc::Fd fd_;
  std::string path_;
  uint32_t files_ = 0;
  uint32_t number_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace ub
