// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/aperture_model.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "tests/sim/world.h"

namespace ub::sim {

bool Access::ran() const { return std::find(written.begin(), written.end(), true) != written.end(); }

std::string ApertureModel::describe(const Access& a) const {
  char buf[160];
  std::snprintf(buf, sizeof buf, "%s %" PRIu64 " of handle %u, %u bytes at offset %" PRId64 " of region %u",
                a.is_load() ? "load" : "store", a.id, a.handle, a.bytes,
                static_cast<int64_t>(a.address - a.region->address), a.region->uid);
  return buf;
}

// ---- rights ----------------------------------------------------------------------------------------------------

void ApertureModel::add_region(const Region* r) { rights_[r].tokens.push_back({world_.now().ns, r->token.value}); }

void ApertureModel::token_replaced(const Region* r) { rights_[r].tokens.push_back({world_.now().ns, r->token.value}); }

void ApertureModel::region_leaving(const Region* r) {
  if (const auto found = rights_.find(r); found != rights_.end())
    found->second.gone_ns = std::min(found->second.gone_ns, world_.now().ns);
}

// A load may run over the ends of its region, where it shows zeros; of a store only bytes that are not enabled may.
bool ApertureModel::inside(const Access& a) const {
  const Region& r = *a.region;
  const uint8_t needed = a.is_load() ? kAccessRead : kAccessWrite;
  if ((r.access & needed) == 0 || a.address + a.bytes < a.address) return false;
  bool any = false, all = true;
  for (uint64_t i = 0; i < a.bytes; ++i) {
    const bool in = a.address + i >= r.address && a.address + i - r.address < r.length;
    any |= in;
    if (!a.is_load() && a.is_enabled(i)) all &= in;
  }
  return a.is_load() ? any : all;
}

bool ApertureModel::was_allowed(const Access& a) const {
  const Rights& rights = rights_.at(a.region);
  const bool nothing = !a.is_load() && std::all_of(a.enables.begin(), a.enables.end(), [](auto w) { return w == 0; }) &&
                       !a.enables.empty();
  if (nothing) return true;  // no byte is touched, so nothing is asked
  if (!inside(a) || rights.gone_ns < a.issued_ns) return false;
  for (size_t i = 0; i < rights.tokens.size(); ++i) {
    const uint64_t end = i + 1 < rights.tokens.size() ? rights.tokens[i + 1].at_ns : UINT64_MAX;
    if (rights.tokens[i].token == a.token && end >= a.issued_ns) return true;
  }
  return false;
}

bool ApertureModel::was_refused(const Access& a) const {
  const Rights& rights = rights_.at(a.region);
  if (!inside(a) || rights.gone_ns <= world_.now().ns) return true;
  for (size_t i = 0; i < rights.tokens.size(); ++i) {
    const uint64_t end = i + 1 < rights.tokens.size() ? rights.tokens[i + 1].at_ns : UINT64_MAX;
    if (rights.tokens[i].token != a.token && end >= a.issued_ns) return true;
  }
  return false;
}

// ---- calls and answers -----------------------------------------------------------------------------------------

// What a load shows at this moment.
std::vector<std::byte> ApertureModel::view(const Access& a) const {
  std::vector<std::byte> bytes(a.bytes);
  const Region& r = *a.region;
  for (uint64_t i = 0; i < a.bytes; ++i) {
    const uint64_t offset = a.address + i - r.address;
    if (a.address + i >= r.address && offset < r.length) bytes[i] = r.memory()[offset];
  }
  return bytes;
}

void ApertureModel::called(const std::shared_ptr<Access>& access) {
  Access& a = *access;
  a.id = ++last_id_;
  a.issued_ns = world_.now().ns;
  if (a.is_load()) {
    a.since = writes_.size();
    a.before = view(a);
  } else {
    a.written.resize(a.bytes);
    ++stores_under_way_[a.handle];
  }
  ++outstanding_;
  world_.mix(a.id << 20 ^ a.address ^ a.bytes);
  world_.trace("aperture: %s is called", describe(a).c_str());
}

void ApertureModel::end(Access& a, Access::State state) {
  UB_ASSERT(a.state == Access::State::kOutstanding);
  if (a.strict && state != Access::State::kOk)
    world_.model.fail("liveness: after all faults, %s fails", describe(a).c_str());
  a.state = state;
  --outstanding_;
  ++counts_[static_cast<size_t>(state)];
  world_.mix(a.id << 2 ^ static_cast<uint64_t>(state));
  if (!a.is_load() && --stores_under_way_[a.handle] == 0) seen_[a.handle].clear();
}

void ApertureModel::answered(Access& a, bool ok, std::span<const std::byte> bytes) {
  world_.trace("aperture: %s is %s", describe(a).c_str(), ok ? "answered" : "refused");
  if (ok && !was_allowed(a)) return world_.model.fail("%s was carried out without right", describe(a).c_str());
  if (!ok && !was_refused(a)) return world_.model.fail("%s was refused though it is allowed", describe(a).c_str());
  if (!ok && a.ran()) return world_.model.fail("%s was refused and carried out", describe(a).c_str());
  if (ok) a.is_load() ? check_loaded(a, bytes) : check_ran(a);
  if (ok && a.is_load() && stores_under_way_[a.handle] != 0) seen_[a.handle].push_back({a.id, a.address, a.bytes});
  end(a, ok ? Access::State::kOk : Access::State::kRefused);
}

void ApertureModel::given_up(Access& a, uint64_t for_ns) {
  world_.trace("aperture: %s is given up", describe(a).c_str());
  a.given_up_ns = world_.now().ns + for_ns;
  end(a, Access::State::kGivenUp);
}

void ApertureModel::check_ran(const Access& a) {
  for (uint64_t i = 0; i < a.bytes; ++i)
    if (a.is_enabled(i) && !a.written[i])
      return world_.model.fail("%s was answered, but byte %" PRIu64 " is not stored", describe(a).c_str(), i);
}

// Each byte is what was there at the call, or what somebody wrote since. A store of the same handle that was called
// earlier rules out all that was there before it.
void ApertureModel::check_loaded(const Access& a, std::span<const std::byte> bytes) {
  if (bytes.size() != a.bytes)
    return world_.model.fail("%s is answered by %zu bytes", describe(a).c_str(), bytes.size());
  std::vector<bool> good(a.bytes);
  for (uint64_t i = 0; i < a.bytes; ++i) good[i] = bytes[i] == a.before[i];
  for (size_t n = a.since; n < writes_.size(); ++n) {
    const Write& w = writes_[n];
    if (w.region != a.region) continue;
    const bool own = w.handle == a.handle && w.access < a.id;
    for (uint64_t i = 0; i < w.data.size(); ++i) {
      const uint64_t at = a.region->address + w.offset + i - a.address;
      if (at >= a.bytes) continue;
      if (own) good[at] = false;
      if (w.data[i] == bytes[at]) good[at] = true;
    }
  }
  const auto bad = std::find(good.begin(), good.end(), false);
  if (bad == good.end()) return;
  const auto at = static_cast<size_t>(bad - good.begin());
  world_.model.fail("%s shows 0x%02x in byte %zu, which was not there meanwhile; it was 0x%02x at the call",
                    describe(a).c_str(), static_cast<unsigned>(bytes[at]), at, static_cast<unsigned>(a.before[at]));
}

// ---- what a Core does --------------------------------------------------------------------------------------------

void ApertureModel::loaded(const Region* r, uint64_t offset, uint64_t bytes) {
  if (!rights_.contains(r)) return;
  if (arriving_ == nullptr || !arriving_->is_load() || arriving_->region != r)
    return world_.model.fail("%" PRIu64 " bytes at offset %" PRIu64 " of region %u are loaded, and nobody asked", bytes,
                             offset, r->uid);
}

void ApertureModel::stored(const Region* r, uint64_t offset, std::span<const std::byte> bytes) {
  if (!rights_.contains(r)) return;
  Access* a = arriving_;
  if (a == nullptr || a->is_load() || a->region != r)
    return world_.model.fail("%zu bytes are stored at offset %" PRIu64 " of region %u, and nobody asked", bytes.size(),
                             offset, r->uid);
  if (a->state != Access::State::kOutstanding &&
      (a->state != Access::State::kGivenUp || a->given_up_ns < world_.now().ns))
    return world_.model.fail("%s is carried out after its end", describe(*a).c_str());
  if (world_.reached) world_.reached->reach(ReachedState::kLaneStoreLate, a->state == Access::State::kGivenUp);
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    const uint64_t at = r->address + offset + i - a->address;
    if (at >= a->bytes || !a->is_enabled(at) || a->data[at] != bytes[i])
      return world_.model.fail("%s writes offset %" PRIu64 ", for which it has not this byte", describe(*a).c_str(),
                               offset + i);
    if (a->written[at]) return world_.model.fail("%s is carried out twice", describe(*a).c_str());
    a->written[at] = true;
  }
  for (const Seen& s : seen_[a->handle]) {
    const uint64_t first = std::max(s.address, r->address + offset);
    if (s.load > a->id && first < std::min(s.address + s.bytes, r->address + offset + bytes.size()))
      return world_.model.fail("load %" PRIu64 " was answered before %s, which was called earlier", s.load,
                               describe(*a).c_str());
  }
  writes_.push_back({r, offset, a->handle, a->id, {bytes.begin(), bytes.end()}});
}

}  // namespace ub::sim
