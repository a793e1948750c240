// SPDX-License-Identifier: Apache-2.0
//
// Payload between frames and the memory of requests and receives, piece by piece. Memory may answer later: what is
// pending then is counted where the caller says, and answered under the caller's tag.
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

// [offset, offset + bytes) of a request's inline bytes or ranges.
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
    if (copied == CopyResult::kFailed) return copied;  // pending pieces finish into nowhere
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

// Into the ranges of a receive, from `filled` on. False: a range is not there, or too few are.
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

// Into the ranges of a request that brings bytes, from `offset` on. False: a range is not there, or too few are.
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
