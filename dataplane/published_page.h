// SPDX-License-Identifier: Apache-2.0
//
// The statistics page of a NIC for threads that ask for it in the NIC's name and know nothing of its life: there may be
// none yet, or no more.
//
// Thread: any.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "dataplane/telemetry.h"

namespace ub {

class PublishedPage {
 public:
  void set(const std::string& path) {
    const std::lock_guard lock(mutex_);
    path_ = path;
  }

  // As answer_telemetry(), of what the page says now. Nothing and `*why`: or there is no page.
  std::optional<std::string> answer(std::string_view request, std::string* why) const {
    StatsReport report;
    const auto page = StatsPageReader::open(path(), why);
    if (page == nullptr || !page->read(&report, why)) return std::nullopt;
    return answer_telemetry(report, request, why);
  }

 private:
  std::string path() const {
    const std::lock_guard lock(mutex_);
    return path_;
  }

  mutable std::mutex mutex_;
  std::string path_;
};

}  // namespace ub
