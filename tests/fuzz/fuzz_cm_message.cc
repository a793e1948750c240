// SPDX-License-Identifier: Apache-2.0
// fuzz_cm_message.cc - any bytes as a management datagram: no read outside, and what is accepted round-trips.
#include <cstring>
#include <memory>

#include "lib/base/assert.h"
#include "lib/transport/roce/wire/cm_message.h"

namespace {

using namespace ub::roce;

template <class Message>
void check_rewrite(const CmHead& head, const Message& message) {
  std::byte mad[kMadSize], again[kMadSize];
  write_cm(head, message, std::span<std::byte, kMadSize>(mad));
  CmHead head_again;
  UB_ASSERT(CmHead::read(mad, head_again) == Drop::kNone && head_again == head);
  write_cm(head_again, Message::read(mad + kMadHeadSize), std::span<std::byte, kMadSize>(again));
  UB_ASSERT(std::memcmp(mad, again, kMadSize) == 0);
}

void check_request(const CmHead& head, const CmReq& req) {
  check_rewrite(head, req);
  CmIpHeader ip, ip_again;
  if (CmIpHeader::read(req.private_data, ip) != Drop::kNone) return;
  std::byte bytes[CmIpHeader::kSize];
  ip.write(bytes);
  UB_ASSERT(CmIpHeader::read(bytes, ip_again) == Drop::kNone);
  UB_ASSERT(ip_again == ip);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 1000) return 0;
  std::unique_ptr<std::byte[]> exact(new std::byte[size]);
  if (size != 0) std::memcpy(exact.get(), data, size);

  CmHead head;
  const Drop drop = CmHead::read({exact.get(), size}, head);
  UB_ASSERT(drop_name(drop) != nullptr && cm_type_name(head.type) != nullptr);
  if (drop != Drop::kNone) return 0;
  const std::byte* body = exact.get() + kMadHeadSize;
  switch (head.type) {
    case CmType::kReq:
      check_request(head, CmReq::read(body));
      break;
    case CmType::kRep:
      check_rewrite(head, CmRep::read(body));
      break;
    case CmType::kRtu:
    case CmType::kDrep:
      check_rewrite(head, CmRtu::read(body));
      break;
    case CmType::kRej:
      check_rewrite(head, CmRej::read(body));
      break;
    case CmType::kMra:
      check_rewrite(head, CmMra::read(body));
      break;
    case CmType::kDreq:
      check_rewrite(head, CmDreq::read(body));
      break;
  }
  return 0;
}
