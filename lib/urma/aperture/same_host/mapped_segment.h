// SPDX-License-Identifier: Apache-2.0
//
// A segment of another instance of this host whose memory this process has mapped, so that its NIC carries out requests
// to it without packets (docs/same-host-design.md). It ends when the owner's NIC says so, or is gone; requests then go
// by packets.
//
// Thread: any.
#pragma once

#include <memory>
#include <string>

#include "lib/ipc/access_gate.h"
#include "lib/ipc/memfd.h"
#include "lib/ipc/share_connect.h"
#include "lib/urma/aperture/same_host/watched_share.h"
#include "lib/urma/library.h"
#include "lib/urma/objects/objects.h"

namespace ub::urma {

class MappedSegment final : public aperture::WatchedShare {
 public:
  // Maps it, if its NIC allows that; waits for that NIC, a tenth of a second at most. Null: packets carry all.
  static std::shared_ptr<MappedSegment> create(const Segment& segment);
  ~MappedSegment() override { let_go(); }
  // The program needs it no more.
  void unmap();

  int socket() const override { return socket_.get(); }
  bool listen() override;
  bool needs_nic() const override { return true; }
  void end() override { let_go(); }

 private:
  bool open(const Segment& segment, std::string* why);
  void let_go();

  ipc::Fd socket_;
  ipc::Mapping memory_, gate_, life_;
  ipc::AccessWay way_;
  Backend& nic_ = backend();
  uint32_t handle_ = 0;  // of the NIC; 0: it does not know the memory any more
};

}  // namespace ub::urma
