// SPDX-License-Identifier: Apache-2.0
//
// What one application made in the Core: created, changed and destroyed on its behalf after every number in its
// request was found to be its own; and destroyed all at once when it is gone.
//
// Thread: the control thread. Core calls run under ownership (Nic::control).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dataplane/config.h"
#include "dataplane/nic.h"
#include "dataplane/softubd/areas.h"
#include "dataplane/softubd/client.h"
#include "lib/ipc/app_call.h"

namespace ub {

class AppObjects {
 public:
  // `client` is in the table of clients until destroy_all() has succeeded.
  AppObjects(Nic& nic, Client& client) : nic_(nic), client_(client) {}

  // Each answers kInvalid for what is not this application's or cannot be, kNoMemory with `*why` for a quota.
  Status add_area(const DaemonConfig&, uint64_t bytes, uint32_t use, uint32_t* area, ipc::Fd* fd, std::string* why);
  Status area_mapped(uint32_t area, std::string* why);
  Status drop_area(uint32_t area);
  Status share_holders(uint32_t area, std::vector<ipc::ShareHolder>* holders);
  Status create_jfc(const LoadedConfig&, const ipc::AppQueue&, uint32_t* id, uint32_t* bell, std::string* why);
  Status destroy_jfc(uint32_t id);
  Status create_jfr(const LoadedConfig&, const ipc::AppQueue&, uint32_t* id, std::string* why);
  Status destroy_jfr(uint32_t id);
  Status create_jetty(const LoadedConfig&, const ipc::AppQueue&, uint32_t* id, uint32_t* bell, std::string* why);
  Status destroy_jetty(uint32_t id);
  Status create_group(const DaemonConfig&, const ipc::AppQueue&, uint32_t* id, std::string* why);
  Status destroy_group(uint32_t id);
  Status set_state(uint32_t id, uint32_t state);
  Status get_state(uint32_t id, uint32_t* state);
  Status moderate_jfc(uint32_t id, const ipc::AppModeration& moderation);
  Status set_threshold(uint32_t id, uint32_t slots);
  Status set_queue_token(uint32_t id, const ipc::AppToken&);
  Status set_segment_token(uint32_t handle, const ipc::AppToken&);
  Status set_segment_exclusive(uint32_t handle, bool exclusive);
  Status inject_rnr(const ipc::AppFault&, std::string* why);
  uint64_t injected_rnr();
  Status take_unhandled(uint32_t id, Cqe* out, uint32_t room, uint32_t* count);
  Status alloc_token(const DaemonConfig&, uint32_t* id, std::string* why);
  Status free_token(uint32_t id);
  Status register_segment(const DaemonConfig&, ipc::AppSegment*, std::string* why);
  Status unregister_segment(uint32_t handle);
  Status publish(uint32_t segment, const ipc::AppName& name, std::string* why);
  Status unpublish(uint32_t segment);
  // kBusy: it is being asked.
  Status find_instance(const ipc::AppTarget& target, bool token_id, uint32_t* uasid, std::string* why);
  Status add_target(const DaemonConfig&, const ipc::AppTarget&, uint32_t* id, std::string* why);
  Status remove_target(uint32_t id);
  Status bind(uint32_t jetty, uint32_t target);
  Status unbind(uint32_t jetty);

  // Destroys everything, some objects at a time. False: something is still busy, call again later.
  bool destroy_all();
  // Tells the statistics page what there is.
  void publish_usage();
  // "3 jettys, 2 segments"; empty: nothing.
  std::string summary() const;
  uint32_t count() const;

 private:
  struct Ring {
    uint32_t area = 0;
    std::byte* memory = nullptr;
    QueueIndices* indices() const { return reinterpret_cast<QueueIndices*>(memory); }
    template <class Slot>
    Slot* slots() const {
      return reinterpret_cast<Slot*>(memory + sizeof(QueueIndices));
    }
  };
  struct Jfc {
    Ring ring;
    uint32_t bell;
  };
  struct Jfr {
    Ring ring;
  };
  struct Jetty {
    Ring ring;
    uint32_t bell;
    ipc::Mapping fetched, work;  // the Core's own: elements, state of requests
  };

  // What a target is known by in the Core's table of peers, which all applications share.
  using Peer = std::tuple<std::array<uint8_t, 16>, std::array<uint8_t, 16>, uint32_t>;  // our EID, theirs, uasid

  bool take_ring(const ipc::AppRing&, Ring*);
  std::byte* take_memory(const ipc::AppSegment&, std::string* why);
  // The part under ownership, and the rest.
  Status destroy_jfc(Nic::NicCore&, const std::pair<const uint32_t, Jfc>&);
  Status destroy_jetty(Nic::NicCore&, Instant now, const std::pair<const uint32_t, Jetty>&);
  void forget_jetty(const Jetty&);
  void forget_peer(const Peer&);
  template <class Objects, class Destroy, class Forget>
  void destroy_each(Objects&, Destroy, Forget);
  bool is_queue(uint32_t id) const { return jettys_.contains(id) || jfrs_.contains(id); }

  template <class Fn>
  auto core(Fn&& fn) {
    return nic_.control(std::forward<Fn>(fn));
  }

  Nic& nic_;
  Client& client_;
  Areas areas_;
  uint64_t private_bytes_ = 0;
  std::map<uint32_t, Jfc> jfcs_;
  std::map<uint32_t, Jfr> jfrs_;
  std::map<uint32_t, Jetty> jettys_;
  std::map<uint32_t, uint32_t> segments_;  // handle -> area, 0: through the agent
  std::set<uint32_t> published_;           // segments that have a name
  std::set<uint32_t> groups_;
  std::set<uint32_t> tokens_;
  std::map<uint32_t, Peer> targets_;
  std::map<Peer, uint32_t> peers_;  // how many targets name each
};

}  // namespace ub
