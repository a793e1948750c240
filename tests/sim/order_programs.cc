// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/order_programs.h"

#include <array>
#include <vector>

#include "tests/sim/at_rest.h"
#include "tests/sim/equipment.h"
#include "tests/sim/mappings.h"
#include "tests/sim/path_fault.h"
#include "tests/sim/requests.h"

namespace ub::sim {
namespace {

constexpr Duration kProgramLimit = seconds(20);
constexpr uint32_t kProgramsAtOnce = 4;
constexpr uint32_t kRounds = kProgramsPerSeed / kProgramsAtOnce;
constexpr uint32_t kMemory = 1024 * 1024;
constexpr uint32_t kReceiveBytes = 6000;
constexpr uint32_t kSeveralSegments = 70'000;

struct Step {
  WrOp op;
  uint8_t order;
  bool fence;
};

struct Program {
  uint32_t mode;  // of kOrderModes
  std::vector<Step> steps;
};

Step step_of(uint64_t symbol) {
  static constexpr WrOp kOps[] = {WrOp::kWrite, WrOp::kRead, WrOp::kFetchAdd, WrOp::kSend};
  return {kOps[symbol % 4], static_cast<uint8_t>(symbol / 4 % 3), symbol / 12 % 2 != 0};
}

Program program_of(uint64_t number) {
  Program p{static_cast<uint32_t>(number % kOrderModes), {}};
  number /= kOrderModes;
  uint32_t length = 1;
  for (uint64_t programs = kOrderSymbols; number >= programs; programs *= kOrderSymbols, ++length) number -= programs;
  for (; length != 0; --length, number /= kOrderSymbols) p.steps.push_back(step_of(number % kOrderSymbols));
  return p;
}

// The i-th program. The factor and the number of programs have no common divisor, so that each comes once in a round.
uint64_t program_number(uint64_t i) { return i % kOrderPrograms * 433'494'437 % kOrderPrograms; }

class Batch {
 public:
  Batch(uint64_t seed, bool verbose)
      : world_(Options::draw_for_programs(seed), verbose), first_((seed - 1) * kProgramsPerSeed) {
    if (world_.options.core.mapped != 0) world_.mappings = std::make_unique<Mappings>(world_);
    for (uint32_t i = 0; i < 2; ++i) {
      world_.add_node({wire::IpAddress::from_v4(0x0a000001 + i), wire::kUbUdpPort}).boot();
    }
    for (uint32_t mode = 0; mode < kOrderModes; ++mode) {
      for (uint32_t i = 0; i < kProgramsAtOnce; ++i) {
        pairs_[mode].push_back(add_pair(mode == 0 ? Mode::kRm : Mode::kRc, mode == 2));
      }
    }
    for (const Pair& pair : pairs_[2]) get_context(pair);
    const Options& o = world_.options;
    const bool rol_by_ctp = o.compact && o.lossless && o.core.rol != 0;
    short_ = rol_by_ctp && world_.rng.chance(0.7);
    if (world_.rng.chance(0.6)) late_receives_ = world_.rng.chance(0.5) ? 0.3 : 0.7;
    plan_path_faults(seed);
  }

  void run() {
    for (uint32_t n = 0; n < kProgramsPerSeed && !world_.failed(); n += kProgramsAtOnce) {
      begin_path_faults(path_faults_[n / kProgramsAtOnce]);
      for (uint32_t i = 0; i < kProgramsAtOnce; ++i) begin(program_of(program_number(first_ + n + i)), i);
      if (world_.run_until([this] { return world_.all_resolved(); }, kProgramLimit)) continue;
      world_.model.fail("these requests neither complete nor fail:\n%s", world_.model.unresolved().c_str());
    }
    if (world_.failed()) return;
    if (!world_.run_until_quiet(kProgramLimit)) world_.model.fail("the world does not come to rest");
    world_.run_for(milliseconds(1));  // applications look at what they received
    if (!world_.failed()) world_.model.final_check();
    if (!world_.failed()) check_quiet_state(world_);
  }

  World& world() { return world_; }

 private:
  struct Pair {
    End from, to;
  };

  Pair add_pair(Mode mode, bool rot) {
    QueueSpec q = usual_queue();
    q.depth = 16;
    q.slots = 256;
    q.mode = mode;
    q.rot = rot;
    JfrSpec r = usual_jfr();
    r.mode = mode;
    r.min_rnr_timer = world_.options.work.min_rnr_timer;
    Pair p{equip(world_.node(0), q, r, kMemory), equip(world_.node(1), q, r, kMemory)};
    if (mode == Mode::kRc) p.from.node->bind(p.from.queue, p.to.queue);
    return p;
  }

