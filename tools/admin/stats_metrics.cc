// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/stats_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tools/admin/channel_rows.h"
#include "tools/admin/metric_families.h"
#include "tools/admin/metric_names.h"
#include "tools/admin/printable.h"

namespace ub::tools {
namespace {

double number(uint64_t value) { return static_cast<double>(value); }
double seconds_of(int64_t ns) { return static_cast<double>(ns) / 1e9; }
double bytes_per_second_of(uint32_t kbytes_per_second) { return static_cast<double>(kbytes_per_second) * 1000; }

Labels with(Labels labels, const Labels& more) {
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

Labels labels_of(const Instance& i) {
  return {
      {"instance", printable(i.name)}, {"pid", std::to_string(i.report.pid)}, {"program", printable(i.report.program)}};
}

void add_identity(const StatsReport& r, const Labels& labels, MetricFamilies* out) {
  out->gauge("softub_instance_info", "what the instance is; always 1",
             with(labels, {{"uasid", fmt::format("{:#010x}", r.uasid)},
                           {"placement", printable(r.placement)},
                           {"wires", printable(r.wires)},
                           {"device", printable(r.device)}}),
             1);
  out->gauge("softub_instance_start_time_seconds", "when the instance began, in seconds since 1970", labels,
             number(r.started_ns) / 1e9);
  out->gauge("softub_instance_update_time_seconds",
             "when the instance published these values, in seconds since 1970; one that is idle publishes nothing new",
             labels, number(r.updated_ns) / 1e9);
}

void add_counters(const StatsReport& r, const Labels& labels, MetricFamilies* out) {
  for (const auto& [name, value] : r.counters) {
    const CounterMetric m = counter_metric(name);
    out->counter(m.name, m.help, labels, number(value) * m.unit);
  }
}

void add_objects(const StatsReport& r, const Labels& labels, MetricFamilies* out) {
  for (const auto& [kind, count] : object_counts(r.objects)) {
    out->gauge("softub_objects", "how many objects of a kind the instance has", with(labels, {{"kind", kind}}), count);
  }
  for (size_t i = 0; i < kStatsPools; ++i) {
    const StatsPool& p = r.objects.pools[i];
    const Labels of_pool = with(labels, {{"pool", kStatsPoolNames[i]}});
    out->gauge("softub_pool_in_use", "places of the pool that are in use", of_pool, p.in_use);
    out->gauge("softub_pool_in_use_highest", "the most places of the pool that were in use at a time", of_pool,
               p.highest);
    out->gauge("softub_pool_size", "places of the pool", of_pool, number(p.size));
    out->counter("softub_pool_refused_total", "times that somebody found no place left in the pool", of_pool,
                 number(p.refused));
  }
}

void add_regimes(const uint64_t (&ns)[kRegimes], const char* who, const Labels& labels, MetricFamilies* out) {
  for (size_t i = 0; i < kRegimes; ++i) {
    out->counter("softub_driver_seconds_total",
                 "how those who drive spend their time: the NIC's own thread, and application threads in the turns "
                 "that are sampled",
                 with(labels, {{"driver", who}, {"regime", kRegimeNames[i]}}), number(ns[i]) / 1e9);
  }
}

void add_latency(const LatencyFigures& f, const Labels& labels, MetricFamilies* out) {
  const std::pair<const char*, uint64_t> quantiles[] = {
      {"0.5", f.p50}, {"0.99", f.p99}, {"0.999", f.p999}, {"1", f.max}};
  for (const auto& [quantile, ns] : quantiles) {
    out->gauge("softub_stage_latency_seconds",
               "how long a stage of operations takes inside, since the instance measures that, or was told to forget",
               with(labels, {{"quantile", quantile}}), number(ns) / 1e9);
  }
  out->gauge("softub_stage_latency_samples", "how many times these are", labels, number(f.count));
}

void add_work(const WorkFigures& work, const Labels& labels, MetricFamilies* out) {
  for (size_t i = 0; i < kOperationCounts; ++i) {
    out->counter("softub_operations_total", "requests that ended, and completions that were written",
                 with(labels, {{"kind", kOperationNames[i]}}), number(work.operations[i]));
  }
  add_regimes(work.own_regimes_ns, "own", labels, out);
  add_regimes(work.application_regimes_ns, "application", labels, out);
  out->gauge("softub_latency_measured", "1: latencies inside are measured", labels, number(work.latency_on));
  if (work.latency_on == 0) return;
  for (size_t stage = 0; stage < kLatencyStages; ++stage) {
    for (size_t i = 0; i < kTrafficClasses; ++i) {
      const LatencyFigures& f = work.latencies[stage].classes[i];
      const Labels of = with(labels, {{"stage", kLatencyStageNames[stage]}, {"class", kTrafficClassNames[i]}});
      if (f.count != 0) add_latency(f, of, out);
    }
  }
}

void add_channel(const StatsChannel& c, const Labels& labels, MetricFamilies* out) {
  const Labels of_channel = with(labels, {{"tpn", std::to_string(c.tpn)}, {"peer", ip_text(c.peer_eid)}});
  const auto gauge = [&](const char* name, const char* help, double value) {
    out->gauge(name, help, of_channel, value);
  };
  const auto count = [&](const char* name, const char* help, uint64_t value) {
    out->counter(name, help, of_channel, number(value));
  };
  out->gauge("softub_channel_info", "what the channel is; always 1",
             with(of_channel, {{"remote", endpoint_text(c.remote_ip, c.remote_port)},
                               {"link", std::to_string(c.link)},
                               {"transport", transport_name(c)},
                               {"lane", lane_name(c)},
                               {"state", channel_state(c.state)},
                               {"retransmission", retransmission_name(c)},
                               {"congestion", printable(text_of(c.congestion_control))}}),
             1);
  gauge("softub_channel_in_flight_packets", "packets sent and not yet acknowledged", in_flight_of(c));
  gauge("softub_channel_queued_messages", "messages begun and not yet acknowledged, and answers that wait to be sent",
        c.queued_messages);
  gauge("softub_channel_window_packets",
        "the most packets that may be in flight; 0: a channel of CTP, which has no window", c.window_packets);
  gauge("softub_channel_rtt_seconds", "smoothed round trip; 0: nothing was measured", seconds_of(c.smoothed_rtt_ns));
  gauge("softub_channel_rto_seconds", "retransmission time-out", seconds_of(c.rto_ns));
  gauge("softub_channel_rate_limit_bytes_per_second",
        "the rate to which congestion control limits the channel; 0: to none",
        bytes_per_second_of(c.rate_kbytes_per_second));
  gauge("softub_channel_paths", "paths of the channel, with those that are not listed", c.paths);
  count("softub_channel_tx_packets_total", "packets sent, with retransmissions and without acknowledgements",
        c.tx_packets);
  count("softub_channel_rx_packets_total", "packets received, with acknowledgements", c.rx_packets);
  count("softub_channel_retransmits_total", "packets that were sent again", c.retransmits);
  count("softub_channel_lost_packets_total", "packets that were taken for lost", c.lost);
  for (size_t i = 0; i < kChannelCounts; ++i) {
    out->counter(std::string("softub_channel_") + kChannelCountNames[i] + "_total",
                 std::string("of this channel: ") + counter_help(total_of(static_cast<ChannelCount>(i))), of_channel,
                 number(c.counts[i]));
  }
}

void add_path(const StatsPath& p, const Labels& of_channel, MetricFamilies* out) {
  const Labels of_path = with(of_channel, {{"path", std::to_string(p.number)}});
  const auto gauge = [&](const char* name, const char* help, double value) { out->gauge(name, help, of_path, value); };
  const auto count = [&](const char* name, const char* help, uint64_t value) {
    out->counter(name, help, of_path, number(value));
  };
  out->gauge("softub_path_info", "from where to where the path leads; always 1",
             with(of_path, {{"local", endpoint_text(p.local_ip, p.local_port)},
                            {"remote", endpoint_text(p.remote_ip, p.remote_port)}}),
             1);
  gauge("softub_path_live", "1: data takes the path; 0: nothing arrives on it", p.live != 0 ? 1 : 0);
  gauge("softub_path_in_flight_packets", "packets sent on the path and not yet acknowledged", p.in_flight);
  gauge("softub_path_window_packets", "the most packets that may be in flight on the path", p.window_packets);
  gauge("softub_path_rtt_seconds", "smoothed round trip of the path", seconds_of(p.smoothed_rtt_ns));
  gauge("softub_path_rate_limit_bytes_per_second", "the rate to which congestion control limits the path; 0: to none",
        bytes_per_second_of(p.rate_kbytes_per_second));
  count("softub_path_tx_packets_total", "data packets sent on the path", p.tx_packets);
  count("softub_path_rx_packets_total", "packets received on the path, with acknowledgements", p.rx_packets);
  count("softub_path_lost_packets_total", "packets of the path that were taken for lost", p.lost);
  count("softub_path_marks_total", "what the peer told of marked packets of the path", p.marks);
  count("softub_path_deaths_total", "times that the path ceased to be live", p.deaths);
}

void add_channels(const StatsReport& r, const Labels& labels, size_t most, MetricFamilies* out) {
  const size_t listed = std::min(most, r.channels.size());
  out->gauge("softub_channels_unlisted", "channels that are left out here, because there are too many", labels,
             number(r.channels_total - listed));
  for (size_t i = 0; i < listed; ++i) {
    const StatsChannel& c = r.channels[i];
    add_channel(c, labels, out);
    const Labels of_channel = with(labels, {{"tpn", std::to_string(c.tpn)}});
    for (const StatsPath& p : paths_of(r, c)) add_path(p, of_channel, out);
  }
}

// A process that is attached several times has several rows, which are one here: a set of labels may come only once.
std::vector<StatsApp> merged(const std::vector<StatsApp>& rows) {
  std::map<std::tuple<uint32_t, uint32_t, std::string>, StatsApp> apps;
  for (const StatsApp& a : rows) {
    const auto [at, is_new] = apps.try_emplace({a.pid, a.uid, printable(text_of(a.program))}, a);
    if (is_new) continue;
    StatsApp& sum = at->second;
    for (const auto member : {&StatsApp::send_queues, &StatsApp::receive_queues, &StatsApp::jfcs, &StatsApp::segments,
                              &StatsApp::targets, &StatsApp::stalls, &StatsApp::starved}) {
      sum.*member += a.*member;
    }
    for (const auto member : {&StatsApp::shared_bytes, &StatsApp::posts, &StatsApp::copies, &StatsApp::events_lost}) {
      sum.*member += a.*member;
    }
    sum.longest_starved_ms = std::max(sum.longest_starved_ms, a.longest_starved_ms);
  }
  std::vector<StatsApp> result;
  for (const auto& [key, app] : apps) result.push_back(app);
  return result;
}

void add_app(const StatsApp& a, const Labels& labels, MetricFamilies* out) {
  const Labels of_app = with(labels, {{"app_pid", std::to_string(a.pid)},
                                      {"app_uid", std::to_string(a.uid)},
                                      {"app_program", printable(text_of(a.program))}});
  const std::pair<const char*, uint32_t> objects[] = {{"send_queues", a.send_queues},
                                                      {"receive_queues", a.receive_queues},
                                                      {"jfcs", a.jfcs},
                                                      {"segments", a.segments},
                                                      {"targets", a.targets}};
  for (const auto& [kind, count] : objects) {
    out->gauge("softub_app_objects", "how many objects of a kind the application has", with(of_app, {{"kind", kind}}),
               count);
  }
  out->gauge("softub_app_shared_bytes", "memory that the application shares with the daemon", of_app,
             number(a.shared_bytes));
  out->gauge("softub_app_agent_longest_starved_seconds", "the longest time that the agent got no CPU", of_app,
             a.longest_starved_ms / 1e3);
  out->counter("softub_app_posts_total", "doorbells of the application that the daemon took", of_app, number(a.posts));
  out->counter("softub_app_agent_copies_total", "copies that the agent of the application made", of_app,
               number(a.copies));
  out->counter("softub_app_agent_stalls_total", "times that the agent was given up", of_app, a.stalls);
  out->counter("softub_app_agent_starved_total", "times that the agent was waited for because it got no CPU", of_app,
               a.starved);
  out->counter("softub_app_events_lost_total", "events not delivered because the application did not collect them",
               of_app, number(a.events_lost));
}

void add_apps(const StatsReport& r, const Labels& labels, MetricFamilies* out) {
  if (r.placement != "daemon") return;
  out->gauge("softub_apps", "applications that are attached to the daemon", labels, r.apps_total);
  for (const StatsApp& a : merged(r.apps)) add_app(a, labels, out);
}

}  // namespace

std::vector<prometheus::MetricFamily> metrics_of(const std::vector<Instance>& instances, size_t unreadable_pages,
                                                 size_t most_channels) {
  MetricFamilies out;
  const auto running = std::count_if(instances.begin(), instances.end(), [](const Instance& i) { return i.alive; });
  out.gauge("softub_instances", "instances that run", {}, static_cast<double>(running));
  out.gauge("softub_pages_unreadable",
            "statistics pages that cannot be read: of another version, damaged, or left by an instance that was killed",
            {}, number(unreadable_pages));
  for (const Instance& i : instances) {
    const Labels labels = labels_of(i);
    out.gauge("softub_instance_up", "1: the instance runs; 0: it was killed, and no other one has started since",
              labels, i.alive ? 1 : 0);
    if (!i.alive) continue;
    add_identity(i.report, labels, &out);
    add_counters(i.report, labels, &out);
    add_objects(i.report, labels, &out);
    add_work(i.report.work, labels, &out);
    add_channels(i.report, labels, most_channels, &out);
    add_apps(i.report, labels, &out);
  }
  return out.take();
}

}  // namespace ub::tools
