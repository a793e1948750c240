// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/process_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "lib/ipc/fd.h"

namespace ub {

namespace {

// A small file of /proc, ended by a zero. False: it is not there, or may not be read.
template <size_t N>
bool read_file(const std::string& path, char (&text)[N]) {
  ipc::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  const ssize_t n = read(fd.get(), text, N - 1);
  text[n > 0 ? n : 0] = '\0';
  return n > 0;
}

// What follows the name in a stat file. The process chooses its name, and may put anything into it.
const char* behind_name(const char* stat) {
  const char* end = strrchr(stat, ')');
  return end == nullptr || end[1] != ' ' ? nullptr : end + 2;
}

bool read_thread(const std::string& directory, ThreadReading* out) {
  char text[1024];
  if (!read_file(directory + "/stat", text)) return false;
  const char* state = behind_name(text);
  if (state == nullptr) return false;
  out->state = *state;
  uint64_t ran, waited, runs;
  if (!read_file(directory + "/schedstat", text) ||
      sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &ran, &waited, &runs) != 3) {
    return false;
  }
  out->ran = nanoseconds(static_cast<int64_t>(ran));
  out->waited = nanoseconds(static_cast<int64_t>(waited));
  out->runs = runs;
  return true;
}

// Field 22 of stat; the state is the third. 0: not seen.
uint64_t when_began(pid_t pid) {
  char text[1024];
  if (pid <= 0 || !read_file("/proc/" + std::to_string(pid) + "/stat", text)) return 0;
  const char* field = behind_name(text);
  for (int n = 3; field != nullptr && n < 22; ++n) {
    field = strchr(field, ' ');
    if (field != nullptr) ++field;
  }
  return field == nullptr ? 0 : strtoull(field, nullptr, 10);
}

struct CloseDirectory {
  void operator()(DIR* dir) const { closedir(dir); }
};

}  // namespace

ProcessReader::ProcessReader(pid_t pid) : pid_(pid), began_(when_began(pid)) {}

ProcessReading ProcessReader::read() const {
  ProcessReading reading;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  reading.at = Instant{} + seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
  if (began_ == 0 || when_began(pid_) != began_) return reading;
  const std::string tasks = "/proc/" + std::to_string(pid_) + "/task";
  const std::unique_ptr<DIR, CloseDirectory> dir(opendir(tasks.c_str()));
  if (dir == nullptr) return reading;
  while (const dirent* entry = readdir(dir.get())) {
    if (reading.threads.size() == kMostThreads) break;
    ThreadReading thread;
    thread.tid = atoi(entry->d_name);
    if (thread.tid > 0 && read_thread(tasks + "/" + entry->d_name, &thread)) reading.threads.push_back(thread);
  }
  std::sort(reading.threads.begin(), reading.threads.end(),
            [](const ThreadReading& a, const ThreadReading& b) { return a.tid < b.tid; });
  return reading;
}

}  // namespace ub
