// SPDX-License-Identifier: Apache-2.0
//
// What liburma needs from the NIC behind it. The back end is chosen once, at urma_init: embedded (a Core in
// this process) or the daemon (a Core in softubd, reached over shared memory). Rings are the same for both; a back
// end brings objects up and down, lends the memory that rings lie in, and moves the NIC forward.
//
// Thread: any. Control calls take ownership of the Core for their duration, or wait for the daemon's answer. The
// event sink is called by whichever thread drives, one at a time: it must be short and must not call the back end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/counters.h"
#include "lib/base/fault/plan.h"
#include "lib/impair/spec.h"
#include "lib/ipc/lane_connect.h"
#include "lib/ipc/share_connect.h"
#include "lib/transport/bypass/calls.h"
#include "lib/transport/core_types.h"
#include "lib/transport/nic_event.h"

namespace ub {

class Backend {
 public:
  virtual ~Backend() = default;

  // The program exits, and threads of it may be anywhere in the calls below: does what the destructor does for others
  // (says goodbye, takes away names), and frees nothing that such a thread uses. Nobody destroys the object then; calls
  // that have not come back never may.
  virtual void leave() = 0;

  // ---- what it is ----
  virtual const char* name() const = 0;       // "embedded"
  virtual std::vector<Eid> eids() const = 0;  // dense, the first is the default
  virtual uint32_t uasid() const = 0;
  virtual uint32_t port_mtu_bytes() const = 0;
  virtual void set_event_sink(NicEventSink) = 0;

  // Zeroed memory that the NIC reaches, for rings and for whoever asks (softub_alloc): aligned to 64 bytes, to a page
  // from 4096 bytes on. Lives as long as somebody holds it, longer than the back end if need be. In a forked child
  // it is not there, and letting go of it does nothing. Null: out of memory.
  virtual std::shared_ptr<std::byte> memory(size_t bytes) = 0;

  // ---- objects: see Core ----
  virtual Status create_jfc(const JfcConfig&, uint32_t* jfc) = 0;
  virtual Status destroy_jfc(uint32_t jfc) = 0;
  virtual Status moderate_jfc(uint32_t jfc, const Moderation&) = 0;
  virtual Status create_jfr(const JfrConfig&, uint32_t* id) = 0;
  virtual Status destroy_jfr(uint32_t id) = 0;
  virtual Status create_jetty(JettyConfig, uint32_t* id) = 0;  // brings SendQueueConfig::work itself
  virtual Status destroy_jetty(uint32_t id) = 0;
  virtual Status create_group(const GroupConfig&, uint32_t* id) = 0;
  virtual Status destroy_group(uint32_t id) = 0;
  virtual Status set_state(uint32_t id, QueueState) = 0;
  virtual QueueState state(uint32_t id) = 0;
  virtual Status set_receive_threshold(uint32_t jfr, uint32_t slots) = 0;
  virtual Status set_queue_token(uint32_t id, uint32_t value, uint32_t former) = 0;
  virtual Status set_segment_token(uint32_t handle, uint32_t value, uint32_t former) = 0;
  virtual Status set_segment_exclusive(uint32_t handle, bool exclusive) = 0;
  virtual uint32_t take_unhandled(uint32_t id, Cqe* out, uint32_t room) = 0;
  virtual Status alloc_token_id(uint32_t* token_id) = 0;
  virtual Status free_token_id(uint32_t token_id) = 0;
  virtual Status register_segment(const SegmentConfig&, RegisteredSegment*) = 0;
  virtual Status unregister_segment(uint32_t handle) = 0;
  // Publishes a segment of ours under a name that is_name() accepts (docs/aperture-design.md, "Names"). With `*why`:
  // kExists: this NIC has published another one so, or the segment has a name; kNoMemory: too many names, or nothing is
  // left of the ids of this name.
  virtual Status publish(uint32_t segment, const std::string& name, std::string* why) = 0;
  // Before it is unregistered. kInvalid: it has no name.
  virtual Status unpublish(uint32_t segment) = 0;
  // Which instance has that id of that EID, or that token id? kOk: `*uasid`. kBusy: it is being asked; come again soon,
  // for nothing is repeated otherwise; `*why` is what to say when that was in vain. kInvalid with `*why`: nobody.
  virtual Status find_instance(const Eid& local, const Eid& eid, uint32_t id, bool token_id, uint32_t* uasid,
                               std::string* why) = 0;
  // Finds the way to the instance, whose uasid is known (shared-memory wire if it is listed on this host, else IP) and
  // adds it. `path` of the configuration is filled in here. kInvalid with `*why`: no way to that EID.
  virtual Status add_target(const Eid& local, TargetConfig, uint32_t* target, std::string* why) = 0;
  virtual Status remove_target(uint32_t target) = 0;
  virtual Status bind(uint32_t jetty, uint32_t target) = 0;
  virtual Status unbind(uint32_t jetty) = 0;

