// SPDX-License-Identifier: Apache-2.0
//
// What programs do wrong, and what the API answers; after each case a good WRITE and READ on another jetty
// must still work. One function per behaviour, public API only.
//
//   bad_input --processes   the peer is another process; the wire is chosen by SOFTUB_PORT_KINDS
//   bad_input --loopback    the peer is another context of this process
//   bad_input --two         a process, and no more than that one: the wire has two ends
//   ... [part of a name]    only the cases whose name contains it
//
// Prints "ok NAME" or "FAIL NAME: WHAT: got X expected Y"; the exit code is 0 if nothing failed.
#include <arpa/inet.h>
#include <signal.h>
#include <softub_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/world.h"

#define LOCAL_BYTES (32u << 20)
#define GUARD_BYTES 65536u  // behind the registered memory

static urma_context_t* context;
static bool may_start_another;  // process with a NIC beside us and the peer
static struct remote* peer;
static urma_target_seg_t* memory;  // LOCAL_BYTES, registered
static char* bytes;                // the same, and GUARD_BYTES behind it
static struct queue good;          // disturbed by nothing

static uint64_t here(uint64_t offset) { return (uintptr_t)bytes + offset; }

static uint64_t at(const urma_target_seg_t* segment, uint64_t offset) { return segment->seg.ubva.va + offset; }

static struct request write_to(urma_target_seg_t* remote, uint64_t offset, uint32_t length) {
  return (struct request){.op = URMA_OPC_WRITE,
                          .to = peer->work,
                          .local = memory,
                          .remote = remote,
                          .here = here(0),
                          .there = at(remote, offset),
                          .bytes = length};
}

static struct request read_from(urma_target_seg_t* remote, uint64_t offset, uint32_t length) {
  struct request r = write_to(remote, offset, length);
  r.op = URMA_OPC_READ;
  return r;
}

static struct request add_to(urma_target_seg_t* remote, uint64_t offset, uint32_t length) {
  struct request r = write_to(remote, offset, length);
  r.op = URMA_OPC_FADD, r.immediate = 1;
  return r;
}

static struct request send_to(urma_target_jetty_t* target, uint32_t length) {
  return (struct request){.op = URMA_OPC_SEND, .to = target, .local = memory, .here = here(0), .bytes = length};
}

static struct queue plain_queue(void) { return open_queue(context, (struct queue_options){0}); }

// Runs one request on a queue of its own.
static void check_run(const char* what, struct request r, int expected) {
  struct queue q = plain_queue();
  check_status(what, run(&q, &r), expected);
  close_queue(&q);
}

// Posts one request on a queue of its own.
static void check_post(const char* what, struct request r, int expected) {
  struct queue q = plain_queue();
  check_number(what, post(&q, &r), expected);
  close_queue(&q);
}

// The words of `good` lie at the end of the local memory and at the start of the peer's.
static void good_write(void) {
  static uint64_t number;
  uint64_t out = here(LOCAL_BYTES - 16), back = here(LOCAL_BYTES - 8);
  struct request w = write_to(peer->all, 0, 8), r = read_from(peer->all, 0, 8);
  w.here = out;
  r.here = back;
  ++number;
  memcpy((void*)(uintptr_t)out, &number, 8);
  check_status("a good WRITE afterwards", run(&good, &w), URMA_CR_SUCCESS);
  check_status("a good READ afterwards", run(&good, &r), URMA_CR_SUCCESS);
  check_true("the good READ brings what was written", memcmp((void*)(uintptr_t)back, &number, 8) == 0);
}

// A byte of the peer's memory, read by the good jetty.
static int remote_byte(uint64_t offset) {
  struct request r = read_from(peer->all, offset, 1);
  r.here = here(LOCAL_BYTES - 8);
  check_status("reading the peer's memory", run(&good, &r), URMA_CR_SUCCESS);
  return *(unsigned char*)(uintptr_t)r.here;
}

static void check_taken(const char* what, int status, uint32_t length, uint64_t text) {
  struct answer a = give_order(peer, ORDER_TAKE, 0);
  check_status(what, a.status, status);
  if (status != URMA_CR_SUCCESS || a.status != status) return;
  check_number("bytes received", a.length, length);
  check_number("what was received", (long long)a.text, (long long)text);
}

static bool in_daemon(void) { return strcmp(softub_placement(), "daemon") == 0; }

