// SPDX-License-Identifier: Apache-2.0
//
// One NIC's protocol engine: a state machine without IO. Time is an argument; packets, doorbells and control
// calls come in as values; frames, completions, events and the next deadline go out. It never blocks, allocates,
// throws or logs, and the same inputs give the same outputs, bit for bit.
//
// This class is wiring: protocols are engines (engine.h), what applications own lies in resource/. UB's engine is
// ub_engine.h with tp/, ta/ and setup/; docs/architecture.md follows a WRITE through them file by file.
//
// Thread: whoever owns the Core, one at a time. `Host` is described in host.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/counters.h"
#include "lib/base/time.h"
#include "lib/transport/bypass/engine.h"
#include "lib/transport/core_state.h"
#include "lib/transport/core_types.h"
#include "lib/transport/engine.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/groups.h"
#include "lib/transport/resource/mapped_memory.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/roce/engine.h"
#include "lib/transport/ub_engine.h"

namespace ub {

// The engines of a Core unless its user chooses others, one line for each.
using StandardEngines = EngineList<  //
    roce::Engine,                    //
    bypass::Engine,                  //
    UbEngine>;

template <class Host, class Engines = StandardEngines>
class Core {
 public:
  // How many bytes of memory a Core of this configuration needs. The memory must be zeroed and 64-byte aligned; the
  // Core touches a page only when it uses it.
  static size_t arena_bytes(const CoreConfig&);
  // Size in bytes of SendQueueConfig::work for a queue of `depth` work requests.
  static size_t send_queue_work_bytes(uint32_t depth);

  // Both `arena` and `host` stay the caller's and must outlive the Core.
  Core(const CoreConfig&, std::byte* arena, Host& host);

  // ---- control -------------------------------------------------------------------------------------------
  // Returns the number of the new link, or 0 when the table is full.
  uint32_t add_link(const LinkConfig&);
  // The wire, or the process at its other end, is gone: every channel over the link dies now.
  void link_down(Instant now, uint32_t link);
  // Adds an EID under which this instance answers, besides CoreConfig::self.eid.
  Status add_eid(const Eid&);

  // Channels that are opened from now on take this path, too, if they may have several (CoreConfig::most_paths).
  // kNoMemory: there are 256 already.
  Status add_path(const ExtraPath&);

  // Lets this instance give out the ids of a block (wire/id_port.h); for Cores whose CoreConfig::every_id is false. The
  // Core does not check an id that a program asks for by number against the blocks: the caller has to.
  void add_id_block(uint32_t block);
  // Does a jetty, JFS, JFR or group with this id exist; with `token_id`, is this token id allocated?
  bool has_id(uint32_t id, bool token_id) const;
  // Finds the instance that has an id of an EID (docs/identity.md). The call asks the instance at the given path and
  // does not block. kBusy: there is no answer yet; call again, which also repeats the question when it is time. kOk:
  // the instance `*uasid` answered that it has the id. kInvalid: it answered that it has not, or an argument is wrong.
  // After a second without a call the question is forgotten, with its answer.
  Status find(Instant now, const FindConfig&, uint32_t* uasid);

  // The functions below that create something with an id return kNoId when the blocks have no free id.
  Status create_jfc(const JfcConfig&, uint32_t* jfc);
  Status destroy_jfc(uint32_t jfc);  // kBusy while a queue completes into it
  // From now on its events are moderated so. What an armed JFC owes by then is told at once.
  Status moderate_jfc(Instant now, uint32_t jfc, const Moderation&);
  Status create_jfr(const JfrConfig&, uint32_t* id);
  Status destroy_jfr(Instant now, uint32_t id);
  Status create_jetty(const JettyConfig&, uint32_t* id);  // kJetty and kJfs
  Status destroy_jetty(Instant now, uint32_t id);
  Status create_group(const GroupConfig&, uint32_t* id);
  Status destroy_group(Instant now, uint32_t id);  // kBusy: it has members

  // Changes the state of a JFS, JFR or jetty. kError flushes a send queue: its started requests complete in order with
  // kWrFlush, then comes a completion with kWrFlushDone. A queue with SendQueueConfig::suspends is in kSuspended from
  // the first request on that fails, or when it is told so: no further one is started, those that were started come to
  // their end, then comes a completion with kWrSuspendDone. Out of both states it comes when all its requests have been
  // taken back (take_unhandled); before, kBusy. In kReset all requests complete with kWrFlush, also those that are
  // posted there; to leave it while one of them finds no room is kBusy. A JFR in kError flushes the receives that
  // are posted; those posted later are flushed when kError is set again, and a receive that an arriving message holds
  // when that message ends.
  Status set_state(Instant now, uint32_t id, QueueState);
  QueueState state(uint32_t id) const;
  // EventKind::kJfrLimit is reported once when fewer than `slots` ring slots of receives are posted; 0: never.
  Status set_receive_threshold(uint32_t jfr, uint32_t slots);
  // From now on a JFR or group, or a segment, asks for the token `value` and accepts `former` as well; both the same:
  // nothing else. kInvalid: there is no such object, or it asks for no token.
  Status set_queue_token(uint32_t id, uint32_t value, uint32_t former);
  Status set_segment_token(uint32_t handle, uint32_t value, uint32_t former);
  // From now on only requests with E_bit reach the segment, or all do (9.4).
  Status set_segment_exclusive(uint32_t handle, bool exclusive);
  // Hands back up to `room` requests that were never started, with status kWrUnhandled, and returns how many. It
  // returns 0 before kWrFlushDone or kWrSuspendDone was produced.
  uint32_t take_unhandled(uint32_t id, Cqe* out, uint32_t room);

