// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/instance_pages.h"

#include <dirent.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "dataplane/tsc_clock.h"
#include "tools/common/stats_directory.h"

namespace ub::tools {
namespace {

bool is_there(const std::string& directory, const std::string& name) {
  return access(stats_page_path(directory, name).c_str(), F_OK) == 0;
}

}  // namespace

std::optional<std::string> directory_of(const InstanceSelection& selection) {
  std::string error;
  std::optional<std::string> directory = selection.directory;
  if (directory->empty()) directory = stats_directory(&error);
  const bool is_missing = directory && access(directory->c_str(), F_OK) != 0 && errno == ENOENT;
  if (directory && !is_missing) error = directory_problem(*directory);
  if (error.empty()) return directory;
  fmt::print(stderr, "urma_admin: {}\n", error);
  return std::nullopt;
}

std::string directory_problem(const std::string& directory) {
  if (DIR* dir = opendir(directory.c_str())) {
    closedir(dir);
    return "";
  }
  const int why = errno;
  std::error_code ignored;
  const auto parent = std::filesystem::absolute(directory).lexically_normal().parent_path();
  if (why == ENOENT && std::filesystem::is_directory(parent, ignored)) return "";
  return fmt::format(
      "the statistics directory {} cannot be read: {}. It is that of log.stats_dir, or --dir names it; "
      "only the user whose instances publish there may read it",
      directory, std::strerror(why));
}

std::optional<Instance> load_instance(const std::string& directory, const std::string& name, std::string* error) {
  auto reader = StatsPageReader::open(stats_page_path(directory, name), error);
  Instance instance;
  instance.name = name;
  instance.page = stats_page_path(directory, name);
  if (!reader || !reader->read(&instance.report, error)) return std::nullopt;
  (void)reader->read_last_notes(&instance.events, &instance.no_events);
  instance.alive = reader->alive();
  return instance;
}

std::vector<Instance> load_instances(const std::string& directory, size_t* unreadable) {
  std::vector<Instance> instances;
  *unreadable = 0;
  for (const std::string& name : list_stats_pages(directory)) {
    std::string error;
    if (auto instance = load_instance(directory, name, &error)) {
      instances.push_back(std::move(*instance));
    } else if (is_there(directory, name)) {
      ++*unreadable;
    }
  }
  return instances;
}

bool matches(const Instance& i, const std::string& wanted) {
  return wanted == i.name || wanted == std::to_string(i.report.pid) ||
         wanted == fmt::format("{:#010x}", i.report.uasid) || wanted == fmt::format("{:08x}", i.report.uasid);
}

std::optional<Instance> load_or_complain(const std::string& directory, const std::string& name) {
  std::string error;
  auto instance = load_instance(directory, name, &error);
  if (!instance && is_there(directory, name)) fmt::print(stderr, "urma_admin: {}\n", error);
  return instance;
}

std::optional<Instance> choose_instance(const InstanceSelection& selection) {
  const auto directory = directory_of(selection);
  if (!directory) return std::nullopt;
  std::vector<Instance> found;
  for (const std::string& name : list_stats_pages(*directory)) {
    auto instance = load_or_complain(*directory, name);
    if (!instance) continue;
    if (selection.instance.empty() ? instance->alive : matches(*instance, selection.instance)) {
      found.push_back(std::move(*instance));
    }
  }
  if (found.size() == 1) return std::move(found[0]);
  if (found.empty()) {
    fmt::print(stderr, "urma_admin: {} in {}\n",
               selection.instance.empty() ? "no instance runs" : fmt::format("no instance {}", selection.instance),
               *directory);
  } else {
    fmt::print(stderr, "urma_admin: several instances; choose one with --instance:\n");
    for (const Instance& i : found) fmt::print(stderr, "  {}  pid {}  {}\n", i.name, i.report.pid, i.report.program);
  }
  return std::nullopt;
}

uint64_t wall_ns() { return TscClock::wall_ns(); }

double wall_seconds(uint64_t wall_ns) { return static_cast<double>(wall_ns) / 1e9; }

std::string wall_clock_text(uint64_t wall_ns) {
  const auto seconds = static_cast<time_t>(wall_ns / 1'000'000'000);
  tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:02}:{:02}:{:02}.{:06}", local.tm_hour, local.tm_min, local.tm_sec, wall_ns / 1000 % 1'000'000);
}

std::array<ObjectCount, 10> object_counts(const StatsObjects& o) {
  return {{{"jfc", o.jfc},
           {"jfr", o.jfr},
           {"jfs", o.jfs},
           {"jetty", o.jetty},
           {"segments", o.segments},
           {"targets", o.targets},
           {"groups", o.groups},
           {"peers", o.peers},
           {"channels", o.channels},
           {"links", o.links}}};
}

}  // namespace ub::tools
