// SPDX-License-Identifier: Apache-2.0
//
// A frame with the header of a reliable channel and nothing behind it.
#pragma once

#include "tests/unit/wire/wire_test_util.h"

namespace ub::impair {

inline wire::Bytes rtp_frame(wire::TpOpcode opcode, bool fake = false) {
  wire::RtpHeader header;
  header.opcode = opcode;
  header.fake = fake;
  return wire::frame_of(wire::template_v4(), wire::written(header));
}

}  // namespace ub::impair
