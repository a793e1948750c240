// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/top_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lib/base/channel_counts.h"
#include "tools/admin/channel_rows.h"
#include "tools/admin/counter_texts.h"
#include "tools/admin/fitted_table.h"
#include "tools/admin/printable.h"

namespace ub::tools {
namespace {

constexpr bool kText = true;

std::string pid_of(const InstanceChange& i) { return std::to_string(i.now.report.pid); }

// A rate, or a dash where nothing can be compared yet.
std::string rate_text(const InstanceChange& i, double rate) { return i.seconds > 0 ? short_number(rate) : "-"; }

double rate_of(const InstanceChange& i, std::initializer_list<Counter> counters) {
  return std::accumulate(counters.begin(), counters.end(), 0.0,
                         [&](double sum, Counter c) { return sum + i.counter_rate(counter_name(c)); });
}

// What was sent again, whatever the transport.
double retransmission_rate(const InstanceChange& i) {
  return rate_of(i, {Counter::kTpTxRetransmitFast, Counter::kTpTxAgainProbe, Counter::kTpTxRetransmitTimeout,
                     Counter::kCtpTxRepeat, Counter::kRoceTxRetransmit});
}

// Of those who drive the instance: the worker of a daemon, else application threads (of whose turns some are sampled),
// else the helper.
struct Spent {
  double busy = 0, pressed = 0;  // percent of their time; `pressed`: something could not be sent yet
  bool known = false;
};
Spent spent_by(const uint64_t (&now)[kRegimes], const uint64_t (&before)[kRegimes]) {
  uint64_t all = 0, of[kRegimes];
  for (size_t i = 0; i < kRegimes; ++i) all += of[i] = now[i] - std::min(now[i], before[i]);
  if (all == 0) return {};
  const auto percent = [&](uint64_t ns) { return 100 * static_cast<double>(ns) / static_cast<double>(all); };
  const auto at = [&](Regime r) { return of[static_cast<size_t>(r)]; };
  return {percent(at(Regime::kBusy) + at(Regime::kYielded)), percent(at(Regime::kHeld) + at(Regime::kNoRoom)), true};
}
Spent spent(const InstanceChange& i) {
  if (i.seconds <= 0) return {};
  const WorkFigures &now = i.now.report.work, &before = i.before.work;
  const Spent application = spent_by(now.application_regimes_ns, before.application_regimes_ns);
  return application.known ? application : spent_by(now.own_regimes_ns, before.own_regimes_ns);
}
std::string percent_text(bool known, double percent) { return known ? fmt::format("{:.0f}", percent) : "-"; }

double operation_rate(const InstanceChange& i) {
  const uint64_t(&now)[kOperationCounts] = i.now.report.work.operations;
  const uint64_t(&before)[kOperationCounts] = i.before.work.operations;
  double sum = 0;
  for (size_t k = 0; k < kOperationCounts; ++k) {
    if (std::string_view(kOperationNames[k]) != "completions") sum += i.rate(now[k], before[k]);
  }
  return sum;
}

bool has_latencies(const InstanceChange& i) { return i.now.alive && i.now.report.work.latency_on != 0; }
// From posted to completed, of the class that has the most requests.
std::string latency_text(const InstanceChange& i, uint64_t LatencyFigures::* figure) {
  const auto& classes = i.now.report.work.latencies[static_cast<size_t>(LatencyStage::kPostedToCompleted)].classes;
  const auto most = std::max_element(std::begin(classes), std::end(classes),
                                     [](const auto& a, const auto& b) { return a.count < b.count; });
  return has_latencies(i) && most->count != 0 ? short_number(static_cast<double>(*most.*figure) / 1000) : "-";
}

FittedTable instances_table(const std::vector<InstanceChange>& instances) {
  const bool timed = std::any_of(instances.begin(), instances.end(), has_latencies);
  FittedTable t;
  t.columns = {{"PID", 0, false, 7},     {"INSTANCE", 1, kText, 0}, {"PROGRAM", 2, kText, 0}, {"WIRES", 5, kText, 0},
               {"OPS/s", 2, false, 5},   {"TX/s", 0, false, 5},     {"RX/s", 0, false, 5},    {"TX B/s", 1, false, 6},
               {"RX B/s", 1, false, 6},  {"AGAIN/s", 3, false, 7},  {"BUSY %", 6, false, 0},  {"HELD %", 7, false, 0},
               {"P50 us", timed ? 2 : 10, false, 0}, {"P99 us", timed ? 2 : 10, false, 0}, {"CHANNELS", 6, false, 0}};
  for (const InstanceChange& i : instances) {
    const StatsReport& r = i.now.report;
    const auto rate = [&](Counter c) { return rate_text(i, i.counter_rate(counter_name(c))); };
    const Spent of = spent(i);
    t.rows.push_back({pid_of(i), printable(i.now.name), printable(r.program),
                      i.now.alive ? printable(r.wires) : "(dead)", rate_text(i, operation_rate(i)),
                      rate(Counter::kTxPackets), rate(Counter::kRxPackets), rate(Counter::kTxBytes),
                      rate(Counter::kRxBytes), rate_text(i, retransmission_rate(i)), percent_text(of.known, of.busy),
                      percent_text(of.known, of.pressed), latency_text(i, &LatencyFigures::p50),
                      latency_text(i, &LatencyFigures::p99), std::to_string(r.channels_total)});
  }
  return t;
}

// ---- channels --------------------------------------------------------------------------------------------------

struct ChannelRow {
  const InstanceChange* instance;
  const StatsChannel* now;
  double tx, rx, again, lost, marks;  // in a second
};

std::vector<ChannelRow> channel_rows(const std::vector<InstanceChange>& instances) {
  constexpr auto kMarks = static_cast<size_t>(ChannelCount::kMarks);
  std::vector<ChannelRow> rows;
  for (const InstanceChange& i : instances) {
    for (const StatsChannel& c : i.now.report.channels) {
      const StatsChannel before = i.channel_before(c.tpn);
      rows.push_back({&i, &c, i.rate(c.tx_packets, before.tx_packets), i.rate(c.rx_packets, before.rx_packets),
                      i.rate(c.retransmits, before.retransmits), i.rate(c.lost, before.lost),
                      i.rate(c.counts[kMarks], before.counts[kMarks])});
    }
  }
  return rows;
}

double sort_key(const ChannelRow& r, TopSort sort) {
  switch (sort) {
    case TopSort::kRetransmissions:
      return r.again;
    case TopSort::kLosses:
      return r.lost;
    case TopSort::kRtt:
      return static_cast<double>(r.now->smoothed_rtt_ns);
    default:
      return r.tx + r.rx;
  }
}

const char* sort_name(TopSort sort) {
  constexpr const char* kNames[] = {"TX+RX", "AGAIN", "LOST", "RTT"};
  return kNames[static_cast<size_t>(sort)];
}

FittedTable channels_table(const std::vector<InstanceChange>& instances, TopSort sort) {
  std::vector<ChannelRow> rows = channel_rows(instances);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const ChannelRow& a, const ChannelRow& b) { return sort_key(a, sort) > sort_key(b, sort); });
  const bool has_limits =
      std::any_of(rows.begin(), rows.end(), [](const ChannelRow& r) { return r.now->rate_kbytes_per_second != 0; });
  FittedTable t;
  t.columns = {{"PID", 3, false, 7},     {"CHANNEL", 0, false, 0}, {"PEER", 3, kText, 0},
               {"LANE", 6, kText, 0},    {"TX/s", 0, false, 5},    {"RX/s", 1, false, 5},
               {"RTT us", 1, false, 7},  {"WINDOW", 2, false, 6},  {"LIMIT Mb/s", has_limits ? 2 : 10, false, 0},
               {"AGAIN/s", 2, false, 7}, {"LOST/s", 2, false, 6},  {"MARKS/s", 2, false, 7},
               {"FLIGHT", 7, false, 6},  {"PATHS", 8, false, 0},   {"CONTROL", 8, kText, 0}};
  for (const ChannelRow& r : rows) {
    const StatsChannel& c = *r.now;
    const auto rate = [&](double value) { return rate_text(*r.instance, value); };
    t.rows.push_back({pid_of(*r.instance), std::to_string(c.tpn), ip_text(c.peer_eid), lane_name(c), rate(r.tx),
                      rate(r.rx),
                      c.smoothed_rtt_ns == 0 ? "-" : short_number(static_cast<double>(c.smoothed_rtt_ns) / 1000),
                      c.window_packets == 0 ? "-" : std::to_string(c.window_packets),
                      c.rate_kbytes_per_second == 0 ? "-" : short_number(c.rate_kbytes_per_second * 8.0 / 1000),
                      rate(r.again), rate(r.lost), rate(r.marks), std::to_string(in_flight_of(c)),
                      std::to_string(c.paths), printable(text_of(c.congestion_control))});
  }
  return t;
}