  Status alloc_token_id(uint32_t* token_id);
  Status take_token_id(uint32_t token_id);  // that one, of whatever block; kExists: it is in use
  Status free_token_id(Instant now, uint32_t token_id);  // kBusy while a segment uses it
  Status register_segment(const SegmentConfig&, RegisteredSegment*);
  Status unregister_segment(Instant now, uint32_t handle);  // after return nothing touches the memory
  bool describe_segment(Owner owner, uint32_t handle, PublicSegment*);  // false: there is no such segment of this owner
  // Is there a segment of that handle, of this owner and beginning there?
  bool has_segment(Owner owner, uint32_t handle, uint64_t local_address);
  // The segment in which a peer may access that range now; 0: token, bounds or permission do not allow it.
  uint32_t accessible_segment(const RemoteAccess&);
  // This number changes whenever the calls above took something from peers, or a peer revoked a token id.
  uint32_t revocations() const { return revocations_ + s_.invalidations; }

  // Adds a target. In RM it begins to set up a channel to its instance if there is none; in RC, bind() does. Neither
  // waits for the channel.
  Status add_target(Instant now, const TargetConfig&, uint32_t* target);
  Status remove_target(uint32_t target);
  // Requests to that memory are carried out at once if the host can (host.h), until it is removed: then the host is not
  // asked for it any more. A recording does not have these calls: while it runs, packets carry all requests. kInvalid:
  // no memory, or the range wraps. kNoMemory: there are CoreConfig::max_mapped already.
  Status add_mapped(const MappedConfig& config, uint32_t* handle) { return ub::add_mapped(s_, config, handle); }
  Status remove_mapped(uint32_t handle) { return ub::remove_mapped(s_, handle); }
  Status bind(Instant now, uint32_t jetty, uint32_t target);  // RC
  Status unbind(uint32_t jetty);
  // Messages that want a receive of this owner's JFRs are answered as if none were posted, as the rule says; none:
  // no longer. kNoMemory: too many owners have a rule. injected_rnr(): how many were, since it was set.
  Status inject_rnr(Owner, const std::optional<fault::RnrRule>&);
  uint64_t injected_rnr(Owner) const;
  // Closes the channels of an application that is gone. Its objects must have been destroyed before.
  void close_owner(Instant now, Owner);
  // Sends CLOSE on every channel. The driver must then poll packets until there are none.
  void close(Instant now);

  // ---- work ----------------------------------------------------------------------------------------------
  void on_packet(Instant now, uint32_t link, std::span<const std::byte> eth_frame);
  // A frame that came by a lane (lib/ipc/lane.h). Whoever wrote it is believed to be a peer of loads and stores, and
  // nothing else. A request that has an answer gets it at once, on the same link.
  void on_lane_frame(Instant now, uint32_t link, std::span<const std::byte> eth_frame);
  void on_posted(Instant now, uint32_t jetty);
  // on_posted() and poll_packets() in one: what was posted leaves at once. Returns how many packets left.
  size_t send_posted(Instant now, uint32_t jetty, size_t budget, Acks acks);
  // The application took completions out of a JFC that had been full.
  void on_completions_read(Instant now, uint32_t jfc);
  // The application armed a JFC (QueueIndices::armed): if completions wait already, an event comes at once, unless the
  // JFC is moderated and they are too few.
  void on_armed(Instant now, uint32_t jfc);
  // A copy that the host answered with kPending has finished; `ok` is false if the memory is gone.
  void on_copy_done(Instant now, CopyTag, bool ok);
  // Handles the timers that are due. Early and repeated calls do nothing.
  void on_timer(Instant now);
  // Writes at most `budget` frames into the host and returns how many; 0: there is nothing to send, or no room.
  size_t poll_packets(Instant now, size_t budget, Acks acks = Acks::kNow);
  // Writes the events that fit and returns how many.
  size_t poll_events(std::span<Event>);
  // When on_timer() has to be called next. kMayWait leaves out the deadline of acknowledgements.
  Instant next_deadline(Acks acks = Acks::kNow) const;
  // Adds to the statistics a time in which nobody drove the Core and which `now` leaves out (lib/base/driver_clock.h).
  void count_away(Duration);
  // Adds to the statistics what happened around the Core.
  void count(Counter counter, uint64_t times = 1) { s_.count(counter, times); }
  // Does poll_packets() have anything to send? kMayWait leaves out acknowledgements.
  bool has_packets(Acks acks = Acks::kNow) const;
  // Has poll_events() anything to do?
  bool has_events() const;
  // Would poll_packets() change nothing, whatever the time is?
  bool is_at_rest() const;
  // Is something ready to send, but held back until the peer acknowledges or answers what was sent before?
  bool is_held_back() const;

