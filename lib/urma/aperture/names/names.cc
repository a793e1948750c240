// SPDX-License-Identifier: Apache-2.0
// Segments published under names, and found by them (softub_aperture.h).
#include <cerrno>
#include <new>
#include <optional>
#include <string>

#include "lib/urma/aperture/names/lookup.h"
#include "lib/urma/device/eid.h"
#include "lib/urma/include/ub/umdk/urma/softub_aperture.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/objects.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;
using namespace ub::aperture;

static_assert(SOFTUB_MAX_NAME == kMaxNameBytes);

namespace {

constexpr const char* kWhatIsAName = "a name has 1 to 63 letters, digits, or characters of . : - _";

// Has another NIC of this host published it?
bool is_taken(urma_context_t* context, const std::string& name, Care care) {
  for (const Eid& eid : backend().eids()) {
    FoundName found;
    std::string why;
    if (look_up(context, eid_of(eid), name, backend().uasid(), care, &found, &why) == Status::kOk) return true;
  }
  return false;
}

urma_status_t refuse(urma_status_t status, const std::string& name, const std::string& why) {
  URMA_LOG_ERROR("softub_publish of %s: %s", name.c_str(), why.c_str());
  return status;
}

urma_status_t publish(Segment& segment, const std::string& name) {
  const char* taken = "another program of this host has published that name";
  if (is_taken(segment.pub.urma_ctx, name, Care::kOnce)) return refuse(URMA_EEXIST, name, taken);
  std::string why;
  const Status status = backend().publish(segment.handle, name, &why);
  if (status != Status::kOk) return refuse(status_of(status), name, why);
  segment.published = true;
  if (!is_taken(segment.pub.urma_ctx, name, Care::kTwice)) return URMA_SUCCESS;
  softub_unpublish(&segment.pub);  // two at once: who sees the other gives way
  return refuse(URMA_EEXIST, name, taken);
}

struct Wanted {
  std::string name;
  urma_eid_t eid;
};

// "name" or "name@EID".
std::optional<Wanted> parse(const urma_context_t& context, const std::string& text) {
  const size_t at = text.find('@');
  Wanted wanted{text.substr(0, at), context.eid};
  if (!is_name(wanted.name)) return std::nullopt;
  if (at != std::string::npos && urma_str_to_eid(text.c_str() + at + 1, &wanted.eid) != 0) return std::nullopt;
  return wanted;
}

urma_target_seg_t* import(urma_context_t* context, const urma_eid_t& eid, const FoundName& found, urma_token_t token) {
  urma_seg_t seg{};
  seg.ubva.eid = eid;
  seg.ubva.uasid = found.uasid;
  seg.ubva.va = found.segment.address;
  seg.len = found.segment.length;
  seg.token_id = found.segment.token_id;
  seg.attr.bs.access = found.segment.access;
  seg.attr.bs.token_policy = found.segment.token_required ? URMA_TOKEN_PLAIN_TEXT : URMA_TOKEN_NONE;
  return urma_import_seg(context, &seg, &token, 0, {});
}

}  // namespace

urma_status_t softub_publish(urma_target_seg_t* seg, const char* name) try {
  if (Library::get().device() == nullptr) return URMA_FAIL;
  auto* segment = live<Segment>(seg);
  if (segment == nullptr || segment->imported || name == nullptr) return URMA_EINVAL;
  if (!is_name(name)) return refuse(URMA_EINVAL, name, kWhatIsAName);
  if ((segment->pub.seg.attr.bs.access & URMA_ACCESS_LOCAL_ONLY) != 0) {
    return refuse(URMA_EINVAL, name, "nobody else may access the segment");
  }
  if (segment->published) return refuse(URMA_EEXIST, name, "the segment has a name already");
  return publish(*segment, name);
} catch (const std::bad_alloc&) {
  return URMA_ENOMEM;
}

urma_status_t softub_unpublish(urma_target_seg_t* seg) {
  auto* segment = live<Segment>(seg);
  if (segment == nullptr || !segment->published.exchange(false)) return URMA_EINVAL;
  return status_of(backend().unpublish(segment->handle));
}

urma_target_seg_t* softub_find(urma_context_t* context, const char* name, urma_token_t token) try {
  if (Library::get().device() == nullptr) return fail(ENODEV);
  if (live<Context>(context) == nullptr || name == nullptr) return fail(EINVAL);
  const std::optional<Wanted> wanted = parse(*context, name);
  if (!wanted) {
    URMA_LOG_ERROR("softub_find of %s: %s; @ and an EID may follow", name, kWhatIsAName);
    return fail(EINVAL);
  }
  FoundName found;
  std::string why;
  if (look_up(context, wanted->eid, wanted->name, 0, Care::kTwice, &found, &why) == Status::kOk) {
    return import(context, wanted->eid, found, token);
  }
  URMA_LOG_INFO("softub_find of %s: nobody has published it (%s)", name, why.c_str());
  return fail(ENOENT);
} catch (const std::bad_alloc&) {
  return fail(ENOMEM);
}