// ---- applications ----------------------------------------------------------------------------------------------

struct AppRow {
  const InstanceChange* instance;
  const StatsApp* now;
  double posts, copies;  // in a second
};

// The busiest first.
std::vector<AppRow> app_rows(const std::vector<InstanceChange>& instances) {
  std::vector<AppRow> rows;
  for (const InstanceChange& i : instances) {
    for (const StatsApp& a : i.now.report.apps) {
      const auto& earlier = i.before.apps;
      const auto same = std::find_if(earlier.begin(), earlier.end(), [&](const StatsApp& b) { return b.pid == a.pid; });
      const StatsApp before = same == earlier.end() ? StatsApp{} : *same;
      rows.push_back({&i, &a, i.rate(a.posts, before.posts), i.rate(a.copies, before.copies)});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const AppRow& a, const AppRow& b) { return a.posts > b.posts; });
  return rows;
}

FittedTable applications_table(const std::vector<InstanceChange>& instances) {
  FittedTable t;
  t.columns = {{"DAEMON", 7, false, 7}, {"APP PID", 0, false, 7},  {"PROGRAM", 1, kText, 9},
               {"UID", 5, false, 0},    {"POSTS/s", 0, false, 7},  {"COPIES/s", 2, false, 8},
               {"QUEUES", 4, false, 0}, {"SEGMENTS", 5, false, 0}, {"MiB", 3, false, 5},
               {"STALLS", 3, false, 0}, {"STARVED", 3, false, 0},  {"LOST EVENTS", 6, false, 0}};
  for (const AppRow& row : app_rows(instances)) {
    const StatsApp& a = *row.now;
    const auto rate = [&](double value) { return rate_text(*row.instance, value); };
    t.rows.push_back({pid_of(*row.instance), std::to_string(a.pid), printable(text_of(a.program)),
                      std::to_string(a.uid), rate(row.posts), rate(row.copies),
                      std::to_string(a.send_queues + a.receive_queues), std::to_string(a.segments),
                      short_number(static_cast<double>(a.shared_bytes) / 1048576), std::to_string(a.stalls),
                      std::to_string(a.starved), std::to_string(a.events_lost)});
  }
  return t;
}

