// SPDX-License-Identifier: Apache-2.0
//
// Parts of identity.cc: how it fails, the log of the library, what messages and ranges say of themselves, and what is
// known of peers.
#pragma once

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <urma_api.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <vector>

constexpr double kPatience = 30.0;  // seconds for what takes milliseconds on an idle machine, or one time-out

// What a message or a range is. The first five are messages of a round; one to the jetty with an id of its own choice.
enum Kind : uint32_t { kToJetty, kToJfr, kToNamed, kRc, kUm, kProbe, kWriteRm, kWriteRc, kReadRm, kReadRc, kKinds };
inline const char* const kKindNames[] = {
    "SEND to a jetty", "SEND to a JFR", "SEND to an id asked for", "SEND over RC", "SEND in UM",
    "probe",           "WRITE",         "WRITE over RC",           "READ",         "READ over RC"};

inline struct {
  uint32_t index = 0, count = 0, life = 0;
  uint64_t address = 0;
} options;

// ---- the log ---------------------------------------------------------------------------------------------------

inline std::mutex log_lock;
inline std::vector<std::string> log_lines;

inline void keep_line(int level, char* message) {
  if (level > URMA_VLOG_LEVEL_WARNING) return;
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::lock_guard guard(log_lock);
  log_lines.push_back(line);
}

inline void tell_log() {
  std::lock_guard guard(log_lock);
  for (const std::string& line : log_lines) printf("log %s\n", line.c_str());
  log_lines.clear();
}

// ---- the end ---------------------------------------------------------------------------------------------------

[[noreturn]] [[gnu::format(printf, 1, 2)]] inline void violation(const char* format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  tell_log();
  printf("violation %s\n", text);
  fflush(stdout);
  _exit(3);
}

inline void must(bool condition, const char* what) {
  if (!condition) violation("%s fails, errno %s", what, strerror(errno));
}

template <class T>
T* made(T* object, const char* what) {
  must(object != nullptr, what);
  return object;
}

inline double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// ---- patterns --------------------------------------------------------------------------------------------------

struct Head {
  uint32_t from, from_life, to, to_life, round, kind, bytes;
};

inline void write_pattern(const Head& head, unsigned char* at) {
  memcpy(at, &head, sizeof head);
  uint64_t state = (uint64_t{head.from} << 48 ^ uint64_t{head.to} << 32 ^ uint64_t{head.round} << 8 ^ head.kind) +
                   uint64_t{head.from_life} * 0x9e3779b97f4a7c15u + uint64_t{head.to_life} * 0xbf58476d1ce4e5b9u;
  for (uint32_t i = sizeof head; i < head.bytes; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    at[i] = static_cast<unsigned char>(state >> 56);
  }
}

inline std::string name_of(const Head& h) {
  char text[200];
  snprintf(text, sizeof text, "a %s of process %u, life %u, for process %u, life %u, round %u, %u bytes",
           h.kind < kKinds ? kKindNames[h.kind] : "thing of no kind", h.from, h.from_life, h.to, h.to_life, h.round,
           h.bytes);
  return text;
}

inline void check_pattern(const Head& wanted, const unsigned char* at, const char* where) {
  std::vector<unsigned char> bytes(wanted.bytes);
  write_pattern(wanted, bytes.data());
  if (memcmp(bytes.data(), at, wanted.bytes) == 0) return;
  Head found;
  memcpy(&found, at, sizeof found);
  uint32_t i = 0;
  while (bytes[i] == at[i]) ++i;
  violation("%s: byte %u is wrong; there is %s, expected was %s", where, i, name_of(found).c_str(),
            name_of(wanted).c_str());
}

// ---- EIDs as text ----------------------------------------------------------------------------------------------

inline std::string text_of(const urma_eid_t& eid) {
  std::string text;
  char two[3];
  for (unsigned char byte : eid.raw) {
    snprintf(two, sizeof two, "%02x", byte);
    text += two;
  }
  return text;
}

inline urma_eid_t eid_of(const std::string& text) {
  urma_eid_t eid = {};
  for (size_t i = 0; i < sizeof eid.raw; ++i) {
    eid.raw[i] = static_cast<uint8_t>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  }
  return eid;
}

// ---- peers -----------------------------------------------------------------------------------------------------

struct Ids {
  urma_eid_t eid;
  uint32_t rm, um;
  std::set<uint32_t> rc;
};

struct Peer {
  bool known = false;
  uint32_t life = 0;
  urma_eid_t eid = {};
  uint32_t token_id = 0;
  urma_target_jetty_t *rm = nullptr, *jfr = nullptr, *named = nullptr, *um = nullptr, *rc = nullptr;
  urma_target_seg_t* segment = nullptr;
};

struct Receives {
  urma_jfr_t* jfr = nullptr;
  std::vector<unsigned char> memory;
  urma_target_seg_t* segment = nullptr;
};

struct Arrived {
  uint32_t count = 0, local_id = 0;
};
