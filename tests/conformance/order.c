// SPDX-License-Identifier: Apache-2.0
//
// What the orders of a request promise (URMA API 0.9, 6.1): execution order, fence, and the order of completions at the
// receiver; and that a request without an order passes one that waits. Usage: see far.h.
#include <string.h>

#include "tests/conformance/far.h"

#define HERE 4096
#define THERE 8192
#define OTHER 200000
#define LONG 70000  // more than one segment
#define SEED 9
#define ROUNDS 100
#define PARTS 6

static void set_word(uint64_t offset, uint64_t word) { memcpy(stage.bytes + offset, &word, sizeof word); }

static uint64_t word_at(uint64_t offset) {
  uint64_t word;
  memcpy(&word, stage.bytes + offset, sizeof word);
  return word;
}

static struct request ordered(struct pair* p, urma_opcode_t op, uint32_t bytes, urma_place_order_t order) {
  struct request r = request_to(&p->far, op, bytes);
  r.order = order;
  return r;
}

static void must_post(struct pair* p, const struct request* r) { check_number("post", post(&p->q, r), URMA_SUCCESS); }

static void must_complete(struct pair* p, const char* what) {
  urma_cr_t record;
  check_status(what, wait_completion(&p->q, PATIENCE, &record), URMA_CR_SUCCESS);
}

