// SPDX-License-Identifier: Apache-2.0
#include "dataplane/loopback_port.h"

namespace ub {

LoopbackPort::LoopbackPort(const LoopbackPortOptions& options) : options_(options) {
  UB_ASSERT(ipc::FrameRingWriter::valid_size(options_.ring_bytes));
  if (!area_.map_private(ipc::FrameRingWriter::area_bytes(options_.ring_bytes))) return;
  writer_.attach(area_.data(), options_.ring_bytes);
  reader_.attach(area_.data(), options_.ring_bytes);
}

}  // namespace ub
