// SPDX-License-Identifier: Apache-2.0
//
// What a fabric is told while it runs, line by line:
//
//   set LINKS TEXT   changes links (path_names.h) by the words of TEXT (lib/impair/text.h)
//   show [LINKS]     what the links are like, and what they counted
//   json             the same of all links, as JSON in one line
//   help             these lines
//   quit             ends the fabric
//
// Thread: the caller serialises.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tools/fabric/config.h"
#include "tools/fabric/medium.h"
#include "tools/fabric/network.h"

namespace ub::fabric {

class Console {
 public:
  Console(const Config& config, Network& network, const Medium& medium)
      : config_(config), network_(network), medium_(medium) {}

  // So many changes of all links together may be still to come: each takes some 150 bytes.
  static constexpr size_t kMostChanges = 100'000;

  // Changes all of the links, or none of them. Times of the text begin now. Throws ToolError: the links or the text are
  // wrong, or more than kMostChanges would be to come.
  void set(Instant now, std::string_view links, std::string_view text);
  // Obeys a line. The answer is whole lines, of which the last one is "ok" or begins with "error: ".
  std::string answer(Instant now, std::string_view line);

  bool was_told_to_quit() const { return quit_; }

 private:
  std::string obey(Instant now, std::string_view line);
  std::string show(Instant now, std::string_view links);
  void check_changes(Instant now, std::span<const PathId> paths, size_t changes_of_each);

  const Config& config_;
  Network& network_;
  const Medium& medium_;
  bool quit_ = false;
};

}  // namespace ub::fabric