  // A strong WRITE asks for a sequence context.
  void get_context(const Pair& pair) {
    RequestSpec spec = request({WrOp::kWrite, 2, false}, pair);
    spec.op = WrOp::kWrite;
    spec.length = 8;
    UB_ASSERT(post(world_, pair.from.queue, spec) != nullptr);
    pair.from.node->ring(pair.from.queue);
  }

  // Each hits the programs of one round, and perhaps later ones.
  void plan_path_faults(uint64_t seed) {
    path_rng_ = Prng(seed ^ 0x9a7fa);
    for (uint32_t i = 0; i < world_.options.fault.path_faults; ++i) ++path_faults_[path_rng_.below(kRounds)];
  }

  void begin_path_faults(uint32_t count) {
    for (; count != 0; --count) {
      const auto when = nanoseconds(static_cast<int64_t>(1 + path_rng_.below(50'000)));
      world_.after(when, [this] { fault_path_of(world_, path_rng_); });
    }
  }

  // All is posted at once, or with pauses. Receives for it are there before, or come late.
  void begin(const Program& program, uint32_t place) {
    const Pair& pair = pairs_[program.mode][place];
    uint64_t when = 0;
    for (const Step& step : program.steps) {
      const RequestSpec spec = request(step, pair);
      if (world_.rng.chance(0.3)) when += world_.rng.below(20'000);
      if (takes_receive(spec.op)) give_receive(pair, when);
      world_.after(nanoseconds(static_cast<int64_t>(when)), [this, &pair, spec] {
        UB_ASSERT(post(world_, pair.from.queue, spec) != nullptr);
        pair.from.node->ring(pair.from.queue);
      });
    }
    // Until all are posted, because before there may seem to be nothing to wait for.
    world_.run_for(nanoseconds(static_cast<int64_t>(when) + 1));
  }

  void give_receive(const Pair& pair, uint64_t posted_at) {
    if (!world_.rng.chance(late_receives_)) return pair.to.give_receives(1, kReceiveBytes);
    const uint64_t late = posted_at + world_.rng.below(world_.rng.chance(0.5) ? 20'000 : 200'000);
    world_.after(nanoseconds(static_cast<int64_t>(late)), [&pair] { pair.to.give_receives(1, kReceiveBytes); });
  }

  RequestSpec request(const Step& step, const Pair& pair) {
    Prng& rng = world_.rng;
    RequestSpec s;
    s.op = step.op;
    s.order = step.order;
    s.fence = step.fence;
    s.alone = true;
    s.to = pair.to.receiver();
    s.remote = pair.to.target;
    s.sges = world_.options.work.sges;
    s.signaled = !rng.chance(world_.options.core.compact_answers ? 0.2 : 0.5);
    s.inlined = rng.chance(0.1);
    static constexpr uint32_t kSizes[] = {8, 64, 1024, 2100, 6000}, kShortSizes = 3;
    s.length = kSizes[rng.below(short_ ? kShortSizes : std::size(kSizes))];
    if (!short_ && rng.chance(0.05)) s.length = kSeveralSegments;
    if (step.op == WrOp::kWrite && rng.chance(0.2)) s.op = WrOp::kWriteNotify;
    if (step.op == WrOp::kSend) {
      static constexpr WrOp kForms[] = {WrOp::kSend, WrOp::kSend, WrOp::kSendImm, WrOp::kWriteImm};
      s.op = kForms[rng.below(std::size(kForms))];
      if (s.op != WrOp::kWriteImm && s.length > kReceiveBytes) s.length = kReceiveBytes;
      s.comp_order = rng.chance(0.5);
    }
    return s;
  }

  World world_;
  uint64_t first_;            // index of the first program
  bool short_ = false;        // all requests are of one packet: queues of ROL leave CTP with the first longer one
  double late_receives_ = 0;  // the chance of a receive to come late
  std::array<std::vector<Pair>, kOrderModes> pairs_;
  Prng path_rng_{0};  // a source of their own: programs over one path stay what they are
  std::array<uint32_t, kRounds> path_faults_{};
};

}  // namespace

RunResult run_order_programs(uint64_t seed, RunWishes wishes) {
  Batch batch(seed, wishes.verbose);
  if (wishes.states) batch.world().reached = std::make_unique<Reached>();
  batch.run();
  return result_of(batch.world());
}

}  // namespace ub::sim
