// SPDX-License-Identifier: Apache-2.0
//
// Requests of an application to the daemon and their answers, over a SOCK_SEQPACKET socket. One request is under way at
// a time, and it gets one answer. An answer with number 0, which nobody asked for, is the last sentence of the daemon
// before it hangs up. The second request says that the application has mapped and sealed its page. Integers are in
// native byte order, because both run on one host. The first 16 bytes never change, so that any two versions can name
// each other. Both sides zero the fields that a call does not use.
//
// The daemon believes nothing in a request: it checks every field.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/base/name_entry.h"
#include "lib/ipc/app_page.h"
#include "lib/ipc/share.h"

namespace ub::ipc {

inline constexpr uint64_t kAppCallMagic = 0x53'4f'46'54'55'42'61'70;  // "SOFTUBap"
inline constexpr uint32_t kAppCallVersion = 15;

enum class AppCall : uint32_t {
  kHello = 1,        // answer: instance; descriptors: page, its eventfd for the daemon, one for the application
  kAddArea,          // bytes, value = AreaUse -> area; descriptor: the memory
  kAreaMapped,       // area, mapped and sealed with F_SEAL_FUTURE_WRITE; rings and segments may lie in it now
  kDropArea,         // area
  kCreateJfc,        // queue
  kDestroyJfc,       // id
  kCreateJfr,        // queue
  kDestroyJfr,       // id
  kCreateJetty,      // queue: jetty or JFS
  kDestroyJetty,     // id
  kSetState,         // id, value = QueueState
  kGetState,         // id -> value
  kSetThreshold,     // id, value = slots
  kTakeUnhandled,    // id, value = room -> value = count, cqes behind the answer
  kAllocToken,       // -> id
  kFreeToken,        // id
  kRegisterSegment,  // segment -> segment.handle, segment.token_id
  kUnregister,       // id = handle
  kPublish,          // id = handle of a segment, name
  kUnpublish,        // id = handle of a segment
  kFindInstance,     // target: local_eid, eid, id; value = 1: a token id -> value = uasid; kBusy: come again
  kAddTarget,        // target, whose uasid is known -> id
  kRemoveTarget,     // id
  kBind,             // id = jetty, value = target
  kUnbind,           // id = jetty
  kCreateGroup,      // queue: wanted_id, policy, token
  kDestroyGroup,     // id
  kCounters,         // counters lie behind the answer
  kSetQueueToken,    // id = JFR or group, token
  kSetSegmentToken,  // id = handle, token
  kSetExclusive,     // id = handle of a segment, value = 0 or 1
  kModerateJfc,      // id, moderation
  kInjectRnr,        // fault
  kInjected,         // -> count of injected RNR
  kOpenLane,         // target: eid, uasid -> value = 1: it needs fences; descriptors: the lane's socket, its memory
  kOpenShare,        // share -> value = 1: writable; descriptors: the share's socket, its memory
  kShareHolders,     // id = area -> value = count, ShareHolders behind the answer
  kChannels,  // value = where to begin -> value = count, id = where to go on (0: that was all), ChannelInfos behind it
};

// Who maps an area.
enum class AreaUse : uint32_t {
  kBoth = 0,    // the application and the daemon
  kRead = 1,    // and others of this host, to read it (softub_alloc_shared)
  kWrite = 2,   // the application and others, who may write; not the daemon, since any of them could make holes in it
};

// A ring in an area: first QueueIndices, then the slots.
struct AppRing {
  uint32_t area;
  uint32_t slot_count;
  uint64_t offset;  // of the indices in the area, a multiple of 64
};

// The fields that the objects with a ring need, all in one; a call reads those of its object.
struct AppQueue {
  AppRing ring;
  uint64_t user_data;  // cookie of a JFC
  uint32_t depth;
  uint32_t wanted_id;
  uint32_t jfc;
  uint32_t jfr;       // of a jetty
  uint32_t recv_jfc;  // of a jetty
  uint32_t group;     // of a jetty, 0: none
  uint32_t token_value;
  uint8_t token_required;
  uint8_t kind;  // ObjectKind
  uint8_t mode;  // Mode
  uint8_t rnr_retry;
  uint8_t err_timeout;
  uint8_t min_rnr_timer;
  uint8_t lower_layer_order;
  uint8_t policy;  // GroupPolicy
  uint8_t suspends;
  uint8_t completes_early;
  uint8_t target_order;
  uint8_t priority;
};

struct AppSegment {
  uint64_t memory;  // where the bytes are in the memory of the application
  uint64_t address, local_address, length;
  uint32_t area;  // of the daemon; 0: any memory, which the agent reads and writes
  uint32_t token_id;
  uint64_t offset;  // in the area
  uint32_t token_value;
  uint8_t token_required;
  uint8_t access;
  uint8_t exclusive;  // 0 or 1
  uint8_t reserved;
  uint32_t handle;  // filled in by the answer
};

struct AppTarget {
  std::array<uint8_t, 16> local_eid, eid;
  uint32_t uasid;
  uint32_t id;
  uint32_t token_value;
  uint8_t token_required;
  uint8_t kind;
  uint8_t mode;
  uint8_t reserved;
};

// Memory of a segment of another application or instance, to be mapped; the process is filled in by the daemon.
struct AppShare {
  std::array<uint8_t, 16> eid;
  uint32_t uasid;
  uint32_t reserved;
  ShareRequest request;
};

struct AppName {
  char text[kMaxNameBytes + 1];  // ends with 0
};

// Both the same: only one value is accepted.
struct AppToken {
  uint32_t value, former;
};

// What is not given (0) stays as it is.
struct AppModeration {
  uint8_t count_given, period_given;  // 0 or 1
  uint16_t count;
  uint32_t period_us;
};

// fault::RnrRule; `by` is kNone where there is none.
struct AppFault {
  static constexpr uint8_t kNone = 0xff;
  uint64_t seed;
  uint32_t jfr;  // 0: any
  uint32_t n, at_most;
  uint8_t by;
  uint8_t reserved[3];
};

struct AppHead {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes;  // of the whole message
};

struct AppRequest {
  AppHead head;
  AppCall call;
  uint32_t number;  // it comes back in the answer, and is never 0
  uint32_t id, value;
  uint64_t bytes;
  union {
    AppQueue queue;
    AppSegment segment;
    AppTarget target;
    AppToken token;
    AppModeration moderation;
    AppFault fault;
    AppShare share;
    AppName name;
  };
};

inline constexpr size_t kAppEids = 16;
struct AppInstance {
  uint32_t uasid, mtu;
  uint32_t eid_count;
  uint32_t reserved;
  std::array<std::array<uint8_t, 16>, kAppEids> eids;
};

struct AppAnswer {
  AppHead head;
  uint32_t number;
  uint32_t status;  // Status
  uint32_t id, value;
  uint32_t bell;  // the doorbell of the object that was created
  uint32_t reserved;
  union {
    AppSegment segment;
    AppInstance instance;
    uint64_t count;
  };
  char text[256];  // why the call failed, ends with 0; empty: the status says all
};

inline constexpr size_t kAppAnswerExtra = 4096;  // most bytes behind an answer
inline constexpr uint64_t kLargestArea = uint64_t{1} << 40;

}  // namespace ub::ipc
