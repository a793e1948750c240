// SPDX-License-Identifier: Apache-2.0
//
// The home of all lines of a coherent fabric: the last cache, and a directory that knows who has each line. It serves
// one request for a line at a time, in the order in which they come, until the requester has acknowledged the answer.
// Others who have the line are asked at the same time; their answers are looked at one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emu_hw/coherent/set_cache.h"
#include "emu_hw/coherent/timing.h"
#include "emu_hw/kernel/wait_list.h"

namespace ub::emu {

enum class Access : uint8_t {
  kRead,
  kWrite,
  kWholeLine,  // written past the caches of a core into the last one; the former content is not needed
};

// Caches that the directory knows.
class Holder : public Named {
 public:
  virtual void restrict_to(uint64_t line, Right right) = 0;

 protected:
  ~Holder() = default;
};

struct Request {
  Holder& from;
  Access access;
  uint64_t line;
  Right granted = Right::kNone;  // by the answer
};

class Home {
 public:
  static constexpr uint64_t kWays = 16;

  Home(Kernel& kernel, const Parameters& p);

  // From the arrival of a request until its answer leaves. The line is busy until done().
  Task serve(Request& request);
  void done(uint64_t line);
  // There is no room for the line any more. Takes no time beside that of the miss which needs the room.
  void take_back(const Holder& from, uint64_t line);

 private:
  struct Line {
    std::vector<Holder*> holders;
    bool may_write = false;  // the only holder may
    bool is_busy = false;
    std::unique_ptr<WaitList> queue;  // made once somebody has to wait
  };
  struct Answers {
    size_t missing;
    WaitList all;
  };

  static bool has(const Line& line, const Holder& holder);
  static void grant(Line& line, Request& request);
  Task fetch(uint64_t line);
  Task ask_others(Line& line, const Request& request, Right right);
  Task ask(Holder& holder, uint64_t line, Right right, Answers& answers);
  Delay look_up();

  Kernel& kernel_;
  const Parameters& p_;
  const CoherentTiming timing_;
  SetCache l3_;
  std::unordered_map<uint64_t, Line> lines_;
  Time free_;  // from when on the directory can be looked at
};

}  // namespace ub::emu
