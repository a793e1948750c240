// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/same_host/mapped_segment.h"

#include <sys/socket.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "lib/urma/aperture/same_host/share_watcher.h"
#include "lib/urma/device/eid.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/segment_memory.h"

namespace ub::urma {

using aperture::ShareNews;
using aperture::ShareWatcher;

std::shared_ptr<MappedSegment> MappedSegment::create(const Segment& segment) try {
  auto mapped = std::make_shared<MappedSegment>();
  std::string why;
  if (!mapped->nic_.maps_memory()) return nullptr;
  if (mapped->open(segment, &why) && ShareWatcher::get().add(mapped, &why)) return mapped;
  URMA_LOG_INFO("packets carry requests to a segment of this host: %s", why.c_str());
  return nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

bool MappedSegment::open(const Segment& segment, std::string* why) {
  MappedConfig config;
  config.instance = {eid_of(segment.pub.seg.ubva.eid), segment.uasid};
  config.address = segment.pub.seg.ubva.va;
  config.length = segment.pub.seg.len;
  config.token_id = segment.token_id;
  config.token = {segment.token_required, segment.token_value};

  ipc::ShareRequest request{};
  request.address = config.address;
  request.length = config.length;
  request.token_id = config.token_id;
  request.token_required = segment.token_required;
  request.token_value = segment.token_value;
  request.writes = request.atomics = request.places = 1;
  request.process = ::getpid();
  ipc::OpenedShare share;
  if (nic_.open_share(config.instance, request, &share, why) != Status::kOk) return false;
  if (!memory_.map(share.memory.get(), ipc::share_pages(config.length), why, share.writable)) return false;
  if (!gate_.map(share.gate.get(), ipc::AccessGate::kBytes, why)) return false;
  if (!life_.map(share.life.get(), ipc::LifePage::kBytes, why, false)) return false;
  way_.gate = reinterpret_cast<ipc::AccessGate*>(gate_.data());
  way_.owner = reinterpret_cast<const ipc::LifePage*>(life_.data());

  config.memory = memory_.data();
  config.gate = &way_;
  config.access = static_cast<uint8_t>(kAccessRead | (share.writable ? kAccessWrite : 0) |
                                       (share.atomics ? kAccessAtomic : 0));
  if (nic_.add_mapped(config, &handle_) != Status::kOk) {
    *why = "this NIC has mapped too many segments";
    return false;
  }
  socket_ = std::move(share.socket);
  return true;
}

bool MappedSegment::listen() {
  if (aperture::hear_share(socket_.get()) == ShareNews::kNothing) return false;
  let_go();
  return true;
}

void MappedSegment::unmap() {
  if (ShareWatcher* watcher = ShareWatcher::find()) watcher->remove(this);
  let_go();
}

std::shared_ptr<MappedSegment> map_segment(const Segment& segment) { return MappedSegment::create(segment); }
void unmap_segment(MappedSegment& mapped) { mapped.unmap(); }
void unmap_all_segments() {
  if (ShareWatcher* watcher = ShareWatcher::find()) watcher->nic_ends();
}

// The NIC knows it no more when its memory goes. Where a forked child holds the socket, too, its owner sees no hang-up
// unless it is shut down.
void MappedSegment::let_go() {
  if (handle_ != 0) nic_.remove_mapped(std::exchange(handle_, 0));
  memory_.reset();
  gate_.reset();
  life_.reset();
  if (socket_) ::shutdown(socket_.get(), SHUT_RDWR);
  socket_.reset();
}

}  // namespace ub::urma