  // ---- progress, called by post and poll ----
  // Send elements were produced on this jetty or JFS: rings the doorbell and drives if nobody else does.
  virtual void posted(uint32_t jetty) = 0;
  // Moves the NIC forward if no other thread is doing so.
  virtual void drive() = 0;
  // Around a system call in which this thread waits for an event: somebody else must drive meanwhile.
  virtual void begin_wait() = 0;
  virtual void end_wait() = 0;
  // In between: may this thread wait with stand_in()? Then it must, once, before it does anything else.
  virtual bool may_stand_in() { return false; }
  // Blocks like poll() until `fd` is readable (1) or `ms` are over (0; negative: no limit), and drives meanwhile, so
  // that nobody has to be woken for that. -1: it cannot go on, and whoever drives usually does so again; errno is
  // EINTR, or says why it cannot wait for `fd`.
  virtual int stand_in([[maybe_unused]] int fd, [[maybe_unused]] int ms) { return -1; }
  // Completions of a full JFC were consumed.
  virtual void completions_read(uint32_t jfc) = 0;
  // A JFC was armed (QueueIndices::armed was stored).
  virtual void armed(uint32_t jfc) = 0;

  // ---- faults that somebody asked for (docs/fault-injection.md) ----
  // In place of those before. kInvalid with `*why`: this NIC has none of that kind.
  virtual Status inject(const fault::NicPlan&, std::string* why) = 0;
  // How often they happened since then.
  virtual fault::NicCounts injected() = 0;

  // ---- impairments of its wires (docs/impair.md) ----
  // In place of those before, from now on; null: that direction stays as it is. kInvalid with `*why`: this NIC cannot.
  virtual Status impair(const impair::Script* send, const impair::Script* receive, std::string* why) = 0;

  // ---- loads and stores ----
  // A lane to the NIC of an instance (lib/ipc/lane.h). kInvalid with `*why`: it is not on this host, or has no lanes.
  virtual Status open_lane(const InstanceId&, ipc::OpenedLane*, std::string* why) = 0;

  // ---- the same over frames (lib/transport/bypass/calls.h) ----
  // kInvalid with `*why`: no frames of loads and stores lead to that instance. Waits for a channel, a second at most.
  virtual Status open_frames([[maybe_unused]] const Eid& local, const InstanceId&, const bypass::OpenConfig&,
                             bypass::Opened*, std::string* why) {
    *why = "this program's NIC is not its own";
    return Status::kInvalid;
  }
  virtual void close_frames(const bypass::Opened&) {}
  // Calls turns.turn() until it returns true, and moves the NIC forward meanwhile.
  virtual bypass::Ran run_frames([[maybe_unused]] uint32_t handle, bypass::Turns&, [[maybe_unused]] Duration patience) {
    return bypass::Ran::kLate;
  }

  // ---- looking in ----
  virtual Counters counters() = 0;
  virtual std::vector<ChannelInfo> channels() = 0;

  // ---- memory that others of this host may map (softub_alloc_shared, lib/ipc/share.h) ----
  // Like memory(), in whole pages that hold nothing else, from one byte on. A segment of all of it is offered to
  // others; they may read, or also write.
  virtual std::shared_ptr<std::byte> shareable_memory(size_t bytes, bool writable) = 0;
  // Who has mapped the memory that begins there. kInvalid: it is none of that kind.
  virtual Status share_holders(const void* memory, std::vector<ipc::ShareHolder>* holders) = 0;
  // That of a segment of an instance. kInvalid with `*why`: it is not on this host, or its owner does not offer it, or
  // token or permissions do not allow it.
  virtual Status open_share(const InstanceId&, const ipc::ShareRequest&, ipc::OpenedShare*, std::string* why) = 0;
  // Requests to memory that is mapped are carried out without packets (Core::add_mapped, docs/same-host-design.md), by
  // a back end that does that. After remove_mapped() nothing touches the memory.
  virtual bool maps_memory() const { return false; }
  virtual Status add_mapped(const MappedConfig&, [[maybe_unused]] uint32_t* handle) { return Status::kInvalid; }
  virtual void remove_mapped([[maybe_unused]] uint32_t handle) {}
};

// Starts the embedded back end from the configuration files and environment. Null and `*error` on failure.
std::unique_ptr<Backend> start_embedded_backend(uint32_t wanted_uasid, std::string* error);

}  // namespace ub
