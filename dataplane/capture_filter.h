// SPDX-License-Identifier: Apache-2.0
//
// Which frames a capture wants, in words: terms that all have to hold. One with commas holds if one of its parts does.
//
//   link=1,3..5                the Core's numbers of links
//   direction=in               or out
//   tpn=2424835                one of the two TPNs that the packet names (channels; pairs of CTP)
//   kind=record,rtp            record (of set-up), datagram (UM), rtp, ctp, bypass (loads and stores), roce
//   peer=10.0.0.2              the address of the other side
//   dropped=rx.drop.*          received frames that the Core dropped under a counter of that name
//
// No text: all frames. What a frame does not say does not hold: a packet of CTP has no IP address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/pcapng.h"
#include "dataplane/words.h"
#include "lib/base/counters.h"
#include "lib/transport/addresses.h"

namespace ub {

class CaptureFilter {
 public:
  // False and `*why`, a sentence with the term that is wrong and what there is.
  bool parse(std::string_view text, std::string* why);
  // Does all hold but `dropped=`?
  bool takes(uint32_t link, pcapng::Direction direction, std::span<const std::byte> frame) const {
    return (links_.empty() || is_in(links_, link)) &&
           (direction_ == pcapng::Direction::kUnknown || direction_ == direction) &&
           (!asks_packet() || takes_packet(direction, frame));
  }
  // Are only frames wanted that the Core drops? Then, those with which reason?
  bool wants_dropped() const { return !reasons_.empty(); }
  bool takes_reason(Counter why) const { return reasons_[static_cast<size_t>(why)]; }

 private:
  bool parse_term(std::string_view noun, std::string_view value);
  bool parse_direction(std::string_view value);
  bool parse_kinds(std::string_view value);
  bool parse_peers(std::string_view value);
  bool parse_reasons(std::string_view value);
  bool asks_packet() const { return !tpns_.empty() || kinds_ != 0 || !peers_.empty(); }
  bool takes_packet(pcapng::Direction direction, std::span<const std::byte> frame) const;

  ValueRanges links_, tpns_;
  pcapng::Direction direction_ = pcapng::Direction::kUnknown;  // both
  uint32_t kinds_ = 0;                                         // bits; 0: all
  std::vector<IpAddress> peers_;
  std::vector<bool> reasons_;  // by Counter; empty: dropped or not
};

}  // namespace ub