static void post_receive(uint32_t length) {
  check_number("the peer posts a receive", give_order(peer, ORDER_POST, length).status, URMA_SUCCESS);
}

static void set_text(uint64_t text) { memcpy(bytes, &text, sizeof text); }

// ---- keys, ranges, permissions ----------------------------------------------------------------------------

static void wrong_token(void) {
  urma_target_seg_t* wrong = import_segment(context, peer->offer.all, GOOD_TOKEN + 1);
  check_run("WRITE", write_to(wrong, 64, 100), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("WRITE of several packets", write_to(wrong, 64, 100000), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("READ", read_from(wrong, 64, 100), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("FADD", add_to(wrong, 64, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("urma_unimport_seg", urma_unimport_seg(wrong), URMA_SUCCESS);
  urma_seg_t segment = peer->offer.all;
  segment.attr.bs.token_policy = URMA_TOKEN_NONE;
  urma_target_seg_t* bare = import_segment(context, segment, 0);
  check_run("WRITE without token", write_to(bare, 64, 100), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("urma_unimport_seg", urma_unimport_seg(bare), URMA_SUCCESS);
}

static void unknown_token_id(void) {
  urma_seg_t segment = peer->offer.all;
  segment.token_id = 0xfffff;
  urma_target_seg_t* unknown = import_segment(context, segment, GOOD_TOKEN);
  check_run("WRITE", write_to(unknown, 64, 100), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("READ", read_from(unknown, 64, 100), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("urma_unimport_seg", urma_unimport_seg(unknown), URMA_SUCCESS);
}

static void wrong_jetty_token(void) {
  urma_target_jetty_t* wrong = import_jetty(context, peer->offer.guarded, JETTY_TOKEN + 1, URMA_TM_RM);
  urma_target_jetty_t* bare = import_jetty(context, peer->offer.guarded, 0, URMA_TM_RM);
  check_run("SEND with the wrong token", send_to(wrong, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("SEND without token", send_to(bare, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("SEND with the right token", send_to(peer->guarded, 8), URMA_CR_SUCCESS);
  check_number("urma_unimport_jetty", urma_unimport_jetty(wrong), URMA_SUCCESS);
  check_number("urma_unimport_jetty", urma_unimport_jetty(bare), URMA_SUCCESS);
}

static void unknown_jetty(void) {
  urma_jetty_id_t id = peer->offer.work;
  id.id = 0xffff0;
  urma_target_jetty_t* nobody = import_jetty(context, id, 0, URMA_TM_RM);
  check_run("SEND", send_to(nobody, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("urma_unimport_jetty", urma_unimport_jetty(nobody), URMA_SUCCESS);
}

static void outside_the_segment(void) {
  uint64_t length = peer->part->seg.len, start = peer->part->seg.ubva.va - peer->all->seg.ubva.va;
  memset(bytes, 0x5a, 200000);
  check_run("WRITE across the end", write_to(peer->part, length - 4, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("WRITE of several packets across the end", write_to(peer->part, length - 100000, 100001),
            URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("WRITE behind the end", write_to(peer->part, length, 1), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("WRITE before the start", write_to(peer->part, (uint64_t)-1, 1), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("WRITE at the end of all addresses", write_to(peer->part, -peer->part->seg.ubva.va - 4, 8),
            URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("READ across the end", read_from(peer->part, length - 4, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("READ of several packets across the end", read_from(peer->part, length - 100000, 100001),
            URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("the byte behind the segment", remote_byte(start + length), 0);
  check_number("the byte before the segment", remote_byte(start - 1), 0);
  check_run("WRITE up to the end", write_to(peer->part, length - 8, 8), URMA_CR_SUCCESS);
}

static void no_permission(void) {
  uint64_t readable = peer->readable->seg.ubva.va - peer->all->seg.ubva.va;
  check_run("WRITE to a segment that may be read", write_to(peer->readable, 0, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("WRITE of several packets there", write_to(peer->readable, 0, 100000), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("the first byte of it", remote_byte(readable), 0);
  check_run("FADD to a segment without ATOMIC", add_to(peer->part, 0, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("READ from a segment without access", read_from(peer->hidden, 0, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("WRITE to a segment without access", write_to(peer->hidden, 0, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("READ from a segment that may be read", read_from(peer->readable, 0, 8), URMA_CR_SUCCESS);
}

static void segment_of_another_instance(void) {
  urma_seg_t segment = peer->offer.all;
  segment.ubva.uasid ^= 0x10000;
  urma_target_seg_t* foreign = import_segment(context, segment, GOOD_TOKEN);
  check_post("WRITE", write_to(foreign, 0, 8), URMA_EINVAL);
  check_number("urma_unimport_seg", urma_unimport_seg(foreign), URMA_SUCCESS);
}

// ---- memory of ours that is not registered ----------------------------------------------------------------

static void local_range_outside(void) {
  memset(bytes + LOCAL_BYTES, 0x33, GUARD_BYTES);
  struct request w = write_to(peer->part, 0, 16), r = read_from(peer->part, 0, 16), s = send_to(peer->guarded, 16);
  w.here = r.here = s.here = here(LOCAL_BYTES - 8);
  check_run("WRITE from across the end", w, URMA_CR_LOC_ACCESS_ERR);
  check_run("READ to across the end", r, URMA_CR_LOC_ACCESS_ERR);
  check_run("SEND from across the end", s, URMA_CR_LOC_ACCESS_ERR);
  w.bytes = r.bytes = 20000;
  w.here = r.here = here(LOCAL_BYTES - 10000);
  check_run("WRITE of several packets", w, URMA_CR_LOC_ACCESS_ERR);
  check_run("READ of several packets", r, URMA_CR_LOC_ACCESS_ERR);
  check_number("the byte behind the local segment", bytes[LOCAL_BYTES], 0x33);
}

static void local_memory_never_registered(void) {
  struct request w = write_to(peer->part, 0, 8);
  w.local = NULL;
  check_post("WRITE without local segment", w, URMA_EINVAL);
  w.local = peer->part;
  check_post("WRITE from an imported segment", w, URMA_EINVAL);
}

static void local_memory_unregistered_before(void) {
  static char other[64];
  urma_target_seg_t* gone = register_memory(context, other, sizeof other, URMA_ACCESS_LOCAL_ONLY);
  struct request w = write_to(peer->part, 0, 8);
  w.local = gone;
  w.here = (uintptr_t)other;
  check_run("WRITE while it is registered", w, URMA_CR_SUCCESS);
  check_number("urma_unregister_seg", urma_unregister_seg(gone), URMA_SUCCESS);
  check_post("WRITE afterwards", w, URMA_EINVAL);
}

// The receive comes behind a WRITE: until then the last try of the SEND may be under way, and may rightly succeed.
static void local_memory_unregistered_meanwhile(void) {
  static char other[64];
  struct queue q = plain_queue();
  urma_target_seg_t* gone = register_memory(context, other, sizeof other, URMA_ACCESS_LOCAL_ONLY);
  struct request s = send_to(peer->sink, 8);
  s.local = gone;
  s.here = (uintptr_t)other;
  check_number("post", post(&q, &s), URMA_SUCCESS);
  check_status("before there is a receive", wait_completion(&q, 0.05, NULL), NOTHING);
  check_number("urma_unregister_seg", urma_unregister_seg(gone), URMA_SUCCESS);
  check_status("SEND", wait_completion(&q, 10, NULL), URMA_CR_LOC_ACCESS_ERR);
  s = write_to(peer->part, 0, 8);
  check_status("WRITE behind it", run(&q, &s), URMA_CR_SUCCESS);
  post_receive(64);
  set_text(4711);
  s = send_to(peer->sink, 8);
  check_status("the next SEND gets the receive", run(&q, &s), URMA_CR_SUCCESS);
  check_taken("taken by the peer", URMA_CR_SUCCESS, 8, 4711);
  close_queue(&q);
}

static void remote_memory_unregistered_meanwhile(void) {
  struct queue q = plain_queue();
  memset(bytes, 0x5a, LOCAL_BYTES / 2);
  struct request w = write_to(peer->passing, 0, LOCAL_BYTES / 2), r = read_from(peer->passing, 0, LOCAL_BYTES / 2);
  check_number("post WRITE", post(&q, &w), URMA_SUCCESS);
  check_number("post READ", post(&q, &r), URMA_SUCCESS);
  check_number("the peer unregisters", give_order(peer, ORDER_UNREGISTER, 0).status, URMA_SUCCESS);
  int first = wait_completion(&q, 10, NULL), second = wait_completion(&q, 10, NULL);
  if (first != URMA_CR_SUCCESS) check_status("WRITE under way", first, URMA_CR_REM_ACCESS_ABORT_ERR);
  if (second != URMA_CR_SUCCESS) check_status("READ under way", second, URMA_CR_REM_ACCESS_ABORT_ERR);
  close_queue(&q);
  check_run("WRITE afterwards", write_to(peer->passing, 0, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("READ afterwards", read_from(peer->passing, 0, 100000), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("written after unregistering", give_order(peer, ORDER_LOOK, 0).status, 0);
}

// ---- what post refuses ------------------------------------------------------------------------------------

static void oversize_message(void) {
  urma_device_attr_t attr;
  check_number("urma_query_device", urma_query_device(context->dev, &attr), URMA_SUCCESS);
  struct request w = write_to(peer->part, 0, (uint32_t)attr.dev_cap.max_msg_size + 1);
  struct request s = send_to(peer->guarded, (uint32_t)attr.dev_cap.max_msg_size + 1);
  check_post("WRITE", w, URMA_EINVAL);
  check_post("SEND", s, URMA_EINVAL);
  w.op = URMA_OPC_READ;
  check_post("READ", w, URMA_EINVAL);
}

static void too_many_pieces(void) {
  struct queue q = open_queue(context, (struct queue_options){.max_sge = 2});
  urma_sge_t pieces[3], there = {.addr = at(peer->part, 0), .len = 24, .tseg = peer->part};
  for (int i = 0; i < 3; ++i) pieces[i] = (urma_sge_t){.addr = here(8 * (uint64_t)i), .len = 8, .tseg = memory};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .flag.bs.complete_enable = 1, .tjetty = peer->work}, *bad = NULL;
  wr.rw = (urma_rw_wr_t){.src = {pieces, 3}, .dst = {&there, 1}};
  check_number("WRITE of 3 pieces", urma_post_jetty_send_wr(q.jetty, &wr, &bad), URMA_EINVAL);
  check_true("bad_wr names it", bad == &wr);
  wr.rw.src.num_sge = 2;
  there.len = 16;
  check_number("WRITE of 2 pieces", urma_post_jetty_send_wr(q.jetty, &wr, &bad), URMA_SUCCESS);
  check_status("its end", wait_completion(&q, 10, NULL), URMA_CR_SUCCESS);
  urma_jfr_wr_t receive = {.src = {pieces, 2}}, *bad_receive = NULL;
  check_number("a receive of 2 pieces", urma_post_jfr_wr(q.jfr, &receive, &bad_receive), URMA_EINVAL);
  check_true("bad_wr names it, too", bad_receive == &receive);
  close_queue(&q);
}

static void unaligned_atomic(void) {
  check_post("8 bytes at 4", add_to(peer->all, 4, 8), URMA_EINVAL);
  check_post("8 bytes at 1", add_to(peer->all, 1, 8), URMA_EINVAL);
  check_post("4 bytes at 2", add_to(peer->all, 2, 4), URMA_EINVAL);
  check_post("3 bytes", add_to(peer->all, 0, 3), URMA_EINVAL);
  check_run("8 bytes at 64", add_to(peer->all, 64, 8), URMA_CR_SUCCESS);
  struct request cas = add_to(peer->all, 12, 8);
  cas.op = URMA_OPC_CAS;
  check_post("CAS at 12", cas, URMA_EINVAL);
}

static void unbound_rc(void) {
  struct queue q = open_queue(context, (struct queue_options){.mode = URMA_TM_RC});
  struct request w = write_to(peer->part, 0, 8);
  check_number("WRITE", post(&q, &w), URMA_EINVAL);
  close_queue(&q);
}

static void unknown_opcode(void) {
  struct request w = write_to(peer->part, 0, 8);
  w.op = (urma_opcode_t)0x33;
  check_post("opcode 0x33", w, URMA_EINVAL);
}

static void deleted_jetty_of_ours(void) {
  struct queue q = plain_queue();
  urma_jetty_t* jetty = q.jetty;
  check_number("urma_delete_jetty", urma_delete_jetty(jetty), URMA_SUCCESS);
  struct request w = write_to(peer->part, 0, 8);
  check_number("post to it", post(&q, &w), URMA_EINVAL);
  q.jetty = NULL;
  close_queue(&q);
}

// ---- queues that are full ---------------------------------------------------------------------------------

static void full_send_queue(void) {
  struct queue q = open_queue(context, (struct queue_options){.depth = 8});
  struct request s = send_to(peer->sink, 8);
  set_text(1);
  for (uint64_t i = 0; i < 8; ++i) {
    s.user_ctx = i;
    check_number("one of 8", post(&q, &s), URMA_SUCCESS);
  }
  check_number("the ninth", post(&q, &s), URMA_ENOMEM);
  for (int i = 0; i < 8; ++i) post_receive(64);
  for (int i = 0; i < 8; ++i) check_taken("taken by the peer", URMA_CR_SUCCESS, 8, 1);
  urma_cr_t record;
  for (uint64_t i = 0; i < 8; ++i) {
    check_status("completion", wait_completion(&q, 10, &record), URMA_CR_SUCCESS);
    check_number("user_ctx", (long long)record.user_ctx, (long long)i);
  }
  struct request w = write_to(peer->part, 0, 8);
  check_status("a WRITE afterwards", run(&q, &w), URMA_CR_SUCCESS);
  close_queue(&q);
}

static void full_send_queue_by_a_chain(void) {
  struct queue q = open_queue(context, (struct queue_options){.depth = 4});
  urma_sge_t piece = {.addr = here(0), .len = 8, .tseg = memory};
  urma_jfs_wr_t chain[6], *bad = NULL;
  set_text(2);
  for (int i = 0; i < 6; ++i) {
    chain[i] = (urma_jfs_wr_t){.opcode = URMA_OPC_SEND, .flag.bs.complete_enable = 1, .tjetty = peer->sink};
    chain[i].send.src = (urma_sg_t){&piece, 1};
    chain[i].next = i < 5 ? &chain[i + 1] : NULL;
  }
  check_number("6 requests for 4 places", urma_post_jetty_send_wr(q.jetty, chain, &bad), URMA_ENOMEM);
  check_number("bad_wr names the fifth", bad - chain, 4);
  for (int i = 0; i < 4; ++i) post_receive(64);
  for (int i = 0; i < 4; ++i) check_taken("taken by the peer", URMA_CR_SUCCESS, 8, 2);
  for (int i = 0; i < 4; ++i) check_status("completion", wait_completion(&q, 10, NULL), URMA_CR_SUCCESS);
  check_status("nothing more", wait_completion(&q, 0.02, NULL), NOTHING);
  close_queue(&q);
}

static void full_completion_queue(void) {
  enum { kRequests = 16, kDepth = 4 };
  struct queue q = open_queue(context, (struct queue_options){.depth = kRequests, .jfc_depth = kDepth});
  for (uint64_t i = 0; i < kRequests; ++i) {
    struct request w = write_to(peer->part, 8 * i, 8);
    w.here = here(8 * i);
    w.user_ctx = i;
    memset(bytes + 8 * i, 0x40 + (int)i, 8);
    check_number("post", post(&q, &w), URMA_SUCCESS);
  }
  // All of them arrive, whoever takes their completions.
  uint64_t last = peer->part->seg.ubva.va - peer->all->seg.ubva.va + 8 * (kRequests - 1);
  double end = now() + 5;
  while (remote_byte(last) != 0x40 + kRequests - 1 && now() < end) rest_ms(1);
  check_number("the last WRITE", remote_byte(last), 0x40 + kRequests - 1);
  rest_ms(50);
  good_write();
  check_number("JFC_ERR events", take_async_events(context, q.jfc), 1);
  rest_ms(20);
  good_write();
  check_number("further JFC_ERR events while nobody polls", take_async_events(context, q.jfc), 0);
  urma_cr_t record;
  for (uint64_t i = 0; i < kRequests; ++i) {
    check_status("completion", wait_completion(&q, 10, &record), URMA_CR_SUCCESS);
    check_number("user_ctx", (long long)record.user_ctx, (long long)i);
  }
  check_status("nothing more", wait_completion(&q, 0.02, &record), NOTHING);
  take_async_events(context, q.jfc);
  struct request w = write_to(peer->part, 0, 8);
  check_status("a WRITE afterwards", run(&q, &w), URMA_CR_SUCCESS);
  close_queue(&q);
}

// The peer's completion queue holds 4; further messages wait, in order.
static void full_receive_completion_queue(void) {
  struct queue q = plain_queue();
  for (int i = 0; i < 8; ++i) post_receive(64);
  for (uint64_t i = 0; i < 8; ++i) {
    struct request s = send_to(peer->sink, 8);
    s.here = here(8 * i);
    s.user_ctx = i;
    uint64_t text = 100 + i;
    memcpy(bytes + 8 * i, &text, 8);
    check_number("post", post(&q, &s), URMA_SUCCESS);
  }
  urma_cr_t record;
  for (int i = 0; i < 4; ++i) check_status("one of 4", wait_completion(&q, 10, &record), URMA_CR_SUCCESS);
  check_status("the fifth, while nobody takes", wait_completion(&q, 0.1, &record), NOTHING);
  for (uint64_t i = 0; i < 4; ++i) check_taken("taken by the peer", URMA_CR_SUCCESS, 8, 100 + i);
  // The others were refused at first, and RM keeps no order then.
  unsigned taken = 0;
  for (int i = 0; i < 4; ++i) {
    struct answer a = give_order(peer, ORDER_TAKE, 0);
    check_status("taken by the peer", a.status, URMA_CR_SUCCESS);
    if (a.text - 104 < 4) taken |= 1u << (a.text - 104);
  }
  check_number("each of the others once", taken, 15);
  for (uint64_t i = 4; i < 8; ++i) {
    check_status("the others", wait_completion(&q, 10, &record), URMA_CR_SUCCESS);
    check_number("user_ctx", (long long)record.user_ctx, (long long)i);
  }
  close_queue(&q);
}

// ---- receives ---------------------------------------------------------------------------------------------

static void message_larger_than_the_receive(void) {
  static const uint32_t kReceive[] = {16, 16, 5000}, kMessage[] = {17, 100000, 100000};
  set_text(3);
  for (int i = 0; i < 3; ++i) {
    post_receive(kReceive[i]);
    check_run("SEND", send_to(peer->sink, kMessage[i]), URMA_CR_REM_OPERATION_ERR);
    check_taken("at the receiver", URMA_CR_LOC_LEN_ERR, 0, 0);
  }
  post_receive(17);
  check_run("SEND that fits", send_to(peer->sink, 17), URMA_CR_SUCCESS);
  check_taken("at the receiver", URMA_CR_SUCCESS, 17, 3);
}

static void no_receive_and_few_retries(void) {
  for (int retries = -1; retries <= 3; ++retries) {
    if (retries == 0) continue;
    struct queue q = open_queue(context, (struct queue_options){.rnr_retry = retries});
    struct request s = send_to(peer->sink, 8);
    check_status("SEND", run(&q, &s), URMA_CR_RNR_RETRY_CNT_EXC_ERR);
    struct request w = write_to(peer->part, 0, 8);
    check_status("a WRITE on the same queue", run(&q, &w), URMA_CR_SUCCESS);
    post_receive(64);
    set_text(5);
    check_status("SEND when there is a receive", run(&q, &s), URMA_CR_SUCCESS);
    check_taken("taken by the peer", URMA_CR_SUCCESS, 8, 5);
    close_queue(&q);
  }
}

static void no_receive_and_endless_retries(void) {
  struct queue q = plain_queue();
  set_text(6);
  struct request s = send_to(peer->sink, 8);
  check_number("post", post(&q, &s), URMA_SUCCESS);
  check_status("before there is a receive", wait_completion(&q, 0.3, NULL), NOTHING);
  post_receive(64);
  check_status("SEND", wait_completion(&q, 10, NULL), URMA_CR_SUCCESS);
  check_taken("taken by the peer", URMA_CR_SUCCESS, 8, 6);
  close_queue(&q);
}

static void deleted_jetty_of_the_peer(void) {
  check_run("SEND before", send_to(peer->doomed, 8), URMA_CR_SUCCESS);
  check_number("the peer deletes it", give_order(peer, ORDER_DELETE, 0).status, URMA_SUCCESS);
  check_run("SEND", send_to(peer->doomed, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_run("SEND of several packets", send_to(peer->doomed, 100000), URMA_CR_REM_ACCESS_ABORT_ERR);
}

// ---- peers that do not answer -----------------------------------------------------------------------------

static void check_in_time(double begin) {
  double took = now() - begin;
  if (took > 5) check_number("milliseconds until the last of them ends", (long long)(took * 1000), 5000);
}

// Posts three requests and waits for their ends.
static void check_silence(const char* what, urma_target_jetty_t* target, urma_target_seg_t* segment) {
  struct queue q = plain_queue();
  struct request s = send_to(target, 8), w = write_to(segment, 0, 100000), r = read_from(segment, 0, 8);
  w.to = r.to = target;
  double begin = now();
  check_number(what, post(&q, &s), URMA_SUCCESS);
  check_number(what, post(&q, &w), URMA_SUCCESS);
  check_number(what, post(&q, &r), URMA_SUCCESS);
  for (int i = 0; i < 3; ++i) check_status(what, wait_completion(&q, 10, NULL), URMA_CR_ACK_TIMEOUT_ERR);
  check_in_time(begin);
  close_queue(&q);
}

// An address with a UDP socket, but it belongs to somebody who understands nothing.
struct deaf {
  int socket;
  urma_target_jetty_t* target;
  urma_target_seg_t* segment;
};

static struct deaf open_deaf(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  struct deaf d = {.socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  need(bind(d.socket, (struct sockaddr*)&address, length) == 0, "bind");
  need(getsockname(d.socket, (struct sockaddr*)&address, &length) == 0, "getsockname");
  urma_jetty_id_t id = {.eid = context->eid, .uasid = 0x770000u | ntohs(address.sin_port), .id = 2000};
  urma_seg_t segment = peer->offer.all;
  segment.ubva.uasid = id.uasid;
  d.target = import_jetty(context, id, 0, URMA_TM_RM);
  d.segment = import_segment(context, segment, GOOD_TOKEN);
  return d;
}

static void close_deaf(struct deaf* d) {
  check_number("urma_unimport_seg", urma_unimport_seg(d->segment), URMA_SUCCESS);
  check_number("urma_unimport_jetty", urma_unimport_jetty(d->target), URMA_SUCCESS);
  close(d->socket);
}

static bool udp_is_used(void) {
  const char* kinds = getenv("SOFTUB_PORT_KINDS");
  return kinds == NULL || strstr(kinds, "udp") != NULL;
}

static void deaf_address(void) {
  if (!udp_is_used()) return;
  struct deaf d = open_deaf();
  check_silence("request to a deaf address", d.target, d.segment);
  close_deaf(&d);
}

// A jetty that serves two peers, neither of which answers any more. Their channels died long ago.
static void several_silent_peers(void) {
  if (!udp_is_used()) return;
  struct deaf deaf[2] = {open_deaf(), open_deaf()};
  rest_ms(4500);
  struct queue q = plain_queue();
  double begin = now();
  for (int i = 0; i < 2; ++i) {
    struct request s = send_to(deaf[i].target, 8);
    check_number("post", post(&q, &s), URMA_SUCCESS);
  }
  for (int i = 0; i < 2; ++i) check_status("SEND", wait_completion(&q, 10, NULL), URMA_CR_ACK_TIMEOUT_ERR);
  check_in_time(begin);
  close_queue(&q);
  for (int i = 0; i < 2; ++i) close_deaf(&deaf[i]);
}

static void stop_process(pid_t pid) {
  kill(pid, SIGSTOP);
  need(waitpid(pid, NULL, WUNTRACED) == pid, "stopping a process");
}

static void stopped_process(void) {
  if (!may_start_another) return;
  struct remote* victim = start_peer(context, false);
  struct queue q = plain_queue();
  struct request w = write_to(victim->part, 0, 100000);
  w.to = victim->work;
  check_status("WRITE before", run(&q, &w), URMA_CR_SUCCESS);
  stop_process(victim->pid);
  if (in_daemon()) {  // its NIC lives, but nobody can reach the memory
    check_run("WRITE to memory of a stopped process", w, URMA_CR_REM_ACCESS_ABORT_ERR);
  } else {
    check_silence("request to a stopped process", victim->sink, victim->part);
  }
  good_write();
  kill(victim->pid, SIGCONT);
  if (in_daemon()) rest_ms(100);
  check_status("WRITE when it runs again", run(&q, &w), URMA_CR_SUCCESS);
  close_queue(&q);
  stop_peer(victim);
}

// A long SEND may have to wait for the short one before it.
static void stopped_process_short_and_long(void) {
  if (!may_start_another || in_daemon()) return;  // a daemon would wait for receives
  struct remote* victim = start_peer(context, false);
  struct queue q = plain_queue();
  struct request small = send_to(victim->sink, 8), large = send_to(victim->sink, 100000);
  struct request w = write_to(victim->part, 0, 8);
  w.to = victim->work;
  check_status("WRITE before", run(&q, &w), URMA_CR_SUCCESS);
  stop_process(victim->pid);
  double begin = now();
  check_number("post", post(&q, &small), URMA_SUCCESS);
  check_number("post", post(&q, &large), URMA_SUCCESS);
  for (int i = 0; i < 2; ++i) check_status("SEND", wait_completion(&q, 10, NULL), URMA_CR_ACK_TIMEOUT_ERR);
  check_in_time(begin);
  kill(victim->pid, SIGCONT);
  close_queue(&q);
  stop_peer(victim);
}

static void unknown_device(void) { check_unknown_device(context); }

// ---- the list ---------------------------------------------------------------------------------------------

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"wrong token", wrong_token},
    {"unknown token id", unknown_token_id},
    {"wrong jetty token", wrong_jetty_token},
    {"unknown jetty", unknown_jetty},
    {"outside the segment", outside_the_segment},
    {"no permission", no_permission},
    {"segment of another instance", segment_of_another_instance},
    {"local range outside", local_range_outside},
    {"local memory never registered", local_memory_never_registered},
    {"local memory unregistered before", local_memory_unregistered_before},
    {"local memory unregistered meanwhile", local_memory_unregistered_meanwhile},
    {"remote memory unregistered meanwhile", remote_memory_unregistered_meanwhile},
    {"oversize message", oversize_message},
    {"too many pieces", too_many_pieces},
    {"unaligned atomic", unaligned_atomic},
    {"unbound RC", unbound_rc},
    {"unknown opcode", unknown_opcode},
    {"deleted jetty of ours", deleted_jetty_of_ours},
    {"full send queue", full_send_queue},
    {"full send queue by a chain", full_send_queue_by_a_chain},
    {"full completion queue", full_completion_queue},
    {"full receive completion queue", full_receive_completion_queue},
    {"message larger than the receive", message_larger_than_the_receive},
    {"no receive and few retries", no_receive_and_few_retries},
    {"no receive and endless retries", no_receive_and_endless_retries},
    {"deleted jetty of the peer", deleted_jetty_of_the_peer},
    {"unknown device", unknown_device},
    {"deaf address", deaf_address},
    {"several silent peers", several_silent_peers},
    {"stopped process", stopped_process},
    {"stopped process, short and long", stopped_process_short_and_long},
};

static int run_cases(const char* only) {
  int failed = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    if (strstr(cases[i].name, only) == NULL) continue;
    begin_case(cases[i].name);
    cases[i].run();
    good_write();
    failed += !end_case();
  }
  return failed;
}

static int tear_down(void) {
  begin_case("tear-down");
  stop_peer(peer);
  close_queue(&good);
  check_number("urma_unregister_seg", urma_unregister_seg(memory), URMA_SUCCESS);
  check_number("urma_delete_context", urma_delete_context(context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  return !end_case();
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "--peer") == 0) return serve_orders(STDIN_FILENO);
  const bool loopback = strcmp(mode, "--loopback") == 0;
  may_start_another = strcmp(mode, "--processes") == 0;
  if (!loopback && !may_start_another && strcmp(mode, "--two") != 0) {
    fprintf(stderr, "usage: bad_input --processes|--two|--loopback [part of a name]\n");
    return 2;
  }
  alarm(150);  // a call that never returns is a failure, too
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 0);
  int failed = run_bad_starts();
  context = open_nic();
  peer = start_peer(context, loopback);
  bytes = aligned_alloc(4096, LOCAL_BYTES + GUARD_BYTES);
  memset(bytes, 0, LOCAL_BYTES + GUARD_BYTES);
  memory = register_memory(context, bytes, LOCAL_BYTES, URMA_ACCESS_LOCAL_ONLY);
  good = plain_queue();
  failed += run_cases(argc > 2 ? argv[2] : "");
  failed += tear_down();
  printf("%d failed\n", failed);
  return failed != 0;
}
