// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "emu_hw/running/results_file.h"
#include "emu_hw/running/whole_file.h"
#include "emu_hw/ub_emu/options.h"

namespace ub::emu {

int merge(const Options& options) {
  const std::string text = text_of(merge_results(options.shards));
  if (options.output.empty())
    std::fputs(text.c_str(), stdout);
  else
    write_whole(options.output, text);
  return 0;
}

}  // namespace ub::emu
