// SPDX-License-Identifier: Apache-2.0
//
// What tools ask a NIC for while it runs (look_door.h), on its own thread:
//
//   trace add N [FILTER]   trace show [FROM]   trace status   trace stop   trace clear
//   pcap on BYTES FILES SNAP [FILTER] file=PATH   pcap status   pcap off   (nic_capture.cc)
//   record on BYTES FILES HEADERS file=PATH   record status   record off   (nic_record.cc)
//   latency on   latency off   latency clear
//   telemetry PATH[,PARAMETER]   (telemetry.h)
#include <new>
#include <string_view>

#include "dataplane/nic.h"
#include "dataplane/words.h"

namespace ub {
namespace {

constexpr std::string_view kKnown =
    "requests are: trace add N [FILTER], trace show [FROM], trace status, trace stop, trace clear, pcap ..., record "
    "..., latency on, latency off, latency clear, telemetry PATH[,PARAMETER]";

}  // namespace

void Nic::open_look_door() {
  hear_notes();
  if (statistics_ == nullptr) return;
  std::string error;  // an instance can live without
  if (!look_door_.open(LookDoor::path_beside(statistics_->path()), &error)) return;
  wakers_.watch(look_door_.fd(), Waker::kOthers);
  away_wakers_.watch(look_door_.fd(), Waker::kOthers);
}

// Nobody's.
void Nic::serve_look_door() {
  if (!look_door_.is_open()) return;
  look_door_.serve([this](std::string_view request) -> std::string {
    ownership_.own();
    std::string said;
    try {
      said = answer_look(request);
    } catch (const std::bad_alloc&) {
      said = "out of memory";
    }
    ownership_.release();
    return said;
  });
}

std::string Nic::answer_look(std::string_view request) {
  const std::string_view what = take_part(&request, ' ');
  if (what == "trace") return answer_trace(request);
  if (what == "pcap") return answer_capture(request);
  if (what == "record") return answer_record(request);
  if (what == "latency") return answer_latency(request);
  if (what == "telemetry") return tell_telemetry(request);
  return std::string(kKnown);
}

std::string Nic::answer_trace(std::string_view request) {
  const std::string_view verb = take_part(&request, ' ');
  if (verb == "show") {
    uint64_t from = 0;
    if (!request.empty() && !read_number(request, &from)) return std::string(kKnown);
    return trace_.page(from, LookDoor::kMostAnswerBytes);
  }
  if (verb == "add") {
    uint64_t most = 0;
    std::string why;
    if (!read_number(take_part(&request, ' '), &most)) return std::string(kKnown);
    if (!trace_.begin(most, request, &why)) return why;
  } else if (verb == "stop") {
    trace_.end();
  } else if (verb == "clear") {
    trace_.clear();
  } else if (verb != "status") {
    return std::string(kKnown);
  }
  listen(trace_, trace_.is_running());
  return trace_.status();
}

std::string Nic::answer_latency(std::string_view verb) {
  if (verb == "on" || verb == "off") {
    if (!measure_latency(verb == "on")) return "there is no memory for latencies, which take 3 MB";
  } else if (verb == "clear") {
    clear_latency();
  } else {
    return std::string(kKnown);
  }
  return is_measuring_ ? "ok latencies are measured" : "ok latencies are not measured";
}

// From the statistics page, where others find it, too.
std::string Nic::tell_telemetry(std::string_view request) {
  publish_statistics();
  std::string why;
  const std::optional<std::string> answer = page_->answer(request, &why);
  return answer ? "ok " + *answer : why;
}

}  // namespace ub
