// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "dataplane/plugin_port.h"

namespace ub {

// A port in the hands of the test.
class TestPort final : public PluginPort {
 public:
  LinkConfig link_config() const override { return {.mtu = 1024}; }
  PluginPortCounters counters() override { return {}; }
  void set_link(uint32_t link) override { link_ = link; }
  bool has_link() const override { return true; }
  bool resolve(Instant, const wire::IpAddress&, const wire::IpAddress&) override { return true; }

  size_t rx_burst(Instant, RxFrame* out, size_t room) override {
    size_t n = 0;
    for (; n < room && !arriving.empty(); ++n, arriving.pop_front()) {
      taken_.push_back(std::vector<std::byte>(64, std::byte{arriving.front()}));
      out[n] = {taken_.back().data(), 64, link_};
    }
    return n;
  }
  void rx_release() override {
    for (std::vector<std::byte>& frame : taken_) std::fill(frame.begin(), frame.end(), std::byte{0xff});
    taken_.clear();
  }
  std::byte* tx_begin(size_t bytes) override {
    if (full) return nullptr;
    open_.push_back(std::make_unique<std::vector<std::byte>>(bytes));
    return open_.back()->data();
  }
  void tx_commit(std::byte* frame, size_t) override {
    left.push_back(static_cast<uint8_t>(frame[0]));
    close(frame);
  }
  void tx_abort(std::byte* frame) override { close(frame); }
  void tx_flush(Instant) override {}
  Instant next_deadline() const override { return Instant::never(); }
  bool prepare_sleep() override { return false; }
  void finish_sleep() override {}
  void fds(std::vector<int>&) const override {}
  bool can_wake() const override { return true; }

  size_t open_frames() const { return open_.size(); }

  bool full = false;
  std::deque<uint8_t> arriving;
  std::vector<uint8_t> left;

 private:
  void close(const std::byte* frame) {
    const auto at = std::find_if(open_.begin(), open_.end(), [&](const auto& open) { return open->data() == frame; });
    ASSERT_NE(at, open_.end());
    open_.erase(at);
  }

  uint32_t link_ = 0;
  std::vector<std::unique_ptr<std::vector<std::byte>>> open_;
  std::deque<std::vector<std::byte>> taken_;
};

}  // namespace ub
