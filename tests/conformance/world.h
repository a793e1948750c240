// SPDX-License-Identifier: Apache-2.0
//
// The scene of the conformance tests: we, and a peer that offers jettys and memory and obeys a few orders.
// The peer is a process of its own, or a second context of this one (loopback). Public API only.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <urma_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GOOD_TOKEN 0x600d600du
#define JETTY_TOKEN 0x1e77e77eu

// ---- results ----------------------------------------------------------------------------------------------

void begin_case(const char* name);
bool end_case(void);  // prints "ok name" if nothing failed; false if something did
bool case_failed(void);
void in_variant(const char* name);  // part of the case, named with what fails; NULL: none
void fail_case(const char* what, const char* got, const char* expected);
void check_status(const char* what, int got, int expected);  // urma_cr_status, or NOTHING
void check_number(const char* what, long long got, long long expected);
void check_true(const char* what, bool got);

// Something that no test is about went wrong: ends the program.
void need(bool condition, const char* what);
double now(void);  // seconds
void rest_ms(int ms);

// ---- the peer ---------------------------------------------------------------------------------------------

// What the peer tells about itself.
struct offer {
  urma_jetty_id_t work;     // for one-sided requests; never has a receive
  urma_jetty_id_t sink;     // receives by order only; its completion queue holds 4
  urma_jetty_id_t doomed;   // deleted by order
  urma_jetty_id_t guarded;  // wants JETTY_TOKEN; has receives
  urma_seg_t all;           // read, write, atomic; the other three lie inside
  urma_seg_t part;          // read, write
  urma_seg_t readable;      // read
  urma_seg_t hidden;        // no access
  urma_seg_t passing;       // read, write, large; unregistered by order
};

enum order_kind { ORDER_POST, ORDER_TAKE, ORDER_UNREGISTER, ORDER_LOOK, ORDER_DELETE };

struct order {
  int32_t kind;
  uint32_t bytes;  // ORDER_POST: of the receive for `sink`
};

struct answer {
  // ORDER_TAKE: of the next completion of `sink`, NOTHING if none came; ORDER_LOOK: 1 if somebody wrote to
  // `passing` after it was unregistered; else URMA_*
  int32_t status;
  uint32_t length;  // ORDER_TAKE: bytes received
  uint64_t text;    // ORDER_TAKE: the first bytes of them
};

struct peer;  // the peer's side

// The peer as we see it.
struct remote {
  struct offer offer;
  urma_target_jetty_t *work, *sink, *doomed, *guarded;
  urma_target_seg_t *all, *part, *readable, *hidden, *passing;
  pid_t pid;           // 0: loopback
  int socket;          // to the process
  struct peer* local;  // loopback
};

// This program again, with --peer and a socket to us as its standard input.
pid_t start_peer_process(int* socket);
void wait_for_process(pid_t pid);  // the case fails unless it ends well

struct answer give_order(struct remote* r, enum order_kind kind, uint32_t bytes);
int serve_orders(int socket);  // main program of the peer process
struct remote* start_peer(urma_context_t* context, bool loopback);
void stop_peer(struct remote* r);
void bury_peer(struct remote* r);  // a process that was killed

// ---- our side ---------------------------------------------------------------------------------------------

urma_context_t* open_nic(void);
// Zeroed memory that a peer will access: where the environment has SHARED_MEMORY, such as other programs of this host
// may map, so that their NICs access it without packets (docs/same-host-design.md). After open_nic().
char* alloc_for_peers(uint64_t bytes);
void free_for_peers(void* memory);
urma_target_seg_t* register_memory(urma_context_t* context, void* memory, uint64_t bytes, uint32_t access);
urma_target_jetty_t* import_jetty(urma_context_t* context, urma_jetty_id_t id, uint32_t token,
                                  urma_transport_mode_t mode);
urma_target_jetty_t* import_jetty_with_order(urma_context_t* context, urma_jetty_id_t id, uint32_t token,
                                             urma_transport_mode_t mode, urma_order_type_t order);
urma_target_seg_t* import_segment(urma_context_t* context, urma_seg_t segment, uint32_t token);

// Queues of one's own. 0 stands for the default.
struct queue_options {
  uint32_t depth;              // 16
  uint32_t jfc_depth;          // 64
  uint8_t max_sge;             // of a request: 1
  uint8_t max_receive_sge;     // 1
  int rnr_retry;               // 0: 7; to ask for none: -1
  urma_transport_mode_t mode;  // RM
  urma_order_type_t order;     // the one of the mode
  bool simplex;                // a JFS and a JFR that nobody shares, no jetty
  uint32_t max_inline;         // 0: what the library gives
  uint32_t token;              // of the JFR; 0: none
  urma_jfce_t* channel;        // of the JFC
  bool suspends;               // after an error
  bool completes_early;        // requests complete as they finish
};
struct queue {
  urma_jfc_t* jfc;
  urma_jfr_t* jfr;
  urma_jetty_t* jetty;
  urma_jfs_t* jfs;  // simplex
};
struct queue open_queue(urma_context_t* context, struct queue_options options);
void close_queue(struct queue* q);  // a case fails if it cannot be closed

// One piece here, one there.
struct request {
  urma_opcode_t op;
  urma_target_jetty_t* to;
  urma_target_seg_t* local;
  urma_target_seg_t* remote;  // not for SEND; of SEND_INVALIDATE what is invalidated
  uint64_t here, there;       // addresses
  uint32_t bytes;
  uint64_t user_ctx;
  uint64_t immediate;  // also the notify value, the swap value, or the operand of an atomic
  uint64_t compare;    // CAS
  uint64_t notify;     // address, WRITE_NOTIFY
  bool quiet;          // no completion of success
  bool fence, inlined, solicited;
  urma_place_order_t order;
  bool receive_in_order;  // its receive completes after those before it
};
// The same as a work request, of the pieces `here` and `there`[2].
urma_jfs_wr_t build(const struct request* r, urma_sge_t* here, urma_sge_t* there);
urma_status_t post_list(struct queue* q, urma_jfs_wr_t* list, urma_jfs_wr_t** bad);
urma_status_t post(struct queue* q, const struct request* r);

#define NOTHING (-1)     // no completion came
#define NOT_POSTED (-2)  // posting failed

#define PATIENCE 10.0  // seconds for a completion that must come

// The next completion's status, or NOTHING after `seconds`. The record is poisoned before it is polled.
int wait_on(urma_jfc_t* jfc, double seconds, urma_cr_t* record);
int wait_completion(struct queue* q, double seconds, urma_cr_t* record);
// Posts and waits.
int run(struct queue* q, const struct request* r);

// Takes the asynchronous events that wait, and fails the case if one is not JFC_ERR of this queue. How many?
int take_async_events(urma_context_t* context, const urma_jfc_t* jfc);

// ---- cases ------------------------------------------------------------------------------------------------

struct named_case {
  const char* name;
  void (*run)(void);
};
// Those whose name has that part; how many failed.
int run_named_cases(const struct named_case* cases, size_t count, const char* part);

// ---- cases of bad_start.c ---------------------------------------------------------------------------------

int run_bad_starts(void);  // before urma_init: cases of a start that fails; how many did
void check_unknown_device(urma_context_t* context);

#ifdef __cplusplus
}
#endif