  // An engine of the list, for calls that only this protocol has.
  template <class Engine>
  Engine& engine() {
    return engines_.template get<Engine>();
  }
  // The RoCEv2 engine, with queue pairs and connections; null if CoreConfig::roce has it off.
  roce::Engine<Host>* roce() {
    auto& roce = engine<roce::Engine<Host>>();
    return roce.is_on() ? &roce : nullptr;
  }
  // For tools and tests.
  const roce::State* roce_state() const {
    const auto& roce = engines_.template get<roce::Engine<Host>>();
    return roce.is_on() ? &roce.state() : nullptr;
  }

  // ---- looking in ----------------------------------------------------------------------------------------
  const Counters& counters() const;
  // The numbers of channels are 1 to channel_table_size().
  uint32_t channel_table_size() const;
  bool channel_info(uint32_t index, ChannelInfo*) const;  // false: no channel there
  // Fills in the paths of a channel, the first one first, and returns how many there are: 0 if it has no others than
  // that of its set-up.
  uint32_t path_info(uint32_t index, std::span<PathInfo>) const;
  const CoreConfig& config() const;
  // How many slots were posted to a send queue, and how many completions were written to a JFC, modulo 2^32. The object
  // must exist.
  uint32_t slots_posted(uint32_t jetty) const;
  uint32_t completions_produced(uint32_t jfc) const { return s_.jfcs[jfc].produced; }
  const CoreState& state() const { return s_; }  // for tools, tests and benchmarks
  // From now on the last rare notes are kept there; null: nowhere. The memory stays the caller's.
  void keep_last_notes(LastNotes* notes) { s_.last_notes = notes; }
  // Switches the calls of Host::note() on or off. Without effect where the Host has no note().
  void look(bool yes);

  // ---- recording (docs/recording-design.md) ----------------------------------------------------------------
  // Calls are told to `log` from now on; null: to nobody. Whoever makes those that every turn has (frames, timers,
  // polls) tells it of them himself. The log stays the caller's.
  void log_calls(CallLog* log) {
    s_.call_log = log;
    s_.observed = s_.looker.looks() || log != nullptr;
  }
  // Calls fn(std::span<std::byte>) for each part of the state outside of the arena.
  template <class Fn>
  void each_part(Fn fn);
  // Calls fn as above, which may put the state of another Core of the same program, configuration, engines and place of
  // the arena into those parts.
  template <class Fn>
  void replace_state(Fn fn);
  // The rings of queues, which a recorder replaces.
  CoreState& state_to_record() { return s_; }

 private:
  Core(const CoreConfig&, Arena, Host& host);
  CoreState& configured(const CoreConfig&);
  void on_link_frame(uint32_t link, std::span<const std::byte> eth_frame);
  [[gnu::always_inline]] inline void take_post(uint32_t jetty);
  [[gnu::always_inline]] inline void end_copy(CopyTag tag, bool ok);
  [[gnu::noinline, gnu::cold]] void take_observed_post(uint32_t jetty);
  bool send_straight(uint32_t jetty, size_t budget, Acks acks, size_t* sent);
  [[gnu::noinline, gnu::cold]] void end_observed_copy(CopyTag tag, bool ok);

  CoreState s_;
  Host& host_;
  EngineSet<Host, Engines> engines_;
  uint32_t revocations_ = 0;
  uint32_t first_ = EngineSet<Host, Engines>::kCount - 1;  // the engine that the last poll asked first
};

template <class Host, class Engines>
template <class Fn>
void Core<Host, Engines>::each_part(Fn fn) {
  const auto bytes = [](auto& part) {
    static_assert(std::is_trivially_copyable_v<std::remove_reference_t<decltype(part)>>);
    return std::as_writable_bytes(std::span(&part, 1));
  };
  fn(bytes(s_));
  engines_.each_state([&](auto& state) { fn(bytes(state)); });
  fn(bytes(revocations_));
  fn(bytes(first_));
}

template <class Host, class Engines>
template <class Fn>
void Core<Host, Engines>::replace_state(Fn fn) {
  const ProcessWords own(s_);
  each_part(fn);
  own.restore(s_);
}

}  // namespace ub
