// SPDX-License-Identifier: Apache-2.0
//
// The stage of the programs about one topic each: our context and memory, and a peer that opens queues, posts
// receives, tells its completions and looks at its memory as it is told. The peer is a process of its own, or a second
// context of this one (loopback), which then obeys within the call. Public API only.
//
//   PROGRAM --processes|--loopback [part of a name]
#pragma once

#include <softub_aperture.h>
#include <softub_api.h>

#include "tests/conformance/world.h"

#define STAGE_BYTES (10u << 20)  // of our memory, and of the peer's

struct stage {
  urma_context_t* context;
  char* bytes;
  urma_target_seg_t* memory;  // `bytes`, registered with every access
  urma_target_seg_t* far;     // the peer's memory: every access, GOOD_TOKEN
  bool loopback;
};
extern struct stage stage;

// A queue of the peer, imported.
struct far_queue {
  uint32_t number;
  struct queue_options options;
  urma_jetty_id_t receives, sends;  // jetty: the same; simplex: JFR and JFS
  uint64_t object;                  // the peer's pointer to its jetty or JFR
  urma_target_jetty_t* target;
};

struct far_queue far_open(struct queue_options options);
void far_close(struct far_queue* q);
// Once more, with options.token; and that again away.
urma_target_jetty_t* far_import(const struct far_queue* q);
urma_status_t far_unimport(const struct far_queue* q, urma_target_jetty_t* target);
urma_status_t far_delete(struct far_queue* q);  // the jetty, or the JFR; far_close is still to be called
urma_status_t far_bind(const struct far_queue* q, urma_jetty_id_t ours);
void far_receive(const struct far_queue* q, uint64_t offset, uint32_t bytes, uint64_t user_ctx);
// The next completion's status; NOTHING if none came in `seconds`.
int far_take(const struct far_queue* q, double seconds, urma_cr_t* record);
void far_send(const struct far_queue* q, urma_jetty_id_t to, uint64_t offset, uint32_t bytes, bool solicited);
urma_status_t far_set_jfr_state(const struct far_queue* q, urma_jfr_state_t state);

// Faults of the peer (softub_inject); in loopback they are ours, too. How often did they happen there?
urma_status_t far_inject(const char* text);
softub_injected_t far_injected(void);

// A further segment inside the peer's memory, under its own token id; imported with the token that is given.
urma_target_seg_t* far_register(uint64_t offset, uint32_t bytes, uint32_t access, uint32_t token);
urma_status_t far_unregister(urma_target_seg_t* imported);  // there and here
// The peer sets the token that its segment, or the JFR of its queue, asks for, and the former one.
urma_status_t far_set_segment_token(const urma_target_seg_t* imported, uint32_t token, uint32_t former);
urma_status_t far_set_queue_token(const struct far_queue* q, uint32_t token, uint32_t former);
// Makes a segment of this side exclusive, or requests to one that it imported. The peer does so with its segment.
urma_status_t set_exclusive(urma_context_t* context, urma_target_seg_t* segment, bool exclusive);
urma_status_t far_set_exclusive(const urma_target_seg_t* imported, bool exclusive);

// How a handle without options reaches the peer's memory, which has to be by BEST_PATH, if the environment has one. A
// queue leads there always.
softub_path_t best_path(void);
const char* path_name(softub_path_t path);

// The peer's process is killed, or in loopback its context deleted, when nothing but stage.far is imported of it. Then
// another begins with memory of its own, which is stage.far from then on. Returns the import of what is gone.
void far_kill(void);
urma_target_seg_t* far_start_again(void);
// Expects that a request to memory of a dead owner failed. A daemon lives on, and has unregistered the memory.
void check_owner_gone(const char* what, int status);

// Bytes that tell their place and the seed.
void fill(char* to, uint64_t bytes, uint32_t seed);
bool holds(const char* at, uint64_t bytes, uint32_t seed);
void far_fill(uint64_t offset, uint64_t bytes, uint32_t seed);
bool far_holds(uint64_t offset, uint64_t bytes, uint32_t seed);
uint32_t next_random(uint32_t* state);  // 24 bits
uint64_t far_word(uint64_t offset);
void far_set_word(uint64_t offset, uint64_t word);

// A place where bytes are to land, and what lies around it: prepared, then looked at. Offsets are at least GUARD.
#define GUARD 64
#define GUARD_SEED 77    // of what lies around
#define CLEARED_SEED 78  // of the place itself
void prepare(uint64_t offset, uint64_t bytes);
bool landed(uint64_t offset, uint64_t bytes, uint32_t seed);  // these bytes, and nothing beside them
void far_prepare(uint64_t offset, uint64_t bytes);
bool far_landed(uint64_t offset, uint64_t bytes, uint32_t seed);

uint64_t near_address(uint64_t offset);
uint64_t far_address(uint64_t offset);
// Between the start of our memory and the start of the peer's.
struct request request_to(const struct far_queue* q, urma_opcode_t op, uint32_t bytes);

// A pair of queues that talk to each other, one of ours and one of the peer's; RC: bound.
struct pair {
  struct queue q;
  struct far_queue far;
};
struct pair open_pair(struct queue_options ours, struct queue_options theirs);
void close_pair(struct pair* p);

// The kinds of pairs.
struct variant {
  const char* name;
  struct queue_options options;
};
enum { VARIANTS = 4 };
extern const struct variant variants[VARIANTS];  // RM jetty, RC jetty, the same with order type OT, RM simplex
// Runs `body` on a pair of each; what fails meanwhile names the variant.
void for_each_variant(void (*body)(struct pair*));
void for_each_variant_with(struct queue_options ours, struct queue_options theirs, void (*body)(struct pair*));

struct test_case {
  const char* name;
  void (*run)(void);
};
// Opens the stage, runs what matches, closes it. `finale` may be NULL; it runs after urma_uninit. The exit code.
int run_program(int argc, char** argv, const struct test_case* cases, uint32_t count, const struct test_case* finale);
