// SPDX-License-Identifier: Apache-2.0
//
// A packet capture of a running NIC (docs/capture.md): the owner of the Core copies frames into a ring, at the ports,
// and a thread writes them to a file (capture_writer.h). The ports say which frames come and leave (port_set.h). The
// worker says which of them the Core is dealing with, and the Core's notes why it drops one.
//
// What a turn keeps reaches the writer at its end, by publish(), because the reason of a drop is known later than the
// frame.
//
// Thread: the owner of the Core.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/capture_filter.h"
#include "dataplane/capture_writer.h"
#include "dataplane/note_listeners.h"
#include "dataplane/port_concept.h"
#include "dataplane/tsc_clock.h"
#include "dataplane/watched_core.h"
#include "lib/transport/looking/note.h"

namespace ub {

class Capture final : public CoreWatcher, public NoteListener {
 public:
  struct LinkText {
    std::string name, description;
    bool can_be_impaired = false;
  };
  // What readers are to be told of a link.
  using Describe = std::function<LinkText(uint32_t link)>;

  // `impaired`: wires are (docs/impair.md). `clock` has to outlive it.
  Capture(CaptureFilter filter, CaptureTarget target, bool impaired, const TscClock& clock, Describe describe);
  // Begins. False and `*why`: no memory or no thread. That the file cannot be made shows later (status()).
  bool start(std::string* why) { return writer_.start(why); }
  // What is kept is written, and no more. Takes a moment: has_ended().
  void stop() {
    publish();
    writer_.stop();
  }
  // Its file is closed, for whatever reason.
  bool has_ended() const { return writer_.state() >= CaptureWriter::State::kEnded; }
  // Gives its memory back, if it has ended and the ports do not know it any more.
  void free_memory() {
    if (has_ended()) writer_.free_memory();
  }
  // "ok running: 12 packets, 3400 bytes in /tmp/x.pcapng, 0 missed"; or opening, ended, or failed with why.
  std::string status() const;
  const std::string& path() const { return writer_.target().path; }

  // ---- by the ports ----
  // Frames that came in this turn; they stay where they are until the Core has dealt with them.
  void received(std::span<const RxFrame> frames);
  // A frame leaves.
  void sent(uint32_t link, std::span<const std::byte> frame);
  // Frames that came, and that nobody will see.
  void dropped(std::span<const RxFrame> frames, Counter why);
  // The number of the link is another one's from now on.
  void forget(uint32_t link);
  // The turn is over.
  void publish();

  // ---- while the Core deals with a frame ----
  void before_frame(uint32_t link, std::span<const std::byte> frame) override;
  void after_frame() override;
  bool hear(uint64_t, const Note& note) override {
    if (note.stage == Stage::kPacketDropped && reason_ == 0) reason_ = static_cast<uint16_t>(note.a + 1);
    return true;
  }

 private:
  static constexpr size_t kMostInterfaces = 65536;
  static constexpr size_t kMostOfTurn = 4 * kBurst;  // frames of a turn that may still get a reason

  // What was kept of a frame that the Core has not dealt with yet.
  struct Open {
    const std::byte* frame;
    CaptureRecord* record;
  };
  CaptureRecord* keep(uint32_t link, pcapng::Direction, std::span<const std::byte> frame, bool behind = false);
  CaptureInterface* interface_of(uint32_t link, bool behind);
  uint64_t wall_ns() const { return clock_.now().ns + clock_began_ns_; }

  CaptureFilter filter_;
  const TscClock& clock_;
  const uint64_t clock_began_ns_;
  Describe describe_;
  const uint32_t snap_;
  const bool is_impaired_;

  // Of a link: as the port sees it, and what the Core gets of it behind impairments.
  struct Faces {
    CaptureInterface* port = nullptr;
    CaptureInterface* behind = nullptr;
  };
  std::vector<Faces> by_link_;
  std::deque<CaptureInterface> interfaces_;
  uint64_t missed_ = 0;

  std::array<Open, kMostOfTurn> open_;
  size_t open_count_ = 0;
  size_t next_open_ = 0;  // the Core takes them in their order
  CaptureRecord* record_ = nullptr;      // of the frame that the Core deals with
  std::span<const std::byte> frame_{};  // that frame
  uint32_t link_ = 0;
  uint16_t reason_ = 0;  // why the Core drops it: as in CaptureRecord

  CaptureWriter writer_;  // the first to end
};

}  // namespace ub
