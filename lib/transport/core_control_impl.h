// SPDX-License-Identifier: Apache-2.0
//
// The definitions of the control calls of Core<Host>, a part of core_impl.h.
#pragma once

#include "lib/transport/core.h"
#include "lib/transport/looking/call_log.h"
#include "lib/transport/resource/objects.h"
#include "lib/transport/resource/receives.h"
#include "lib/transport/resource/targets.h"
#include "lib/transport/setup/peers.h"
#include "lib/transport/ta/giving_up.h"

namespace ub {

template <class Host, class Engines>
uint32_t Core<Host, Engines>::add_link(const LinkConfig& config) {
  LoggedCall call(s_.call_log, Call::kAddLink, config);
  uint32_t link = s_.links.alloc();
  if (link != 0) s_.links[link] = LinkRecord{.up = true, .config = config};
  return call.gives(link);
}

template <class Host, class Engines>
void Core<Host, Engines>::link_down(Instant now, uint32_t link) {
  LoggedCall call(s_.call_log, Call::kLinkDown, now, link);
  if (link == 0 || link > s_.links.high_water() || !s_.links[link].up) return;
  s_.now = now;
  s_.links[link].up = false;
  engines_.each([=](auto& engine) { engine.link_down(link); });
  s_.held.release_orphans(host_);
  s_.links.free(link);
}

template <class Host, class Engines>
Status Core<Host, Engines>::add_eid(const Eid& eid) {
  LoggedCall call(s_.call_log, Call::kAddEid, eid);
  for (uint32_t i = 0; i < s_.eid_count; ++i) {
    if (s_.eids[i] == eid) return Status::kExists;
  }
  if (s_.eid_count == kMaxEids) return Status::kNoMemory;
  s_.eids[s_.eid_count++] = eid;
  return call.gives(Status::kOk);
}

template <class Host, class Engines>
Status Core<Host, Engines>::add_path(const ExtraPath& path) {
  LoggedCall call(s_.call_log, Call::kAddPath, path);
  if (s_.extra_path_count == kMaxExtraPaths) return Status::kNoMemory;
  s_.extra_paths[s_.extra_path_count++] = path;
  return call.gives(Status::kOk);
}

template <class Host, class Engines>
void Core<Host, Engines>::add_id_block(uint32_t block) {
  LoggedCall call(s_.call_log, Call::kAddIdBlock, block);
  ub::add_id_block(s_, block);
}
template <class Host, class Engines>
bool Core<Host, Engines>::has_id(uint32_t id, bool token_id) const {
  return setup::has_id(s_, id, token_id);
}
template <class Host, class Engines>
Status Core<Host, Engines>::find(Instant now, const FindConfig& config, uint32_t* uasid) {
  LoggedCall call(s_.call_log, Call::kFind, now, config);
  s_.now = now;
  return call.gives(setup::find(s_, config, uasid), *uasid);
}

template <class Host, class Engines>
Status Core<Host, Engines>::create_jfc(const JfcConfig& config, uint32_t* jfc) {
  const JfcConfig lent = with_rings(s_.call_log, config);
  LoggedCall call(s_.call_log, Call::kCreateJfc, lent);
  return call.gives(ub::create_jfc(s_, lent, jfc), *jfc);
}
template <class Host, class Engines>
Status Core<Host, Engines>::destroy_jfc(uint32_t jfc) {
  LoggedCall call(s_.call_log, Call::kDestroyJfc, jfc);
  return call.gives(ub::destroy_jfc(s_, jfc));
}
template <class Host, class Engines>
Status Core<Host, Engines>::moderate_jfc(Instant now, uint32_t jfc, const Moderation& wanted) {
  LoggedCall call(s_.call_log, Call::kModerateJfc, now, jfc, wanted);
  s_.now = now;
  return call.gives(ub::moderate_jfc(s_, jfc, wanted));
}
template <class Host, class Engines>
Status Core<Host, Engines>::create_jfr(const JfrConfig& config, uint32_t* id) {
  const JfrConfig lent = with_rings(s_.call_log, config);
  LoggedCall call(s_.call_log, Call::kCreateJfr, lent);
  return call.gives(ub::create_jfr(s_, lent, id), *id);
}
template <class Host, class Engines>
Status Core<Host, Engines>::destroy_jfr(Instant now, uint32_t id) {
  LoggedCall call(s_.call_log, Call::kDestroyJfr, now, id);
  s_.now = now;
  return call.gives(ub::destroy_jfr(s_, id));
}
template <class Host, class Engines>
Status Core<Host, Engines>::create_jetty(const JettyConfig& config, uint32_t* id) {
  const JettyConfig lent = with_rings(s_.call_log, config);
  LoggedCall call(s_.call_log, Call::kCreateJetty, lent);
  return call.gives(ub::create_jetty(s_, lent, id), *id);
}
template <class Host, class Engines>
Status Core<Host, Engines>::create_group(const GroupConfig& config, uint32_t* id) {
  LoggedCall call(s_.call_log, Call::kCreateGroup, config);
  return call.gives(ub::create_group(s_, config, id), *id);
}

template <class Host, class Engines>
Status Core<Host, Engines>::destroy_group(Instant now, uint32_t id) {
  LoggedCall call(s_.call_log, Call::kDestroyGroup, now, id);
  s_.now = now;
  return call.gives(ub::destroy_group(s_, id));
}

template <class Host, class Engines>
Status Core<Host, Engines>::destroy_jetty(Instant now, uint32_t id) {
  LoggedCall call(s_.call_log, Call::kDestroyJetty, now, id);
  s_.now = now;
  return call.gives(ub::destroy_jetty(s_, id));
}
template <class Host, class Engines>
Status Core<Host, Engines>::set_state(Instant now, uint32_t id, QueueState state) {
  LoggedCall call(s_.call_log, Call::kSetState, now, id, state);
  s_.now = now;
  return call.gives(ub::set_state(s_, id, state));
}
template <class Host, class Engines>
QueueState Core<Host, Engines>::state(uint32_t id) const {
  return state_of(s_, id);
}
template <class Host, class Engines>
Status Core<Host, Engines>::set_receive_threshold(uint32_t jfr, uint32_t slots) {
  LoggedCall call(s_.call_log, Call::kSetReceiveThreshold, jfr, slots);
  return call.gives(ub::set_receive_threshold(s_, jfr, slots));
}
template <class Host, class Engines>
Status Core<Host, Engines>::set_queue_token(uint32_t id, uint32_t value, uint32_t former) {
  LoggedCall call(s_.call_log, Call::kSetQueueToken, id, value, former);
  return call.gives(ub::set_queue_token(s_, id, value, former));
}
template <class Host, class Engines>
Status Core<Host, Engines>::set_segment_token(uint32_t handle, uint32_t value, uint32_t former) {
  LoggedCall call(s_.call_log, Call::kSetSegmentToken, handle, value, former);
  ++revocations_;
  return call.gives(ub::set_segment_token(s_, handle, value, former));
}
template <class Host, class Engines>
Status Core<Host, Engines>::set_segment_exclusive(uint32_t handle, bool exclusive) {
  LoggedCall call(s_.call_log, Call::kSetSegmentExclusive, handle, exclusive);
  ++revocations_;
  return call.gives(ub::set_segment_exclusive(s_, handle, exclusive));
}
template <class Host, class Engines>
uint32_t Core<Host, Engines>::take_unhandled(uint32_t id, Cqe* out, uint32_t room) {
  LoggedCall call(s_.call_log, Call::kTakeUnhandled, id, room);
  if (id >= kIdSpace) return 0;
  const IdSlot& slot = s_.ids[id];
  if (slot.kind != ObjectKind::kJetty && slot.kind != ObjectKind::kJfs) return 0;
  return call.gives(ta::take_unhandled(s_, s_.jettys[slot.record].queue, out, room));
}
template <class Host, class Engines>
Status Core<Host, Engines>::alloc_token_id(uint32_t* token_id) {
  LoggedCall call(s_.call_log, Call::kAllocTokenId);
  return call.gives(ub::alloc_token_id(s_, token_id), *token_id);
}
template <class Host, class Engines>
Status Core<Host, Engines>::take_token_id(uint32_t token_id) {
  LoggedCall call(s_.call_log, Call::kTakeTokenId, token_id);
  return call.gives(ub::take_token_id(s_, token_id));
}
template <class Host, class Engines>
Status Core<Host, Engines>::free_token_id(Instant now, uint32_t token_id) {
  LoggedCall call(s_.call_log, Call::kFreeTokenId, now, token_id);
  s_.now = now;
  return call.gives(ub::free_token_id(s_, token_id));
}
template <class Host, class Engines>
Status Core<Host, Engines>::register_segment(const SegmentConfig& config, RegisteredSegment* out) {
  LoggedCall call(s_.call_log, Call::kRegisterSegment, config);
  return call.gives(ub::register_segment(s_, config, out), *out);
}
template <class Host, class Engines>
Status Core<Host, Engines>::unregister_segment(Instant now, uint32_t handle) {
  LoggedCall call(s_.call_log, Call::kUnregisterSegment, now, handle);
  s_.now = now;
  ++revocations_;
  return call.gives(ub::unregister_segment(s_, handle));
}
template <class Host, class Engines>
bool Core<Host, Engines>::describe_segment(Owner owner, uint32_t handle, PublicSegment* out) {
  return ub::describe_segment(s_, owner, handle, out);
}
template <class Host, class Engines>
bool Core<Host, Engines>::has_segment(Owner owner, uint32_t handle, uint64_t local_address) {
  return local_memory(s_, owner, handle, local_address, 1) != nullptr;
}
template <class Host, class Engines>
uint32_t Core<Host, Engines>::accessible_segment(const RemoteAccess& range) {
  uint32_t handle = 0;
  return remote_memory(s_, range, &handle) != nullptr ? handle : 0;
}
template <class Host, class Engines>
Status Core<Host, Engines>::add_target(Instant now, const TargetConfig& config, uint32_t* target) {
  LoggedCall call(s_.call_log, Call::kAddTarget, now, config);
  s_.now = now;
  return call.gives(ub::add_target(s_, config, target), *target);
}
template <class Host, class Engines>
Status Core<Host, Engines>::remove_target(uint32_t target) {
  LoggedCall call(s_.call_log, Call::kRemoveTarget, target);
  return call.gives(ub::remove_target(s_, target));
}
template <class Host, class Engines>
Status Core<Host, Engines>::bind(Instant now, uint32_t jetty, uint32_t target) {
  LoggedCall call(s_.call_log, Call::kBind, now, jetty, target);
  s_.now = now;
  return call.gives(bind_jetty(s_, jetty, target));
}
template <class Host, class Engines>
Status Core<Host, Engines>::unbind(uint32_t jetty) {
  LoggedCall call(s_.call_log, Call::kUnbind, jetty);
  return call.gives(unbind_jetty(s_, jetty));
}
template <class Host, class Engines>
Status Core<Host, Engines>::inject_rnr(Owner owner, const std::optional<fault::RnrRule>& rule) {
  LoggedCall call(s_.call_log, Call::kInjectRnr, owner, rule);
  return call.gives(s_.rnr_faults.set(owner, rule));
}
template <class Host, class Engines>
uint64_t Core<Host, Engines>::injected_rnr(Owner owner) const {
  return s_.rnr_faults.refused(owner);
}
template <class Host, class Engines>
void Core<Host, Engines>::close_owner(Instant now, Owner owner) {
  LoggedCall call(s_.call_log, Call::kCloseOwner, now, owner);
  s_.now = now;
  s_.rnr_faults.set(owner, {});
  engines_.each([=](auto& engine) { engine.close_owner(owner); });
  s_.held.release_orphans(host_);
}
template <class Host, class Engines>
void Core<Host, Engines>::close(Instant now) {
  LoggedCall call(s_.call_log, Call::kClose, now);
  s_.now = now;
  engines_.each([](auto& engine) { engine.close(); });
  s_.held.release_orphans(host_);
}

}  // namespace ub
