/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inline part of softub_aperture.h: a load or store is written into memory that the program shares with the NIC of
 * the target, and the answer read from there. No system call, no lock. Programs include softub_aperture.h and use its
 * calls; nothing here is for them.
 *
 * The form of the memory is that of lib/ipc/lane.h. A request is a complete frame of loads and stores (UB Base
 * Specification Rev 2.0, 8.3 and B.2.6), whose headers lie at the end of its first line.
 */
#ifndef SOFTUB_LANE_H
#define SOFTUB_LANE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTUB_LANE_SLOTS 64u      /* of small requests, one line of data each */
#define SOFTUB_LANE_SLOT_BYTES 128u
#define SOFTUB_LANE_LINE 64u
#define SOFTUB_LANE_ANSWER_HEADERS 30u
#define SOFTUB_LANE_SPINS 256u     /* looks for an answer before the call goes out of line */

/* The first line of a request; number and place are put in for each. */
typedef struct softub_lane_head {
  uint8_t line[SOFTUB_LANE_LINE];
  uint64_t word;       /* bytes of the frame and of its headers, in their places */
  uint32_t tassn_at;   /* where in the line the number is, big-endian */
  uint32_t address_at; /* where the address of the line is, big-endian, 8 bytes; its low 6 bits are the header's own */
} softub_lane_head_t;

typedef struct softub_lane {
  uint8_t* requests;
  uint8_t* replies;
  uint32_t* nic_sleeps;
  uint32_t next;     /* number of the next request, modulo 2^32 */
  uint32_t answered; /* answers that were read */
  bool fence_needed;
  softub_lane_head_t load, store, store_bytes; /* a line; a line; bytes of a line */
} softub_lane_t;

static inline void softub_lane_put_big64(uint8_t* at, uint64_t value) {
  value = __builtin_bswap64(value);
  memcpy(at, &value, sizeof value);
}

/* Does the NIC sleep, so that it must be rung? Call it after the word was stored. */
static inline bool softub_lane_must_ring(const softub_lane_t* lane) {
  if (lane->fence_needed) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  return __atomic_load_n(lane->nic_sleeps, __ATOMIC_RELAXED) != 0;
}

/* Writes the headers of the next request, about the line at `address`; the first line of its slot. */
static inline uint8_t* softub_lane_begin(softub_lane_t* lane, const softub_lane_head_t* head, uint64_t address) {
  const uint32_t number = lane->next;
  uint8_t* line = lane->requests + number % SOFTUB_LANE_SLOTS * SOFTUB_LANE_SLOT_BYTES;
  memcpy(line + 16, head->line + 16, 48);
  memcpy(line + 8, head->line + 8, 8);
  line[head->tassn_at] = (uint8_t)(number >> 8);
  line[head->tassn_at + 1] = (uint8_t)number;
  softub_lane_put_big64(line + head->address_at, address);
  return line;
}

/* Which bytes of a line a store writes: the last header, one big-endian number. `bytes` is less than a line. */
static inline void softub_lane_put_enables(uint8_t* line, uint32_t offset, uint32_t bytes) {
  softub_lane_put_big64(line + SOFTUB_LANE_LINE - 8, (((uint64_t)1 << bytes) - 1) << offset);
}

/* The request is whole, with its data. */
static inline void softub_lane_send(softub_lane_t* lane, const softub_lane_head_t* head, uint8_t* line) {
  const uint32_t number = lane->next++;
  __atomic_store_n((uint64_t*)(void*)line, head->word | (number & 0xffffu), __ATOMIC_RELEASE);
}

/* The word of the answer to request `number`; 0: there is none yet. */
static inline uint64_t softub_lane_answer(const softub_lane_t* lane, uint32_t number) {
  const uint8_t* line = lane->replies + number % SOFTUB_LANE_SLOTS * SOFTUB_LANE_SLOT_BYTES;
  const uint64_t word = __atomic_load_n((const uint64_t*)(const void*)line, __ATOMIC_ACQUIRE);
  return (word & 0xffffu) == (number & 0xffffu) && word >> 16 != 0 ? word : 0;
}

/* The word of an answer with a line of data. */
static inline uint64_t softub_lane_data_word(uint32_t number) {
  return (uint64_t)SOFTUB_LANE_ANSWER_HEADERS << 32 |
         (uint64_t)(SOFTUB_LANE_ANSWER_HEADERS + SOFTUB_LANE_LINE) << 16 | (number & 0xffffu);
}

static inline const uint8_t* softub_lane_answer_data(const softub_lane_t* lane, uint32_t number) {
  return lane->replies + number % SOFTUB_LANE_SLOTS * SOFTUB_LANE_SLOT_BYTES + SOFTUB_LANE_LINE;
}

#ifdef __cplusplus
}
#endif

#endif /* SOFTUB_LANE_H */
