// SPDX-License-Identifier: Apache-2.0
//
// The page of `urma_admin top`: tables of what instances do at the moment. No terminal is known here.
#pragma once

#include <string>
#include <vector>

#include "tools/admin/instance_rates.h"

namespace ub::tools {

enum class TopSort { kPackets, kRetransmissions, kLosses, kRtt };  // of channels
TopSort next_sort(TopSort);

struct TopView {
  size_t width = 0, height = 0;  // 0: as much as it needs
  TopSort sort = TopSort::kPackets;
  size_t scroll = 0;  // so many rows are passed over in each table that does not fit
  bool has_keys = false, is_paused = false;
  double interval_s = 1;
  std::string directory, clock;  // where instances publish; the time of day
};

struct TopLine {
  std::string text;
  bool is_head = false;  // of the page or of a table
};

// `*most_scroll`: the greatest value of `scroll` that still moves something.
std::vector<TopLine> top_page(const std::vector<InstanceChange>&, const TopView&, size_t* most_scroll);

}  // namespace ub::tools
