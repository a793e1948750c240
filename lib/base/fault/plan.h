// SPDX-License-Identifier: Apache-2.0
//
// What is to go wrong, as values: the parsed form of the text of docs/fault-injection.md (plan_text.h). The program's
// part is carried out by liburma (lib/urma/data/faults.h), the NIC's part by whoever has the NIC.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/fault/selector.h"
#include "lib/base/fault/timetable.h"
#include "lib/base/work_queue.h"

namespace ub::fault {

enum class Side : uint8_t { kBoth, kSend, kReceive };

// A completion, or a request or receive that is posted.
struct Occasion {
  Side side;       // never kBoth
  WrOp op;         // of the message; kSkip: a receive that is posted has none
  uint32_t queue;  // id of the jetty, JFS or JFR
  uint32_t jfc;    // id; 0: not a completion
};

// Which of them a rule is about. 0: any.
struct Filter {
  Side side = Side::kBoth;
  std::optional<WrOp> op;
  uint32_t queue = 0;
  uint32_t jfc = 0;

  bool fits(const Occasion& o) const {
    return (side == Side::kBoth || side == o.side) && (!op || *op == o.op) && (queue == 0 || queue == o.queue) &&
           (jfc == 0 || jfc == o.jfc);
  }
};

// A completion that succeeded gets this status.
struct CompletionRule {
  Filter filter;
  Choice choice;
  CrStatus status = CrStatus::kLocOperation;
};

enum class PostError : uint8_t { kFull, kInvalid };  // URMA_ENOMEM, URMA_EINVAL

// A request or receive is refused as it is posted.
struct PostRule {
  Filter filter;
  Choice choice;
  PostError error = PostError::kFull;
};

// A message that wants a receive finds none.
struct RnrRule {
  uint32_t jfr = 0;  // id; 0: any
  Choice choice;
};

struct ProgramPlan {
  std::vector<CompletionRule> completions;
  std::vector<PostRule> posts;
  bool empty() const { return completions.empty() && posts.empty(); }
};

struct NicPlan {
  std::optional<RnrRule> rnr;
  std::optional<Window> port_down;
  std::optional<Window> stop;
};

struct Plan {
  ProgramPlan program;
  NicPlan nic;
};

// How often the faults of a plan happened.
struct ProgramCounts {
  uint64_t completions = 0;
  uint64_t posts = 0;
};
struct NicCounts {
  uint64_t rnr = 0;
  uint64_t ports_down = 0;
  uint64_t stops = 0;
};

}  // namespace ub::fault
