// SPDX-License-Identifier: Apache-2.0
//
// Copies payload between frames and the memory of requests and receives, one piece for each range. Memory may answer
// later: pending pieces are counted in Copies::pending, and the host answers them with Copies::tag.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/segments.h"

namespace ub::ta {

struct Copies {
  CopyTag tag;
  uint32_t& pending;
};

template <class Host>
CopyResult gather_piece(Host& host, const Copies& copies, std::byte* dst, const std::byte* src, uint32_t bytes) {
  CopyResult result = host.gather(dst, src, bytes, copies.tag);
  if (result == CopyResult::kPending) ++copies.pending;
  return result;
}

// Copies the bytes [offset, offset + bytes) of a request to `dst`, from its inline bytes or its ranges.
template <class Host>
CopyResult gather_request(CoreState& s, Host& host, const Copies& copies, const Wqe& wqe, Owner owner, uint64_t offset,
                          uint32_t bytes, std::byte* dst) {
  if ((wqe.flags & kWrInline) != 0) return gather_piece(host, copies, dst, inline_bytes(wqe) + offset, bytes);
  uint64_t skip = offset;
  uint32_t left = bytes;
  CopyResult result = CopyResult::kDone;
  for (uint32_t i = 0; i < wqe.sge_count && left > 0; ++i) {
    const Sge& sge = sge_of(wqe, i);
    if (skip >= sge.length) {
      skip -= sge.length;
      continue;
    }
    uint32_t piece = sge.length - static_cast<uint32_t>(skip);
    if (piece > left) piece = left;
    const std::byte* src = local_memory(s, owner, sge.segment, sge.address + skip, piece);
    CopyResult copied = src == nullptr ? CopyResult::kFailed : gather_piece(host, copies, dst, src, piece);
    if (copied == CopyResult::kFailed) return copied;  // the caller gives the frame up, with its pending pieces
    if (copied == CopyResult::kPending) result = copied;
    dst += piece;
    left -= piece;
    skip = 0;
  }
  return left == 0 ? result : CopyResult::kFailed;
}

template <class Host>
CopyResult place_piece(Host& host, const Copies& copies, std::byte* dst, const std::byte* src, uint32_t bytes,
                       bool final) {
  CopyResult result = host.place(dst, src, bytes, final, copies.tag);
  if (result == CopyResult::kPending) ++copies.pending;
  return result;
}

// Copies `src` into the ranges of a receive, from `filled` on. False: a range is not registered, or the ranges are too
// short.
template <class Host>
bool scatter(CoreState& s, Host& host, const Copies& copies, const RxReceive& receive, const std::byte* src,
             uint32_t bytes, bool final) {
  uint32_t skip = receive.filled;
  for (uint32_t i = 0; i < receive.sge_count && bytes > 0; ++i) {
    const Sge& sge = receive.sges[i];
    if (skip >= sge.length) {
      skip -= sge.length;
      continue;
    }
    uint32_t piece = sge.length - skip < bytes ? sge.length - skip : bytes;
    std::byte* dst = local_memory(s, s.jfrs[receive.jfr].owner, sge.segment, sge.address + skip, piece);
    if (dst == nullptr) return false;
    if (place_piece(host, copies, dst, src, piece, final && piece == bytes) == CopyResult::kFailed) return false;
    src += piece;
    bytes -= piece;
    skip = 0;
  }
  return bytes == 0;
}

// Copies `src` into the ranges of a READ or atomic, from `offset` on. False: a range is not registered, or the ranges
// are too short.
template <class Host>
bool scatter_request(CoreState& s, Host& host, const Copies& copies, const Wqe& wqe, Owner owner, uint64_t offset,
                     const std::byte* src, uint32_t bytes, bool final) {
  for (uint32_t i = 0; i < wqe.sge_count && bytes > 0; ++i) {
    const Sge& sge = sge_of(wqe, i);
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const uint64_t room = sge.length - offset;
    const uint32_t piece = room < bytes ? static_cast<uint32_t>(room) : bytes;
    std::byte* dst = local_memory(s, owner, sge.segment, sge.address + offset, piece);
    if (dst == nullptr) return false;
    if (place_piece(host, copies, dst, src, piece, final && piece == bytes) == CopyResult::kFailed) return false;
    src += piece;
    bytes -= piece;
    offset = 0;
  }
  return bytes == 0;
}

}  // namespace ub::ta
