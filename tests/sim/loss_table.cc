// SPDX-License-Identifier: Apache-2.0
//
// Prints what losses and another order cost, in virtual time (lossy_link.h): 100 Gb/s, a round trip of 10 us. Each row
// begins with what goes again after a loss, and whether losses halve the window.
#include <cstdio>

#include "tests/sim/lossy_link.h"

namespace {

using namespace ub;
using namespace ub::sim;

constexpr LoadSpec kLarge{WrOp::kWrite, 64 * 1024, 32, 4000, 1};
constexpr LoadSpec kSmall{WrOp::kWrite, 64, 8192, 200'000, 8};
constexpr LoadSpec kSingle{WrOp::kRead, 64, 1, 20'000, 1};

void print_rate(const LinkResult& r, double without_loss) {
  std::printf(" %7.2f Gb/s %5.1f %% %7lu again %3lu needless %3lu timeouts |", r.bytes_per_second * 8e-9,
              100 * r.bytes_per_second / without_loss, static_cast<unsigned long>(r.sent_again),
              static_cast<unsigned long>(r.needless), static_cast<unsigned long>(r.timeouts));
}

void print_row(const LinkSpec& link, double large_without, double small_without) {
  std::printf("%s,%s %5.1f %% lost, %2u packets late |", link.go_back_n ? "go back N" : "selective",
              link.loss_window ? " window of losses," : "",
              100 * link.loss, link.reorder_packets);
  print_rate(run_over(link, kLarge), large_without);
  print_rate(run_over(link, kSmall), small_without);
  const LinkResult single = run_over(link, kSingle);
  for (double share : {0.5, 0.99, 0.999}) std::printf(" %6.1f", static_cast<double>(single.latency_ns(share)) / 1000);
  std::printf(" us\n");
  std::fflush(stdout);
}

}  // namespace

int main() {
  std::printf("WRITE 64 KiB, 32 under way | WRITE 64 B, 8192 under way | READ 64 B, one at a time: p50, p99, p99.9\n");
  const double large = run_over({}, kLarge).bytes_per_second, small = run_over({}, kSmall).bytes_per_second;
  for (double loss : {0.0, 0.001, 0.01, 0.05, 0.3}) print_row({.loss = loss, .reorder_packets = 0}, large, small);
  for (double loss : {0.0, 0.001}) print_row({.loss = loss, .reorder_packets = 64}, large, small);
  for (double loss : {0.001, 0.01}) print_row({.loss = loss, .loss_window = true}, large, small);
  for (double loss : {0.001, 0.01}) print_row({.loss = loss, .go_back_n = true}, large, small);
  print_row({.reorder_packets = 64, .go_back_n = true}, large, small);
}
