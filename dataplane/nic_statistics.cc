// SPDX-License-Identifier: Apache-2.0
//
// What a NIC tells of itself: its channels, and the statistics page that tools read.
#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "dataplane/nic.h"
#include "dataplane/nic_report.h"

namespace ub {

// ---- channels --------------------------------------------------------------------------------------------------

std::vector<ChannelInfo> Nic::channels() {
  std::vector<ChannelInfo> rows;
  ChannelInfo page[64];
  uint32_t from = 1;
  do {
    const size_t count = channels(page, &from);
    rows.insert(rows.end(), page, page + count);
  } while (from != 0);
  return rows;
}

size_t Nic::channels(std::span<ChannelInfo> out, uint32_t* from) {
  constexpr uint32_t kMostLooks = 1024;
  return control([&](NicCore& core, Instant) {
    size_t count = 0;
    const uint32_t end = core.channel_table_size() + 1;
    uint32_t at = std::max(*from, 1u);
    for (uint32_t looks = 0; at < end && looks < kMostLooks && count < out.size(); ++at, ++looks) {
      count += core.channel_info(at, &out[count]) ? 1 : 0;
    }
    *from = at < end ? at : 0;
    return count;
  });
}

// ---- the page --------------------------------------------------------------------------------------------------

void Nic::open_statistics(const LoadedConfig& config) {
  StatsIdentity identity;
  identity.eids = eids_.eids();
  identity.uasid = uasid_;
  identity.udp_port = udp_port_;
  const std::pair<bool, const char*> wires[] = {
      {ports_.shm.is_open(), "shm"}, {ports_.udp.is_open(), "udp"}, {!ports_.plugins.empty(), "dpdk"}};
  for (auto [open, name] : wires) {
    if (open) identity.wires += (identity.wires.empty() ? "" : ", ") + std::string(name);
  }
  std::vector<std::string>& names = identity.port_counters;
  if (!ports_.plugins.empty()) names.assign(std::begin(kPluginPortCounterNames), std::end(kPluginPortCounterNames));
  if (ports_.impaired() != nullptr)
    names.insert(names.end(), ImpairedWires::kCounters.begin(), ImpairedWires::kCounters.end());
  names.insert(names.end(), std::begin(kLanePortCounterNames), std::end(kLanePortCounterNames));
  identity.device = config.device.name;
  if (clients_ != nullptr) identity.placement = "daemon";
  std::string directory = config.log.stats_dir;
  if (directory.empty()) directory = config.port.shm_dir;  // where tools look, too, whether the wire is open or not
  if (directory.empty()) directory = ipc::Rendezvous::default_directory();
  std::string error;  // an instance can live without its page
  statistics_ = StatsPageWriter::create(directory, identity, &error);
  if (statistics_ != nullptr) page_->set(statistics_->path());
}

bool Nic::statistics_due() const { return statistics_ && worker_->now() >= statistics_due_at(); }

// In the order of their names: of all DPDK devices together, of impaired wires, and of lanes.
std::vector<uint64_t> Nic::port_counters() const {
  std::vector<uint64_t> values;
  if (!ports_.plugins.empty()) values.resize(std::size(kPluginPortCounterNames));
  for (const auto& plugin : ports_.plugins) {
    const auto counters = std::bit_cast<std::array<uint64_t, std::size(kPluginPortCounterNames)>>(plugin->counters());
    for (size_t i = 0; i < counters.size(); ++i) values[i] += counters[i];
  }
  if (ports_.impaired() != nullptr) {
    const auto counters = ports_.impaired()->counters();
    values.insert(values.end(), counters.begin(), counters.end());
  }
  const auto lanes = std::bit_cast<std::array<uint64_t, std::size(kLanePortCounterNames)>>(ports_.lanes.counters());
  values.insert(values.end(), lanes.begin(), lanes.end());
  return values;
}

std::vector<StatsName> Nic::reported_names() const {
  std::vector<StatsName> rows;
  for (const auto& [segment, published] : names_) {
    StatsName& row = rows.emplace_back();
    published.name.copy(row.name, sizeof row.name - 1);
    const PublicSegment& of = published.segment;
    row.segment = {of.address, of.length, of.token_id, of.access, of.token_required, 0};
  }
  return rows;
}

namespace {

// The first paths of a channel that has several.
void add_paths(const Nic::NicCore& core, uint32_t channel, uint32_t tpn, std::vector<StatsPath>* rows) {
  PathInfo paths[kStatsPathsOfChannel];
  const uint32_t count = std::min(core.path_info(channel, paths), kStatsPathsOfChannel);
  for (uint32_t i = 0; i < count; ++i) rows->push_back(stats_path(tpn, static_cast<uint16_t>(i), paths[i]));
}

}  // namespace

void Nic::publish_statistics() try {
  statistics_at_ = worker_->now();
  own_regimes_.spend(Regime::kBusy, statistics_at_);
  begin_samples();
  statistics_stale_ = false;
  std::vector<ChannelInfo> channels;
  std::vector<StatsPath> paths;
  ChannelInfo info;
  NicCore& core = worker_->core();
  const ShareDoor::Accesses accesses = shares_.take_accesses();
  core.count(Counter::kMappedByOthers, accesses.requests);
  core.count(Counter::kMappedBytesByOthers, accesses.bytes);
  for (uint32_t i = 1; i <= core.channel_table_size(); ++i) {
    if (!core.channel_info(i, &info)) continue;
    channels.push_back(info);
    add_paths(core, i, info.tpn, &paths);
  }
  const NicReport report = report_nic(core.state());
  statistics_->update(core.counters(), report.objects, channels, report.segments, port_counters(),
                      clients_ == nullptr ? std::vector<StatsApp>{} : clients_->report(), reported_names(), paths,
                      work_figures());
} catch (const std::bad_alloc&) {  // the page keeps its last picture
}

}  // namespace ub
