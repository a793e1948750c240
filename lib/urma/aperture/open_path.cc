// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/open_path.h"

#include <span>
#include <utility>

#include "lib/urma/aperture/frames_path.h"
#include "lib/urma/aperture/queue_path.h"
#include "lib/urma/aperture/queued_atomics.h"
#include "lib/urma/device/eid.h"

namespace ub::aperture {
namespace {

using urma::Segment;

// Who does not answer the first load by frames for so long is asked by a queue.
constexpr Duration kTryOut = milliseconds(200);

urma_target_seg_t* handle_of(const Segment& segment) { return const_cast<urma_target_seg_t*>(&segment.pub); }

RemoteSegment remote_segment(const Segment& segment) {
  return {.base = segment.pub.seg.ubva.va,
          .bytes = segment.pub.seg.len,
          .token_id = segment.token_id,
          .token_required = segment.token_required,
          .token = segment.token_value};
}

// What inline calls know of a path whose accesses are all out of line.
bool fill_in(const Segment& segment, softub_path_t path, softub_aperture_t* pub) {
  pub->base = segment.pub.seg.ubva.va;
  pub->bytes = segment.pub.seg.len;
  pub->path = path;
  return true;
}

bool open_lane(const Segment& segment, bool drives, softub_aperture_t* pub, OpenedPath* out, std::string* why) {
  ipc::OpenedLane lane;
  const InstanceId owner{urma::eid_of(segment.pub.seg.ubva.eid), segment.uasid};
  if (urma::backend().open_lane(owner, &lane, why) != Status::kOk) return false;
  LanePath::Options options;
  if (drives) options.drive = [] { urma::backend().drive(); };
  auto path = LanePath::make(std::move(lane), remote_segment(segment), std::move(options), pub, why);
  if (path == nullptr) return false;
  // The NIC may know the memory, but reach it through its program only.
  std::byte probe[1];
  const LoadBlock block{0, probe, 1};
  if (path->load({&block, 1}) == URMA_CR_REM_ACCESS_ABORT_ERR) {
    *why = "its NIC does not reach the memory itself, or may not read it";
    return false;
  }
  out->lane = path.get();
  out->path = std::move(path);
  return true;
}

// The library may end, and begin again, before the path does.
FramesPath::Way way_of(const bypass::Opened& opened) {
  const uint64_t epoch = urma::live_state.epoch.load();
  const auto lives = [epoch] { return urma::live_state.epoch.load(std::memory_order_relaxed) == epoch; };
  FramesPath::Way way;
  way.most_bytes = opened.most_bytes;
  way.run = [=](bypass::Turns& turns, Duration patience) {
    return lives() ? urma::backend().run_frames(opened.handle, turns, patience) : bypass::Ran::kLate;
  };
  way.close = [=] {
    if (lives()) urma::backend().close_frames(opened);
  };
  return way;
}

bool open_frames(const Segment& segment, softub_aperture_t* pub, OpenedPath* out, std::string* why) {
  bypass::OpenConfig config;
  config.token_id = segment.token_id;
  config.token = {segment.token_required, segment.token_value};
  const InstanceId owner{urma::eid_of(segment.pub.seg.ubva.eid), segment.uasid};
  bypass::Opened opened;
  const Eid local = urma::eid_of(segment.pub.urma_ctx->eid);
  if (urma::backend().open_frames(local, owner, config, &opened, why) != Status::kOk) return false;
  auto path = std::make_unique<FramesPath>(way_of(opened), remote_segment(segment));
  // The memory may be reached through its program only, and something between the NICs may let no such frames pass.
  if (path->try_out(kTryOut) != URMA_CR_SUCCESS) {
    *why = "the first load failed: its NIC does not reach the memory itself, or may not read it, or does not answer";
    return false;
  }
  out->path = std::move(path);
  return fill_in(segment, SOFTUB_PATH_FRAMES, pub);
}

bool open_queue(const Segment& segment, softub_aperture_t* pub, OpenedPath* out, std::string* why) {
  out->path = QueuePath::make(handle_of(segment), segment.uasid, why);
  return out->path != nullptr && fill_in(segment, SOFTUB_PATH_QUEUE, pub);
}

class WindowPath final : public RemotePath {
 public:
  softub_aperture_t pub{};
  OpenedPath opened;
  std::unique_ptr<QueuedAtomics> atomics;  // null: there are none

  urma_cr_status_t load(std::span<const LoadBlock> blocks) override { return opened.path->load(blocks); }
  urma_cr_status_t store(const StoreBlock& block) override { return opened.path->store(block); }
  urma_cr_status_t fence() override { return opened.path->fence(); }
  urma_cr_status_t atomic(const RemoteAtomic& request, uint64_t* old) override {
    return atomics != nullptr ? atomics->atomic(request, old) : URMA_CR_UNSUPPORTED_OPCODE_ERR;
  }
  bool is_signal_safe() const override { return opened.path->is_signal_safe(); }
  bool is_broken() const override { return opened.path->is_broken(); }
};

}  // namespace

// Programs may set any number, also a negative one.
bool is_wish(softub_path_t path) {
  return static_cast<uint32_t>(path) <= SOFTUB_PATH_QUEUE || path == SOFTUB_PATH_FRAMES;
}

bool open_path(const Segment& segment, softub_path_t wanted, bool drives, softub_aperture_t* pub, OpenedPath* out,
               std::string* why) {
  const auto may_be = [wanted](softub_path_t path) { return wanted == SOFTUB_PATH_NONE || wanted == path; };
  if (may_be(SOFTUB_PATH_LANE) && open_lane(segment, drives, pub, out, why)) return true;
  if (may_be(SOFTUB_PATH_FRAMES) && open_frames(segment, pub, out, why)) return true;
  return may_be(SOFTUB_PATH_QUEUE) && open_queue(segment, pub, out, why);
}

std::unique_ptr<RemotePath> open_window_path(const Segment& segment, softub_path_t wanted, bool with_atomics,
                                             std::string* why) {
  auto path = std::make_unique<WindowPath>();
  if (!open_path(segment, wanted, false, &path->pub, &path->opened, why)) return nullptr;
  if (with_atomics) {
    path->atomics = std::make_unique<QueuedAtomics>(*path->opened.path, handle_of(segment));
    if (!path->atomics->prepare(why)) return nullptr;
  }
  return path;
}

}  // namespace ub::aperture