static void must_complete_with(struct pair* p, const char* what, uint64_t user_ctx) {
  urma_cr_t record;
  check_status(what, wait_completion(&p->q, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number(what, (long long)record.user_ctx, (long long)user_ctx);
}

// Each request is executed after all before it: every READ finds what the WRITE just before it wrote, and not what the
// one behind it did.
static void strong_body(struct pair* p) {
  for (uint64_t round = 1; round <= ROUNDS && !case_failed(); ++round) {
    for (uint64_t i = 0; i < 3; ++i) {
      struct request w = ordered(p, URMA_OPC_WRITE, 8, URMA_STRONG_ORDER);
      struct request r = ordered(p, URMA_OPC_READ, 8, URMA_STRONG_ORDER);
      w.here = near_address(HERE + 16 * i), r.here = near_address(HERE + 16 * i + 8);
      w.there = r.there = far_address(THERE);
      w.quiet = r.quiet = true;
      r.quiet = i != 2;
      set_word(HERE + 16 * i, 3 * round + i);
      set_word(HERE + 16 * i + 8, 0);
      must_post(p, &w);
      must_post(p, &r);
    }
    must_complete(p, "the last READ");
    for (uint64_t i = 0; i < 3; ++i)
      check_number("what a READ found", (long long)word_at(HERE + 16 * i + 8), (long long)(3 * round + i));
  }
}

static void strong(void) { for_each_variant(strong_body); }

// A strong request is executed after all relaxed ones before it, in whatever order those are, long ones and atomics,
// too.
static void strong_behind_relaxed_body(struct pair* p) {
  for (uint64_t round = 1; round <= 10 && !case_failed(); ++round) {
    far_set_word(OTHER, 0);
    far_prepare(THERE, LONG);
    fill(stage.bytes + HERE, LONG, SEED);
    struct request w = ordered(p, URMA_OPC_WRITE, LONG, URMA_RELAX_ORDER);
    struct request a = ordered(p, URMA_OPC_FADD, 8, URMA_RELAX_ORDER);
    struct request r = ordered(p, URMA_OPC_READ, LONG, URMA_STRONG_ORDER);
    struct request s = ordered(p, URMA_OPC_READ, 8, URMA_STRONG_ORDER);
    w.here = near_address(HERE), w.there = far_address(THERE);
    a.here = near_address(0), a.there = far_address(OTHER), a.immediate = 7;
    r.here = near_address(HERE + 2 * LONG), r.there = far_address(THERE);
    s.here = near_address(8), s.there = far_address(OTHER);
    w.quiet = a.quiet = r.quiet = true;
    memset(stage.bytes + HERE + 2 * LONG, 0, LONG);
    must_post(p, &w);
    must_post(p, &a);
    must_post(p, &r);
    must_post(p, &s);
    must_complete(p, "the last READ");
    check_true("the READ found all of the WRITE", holds(stage.bytes + HERE + 2 * LONG, LONG, SEED));
    check_number("and the other the sum", (long long)word_at(8), 7);
  }
}

static void strong_behind_relaxed(void) { for_each_variant(strong_behind_relaxed_body); }

// A fenced WRITE does not touch what an earlier READ has still to read.
static void fence_body(struct pair* p) {
  for (int round = 0; round < 20 && !case_failed(); ++round) {
    far_fill(THERE, LONG, SEED);
    memset(stage.bytes + HERE, 0, LONG);
    fill(stage.bytes + HERE + LONG, LONG, SEED + 1);
    struct request r = ordered(p, URMA_OPC_READ, LONG, URMA_NO_ORDER);
    struct request w = ordered(p, URMA_OPC_WRITE, LONG, URMA_NO_ORDER);
    r.here = near_address(HERE), r.there = w.there = far_address(THERE);
    w.here = near_address(HERE + LONG);
    r.quiet = w.fence = true;
    must_post(p, &r);
    must_post(p, &w);
    must_complete(p, "the fenced WRITE");
    check_true("the READ found what was there before", holds(stage.bytes + HERE, LONG, SEED));
    check_true("then the WRITE was executed", far_holds(THERE, LONG, SEED + 1));
  }
}

static void fence(void) { for_each_variant(fence_body); }

// Messages of several lengths, whose receives come late and one by one, complete there in the order of posting: always
// in RC, and elsewhere where they ask for it.
static void completions_body(struct pair* p) {
  static const uint32_t bytes[PARTS] = {8, 5000, 16, 24, 3000, 32};
  for (int round = 0; round < 5 && !case_failed(); ++round) {
    for (int i = 0; i < PARTS; ++i) {
      struct request s = ordered(p, URMA_OPC_SEND, bytes[i], URMA_NO_ORDER);
      s.receive_in_order = p->far.options.mode != URMA_TM_RC;
      s.quiet = i + 1 != PARTS;
      must_post(p, &s);
    }
    for (int i = 0; i < PARTS; ++i) {
      urma_cr_t record;
      if (i % 2 == 1) rest_ms(1);
      far_receive(&p->far, THERE, 8192, (uint64_t)i);
      check_status("a receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
      check_number("its bytes", record.completion_len, bytes[i]);
    }
    must_complete(p, "the last SEND");
  }
}

static void completions(void) { for_each_variant(completions_body); }

// A message waits for its receive, a strong request for the message; a request without an order passes both, and waits
// for nobody.
static void passing_body(struct pair* p) {
  urma_cr_t record;
  for (int round = 0; round < 3 && !case_failed(); ++round) {
    struct request s = ordered(p, URMA_OPC_SEND, 8, URMA_RELAX_ORDER);
    struct request held = ordered(p, URMA_OPC_WRITE, 8, URMA_STRONG_ORDER);
    struct request unordered = ordered(p, URMA_OPC_WRITE, 8, URMA_NO_ORDER);
    s.quiet = held.quiet = true;
    held.here = near_address(HERE), held.there = far_address(THERE);
    unordered.here = near_address(HERE + 8), unordered.there = far_address(OTHER);
    far_set_word(THERE, 0);
    far_set_word(OTHER, 0);
    set_word(HERE, 1);
    set_word(HERE + 8, 2);
    must_post(p, &s);
    must_post(p, &held);
    must_post(p, &unordered);
    const double end = now() + PATIENCE;
    while (far_word(OTHER) != 2 && now() < end) wait_completion(&p->q, 0.001, &record);
    check_number("what has no order", (long long)far_word(OTHER), 2);
    check_number("what is strong", (long long)far_word(THERE), 0);
    far_receive(&p->far, 3 * OTHER, 64, 1);
    check_status("the receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
    must_complete(p, "the last WRITE");
    check_number("what is strong, at last", (long long)far_word(THERE), 1);
  }
}

static void passing(void) { for_each_variant(passing_body); }

// A message waits for its receive. A WRITE behind it is executed, and completes before it where the queue wants that;
// there the orders of requests do not apply. Until the message is done, its place in the queue stays taken.
static void completes(struct pair* p, bool early) {
  enum { DEPTH = 16 };
  urma_cr_t record;
  for (int round = 0; round < 3 && !case_failed(); ++round) {
    struct request s = ordered(p, URMA_OPC_SEND, 8, URMA_RELAX_ORDER);
    struct request w = ordered(p, URMA_OPC_WRITE, 8, early ? URMA_STRONG_ORDER : URMA_NO_ORDER);
    w.fence = early;
    w.here = near_address(HERE), w.there = far_address(OTHER);
    far_set_word(OTHER, 0);
    set_word(HERE, 2);
    s.user_ctx = 1, w.user_ctx = 2;
    must_post(p, &s);
    for (int i = 1; i < DEPTH; ++i) must_post(p, &w);
    const double end = now() + PATIENCE;
    while (!early && far_word(OTHER) != 2 && now() < end) rest_ms(1);
    for (int i = 1; early && i < DEPTH; ++i) {
      must_complete_with(p, "a WRITE behind the message", 2);
      check_number("which was executed", (long long)far_word(OTHER), 2);
    }
    check_number("what completes without a receive", wait_completion(&p->q, 0, &record), NOTHING);
    check_number("one request more than the depth", post(&p->q, &w), URMA_ENOMEM);
    far_receive(&p->far, 3 * OTHER, 64, 1);
    check_status("the receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
    must_complete_with(p, "the message", 1);
    for (int i = 1; !early && i < DEPTH; ++i) must_complete_with(p, "a WRITE behind the message", 2);
    for (int i = 0; i < DEPTH; ++i) must_post(p, &w);  // all places are free again
    for (int i = 0; i < DEPTH; ++i) must_complete_with(p, "a WRITE", 2);
  }
}

static void in_order_body(struct pair* p) { completes(p, false); }
static void early_body(struct pair* p) { completes(p, true); }
static void completions_in_order(void) { for_each_variant(in_order_body); }
static void completions_as_they_finish(void) {
  for_each_variant_with((struct queue_options){.completes_early = true}, (struct queue_options){0}, early_body);
}

static const struct test_case cases[] = {
    {"strong requests follow each other", strong},     {"a strong request follows relaxed ones", strong_behind_relaxed},
    {"a fence holds until READs are answered", fence}, {"receives complete in order", completions},
    {"no order passes what waits", passing},           {"sends complete in order", completions_in_order},
    {"sends complete as they finish", completions_as_they_finish},
};

int main(int argc, char** argv) { return run_program(argc, argv, cases, sizeof cases / sizeof *cases, NULL); }
