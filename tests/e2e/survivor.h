// SPDX-License-Identifier: Apache-2.0
//
// Parts of survivor.cc: what the test sees of it, patterns, memory, and the peer.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <urma_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

constexpr uint32_t kLanes = 8, kReceives = 64, kMessage = 4096;
constexpr uint32_t kSlot = 80 << 10, kCanary = 64;

inline double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

inline void rest(double seconds) {
  timespec t{0, static_cast<long>(seconds * 1e9)};
  nanosleep(&t, nullptr);
}

// ---- what the test sees ----------------------------------------------------------------------------------------

// Counts go on from process to process; kill_four.py knows the layout.
struct Page {
  std::atomic<uint64_t> pid, self, with;  // addresses: ours, and the peer's of the last verified round
  std::atomic<uint64_t> turns;            // of the loop: it does not hang
  std::atomic<uint64_t> rounds;           // WRITE, READ, atomic and SEND of a lane, verified
  std::atomic<uint64_t> lives, losses;    // attached; daemon died
  std::atomic<uint64_t> pause_us;         // longest time without a round with a peer that was there
  std::atomic<uint64_t> receives_failed;
  std::atomic<uint64_t> statuses[16];  // completions of requests
  char violation[512];
};
inline Page* page;

[[noreturn]] [[gnu::format(printf, 1, 2)]] inline void violation(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(page->violation, sizeof page->violation, format, arguments);
  va_end(arguments);
  fprintf(stderr, "survivor %d: %s (errno %s)\n", getpid(), page->violation, strerror(errno));
  _exit(3);
}

inline void must(bool condition, const char* what) {
  if (!condition) violation("%s fails", what);
}

// ---- patterns --------------------------------------------------------------------------------------------------

// The bytes that belong to a seed, anywhere.
inline void fill(unsigned char* at, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word = (seed += 0x9e3779b97f4a7c15u);
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word ^= word >> 27;
    memcpy(at + i, &word, std::min<size_t>(8, bytes - i));
  }
}

inline size_t first_difference(const unsigned char* a, const unsigned char* b, size_t bytes) {
  size_t i = 0;
  while (i < bytes && a[i] == b[i]) ++i;
  return i;
}

// ---- memory ----------------------------------------------------------------------------------------------------

// Of each of our two segments; those of the peer look the same.
struct Memory {
  struct Lane {
    unsigned char target[kSlot];  // the peer's to write
    unsigned char source[kSlot];
    unsigned char sink[kSlot + kCanary];
    unsigned char message[kMessage];
    uint64_t counter;  // the peer's to count
    uint64_t fetched;
  };
  std::array<Lane, kLanes> lanes;
  unsigned char received[kReceives][kMessage];
};

struct Message {
  uint64_t to, from;  // addresses
  uint64_t number;    // of the sender's lane, grows
  uint64_t done;      // the last one reported done to the sender
  uint32_t lane, bytes;
};

struct Address {
  uint64_t number;  // of this life; random
  urma_jetty_id_t jetty;
  urma_seg_t segments[2];
  uint32_t token;
};

inline std::string directory;

inline bool read_address(const std::string& name, Address* address) {
  int fd = open((directory + "/" + name + ".address").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool all = read(fd, address, sizeof *address) == sizeof *address;
  close(fd);
  return all;
}

inline void write_address(const std::string& name, const Address& address) {
  const std::string path = directory + "/" + name + ".address", fresh = path + ".new";
  int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  must(fd >= 0 && write(fd, &address, sizeof address) == sizeof address, "writing the address");
  close(fd);
  must(rename(fresh.c_str(), path.c_str()) == 0, "publishing the address");
}

// ---- the peer --------------------------------------------------------------------------------------------------

struct Lost {};  // the daemon died: thrown by calls

// A call that only the daemon's death lets fail.
template <class T>
T* made(T* object, const char* what) {
  if (object != nullptr) return object;
  if (errno != ENODEV) violation("%s fails", what);
  throw Lost{};
}

struct Remote {
  Address address;
  urma_target_jetty_t* jetty = nullptr;
  urma_target_seg_t* segments[2] = {};
  uint32_t under_way = 0;
  double refused_at = 0;  // the first error of a request to it, and which
  int refused_with = 0;

  ~Remote() {
    for (urma_target_seg_t* segment : segments) {
      if (segment != nullptr) must(urma_unimport_seg(segment) == URMA_SUCCESS, "urma_unimport_seg");
    }
    if (jetty != nullptr) must(urma_unimport_jetty(jetty) == URMA_SUCCESS, "urma_unimport_jetty");
  }
  // False: it cannot be reached, for now.
  bool import(urma_context_t* context) {
    urma_rjetty_t wanted = {};
    wanted.jetty_id = address.jetty;
    wanted.trans_mode = URMA_TM_RM;
    wanted.type = URMA_JETTY;
    wanted.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    urma_token_t token = {address.token};
    jetty = urma_import_jetty(context, &wanted, &token);
    if (jetty == nullptr && errno == ENODEV) throw Lost{};
    if (jetty == nullptr) return false;
    for (int i = 0; i < 2; ++i) {
      urma_import_seg_flag_t flag = {};
      flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
      segments[i] = urma_import_seg(context, &address.segments[i], &token, 0, flag);
      must(segments[i] != nullptr, "urma_import_seg");
    }
    return true;
  }
};
