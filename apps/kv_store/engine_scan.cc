// SPDX-License-Identifier: Apache-2.0
//
// Scans: the server tells keys in their order and where their records are, and the records are read as by gets. Each of
// them is a part of the scan, an operation of its own.
#include <cstring>

#include "apps/kv_store/engine.h"
#include "tools/common/tool_error.h"

namespace ub::kv {

using tools::ToolError;

bool Client::Engine::start_scan(std::string_view first, uint32_t count, uint64_t cookie) {
  Operation* scan = begin(first, cookie);
  if (scan == nullptr) return false;
  scan->scan.wanted = count;
  scan->scan.started = scan->scan.ended = 0;
  scan->scan.items.clear();
  if (!error_.empty()) {
    complete(*scan, Status::kFailed);
  } else if (first.size() > geometry().most_key) {
    complete(*scan, Status::kTooLarge);
  } else {
    try {
      scan->reply.more = 1;
      ask_for_items(*scan);
    } catch (const std::exception& e) {
      fail(e.what());
    }
  }
  return true;
}

// A reply has room for some of the keys alone.
void Client::Engine::ask_for_items(Operation& scan) {
  const size_t known = scan.scan.items.size();
  if (scan.reply.more == 0 || known >= scan.scan.wanted) {
    scan.step = Step::kParts;
    return end_scan_if_done(scan);
  }
  // The next key in the order, if it comes at all, is not before the last one with a byte 0 behind it.
  std::string& first = scan.key;
  if (known != 0) first = scan.scan.items.back().key + '\0';
  std::memcpy(scan.buffer + sizeof(Request), first.data(), first.size());
  send_message(scan, Op::kScan, scan.scan.wanted - known, first, 0);
}

void Client::Engine::take_items(Operation& scan, const Reply& reply, const char* content, uint32_t bytes) {
  for (uint32_t i = 0; i < reply.count; ++i) {
    ScanEntry entry;
    if (bytes < sizeof entry) throw ToolError("a reply of the server is too short: another version?");
    std::memcpy(&entry, content, sizeof entry);
    if (bytes - sizeof entry < entry.key_bytes) throw ToolError("a reply of the server is too short: another version?");
    scan.scan.items.push_back(
        {std::string(content + sizeof entry, entry.key_bytes), {}, {entry.slot, Word(entry.word)}, false});
    content += sizeof entry + entry.key_bytes;
    bytes -= static_cast<uint32_t>(sizeof entry + entry.key_bytes);
  }
  if (reply.count != 0 && scan.scan.started + reply.count == scan.scan.items.size()) scans_.push_back(&scan);
}

// As many as the window, of all scans together.
void Client::Engine::start_parts() {
  while (!scans_.empty() && parts_ < config_.window) {
    Operation& scan = *scans_.back();
    Item& item = scan.scan.items[scan.scan.started];
    Operation& part = take(Kind::kPart);
    ++parts_;
    part.parent = &scan;
    part.item = scan.scan.started++;
    if (scan.scan.started == scan.scan.items.size()) scans_.pop_back();
    part.key = item.key;
    part.hash = KeyHash::of(item.key, geometry().seed);
    part.candidates = {item.place};
    part.candidate = 0;
    part.reach = 0;
    next_candidate(part);
    run_loaded();
  }
}

// A key that was removed meanwhile is left out.
void Client::Engine::on_part(Operation& part) {
  Operation& scan = *part.parent;
  Item& item = scan.scan.items[part.item];
  item.found = part.status == Status::kOk;
  if (item.found) item.value.assign(part.value);
  ++scan.scan.ended;
  --parts_;
  free(part);
  end_scan_if_done(scan);
}

void Client::Engine::end_scan_if_done(Operation& scan) {
  if (scan.step != Step::kParts || scan.scan.ended != scan.scan.items.size()) return;
  for (const Item& item : scan.scan.items) {
    if (item.found) scan.scan.records.push_back({item.key, item.value});
  }
  complete(scan, Status::kOk);
}

}  // namespace ub::kv
