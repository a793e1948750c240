// SPDX-License-Identifier: Apache-2.0
//
// Names of segments: a name is a token id of this host that is ours, and under which everybody may read what the name
// stands for (docs/aperture-design.md, "Names").
#include <algorithm>
#include <new>
#include <utility>

#include "dataplane/nic.h"
#include "lib/transport/wire/id_port.h"

namespace ub {

static_assert(kFirstNameId >= kFirstRequestableId && kFirstNameId + kNameIds <= kFirstDynamicId);

namespace {

// Why that name cannot be put up, or kOk.
Status check(const PublishedNames& names, uint32_t segment, const PublishedName& wanted, std::string* why) {
  const auto is_of_owner = [&](const auto& each) { return each.second.owner == wanted.owner; };
  const auto is_the_same = [&](const auto& each) { return each.second.name == wanted.name; };
  if (names.contains(segment)) {
    *why = "the segment has a name already";
    return Status::kExists;
  }
  if (std::any_of(names.begin(), names.end(), is_the_same)) {
    *why = "this NIC has published another segment under the name " + wanted.name;
    return Status::kExists;
  }
  if (std::count_if(names.begin(), names.end(), is_of_owner) < static_cast<ptrdiff_t>(Nic::kMaxNames)) {
    return Status::kOk;
  }
  *why = "a program may publish " + std::to_string(Nic::kMaxNames) + " names";
  return Status::kNoMemory;
}

}  // namespace

// Under ownership; allocates no more than sentences. kBusy: the id is somebody else's; try the next one.
Status Nic::put_up(NicCore& core, uint32_t id, PublishedNames::node_type& node, std::string* why) try {
  PublishedName& name = node.mapped();
  if (!core.describe_segment(name.owner, node.key(), &name.segment)) {
    *why = "there is no such segment";
    return Status::kInvalid;
  }
  if (const Status status = check(names_, node.key(), name, why); status != Status::kOk) return status;
  if (core.take_token_id(id) != Status::kOk) return Status::kBusy;
  write_name_entry(name.name, name.segment, &name.bytes);
  SegmentConfig config;
  config.memory = name.bytes.data();
  config.address = config.local_address = kNameEntryAddress;
  config.length = name.bytes.size();
  config.token_id = id;
  config.access = kAccessRead;
  config.direct = true;
  RegisteredSegment registered;
  if (const Status status = core.register_segment(config, &registered); status != Status::kOk) {
    core.free_token_id(worker_->turn(), id);
    *why = "no segment is left for the entry of the name";
    return status;
  }
  name.id = id;
  name.entry = registered.handle;
  names_.insert(std::move(node));
  return Status::kOk;
} catch (const std::bad_alloc&) {
  return Status::kNoMemory;
}

Status Nic::publish(Owner owner, uint32_t segment, const std::string& name, std::string* why) {
  PublishedNames made;
  made[segment].name = name;
  made[segment].owner = owner;
  PublishedNames::node_type node = made.extract(segment);
  for (const uint32_t id : ids_of_name(name)) {
    if (!claim_now(id, why)) continue;
    const Status status = control([&](NicCore& core, Instant) { return put_up(core, id, node, why); });
    if (status == Status::kOk) return status;
    release_id(id);
    if (status != Status::kBusy) return status;
  }
  if (why->empty()) *why = "all ids that the name may have are taken on this host";
  return Status::kNoMemory;
}

Status Nic::unpublish(uint32_t segment) {
  const PublishedNames::node_type gone = control([&](NicCore& core, Instant now) {
    PublishedNames::node_type node = names_.extract(segment);
    if (!node.empty()) {
      core.unregister_segment(now, node.mapped().entry);
      core.free_token_id(now, node.mapped().id);
    }
    return node;
  });
  if (gone.empty()) return Status::kInvalid;
  release_id(gone.mapped().id);
  return Status::kOk;
}

}  // namespace ub
