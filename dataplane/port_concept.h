// SPDX-License-Identifier: Apache-2.0
//
// A port moves bursts of whole Ethernet frames. The worker loop is compiled for a fixed set of port types, so
// there is no base class: a port is any type with these members. All are called by the thread that owns the
// Core, except where noted.
//
//   struct Port {
//     // Received frames; the bytes stay valid until rx_release(). `link` is the Core's number of the link.
//     size_t rx_burst(RxFrame* out, size_t room);
//     void   rx_release();
//     // Room for one outgoing frame, nullptr: none now. Several may be open; commit in any order.
//     std::byte* tx_begin(uint32_t link, size_t bytes);
//     void   tx_commit(uint32_t link, std::byte* frame, size_t bytes);
//     void   tx_abort(uint32_t link, std::byte* frame);
//     void   tx_flush(Instant now);  // end of a drive: everything committed leaves, sleeping peers are rung
//     // Before its thread blocks: arm wake-ups. True: frames are waiting already, do not block.
//     bool   prepare_sleep();
//     void   finish_sleep();
//     void   fds(std::vector<int>&) const;  // to poll for readability while blocked
//   };
#pragma once

#include <cstddef>
#include <cstdint>

namespace ub {

struct RxFrame {
  const std::byte* data;
  uint32_t bytes;
  uint32_t link;
};

constexpr size_t kBurst = 32;

}  // namespace ub
