// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of urma_admin. Each prints to stdout, mistakes to stderr, and returns the exit code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ub::tools {

// Every configuration key: what is in force, and where that came from.
int show_config(const std::string& filter, bool changed_only, bool json);

// What applications see: starts liburma in this process.
int show_devices(bool capabilities, bool json);

struct InstanceSelection {
  std::string directory;  // empty: from the configuration
  std::string instance;   // name, pid or uasid; empty: the only one
};
int list_instances(const InstanceSelection&, bool json);
// The names of segments that running instances have published.
int list_names(const InstanceSelection&, bool json);
int show_instance(const InstanceSelection&, const std::string& what, bool all, bool json);

struct TraceWish {
  std::string verb;  // add, show, status, stop or clear
  uint64_t notes = 0;
  std::vector<std::string> filter;  // its terms
};
// A trace of the packets and requests of a running instance (docs/looking.md).
int trace_instance(const InstanceSelection&, const TraceWish&, bool json);

struct CaptureWish {
  std::string verb;  // on, off or status
  std::string path;
  uint64_t bytes = 0;               // of a file, at most; 0: no limit
  uint32_t files = 0;               // so many stay; 0: one file, which gets full
  uint32_t snap = 0;                // bytes of a frame that are kept; 0: all
  std::vector<std::string> filter;  // its terms
};
struct RecordWish {
  std::string verb;  // on, off or status
  std::string path;
  uint64_t bytes = 0;    // of a file, at most
  uint32_t files = 1;    // so many stay; 0: all
  bool headers = false;  // of frames that are sent, too
  bool payload = false;  // too
};
// A recording of what enters the Core of a running instance (docs/recording.md).
int record_instance(const InstanceSelection&, const RecordWish&);

// A packet capture of a running instance (docs/capture.md).
int capture_instance(const InstanceSelection&, const CaptureWish&);
// What the instance answers to "/softub/counters" and such (dataplane/telemetry.h), as JSON.
int ask_telemetry(const InstanceSelection&, const std::string& request);
// How long stages take inside an instance (docs/telemetry.md). `verb`: on, off, show or clear.
int measure_latency(const InstanceSelection&, const std::string& verb, bool json);

struct ExportOptions {
  std::string bind = "127.0.0.1";
  uint16_t port = 9464;  // 0: any free one
  size_t channels = 64;  // of each instance, at most
  bool once = false;     // the page to stdout, and no server
};
// The statistics of all instances for Prometheus, until SIGINT or SIGTERM.
int export_metrics(const InstanceSelection&, const ExportOptions&);
// Can `ExportOptions::bind` be that?
bool is_ipv4_address(const std::string&);

struct TopOptions {
  double interval_s = 1;
  bool once = false;  // one page of plain text, as where stdout is not a terminal
};
// What instances do at the moment, as a page that is renewed until a key or a signal ends it.
int show_top(const InstanceSelection&, const TopOptions&);

struct DoctorOptions {
  std::string peer;     // also look at the way to this host; empty: only at this one
  bool listen = false;  // be the peer of another doctor
  uint16_t port = 0;    // of the responder
  bool json = false;
};
// What is missing here for two hosts to talk, and what to do about it.
int examine(const DoctorOptions&);

}  // namespace ub::tools
