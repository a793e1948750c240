// SPDX-License-Identifier: Apache-2.0
//
// The messages of one direction of a channel, oldest first: a queue of small descriptors, in chunks from a shared pool,
// so that an idle channel needs no memory. Packets are not stored: a lost one is built again from its descriptor and
// the work request, READ job or answer that the descriptor names.
#pragma once

#include <cstdint>

#include "lib/base/assert.h"
#include "lib/base/serial.h"
#include "lib/base/slab.h"
#include "lib/transport/wire/opcodes.h"

namespace ub::tp {

enum class MessageKind : uint8_t {
  kRequest,       // a segment of a work request
  kReadResponse,  // packets of a READ job
  kAnswer,        // one packet: TAACK, atomic response, error response
  kFake,          // one packet without a source: keep-alive, filling of a number of a sequence context, question (CTP)
};

struct TxMessage {
  Psn first_psn;
  Tpmsn tpmsn;
  uint32_t packets;       // how many of its packets were sent at least once
  uint32_t source;        // kRequest: send queue, kReadResponse: job, kAnswer: RCID and more (ta/queue_answer.h)
  uint32_t work_request;  // kRequest: number of the request in its queue
  Tassn tassn;
  uint16_t segment;  // kRequest: number of the segment in its request
  MessageKind kind;
  bool complete;               // every packet was sent at least once
  bool vanished;               // its bytes are gone: packets that are not acknowledged become fake packets
  bool retry;                  // kRequest: a retry after RNR (BTAH.Retry)
  uint8_t generation;          // kRequest: of the send queue's slot; kReadResponse: of the job
  uint8_t rspst, rspinfo;      // kAnswer: what it says, as in ATAH
  wire::TaOpcode opcode;       // kAnswer
  uint8_t value_bytes;         // kAnswer: length of the atomic's old value
  // kAnswer: the atomic's old value; of a READ that failed: its offset in KiB and TAID. kRequest and kFake, in the
  // first: the SCID of the sequence context that `tassn` is a number of; 0: none.
  uint64_t value, value_high;
};
static_assert(sizeof(TxMessage) == 56);

constexpr uint32_t kMessagesPerChunk = 18;

struct MessageChunk {
  uint32_t next;  // not valid in the newest chunk
  uint32_t pad[3];
  TxMessage items[kMessagesPerChunk];
};
static_assert(sizeof(MessageChunk) == 1024);

using MessagePool = Slab<MessageChunk>;

class MessageQueue {
 public:
  bool empty() const { return size_ == 0; }
  uint32_t size() const { return size_; }

  // Appends an element, which is not initialised. nullptr: the pool is empty.
  TxMessage* push(MessagePool& pool) {
    if (tail_chunk_ == 0 || tail_at_ == kMessagesPerChunk) {
      uint32_t chunk = pool.alloc();
      if (chunk == 0) return nullptr;
      if (tail_chunk_ == 0) {
        head_chunk_ = chunk;
      } else {
        pool[tail_chunk_].next = chunk;
      }
      tail_chunk_ = chunk;
      tail_at_ = 0;
    }
    ++size_;
    return &pool[tail_chunk_].items[tail_at_++];
  }

  // The queue must not be empty.
  TxMessage& front(MessagePool& pool) { return pool[head_chunk_].items[head_at_]; }
  TxMessage& back(MessagePool& pool) { return pool[tail_chunk_].items[tail_at_ - 1]; }

  void pop(MessagePool& pool) {
    UB_DCHECK(size_ != 0);
    --size_;
    if (++head_at_ == kMessagesPerChunk || size_ == 0) {
      uint32_t next = size_ == 0 ? 0 : pool[head_chunk_].next;
      pool.free(head_chunk_);
      head_chunk_ = next;
      head_at_ = 0;
      if (next == 0) tail_chunk_ = 0;
    }
  }

  void clear(MessagePool& pool) {
    while (head_chunk_ != 0) {
      uint32_t next = head_chunk_ == tail_chunk_ ? 0 : pool[head_chunk_].next;
      pool.free(head_chunk_);
      head_chunk_ = next;
    }
    *this = MessageQueue();
  }

  // Calls fn(TxMessage&) from the oldest message on until it returns true; returns whether it did.
  template <class Fn>
  bool find(MessagePool& pool, Fn fn) {
    uint32_t chunk = head_chunk_;
    uint32_t at = head_at_;
    for (uint32_t i = 0; i < size_; ++i) {
      if (fn(pool[chunk].items[at])) return true;
      if (++at == kMessagesPerChunk) {
        chunk = pool[chunk].next;
        at = 0;
      }
    }
    return false;
  }

 private:
  uint32_t head_chunk_ = 0;
  uint32_t tail_chunk_ = 0;
  uint32_t size_ = 0;
  uint16_t head_at_ = 0;
  uint16_t tail_at_ = 0;  // one past the newest
};

}  // namespace ub::tp