// ---- counters that grow ----------------------------------------------------------------------------------------

template <class IsShown>
FittedTable growing_table(const std::vector<InstanceChange>& instances, const char* title, IsShown&& is_shown) {
  struct Row {
    double rate;
    std::vector<std::string> cells;
  };
  std::vector<Row> rows;
  for (const InstanceChange& i : instances) {
    for (const auto& [name, total] : i.now.report.counters) {
      if (!is_shown(name)) continue;
      const double rate = i.counter_rate(name);
      if (rate <= 0) continue;
      rows.push_back({rate,
                      {pid_of(i), printable(name), short_number(rate), short_number(static_cast<double>(total)),
                       counter_text(name)}});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.rate > b.rate; });
  FittedTable t;
  t.columns = {{"PID", 1, false, 7},
               {title, 0, kText, 24},
               {"/s", 0, false, 5},
               {"TOTAL", 2, false, 6},
               {"MEANING", 3, kText, 0}};
  t.last_is_cut = true;
  for (Row& row : rows) t.rows.push_back(std::move(row.cells));
  return t;
}

// ---- the page --------------------------------------------------------------------------------------------------

std::string head(const std::vector<InstanceChange>& instances, const TopView& v) {
  std::string text = fmt::format("{}  {} instance{}  every {:g} s  by {}", v.clock, instances.size(),
                                 instances.size() == 1 ? "" : "s", v.interval_s, sort_name(v.sort));
  if (v.is_paused) text += "  PAUSED, p goes on";
  const std::string keys = "  q quit s sort p pause jk scroll";
  if (v.has_keys && (v.width == 0 || text.size() + keys.size() <= v.width)) text += keys;
  if (v.width != 0) text.resize(std::min(text.size(), v.width));
  return text;
}

