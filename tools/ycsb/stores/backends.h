// SPDX-License-Identifier: Apache-2.0
//
// The stores that -db names.
#pragma once

#include <memory>
#include <string>

#include "tools/ycsb/properties.h"
#include "tools/ycsb/spec.h"
#include "tools/ycsb/stores/store.h"

namespace ub::ycsb {

struct BackendEntry {
  const char* name;
  const char* what;
  bool scans;          // has records in the order of their keys
  bool single_fields;  // reads and changes single fields; else whole records
  // Null: this build lacks the library. ToolError: a property is wrong, or the store cannot be reached.
  std::unique_ptr<Backend> (*open)(const Properties&, const Spec&);
  const char* package;  // of Debian that a build without it lacks
};

std::unique_ptr<Backend> open_basic(const Properties&, const Spec&);
std::unique_ptr<Backend> open_urma(const Properties&, const Spec&);
std::unique_ptr<Backend> open_aperture(const Properties&, const Spec&);
std::unique_ptr<Backend> open_tcp(const Properties&, const Spec&);
std::unique_ptr<Backend> open_memcached(const Properties&, const Spec&);
#ifdef UB_HAVE_HIREDIS
std::unique_ptr<Backend> open_redis(const Properties&, const Spec&);
#else
constexpr std::unique_ptr<Backend> (*open_redis)(const Properties&, const Spec&) = nullptr;
#endif

constexpr BackendEntry kBackends[] = {
    {"basic", "a map in this process: the floor, what the generator costs", true, true, open_basic, ""},
    {"urma", "kv_store, by READs, WRITEs and messages", true, false, open_urma, ""},
    {"aperture", "kv_store, by loads for reads and scans", true, false, open_aperture, ""},
    {"tcp", "urma_ycsb --serve-tcp, over plain TCP", true, true, open_tcp, ""},
    {"redis", "a Redis server, by hiredis", true, true, open_redis, "libhiredis-dev"},
    {"memcached", "a memcached server, by its text protocol", false, false, open_memcached, ""},
};

// ToolError (kExitUsage): there is no such store, or not in this build.
const BackendEntry& find_backend(const std::string& name);

}  // namespace ub::ycsb
