// SPDX-License-Identifier: Apache-2.0
//
// Prints what losses and another order cost, in virtual time (lossy_link.h): 100 Gb/s, a round trip of 10 us, a window
// of 2048 packets, packets of 4 KiB. Beside selective retransmission stand Go-Back-N and a window that losses halve.
// The load `slow` goes over 200 Mb/s with a round trip of 100 us: at the pace of the link, and into a queue in front of
// it that takes all that is under way, as the link of a ub_fabric does.
//
//   loss_table [--json] [large] [small] [single] [slow]   one line for each load and link; without names: of all loads
#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "tests/sim/ideal_sender.h"
#include "tests/sim/lossy_link.h"

namespace {

using namespace ub;
using namespace ub::sim;

constexpr LinkSpec kLinks[] = {
    {},
    {.loss = 0.001},
    {.loss = 0.01},
    {.loss = 0.05},
    {.loss = 0.3},
    {.reorder_packets = 64},
    {.loss = 0.001, .reorder_packets = 64},
    {.loss = 0.001, .go_back_n = true},
    {.loss = 0.01, .go_back_n = true},
    {.reorder_packets = 64, .go_back_n = true},
    {.loss = 0.001, .loss_window = true},
    {.loss = 0.01, .loss_window = true},
};

constexpr LinkSpec slow_link(double loss, uint64_t port_ns) {
  return {.gigabits_per_second = 0.2, .round_trip_ns = 100'000, .port_ns = port_ns, .loss = loss};
}
constexpr uint64_t kPaced = 1000, kAllQueued = 1'000'000'000;
constexpr LinkSpec kSlowLinks[] = {
    slow_link(0, kPaced),         slow_link(0.001, kPaced),     slow_link(0.01, kPaced),
    slow_link(0.05, kPaced),      slow_link(0, kAllQueued),     slow_link(0.001, kAllQueued),
    slow_link(0.01, kAllQueued),  slow_link(0.05, kAllQueued),
};

struct Row {
  const char* name;
  const char* text;
  LoadSpec load;
  std::span<const LinkSpec> links = kLinks;
};
constexpr Row kRows[] = {
    {"large", "WRITE 64 KiB, 32 under way, one queue", {WrOp::kWrite, 64 * 1024, 32, 4000, 1}},
    {"small", "WRITE 64 B, 8192 under way, 8 queues with a channel each", {WrOp::kWrite, 64, 8192, 200'000, 8}},
    {"single", "READ 64 B, one at a time", {WrOp::kRead, 64, 1, 20'000, 1}},
    {"slow",
     "WRITE 64 KiB, 16 under way, one queue, over 200 Mb/s and 100 us",
     {WrOp::kWrite, 64 * 1024, 16, 2000, 1},
     kSlowLinks},
};

// How many requests took up to so many round trips, and the rest.
constexpr std::array kRoundTrips = {1.1, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 100.0};
using Histogram = std::array<uint64_t, kRoundTrips.size() + 1>;

Histogram histogram_of(const LinkSpec& link, const LinkResult& r) {
  Histogram counts{};
  for (uint64_t ns : r.latencies_ns) {
    const double round_trips = static_cast<double>(ns) / static_cast<double>(link.round_trip_ns);
    ++counts[std::lower_bound(kRoundTrips.begin(), kRoundTrips.end(), round_trips) - kRoundTrips.begin()];
  }
  return counts;
}

double us(const LinkResult& r, double share) { return static_cast<double>(r.latency_ns(share)) / 1000; }

struct Line {
  const Row& row;
  const LinkSpec& link;
  const LinkResult& result;
  double of_loss_free;  // share of the goodput without loss and in order
  double of_ideal;      // share of what the ideal sender reaches with this loss
};

void print_text(const Line& l) {
  const LinkResult& r = l.result;
  std::printf("%4.1f %% lost, %2u late%s%s%s |", 100 * l.link.loss, l.link.reorder_packets,
              l.link.go_back_n ? ", go back N" : "", l.link.loss_window ? ", window halved" : "",
              l.link.port_ns == kAllQueued ? ", all queued" : "");
  if (l.row.load.depth == 1) {
    std::printf(" p50 %6.1f p99 %6.1f p99.9 %6.1f us |", us(r, 0.5), us(r, 0.99), us(r, 0.999));
    for (uint64_t count : histogram_of(l.link, r)) std::printf(" %7lu", static_cast<unsigned long>(count));
    std::printf("\n");
    return;
  }
  std::printf(" %6.2f Gb/s %6.2f M/s %5.1f %% of loss-free %5.1f %% of ideal, link busy %5.1f %% |",
              r.bytes_per_second * 8e-9, r.bytes_per_second / l.row.load.bytes * 1e-6, 100 * l.of_loss_free,
              100 * l.of_ideal, 100 * r.link_share);
  std::printf(" %6lu again %4lu needless %3lu probes %2lu timeouts of %lu packets\n",
              static_cast<unsigned long>(r.sent_again), static_cast<unsigned long>(r.needless),
              static_cast<unsigned long>(r.probes), static_cast<unsigned long>(r.timeouts),
              static_cast<unsigned long>(r.packets));
}

void print_json(const Line& l, bool first) {
  const LinkResult& r = l.result;
  std::printf("%s\n  {\"load\": \"%s\", ", first ? "" : ",", l.row.name);
  std::printf("\"loss\": %g, \"reorder_packets\": %u, \"go_back_n\": %s, \"loss_window\": %s, ", l.link.loss,
              l.link.reorder_packets, l.link.go_back_n ? "true" : "false", l.link.loss_window ? "true" : "false");
  std::printf("\"all_queued\": %s, ", l.link.port_ns == kAllQueued ? "true" : "false");
  std::printf("\"gigabits_per_second\": %.3f, ", r.bytes_per_second * 8e-9);
  std::printf("\"of_loss_free\": %.4f, \"of_ideal\": %.4f, \"link_share\": %.4f, ", l.of_loss_free, l.of_ideal,
              r.link_share);
  std::printf("\"packets\": %lu, \"again\": %lu, \"needless\": %lu, \"probes\": %lu, \"timeouts\": %lu, ",
              static_cast<unsigned long>(r.packets), static_cast<unsigned long>(r.sent_again),
              static_cast<unsigned long>(r.needless), static_cast<unsigned long>(r.probes),
              static_cast<unsigned long>(r.timeouts));
  std::printf("\"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, \"round_trips\": [", us(r, 0.5), us(r, 0.99),
              us(r, 0.999));
  const Histogram counts = histogram_of(l.link, r);
  for (size_t i = 0; i < counts.size(); ++i)
    std::printf("%s%lu", i == 0 ? "" : ", ", static_cast<unsigned long>(counts[i]));
  std::printf("]}");
}

void print_title(const Row& row) {
  std::printf("%s\n", row.text);
  if (row.load.depth != 1) return;
  std::printf("                   %38s| round trips up to", "");
  for (double most : kRoundTrips) std::printf(" %g", most);
  std::printf(", more\n");
}

void print_row(const Row& row, bool json, bool first) {
  if (!json) print_title(row);
  LinkResult without;
  for (const LinkSpec& link : row.links) {
    const LinkResult result = run_over(link, row.load);
    if (&link == row.links.data()) without = result;
    const Line line{row, link, result, result.bytes_per_second / without.bytes_per_second,
                    result.bytes_per_second / ideal_bytes_per_second(link, row.load, without)};
    json ? print_json(line, first && &link == row.links.data()) : print_text(line);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool json = std::erase(words, "--json") != 0;
  if (json) std::printf("[");
  bool first = true;
  for (const Row& row : kRows) {
    if (!words.empty() && std::find(words.begin(), words.end(), row.name) == words.end()) continue;
    print_row(row, json, first);
    first = false;
  }
  if (json) std::printf("\n]\n");
}
