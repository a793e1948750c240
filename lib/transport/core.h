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
#include "lib/transport/core_state.h"
#include "lib/transport/core_types.h"
#include "lib/transport/engine.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/groups.h"
#include "lib/transport/roce/engine.h"
#include "lib/transport/ub_engine.h"

namespace ub {

// Every engine that a Core has unless its user says otherwise: one line for each.
using StandardEngines = EngineList<  //
    roce::Engine,                    //
    UbEngine>;

template <class Host, class Engines = StandardEngines>
class Core {
 public:
  // Memory that a Core of this configuration needs: zeroed, 64-byte aligned, touched only as it is used.
  static size_t arena_bytes(const CoreConfig&);
  // Size of SendQueueConfig::work for a queue of so many work requests.
  static size_t send_queue_work_bytes(uint32_t depth);

  Core(const CoreConfig&, std::byte* arena, Host& host);

  // ---- control -------------------------------------------------------------------------------------------
  // A link, or 0 when the table is full.
  uint32_t add_link(const LinkConfig&);
  // The wire or the process behind it is gone: every channel over it dies now.
  void link_down(Instant now, uint32_t link);
  // Further EIDs under which this instance answers (the first is CoreConfig::self.eid).
  Status add_eid(const Eid&);

  // A block of ids (wire/id_port.h) is this instance's to give out, with CoreConfig::every_id false. Ids that programs
  // ask for by number are the host's to allow.
  void add_id_block(uint32_t block);
  // Is there a jetty, JFS, JFR or group of that id, or such a token id?
  bool has_id(uint32_t id, bool token_id) const;
  // Which instance has that id of that EID? Asks whoever is at the path. kBusy: asked, or asked again if it was long
  // ago; the answer comes as a packet, come again. kOk, kInvalid: answered by the instance `*uasid`, which has it, or
  // has not. A question that nobody comes back to is forgotten after a second, with its answer.
  Status find(Instant now, const FindConfig&, uint32_t* uasid);

  // What follows and makes something with an id answers kNoId when the blocks are used up.
  Status create_jfc(const JfcConfig&, uint32_t* jfc);
  Status destroy_jfc(uint32_t jfc);  // kBusy while a queue completes into it
  Status create_jfr(const JfrConfig&, uint32_t* id);
  Status destroy_jfr(Instant now, uint32_t id);
  Status create_jetty(const JettyConfig&, uint32_t* id);  // kJetty and kJfs
  Status destroy_jetty(Instant now, uint32_t id);
  Status create_group(const GroupConfig&, uint32_t* id);
  Status destroy_group(Instant now, uint32_t id);  // kBusy: it has members

  // JFS, JFR and jetty. kError flushes: started requests complete with kWrFlush in order, then kWrFlushDone. A JFR
  // flushes what is posted, again when kError is set again, and a receive that a message holds when that ends.
  Status set_state(Instant now, uint32_t id, QueueState);
  QueueState state(uint32_t id) const;
  Status set_receive_threshold(uint32_t jfr, uint32_t slots);  // of receives posted; 0: none
  // Requests never started, handed back after kWrFlushDone was produced; their status is kWrUnhandled.
  uint32_t take_unhandled(uint32_t id, Cqe* out, uint32_t room);

  Status alloc_token_id(uint32_t* token_id);
  Status free_token_id(Instant now, uint32_t token_id);  // kBusy while a segment uses it
  Status register_segment(const SegmentConfig&, RegisteredSegment*);
  Status unregister_segment(Instant now, uint32_t handle);  // after return nothing touches the memory

  // Adds a target and starts to set up a channel to its instance if there is none.
  Status add_target(Instant now, const TargetConfig&, uint32_t* target);
  Status remove_target(uint32_t target);
  Status bind(uint32_t jetty, uint32_t target);  // RC
  Status unbind(uint32_t jetty);
  // Ends the channels of an application that is gone; its objects were destroyed before.
  void close_owner(Instant now, Owner);
  // Sends CLOSE on every channel; the driver then polls packets until none come.
  void close(Instant now);

  // ---- work ----------------------------------------------------------------------------------------------
  void on_packet(Instant now, uint32_t link, std::span<const std::byte> eth_frame);
  void on_posted(Instant now, uint32_t jetty);
  // The application consumed completions of a JFC that had been found full.
  void on_completions_read(Instant now, uint32_t jfc);
  // The application armed a JFC (QueueIndices::armed): if completions wait already, an event comes at once.
  void on_armed(uint32_t jfc);
  void on_copy_done(Instant now, CopyTag, bool ok);
  // Early and repeated calls do nothing.
  void on_timer(Instant now);
  // Writes up to `budget` frames into the host and returns how many; 0: nothing to send, or no room.
  size_t poll_packets(Instant now, size_t budget, Acks acks = Acks::kNow);
  size_t poll_events(std::span<Event>);
  // kMayWait: besides that of acknowledgements.
  Instant next_deadline(Acks acks = Acks::kNow) const;
  // So long nobody could drive, and `now` leaves it out (lib/base/driver_clock.h).
  void count_away(Duration);
  // Does anything wait for poll_packets? kMayWait: besides acknowledgements that may stay back.
  bool has_packets(Acks acks = Acks::kNow) const;
  // Is there something to send that may not leave until the peer acknowledged or answered something?
  bool is_held_back() const;

  // One of the list, for what applications ask of it alone.
  template <class Engine>
  Engine& engine() {
    return engines_.template get<Engine>();
  }
  // RoCEv2: queue pairs and connections; null: CoreConfig::roce has it off.
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
  // Channels have the numbers 1 to channel_table_size().
  uint32_t channel_table_size() const;
  bool channel_info(uint32_t index, ChannelInfo*) const;  // false: no channel there
  const CoreConfig& config() const;
  // Count what was posted to a send queue, and what was completed into a JFC, modulo 2^32. Objects that exist.
  uint32_t slots_posted(uint32_t jetty) const;
  uint32_t completions_produced(uint32_t jfc) const { return s_.jfcs[jfc].produced; }
  const CoreState& state() const { return s_; }  // for tools, tests and benchmarks
  // From now on Host::note() is called, or no more; nothing where the Host has none.
  void look(bool yes);

 private:
  Core(const CoreConfig&, Arena, Host& host);
  CoreState& configured(const CoreConfig&);

  CoreState s_;
  Host& host_;
  EngineSet<Host, Engines> engines_;
  uint32_t first_ = EngineSet<Host, Engines>::kCount - 1;  // had the first turn of the last poll
};

}  // namespace ub
