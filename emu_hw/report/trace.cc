// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/trace.h"

#include <set>

#include "emu_hw/running/json.h"

namespace ub::emu {
namespace {

constexpr size_t kHosts = 1000;  // numbers of processes of one stack

double us(Span span) { return span.ns() / 1000; }

class Trace {
 public:
  void add(const LedgerOfStack& ledger, size_t stack) {
    for (size_t i = 0; i < ledger.lines.size(); ++i) {
      const Ledger::Name& name = ledger.lines[i].name;
      const size_t process = (stack + 1) * kHosts + name.host;
      const PartKind kind = kind_of(name.part);
      name_process(process, ledger.stack + ", host " + std::to_string(name.host));
      name_thread(process, kind);
      events_.push_back({{"name", name.part},
                         {"cat", ledger.stack},
                         {"ph", "X"},
                         {"ts", us(ledger.begin_of(i) - ledger.begin)},
                         {"dur", us(ledger.span_of(i))},
                         {"pid", process},
                         {"tid", thread_of(kind)}});
    }
  }
  std::string text() const { return Json{{"displayTimeUnit", "ns"}, {"traceEvents", events_}}.dump(1) + "\n"; }

 private:
  static size_t thread_of(PartKind kind) { return static_cast<size_t>(kind) + 1; }
  void name_process(size_t process, const std::string& name) {
    if (!named_.insert({process, 0}).second) return;
    events_.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", process}, {"args", {{"name", name}}}});
  }
  void name_thread(size_t process, PartKind kind) {
    if (!named_.insert({process, thread_of(kind)}).second) return;
    events_.push_back({{"name", "thread_name"},
                       {"ph", "M"},
                       {"pid", process},
                       {"tid", thread_of(kind)},
                       {"args", {{"name", name_of(kind)}}}});
  }

  Json events_ = Json::array();
  std::set<std::pair<size_t, size_t>> named_;
};

}  // namespace

std::string trace_of(const std::vector<LedgerOfStack>& ledgers) {
  Trace trace;
  for (size_t i = 0; i < ledgers.size(); ++i) trace.add(ledgers[i], i);
  return trace.text();
}

}  // namespace ub::emu
