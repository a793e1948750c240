// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include "tests/sim/lossy_link.h"
using namespace ub; using namespace ub::sim;
int main(int argc, char** argv) {
  const bool quick = argc > 1;
  const uint32_t depth = getenv("DEPTH") ? atoi(getenv("DEPTH")) : 16;
  for (double loss : {0.0, 0.001, 0.01, 0.05}) {
    LinkSpec link; link.loss = loss;
    if (quick && loss != atof(argv[1])) continue;
    LinkResult big = run_over(link, {.op = WrOp::kWrite, .bytes = 65536, .depth = depth, .requests = 4000});
    printf("loss %.3f: 64K %.2f Gb/s (fast %lu late %lu timeouts %lu needless %lu of %lu)\n", loss, big.bytes_per_second * 8 / 1e9,
       big.sent_again_fast, big.sent_again_late, big.timeouts, big.needless, big.packets); fflush(stdout);
    LinkResult small = run_over(link, {.op = WrOp::kWrite, .bytes = 64, .depth = 2040, .requests = 100000});
    printf("  64B %.3f M/s (fast %lu late %lu timeouts %lu needless %lu of %lu)\n", small.bytes_per_second / 64 / 1e6, small.sent_again_fast, small.sent_again_late, small.timeouts, small.needless, small.packets); fflush(stdout);
    LinkResult read = run_over(link, {.op = WrOp::kRead, .bytes = 64, .depth = 1, .requests = 20000});
    auto q = [&](double p) { return read.latencies_ns[static_cast<size_t>(p * (read.latencies_ns.size() - 1))] / 1000.0; };
    printf("  READ us p50 %.1f p99 %.1f p99.9 %.1f needless %lu\n",  q(.5), q(.99), q(.999), read.needless);
    fflush(stdout);
  }
  LinkSpec link; link.reorder_packets = 64;
  for (double loss : {0.0, 0.001}) {
  link.loss = loss;
    LinkResult big = run_over(link, {.op = WrOp::kWrite, .bytes = 65536, .depth = depth, .requests = 4000});
    printf("reorder, loss %.3f: 64K %.2f Gb/s (fast %lu late %lu timeouts %lu needless %lu of %lu)\n", loss, big.bytes_per_second * 8 / 1e9,
       big.sent_again_fast, big.sent_again_late, big.timeouts, big.needless, big.packets);
  }
}
