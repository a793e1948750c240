// SPDX-License-Identifier: Apache-2.0
//
// far_memory - one program creates memory with a name and does nothing more with it than look. Others write there and
// read it, by plain pointers and by loads and stores, and bear that its owner ends.
//
//   $ far_memory own notes             $ far_memory watch notes & far_memory write notes 'hello there'
//   notes is there                     read back: hello there
//   somebody wrote: hello there        watched: hello there
//   ^C                                 the memory is gone: status 9
//
// On another host the name is notes@EID: `urma_admin names` prints it where the owner runs.
#include <setjmp.h>
#include <signal.h>
#include <softub_aperture.h>
#include <stddef.h>

#include "example.h"

#define MOST_TEXT 64

struct notes {
  uint64_t changes;  // how often the text was written
  uint64_t unused[7];
  char text[MOST_TEXT];  // a line of its own, so that one load brings all of it
};

static const urma_token_t no_token;  // softub_create() was not told to ask for one

// ---- the owner: the NIC serves the others, this thread only looks ----------------------------------------------

// Until it is killed, which takes the memory and the name away, as softub_destroy() does.
static int own(urma_context_t* context, const char* name) {
  struct notes* notes = softub_create(context, name, sizeof *notes, NULL);
  CHECK(notes);
  printf("%s is there\n", name);
  for (uint64_t seen = 0;; usleep(10000)) {
    fflush(stdout);
    const uint64_t changes = __atomic_load_n(&notes->changes, __ATOMIC_ACQUIRE);
    if (changes == seen) continue;
    seen = changes;
    printf("somebody wrote: %.*s\n", MOST_TEXT, notes->text);
  }
}

// ---- who writes: the text by a pointer, what tells of it by a store --------------------------------------------

// One writer at a time; several would take turns by a lock (softub_atomic()).
static int write_text(urma_context_t* context, const char* name, const char* text) {
  struct notes* window = softub_attach(context, name, no_token, NULL);
  CHECK(window);
  snprintf(window->text, MOST_TEXT, "%s", text);  // so far it is here
  CHECK(softub_sync(window, sizeof *window, SOFTUB_FLUSH) == URMA_CR_SUCCESS);  // now it is there

  urma_target_seg_t* seg = softub_find(context, name, no_token);
  CHECK(seg);
  softub_aperture_t* handle = softub_open(seg, NULL);
  CHECK(handle);
  char back[MOST_TEXT];
  CHECK(softub_load(handle, offsetof(struct notes, text), back, sizeof back) == URMA_CR_SUCCESS);
  printf("read back: %.*s\n", MOST_TEXT, back);

  uint64_t changes;
  CHECK(softub_load(handle, offsetof(struct notes, changes), &changes, sizeof changes) == URMA_CR_SUCCESS);
  ++changes;
  CHECK(softub_store(handle, offsetof(struct notes, changes), &changes, sizeof changes) == URMA_CR_SUCCESS);
  CHECK(softub_fence(handle) == URMA_CR_SUCCESS);  // a store does not wait, and its error is told here

  softub_close(handle);
  CHECK(urma_unimport_seg(seg) == URMA_SUCCESS);
  CHECK(softub_detach(window) == URMA_SUCCESS);
  return 0;
}

// ---- who watches: what cannot be read any more is no end of the program ----------------------------------------

static sigjmp_buf after_fault;
static volatile sig_atomic_t cause;

// Runs in the thread that made the access. The function that is left by the jump must hold no lock, so what is printed
// is copied out of the window first: printf holds that of its stream.
static bool on_fault(const softub_fault_t* fault, void* unused) {
  (void)unused;
  cause = (sig_atomic_t)fault->cause;
  siglongjmp(after_fault, 1);
}

// Drops what is here, as others may have written since it was loaded: the next access loads it again.
static void renew(struct notes* window) {
  CHECK(softub_sync(window, sizeof *window, SOFTUB_INVALIDATE) == URMA_CR_SUCCESS);
}

static void print_changes(struct notes* window) {
  char text[MOST_TEXT];
  for (uint64_t seen = 0;; usleep(10000)) {
    renew(window);
    if (window->changes == seen) continue;
    seen = window->changes;
    renew(window);  // the text that this number tells of was there before the number
    memcpy(text, window->text, sizeof text);
    printf("watched: %.*s\n", MOST_TEXT, text);
    fflush(stdout);
  }
}

static int watch(urma_context_t* context, const char* name) {
  static struct notes* window;  // static: it is used after the jump
  window = softub_attach(context, name, no_token, NULL);
  CHECK(window);
  CHECK(softub_on_fault(window, on_fault, NULL) == URMA_SUCCESS);
  // 1: with the mask of signals, as all of them are blocked in the handler.
  if (sigsetjmp(after_fault, 1) == 0) print_changes(window);
  printf("the memory is gone: status %d\n", (int)cause);
  CHECK(softub_detach(window) == URMA_SUCCESS);
  return 0;
}

int main(int argc, char** argv) {
  const bool owns = argc == 3 && strcmp(argv[1], "own") == 0, writes = argc == 4 && strcmp(argv[1], "write") == 0;
  const bool watches = argc == 3 && strcmp(argv[1], "watch") == 0;
  if (!owns && !writes && !watches) {
    fprintf(stderr,
            "usage: far_memory own NAME\n"
            "       far_memory write NAME[@EID] TEXT\n"
            "       far_memory watch NAME[@EID]\n");
    return 2;
  }
  urma_context_t* context = open_nic();
  if (owns) return own(context, argv[2]);
  const int code = writes ? write_text(context, argv[2], argv[3]) : watch(context, argv[2]);
  CHECK(urma_uninit() == URMA_SUCCESS);
  return code;
}
