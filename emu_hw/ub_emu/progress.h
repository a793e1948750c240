// SPDX-License-Identifier: Apache-2.0
//
// A bar on stderr, with an estimate of the time that is left; nothing where stderr is no terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace ub::emu {

class Progress {
 public:
  Progress();
  ~Progress() { wipe(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void wipe() const;
  void show(size_t ended, size_t all, const std::string& what) const;

 private:
  const bool is_shown_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace ub::emu
