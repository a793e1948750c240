// SPDX-License-Identifier: Apache-2.0
//
// Objects of URMA that go when their owner goes, as both sides of kv_store make them: queues of mode RM whose owner
// asks for a token, and memory. Each function throws tools::ToolError with a sentence if the library refuses.
#pragma once

#include <softub_aperture.h>
#include <softub_api.h>
#include <urma_api.h>

#include <cstdint>
#include <memory>

namespace ub::kv {

template <auto kDelete>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    kDelete(object);
  }
};
using Jfce = std::unique_ptr<urma_jfce_t, Deleter<urma_delete_jfce>>;
using Jfc = std::unique_ptr<urma_jfc_t, Deleter<urma_delete_jfc>>;
using Jfr = std::unique_ptr<urma_jfr_t, Deleter<urma_delete_jfr>>;
using Jetty = std::unique_ptr<urma_jetty_t, Deleter<urma_delete_jetty>>;
using TargetJetty = std::unique_ptr<urma_target_jetty_t, Deleter<urma_unimport_jetty>>;
using Segment = std::unique_ptr<urma_target_seg_t, Deleter<urma_unregister_seg>>;
using TargetSegment = std::unique_ptr<urma_target_seg_t, Deleter<urma_unimport_seg>>;
using Memory = std::unique_ptr<void, Deleter<softub_free>>;
using Aperture = std::unique_ptr<softub_aperture_t, Deleter<softub_close>>;

urma_token_t random_token();

Jfce make_jfce(urma_context_t*);
Jfc make_jfc(urma_context_t*, uint32_t depth, urma_jfce_t* = nullptr);
Jfr make_jfr(urma_context_t*, uint32_t depth, urma_jfc_t*, urma_token_t);
// `inline_bytes`: so much a request may carry in itself.
Jetty make_jetty(urma_context_t*, uint32_t depth, urma_jfc_t*, urma_jfr_t*, uint32_t inline_bytes = 0);
TargetJetty import_jetty(urma_context_t*, const urma_jetty_id_t&, urma_token_t);

// Zeroed memory, which a daemon reaches, too.
Memory allocate(uint64_t bytes);
// The same; programs of this host may map it as the token that they have allows, so that their NICs need no packets. A
// daemon would not reach memory that others may write to, so there it is for reading.
Memory allocate_for_clients(uint64_t bytes);
Segment register_memory(urma_context_t*, void* memory, uint64_t bytes, uint32_t access, urma_token_t = {});
TargetSegment import_memory(urma_context_t*, const urma_seg_t&, urma_token_t, uint32_t access);
Aperture open_aperture(urma_target_seg_t*);

inline urma_sge_t piece(uint64_t address, uint64_t bytes, urma_target_seg_t* segment) {
  urma_sge_t sge = {};
  sge.addr = address;
  sge.len = static_cast<uint32_t>(bytes);
  sge.tseg = segment;
  return sge;
}
inline urma_sge_t piece(void* memory, uint64_t bytes, const Segment& segment) {
  return piece(reinterpret_cast<uint64_t>(memory), bytes, segment.get());
}

}  // namespace ub::kv