// How many lines each table gets of those that there are: what a short one does not need is shared by the others.
std::vector<size_t> shared_lines(const std::vector<size_t>& wanted, size_t lines) {
  std::vector<size_t> given(wanted.size(), 0);
  for (bool gives = true; gives && lines > 0;) {
    gives = false;
    for (size_t i = 0; i < wanted.size() && lines > 0; ++i) {
      if (given[i] == wanted[i]) continue;
      ++given[i], --lines;
      gives = true;
    }
  }
  return given;
}

// The first line is that of the titles. `room`: lines for all.
void add_table(const std::vector<std::string>& lines, size_t room, const TopView& v, std::vector<TopLine>* page,
               size_t* most_scroll) {
  if (room == 0) return;
  page->push_back({lines[0], true});
  const size_t rows = lines.size() - 1;
  const bool is_cut = room < lines.size();
  const size_t shown = !is_cut ? rows : room >= 3 ? room - 2 : room - 1;  // a line says which these are
  const size_t first = std::min(v.scroll, rows - shown);
  *most_scroll = std::max(*most_scroll, rows - shown);
  for (size_t i = first; i < first + shown; ++i) page->push_back({lines[i + 1], false});
  if (is_cut && room >= 3) {
    std::string note = fmt::format("  ({} to {} of {})", first + 1, first + shown, rows);
    page->push_back({v.width == 0 ? note : note.substr(0, v.width), false});
  }
}

}  // namespace

TopSort next_sort(TopSort sort) {
  return sort == TopSort::kRtt ? TopSort::kPackets : static_cast<TopSort>(static_cast<int>(sort) + 1);
}

std::vector<TopLine> top_page(const std::vector<InstanceChange>& instances, const TopView& v, size_t* most_scroll) {
  *most_scroll = 0;
  std::vector<TopLine> page = {{head(instances, v), true}};
  if (instances.empty()) {
    std::string text = fmt::format("no instance runs in {}", v.directory);
    page.push_back({v.width == 0 ? text : text.substr(0, v.width), false});
    return page;
  }
  std::vector<std::vector<std::string>> tables;
  std::vector<size_t> wanted;
  const auto is_of_port = [](const std::string& name) { return is_port_counter(name) && !counts_losses(name); };
  for (const FittedTable& t : {instances_table(instances), channels_table(instances, v.sort),
                               applications_table(instances), growing_table(instances, "PORT COUNTER", is_of_port),
                               growing_table(instances, "LOST OR DROPPED", counts_losses)}) {
    if (t.rows.empty()) continue;
    tables.push_back(fitted_lines(t, v.width));
    wanted.push_back(tables.back().size());
  }
  const std::vector<size_t> given = v.height == 0 ? wanted : shared_lines(wanted, v.height > 1 ? v.height - 1 : 0);
  for (size_t i = 0; i < tables.size(); ++i) {
    if (v.height == 0) page.push_back({"", false});
    add_table(tables[i], given[i], v, &page, most_scroll);
  }
  return page;
}

}  // namespace ub::tools
