/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remote memory by loads and stores.
 *
 * A handle (softub_open) reaches the bytes of an imported segment one to 64 at a time, without work request and
 * completion. `at` counts bytes from the first byte of the segment. Where the target's NIC is a process of this host and
 * reaches the memory itself, a load is one line written to shared memory and two lines read from there (a "lane"); over
 * memif without a switch it is a frame, and another one back; elsewhere the same calls use a queue of the library's own.
 * softub_get_cost() tells which. The target checks token, bounds and permission of each access, and its program does
 * nothing for it.
 *
 * What a load sees. Stores of the same handle: always. Stores of another handle, of a URMA operation or of the owner's
 * threads: once that one was fenced, has completed, or was executed, and the load began afterwards. Naturally aligned
 * words of 1, 2, 4 and 8 bytes are never torn; longer ranges may be. Stores of one handle become visible to others in
 * order only where a fence stands between them.
 *
 * Thread: one at a time for each handle; softub_dup() makes another one for another thread. After fork the child's calls
 * on a handle fail.
 */
#ifndef SOFTUB_APERTURE_H
#define SOFTUB_APERTURE_H

#include <stddef.h>

#include "softub_lane.h"
#include "softub_line_cache.h"
#include "urma_opcode.h"
#include "urma_types.h"

/* What a program passes may be any number: in C++ an enumeration has to say so, in C each one may. */
#ifdef __cplusplus
#define SOFTUB_ANY_NUMBER : unsigned int
extern "C" {
#else
#define SOFTUB_ANY_NUMBER
#endif

#pragma GCC visibility push(default)

/* How a handle reaches its memory. */
typedef enum softub_path SOFTUB_ANY_NUMBER {
  SOFTUB_PATH_NONE = 0,  /* it does not: the process is a child of the one that opened the handle */
  SOFTUB_PATH_LANE = 1,  /* memory shared with the target's NIC */
  SOFTUB_PATH_QUEUE = 2, /* READs and WRITEs of a queue of the library's own */
  SOFTUB_PATH_BROKEN = 3, /* the target is gone, or did not answer in time */
  SOFTUB_PATH_CACHED = 4, /* one of the others, behind a line cache */
  SOFTUB_PATH_FRAMES = 5, /* frames of loads and stores, on wires that carry them */
  SOFTUB_PATH_AHEAD = 6   /* a lane, while lines that softub_prefetch asked for are here */
} softub_path_t;

typedef struct softub_aperture {
  /* For the inline calls alone. */
  uint32_t path;       /* softub_path_t */
  uint32_t unanswered; /* requests whose answers were not looked at, but those of inline loads */
  uint64_t base;       /* how the target names the first byte */
  uint64_t bytes;      /* of the segment */
  softub_line_cache_t* cache; /* SOFTUB_PATH_CACHED */
  softub_lane_t lane;
} softub_aperture_t;

/* Does a handle keep lines that it loaded? What this means for those who share memory stands above softub_sync_cache(). */
typedef enum softub_cache SOFTUB_ANY_NUMBER {
  SOFTUB_CACHE_NONE = 0,         /* no: each access is one of the remote memory */
  SOFTUB_CACHE_WRITE_BACK = 1,   /* yes, and stores stay there until a fence, an atomic, or until the line has to go */
  SOFTUB_CACHE_WRITE_THROUGH = 2 /* yes, and stores are sent at once, too */
} softub_cache_t;

typedef struct softub_aperture_options {
  softub_path_t path; /* SOFTUB_PATH_NONE: the best there is; else only SOFTUB_PATH_LANE, _FRAMES or _QUEUE */
  softub_cache_t cache;
} softub_aperture_options_t;

/* Out of line: whatever the inline calls below leave. */
urma_cr_status_t softub_load_any(softub_aperture_t* handle, uint64_t at, void* to, uint32_t bytes);
urma_cr_status_t softub_store_any(softub_aperture_t* handle, uint64_t at, const void* from, uint32_t bytes);
urma_cr_status_t softub_wait_load(softub_aperture_t* handle, uint64_t at, void* to, uint32_t bytes);
void softub_ring(softub_aperture_t* handle);

/* Inlined wherever it is called, also with -O2: a number of bytes that is a constant there saves a third of a load. */
#define SOFTUB_INLINE static inline __attribute__((always_inline))

/* Does a range lie in the segment and in one line? */
SOFTUB_INLINE bool softub_is_in_line(const softub_aperture_t* handle, uint64_t at, uint32_t bytes) {
  const uint32_t offset = (uint32_t)((handle->base + at) % SOFTUB_LANE_LINE);
  return bytes - 1 < SOFTUB_LANE_LINE && offset + bytes <= SOFTUB_LANE_LINE && at < handle->bytes &&
         bytes <= handle->bytes - at;
}

/* Of a handle with a line cache. */
SOFTUB_INLINE urma_cr_status_t softub_load_cached(softub_aperture_t* handle, uint64_t at, void* to, uint32_t bytes) {
  const uint8_t* from;
  if (__builtin_expect(!softub_is_in_line(handle, at, bytes) ||
                           (from = softub_cache_get(handle->cache, handle->base + at)) == NULL,
                       0)) {
    return softub_load_any(handle, at, to, bytes);
  }
  memcpy(to, from, bytes);
  return URMA_CR_SUCCESS;
}

SOFTUB_INLINE urma_cr_status_t softub_store_cached(softub_aperture_t* handle, uint64_t at, const void* from,
                                                   uint32_t bytes) {
  if (__builtin_expect(!handle->cache->keeps_stores || !softub_is_in_line(handle, at, bytes) ||
                           !softub_cache_put(handle->cache, handle->base + at, from, bytes),
                       0)) {
    return softub_store_any(handle, at, from, bytes);
  }
  return URMA_CR_SUCCESS;
}

/* ---- Remote memory by calls ----------------------------------------------------------------------- */

/**
 * Opens a handle on an imported segment. Any thread; may wait for the target's NIC, up to 100 ms, and for a channel.
 *
 * @param seg     stays imported until the handle is closed. @param options NULL: all defaults.
 * @return a handle for softub_close, of this process alone; NULL with errno EINVAL: not an imported segment, or an
 *         option that is unknown; EHOSTUNREACH: the wanted path does not lead there (the log says why); ENOMEM; ENODEV:
 *         the library is not started.
 */
softub_aperture_t* softub_open(urma_target_seg_t* seg, const softub_aperture_options_t* options);

/**
 * Another handle on the same segment, for another thread. As softub_open().
 */
softub_aperture_t* softub_dup(const softub_aperture_t* handle);

/**
 * Closes a handle. Stores that were not fenced may or may not be executed. NULL is ignored.
 */
void softub_close(softub_aperture_t* handle);

/**
 * Loads `bytes` bytes, 1 to 64 (more is allowed, up to 8192, and is several lines), and waits for them.
 *
 * @return URMA_CR_SUCCESS; URMA_CR_LOC_LEN_ERR: 0 bytes, or too many; URMA_CR_REM_ACCESS_ABORT_ERR: beyond the segment,
 *         no permission, a former token, unregistered; URMA_CR_ACK_TIMEOUT_ERR: the target is gone, also before;
 *         URMA_CR_LOC_OPERATION_ERR: the handle is of another process. On errors the bytes at `to` are undefined.
 */
SOFTUB_INLINE urma_cr_status_t softub_load(softub_aperture_t* handle, uint64_t at, void* to, uint32_t bytes) {
  const uint64_t address = handle->base + at;
  const uint32_t offset = (uint32_t)(address % SOFTUB_LANE_LINE);
  softub_lane_t* lane = &handle->lane;
  const uint32_t number = lane->next;
  uint32_t spins;
  if (__builtin_expect(handle->path != SOFTUB_PATH_LANE || handle->unanswered != 0 || bytes - 1 >= SOFTUB_LANE_LINE ||
                           offset + bytes > SOFTUB_LANE_LINE || at >= handle->bytes || bytes > handle->bytes - at,
                       0)) {
    /* Nothing that was worked out for the lane is used here: that would cost the lane registers. */
    __asm__("" : "+r"(handle), "+r"(at));
    if (handle->path == SOFTUB_PATH_CACHED) return softub_load_cached(handle, at, to, bytes);
    return softub_load_any(handle, at, to, bytes);
  }
  softub_lane_send(lane, &lane->load, softub_lane_begin(lane, &lane->load, address - offset));
  if (__builtin_expect(softub_lane_must_ring(lane), 0)) return softub_wait_load(handle, at, to, bytes);
  for (spins = SOFTUB_LANE_SPINS; spins != 0; --spins) {
    const uint64_t word = softub_lane_answer(lane, number);
    if (word == 0) continue;
    if (__builtin_expect(word != softub_lane_data_word(number), 0)) break;
    lane->answered = lane->next;
    memcpy(to, softub_lane_answer_data(lane, number) + offset, bytes);
    return URMA_CR_SUCCESS;
  }
  return softub_wait_load(handle, at, to, bytes);
}

/**
 * Stores `bytes` bytes, 1 to 64 (more is allowed, up to 8192), and does not wait: `from` has been read when this
 * returns. What goes wrong later is told by softub_fence().
 *
 * @return as softub_load(), for what is known by now.
 */
SOFTUB_INLINE urma_cr_status_t softub_store(softub_aperture_t* handle, uint64_t at, const void* from, uint32_t bytes) {
  const uint64_t address = handle->base + at;
  const uint32_t offset = (uint32_t)(address % SOFTUB_LANE_LINE);
  softub_lane_t* lane = &handle->lane;
  const bool whole = bytes == SOFTUB_LANE_LINE;
  const softub_lane_head_t* head = whole ? &lane->store : &lane->store_bytes;
  uint8_t* line;
  if (__builtin_expect(handle->path != SOFTUB_PATH_LANE || lane->next - lane->answered == SOFTUB_LANE_SLOTS ||
                           bytes - 1 >= SOFTUB_LANE_LINE || offset + bytes > SOFTUB_LANE_LINE || at >= handle->bytes ||
                           bytes > handle->bytes - at,
                       0)) {
    __asm__("" : "+r"(handle), "+r"(at));
    if (handle->path == SOFTUB_PATH_CACHED) return softub_store_cached(handle, at, from, bytes);
    return softub_store_any(handle, at, from, bytes);
  }
  line = softub_lane_begin(lane, head, address - offset);
  if (!whole) softub_lane_put_enables(line, offset, bytes);
  memcpy(line + SOFTUB_LANE_LINE + offset, from, bytes);
  ++handle->unanswered;
  softub_lane_send(lane, head, line);
  if (__builtin_expect(softub_lane_must_ring(lane), 0)) softub_ring(handle);
  return URMA_CR_SUCCESS;
}

/**
 * Loads so many lines, each of 64 bytes and from its own place, several at a time, into `to`, one behind the other, and
 * waits for all. The first error, as softub_load(). A place need not be a multiple of 64.
 */
urma_cr_status_t softub_load_many(softub_aperture_t* handle, const uint64_t* at, uint32_t lines, void* to);

/**
 * Asks for the line (64 bytes, aligned as the target names them) that holds byte `at`, and does not wait: the next
 * softub_load() within that line finds it here, or waits for the rest of its way. So several loads that do not depend on
 * each other take little longer than one. Each line serves one load; up to 64 are kept.
 *
 * The load may see bytes as old as this call. It sees all earlier stores of its own handle; an atomic, and
 * softub_sync_cache() with SOFTUB_INVALIDATE, drop what was asked for. It is a hint: where there is no room for it, or
 * no way to keep it, the load goes there itself.
 *
 * @return as softub_load(), for what is known by now.
 */
urma_cr_status_t softub_prefetch(softub_aperture_t* handle, uint64_t at);

/**
 * Waits until all stores of the handle are executed.
 *
 * @return the first error of one of them since the last call, as softub_load().
 */
urma_cr_status_t softub_fence(softub_aperture_t* handle);

/* Atomics on naturally aligned integers of 4 or 8 bytes. */
typedef enum softub_atomic_op SOFTUB_ANY_NUMBER {
  SOFTUB_ATOMIC_COMPARE_SWAP = 1, /* if the value is `compare`, `operand` takes its place */
  SOFTUB_ATOMIC_SWAP = 2,
  SOFTUB_ATOMIC_ADD = 3,
  SOFTUB_ATOMIC_SUB = 4,
  SOFTUB_ATOMIC_AND = 5,
  SOFTUB_ATOMIC_OR = 6,
  SOFTUB_ATOMIC_XOR = 7
} softub_atomic_op_t;

/**
 * Executes an atomic exactly once, after all stores of the handle, and waits. The first call makes a queue for them.
 *
 * @param bytes 4 or 8. @param compare looked at by COMPARE_SWAP alone. @param old the value before; may be NULL.
 * @return as softub_load(); URMA_CR_ACK_TIMEOUT_ERR: it may have been executed; URMA_CR_UNSUPPORTED_OPCODE_ERR: another
 *         operation or width; URMA_CR_REM_UNSUPPORTED_REQ_ERR: not aligned.
 */
urma_cr_status_t softub_atomic(softub_aperture_t* handle, softub_atomic_op_t op, uint64_t at, uint32_t bytes,
                               uint64_t operand, uint64_t compare, uint64_t* old);

/* ---- The line cache of a handle ------------------------------------------------------------------- */

/*
 * 16 KiB of the program: 64 sets of four lines of 64 bytes, replaced in turn. A load of up to 64 bytes keeps its line;
 * longer ones, and softub_load_many(), take what is there and keep nothing. A hit is a copy out of the program's own
 * memory, of a few ns, and nothing checks it: not the token, not the permission, not whether the target still lives.
 *
 * UB keeps no caches coherent, so the programs have to say when:
 *   - A cached load sees all stores of its own handle. Of those of others it sees what was there when the line was
 *     loaded, or anything later: lines come and go. To see what another one has fenced, invalidate first, then load.
 *   - Others see a store of a write-back handle after its softub_fence(). Earlier, each byte may or may not be there, and
 *     in any order. Only bytes that were stored are sent, so two handles may store to different bytes of one line.
 *   - An atomic sends what is dirty first, and drops its line. A lock is thus released by one, and whoever got it
 *     invalidates before it loads what the lock guards.
 *   - softub_fence() tells errors of all that was sent since the last one, for whatever reason it was sent. Which line
 *     failed is not known, so all are dropped then: what is loaded afterwards is what the memory has.
 *   - softub_close() drops what is dirty: fence before.
 */

#define SOFTUB_TO_THE_END UINT64_MAX /* for `bytes` */

/**
 * Acts on all lines that [at, at + bytes) touches: SOFTUB_FLUSH sends what is dirty and keeps it, SOFTUB_INVALIDATE
 * sends what is dirty and drops all, SOFTUB_DISCARD drops all and what is dirty is lost; what is combined is done in this
 * order. Never waits for the target; softub_fence() does, and tells what went wrong. To invalidate the whole segment
 * with nothing dirty is an addition. Of a handle without a cache there is nothing to do.
 *
 * @return URMA_CR_SUCCESS; URMA_CR_LOC_LEN_ERR: beyond the segment; URMA_CR_LOC_OPERATION_ERR: other flags, or the handle
 *         is of another process.
 */
urma_cr_status_t softub_sync_cache(softub_aperture_t* handle, uint64_t at, uint64_t bytes, uint32_t what);

/* What the cache of a handle did. A load or store of two lines counts twice, a longer or vectored load once a block. */
typedef struct softub_cache_counts {
  uint64_t hits, misses;
  uint64_t write_backs; /* lines whose dirty bytes were sent, for whatever reason */
  uint64_t evictions;   /* lines that had to go for others, dirty ones included */
} softub_cache_counts_t;

/**
 * @return URMA_SUCCESS; URMA_EINVAL: `counts` is NULL, or the handle has no cache, or is of another process.
 */
urma_status_t softub_get_cache_counts(softub_aperture_t* handle, softub_cache_counts_t* counts);

/* ---- What a handle costs -------------------------------------------------------------------------- */

typedef struct softub_cost {
  softub_path_t path; /* without its cache, if it has one; the same for load_ns */
  uint64_t load_ns;   /* a load of a line: the median of 31 that this call made; 0: none succeeded */
} softub_cost_t;

/**
 * Tells how a handle reaches its memory, and what a load of its first line costs now.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: `cost` is NULL, or the handle is of another process.
 */
urma_status_t softub_get_cost(softub_aperture_t* handle, softub_cost_t* cost);

/* ---- Remote memory at addresses of one's own ------------------------------------------------------ */

/* How a window is made. */
typedef enum softub_way SOFTUB_ANY_NUMBER {
  SOFTUB_WAY_ANY = 0,      /* shared where the owner offers that and the other options allow it, else cached */
  SOFTUB_WAY_CACHED = 1,   /* pages are loaded when they are touched, and written back later */
  SOFTUB_WAY_UNCACHED = 2, /* each access is one of the remote memory, of its own size: exact, and slow */
  SOFTUB_WAY_SHARED = 3    /* the memory itself, which its owner on this host offers (softub_alloc_shared) */
} softub_way_t;

typedef enum softub_policy SOFTUB_ANY_NUMBER {
  SOFTUB_WRITE_BACK = 0,   /* a page is sent when it is evicted, flushed or unmapped */
  SOFTUB_WRITE_THROUGH = 1 /* and 100 us after it was written first, by a thread of the library */
} softub_policy_t;

#define SOFTUB_MAP_READ_ONLY 1u /* a write is an error */
#define SOFTUB_MAP_OWNED 2u     /* an access to a page that softub_own() did not get is an error; cached */

typedef struct softub_map_options {
  uint64_t offset;         /* where the window begins in the segment: a multiple of 4096 */
  uint64_t bytes;          /* 0: to the end of the segment */
  softub_way_t way;
  softub_policy_t policy;  /* cached */
  uint64_t cache_bytes;    /* cached: so much may be present; 0: 64 MiB, or all if that is less; 8 pages at least */
  uint32_t prefetch_pages; /* cached: loaded ahead of faults in a row, up to 7; SOFTUB_NO_PREFETCH: none; 0: 7 */
  uint32_t flags;          /* SOFTUB_MAP_* */
  softub_path_t path;      /* as softub_aperture_options_t */
} softub_map_options_t;
#define SOFTUB_NO_PREFETCH UINT32_MAX

/**
 * Maps a part of an imported segment: plain pointers reach it. Any thread, not from signal handlers; may wait as
 * softub_open() does.
 *
 * Two windows do not see each other's cache, nor does the owner of the memory what a window has not written back:
 * softub_sync() and softub_own() are the means. A system call that is handed an address of a cached window fails with
 * EFAULT where a page is missing, or clean if it writes there (softub_sync() makes pages present), one with an address of
 * an uncached window always. urma_register_seg() refuses memory of a window. A child of fork has no windows.
 *
 * A shared window has neither cache nor faults: an access is one of the CPU to the owner's memory, and so are its
 * atomics and its order. It reads alone where the segment does not permit to write, or the owner offers no more. Token
 * and permissions are checked by the owner's NIC now; when they no longer hold (softub_holders() says when), or the
 * owner or its NIC ends, the window has no access any more, and faults go to the handler of softub_on_fault().
 *
 * @param seg stays imported until softub_unmap(). @param options NULL: all of them 0. Of way ANY, SHARED is not
 *         tried with a path or MAP_OWNED, which it does not have; softub_get_way() tells which way it became.
 * @return the address of the first byte; NULL with errno EINVAL: no imported segment, or options that make no sense (the
 *         log says which); EPERM: the kernel or the container refuses userfaultfd, or code made at run time (the log names
 *         the setting); EHOSTUNREACH: the wanted path does not lead there, or the memory is not offered; ENOMEM; ENODEV: the library is not started.
 */
void* softub_map(urma_target_seg_t* seg, const softub_map_options_t* options);

/**
 * Writes back what is dirty and unmaps a window. No other thread may use it any more. Any thread, not from signal
 * handlers.
 *
 * @param window what softub_map() returned.
 * @return URMA_SUCCESS; URMA_EINVAL: it is no window, or one of softub_attach(), which ends by softub_detach();
 *         URMA_FAIL: some bytes could not be written back and are lost (the log says why), and the window is gone.
 */
urma_status_t softub_unmap(void* window);

/**
 * Tells what way a window has. @return URMA_SUCCESS; URMA_EINVAL: `way` is NULL, or it is no window.
 */
urma_status_t softub_get_way(void* window, softub_way_t* way);

/* For softub_sync(); what is combined is done in this order. */
#define SOFTUB_FLUSH 1u      /* write back what is dirty, and keep it */
#define SOFTUB_INVALIDATE 2u /* write back what is dirty, then drop all: it is loaded again when it is touched */
#define SOFTUB_DISCARD 4u    /* drop all; what is dirty is lost */
#define SOFTUB_PREFETCH 8u   /* load what is missing, as far as the cache has room */
#define SOFTUB_RESIDENT 16u  /* load what is missing, so that a system call can read it */
#define SOFTUB_WRITABLE 32u  /* and so that a system call can write to it */

/**
 * Acts on all pages of a window that [at, at + bytes) touches. Of an uncached window there is nothing to do, and
 * RESIDENT and WRITABLE are errors; of a shared one there is nothing to do at all. Any thread, also while others use the window.
 *
 * @return URMA_CR_SUCCESS, or the first error, after all pages were tried: URMA_CR_LOC_LEN_ERR: the range is not that of
 *         a window, or the cache is too small for it; URMA_CR_LOC_OPERATION_ERR: unknown flags, or the kernel refuses;
 *         URMA_CR_LOC_ACCESS_ERR: a page that is not owned, or WRITABLE in a read-only window; of a
 *         shared window whose right has ended, why; others as softub_load().
 */
urma_cr_status_t softub_sync(void* at, size_t bytes, uint32_t what);

/* Who a page of a window belongs to (UB Base Specification Rev 2.0, 8.6). */
typedef enum softub_owned SOFTUB_ANY_NUMBER {
  SOFTUB_OWN_NONE = 0,
  SOFTUB_OWN_READ = 1,
  SOFTUB_OWN_WRITE = 2
} softub_owned_t;

/**
 * Acquires or releases a range, the point of coherence: to lose WRITE writes back, to lose READ drops, to gain drops
 * what may be old. That there is one writer, or readers only, is the programs' promise to each other. As softub_sync().
 */
urma_cr_status_t softub_own(void* at, size_t bytes, softub_owned_t owned);

/* An access that could not be served. */
typedef struct softub_fault {
  void* address;
  urma_cr_status_t cause;  /* as softub_load(); URMA_CR_LOC_ACCESS_ERR: a write to a read-only window, or not owned;
                              URMA_CR_UNSUPPORTED_OPCODE_ERR: an instruction that an uncached window does not know */
  bool is_write;           /* cached, shared */
  const char* instruction; /* its text, for the last cause; else NULL */
  const char* why;         /* a sentence, for the last cause; else NULL */
  const void* code;        /* where the instruction lies, uncached; else NULL */
} softub_fault_t;

typedef bool (*softub_fault_handler_t)(const softub_fault_t* fault, void* context);

/**
 * Installs a handler for faults of a window that cannot be served. It runs in the thread that made the access, inside
 * a signal handler, and says whether the access is to be made again (true), or is the process' to bear (false): then
 * the handler that was installed before the library's gets the signal, or the process ends as with real memory. Or it
 * leaves by siglongjmp(), to a sigsetjmp() that saved the mask of signals, as all are blocked in the handler; the window
 * works on. It must not throw. What softub_fault_t points to is there until it returns or leaves.
 *
 * @param handler NULL: none. @return URMA_SUCCESS; URMA_EINVAL: it is no window; URMA_ENOMEM.
 */
urma_status_t softub_on_fault(void* window, softub_fault_handler_t handler, void* context);

/**
 * For programs that install a handler of SIGBUS or SIGSEGV after the first softub_map(): serves the fault if it is one of
 * a window. Call it from the handler, with its arguments.
 *
 * @return true: served, return from the handler.
 */
bool softub_serve_fault(int signal, void* siginfo, void* ucontext);

/* ---- Memory that others of this host map ---------------------------------------------------------- */

/* What others may do with the memory where they map it, as far as its segment permits that, too. */
#define SOFTUB_SHARE_READ 1u
#define SOFTUB_SHARE_WRITE 2u /* includes reading */

/**
 * Allocates memory that other programs of this host may map (SOFTUB_WAY_SHARED): whole pages that hold nothing else, and
 * zero. To call this is to offer it. It is registered by urma_register_seg() as any other memory; only a segment of all
 * of it can be mapped, and by whoever its token and permissions allow to read it.
 *
 * What is offered for reading is sealed: no other process can ever write to it. What is offered for writing may be
 * written by any holder of a writable mapping; one that maps it for reading alone gets a descriptor for reading, which
 * is no barrier against a hostile program of the same user. A daemon reaches the latter through this program only, as
 * memory that is not of softub_alloc().
 *
 * Whoever imports the segment on the same host need not map it to profit: its NIC carries out WRITEs, READs and atomics
 * there itself, without packets, as far as token and permissions allow (docs/aperture.md). That right ends at once where
 * a mapping can only be asked back.
 *
 * Any thread, after urma_init; may block while it asks the daemon for memory.
 *
 * @param rights SOFTUB_SHARE_*: one or both.
 * @return memory for softub_free(), as softub_alloc(). NULL: errno EINVAL (bytes 0, other rights), ENODEV (the library
 *         is not started) or ENOMEM (the log says why).
 */
void* softub_alloc_shared(size_t bytes, uint32_t rights);

/* A process that has mapped such memory. */
typedef struct softub_holder {
  int32_t process;
  uint32_t told; /* 1: its right has ended, it was told so and has not let go */
} softub_holder_t;

/**
 * Tells who holds mappings of memory of softub_alloc_shared(), one entry for each mapping. A mapping cannot be taken
 * from a process that refuses. When its right ends (urma_unregister_seg(), a token that is neither the segment's nor its
 * former one, exclusive memory) its holder is told; the library of the holder lets go at once, and then it is not listed
 * any more. Who stays listed as told can still reach all bytes of the memory, with the rights that it had, also what is
 * written there later, and also after softub_free(): then put nothing there that it must not see, and allocate anew.
 * Any thread; a control call, may wait for the daemon.
 *
 * @param memory of softub_alloc_shared(), not yet freed. @param holders filled in; may be NULL if `*count` is 0.
 * @param count  in: room at `holders`; out: how many holders there are, also those that found no room.
 * @return URMA_SUCCESS; URMA_EINVAL: it is no such memory, or a pointer is NULL; URMA_ENOMEM; URMA_FAIL: the library is
 *         not started, or the daemon is gone.
 */
urma_status_t softub_holders(const void* memory, softub_holder_t* holders, uint32_t* count);

/* What a cached window did since it was made. */
typedef struct softub_window_counts {
  uint64_t missing_faults, write_faults, failed_faults;
  uint64_t fetched_pages, prefetched_pages, evicted_pages;
  uint64_t written_back_pages, written_back_lines, written_back_bytes, failed_write_backs;
  uint64_t missing_p50_ns, missing_p99_ns, write_p50_ns, write_p99_ns; /* of faults, without the kernel's part */
} softub_window_counts_t;

/**
 * @return URMA_SUCCESS; URMA_EINVAL: `counts` is NULL, or it is no cached window.
 */
urma_status_t softub_get_window_counts(void* window, softub_window_counts_t* counts);

/* ---- Memory with a name --------------------------------------------------------------------------- */

/*
 * A name is one of an EID: whichever program of the host published it, whichever user runs that program, and with
 * whichever NIC, others find it by "name" on the same host (more exactly: at the EID of their context) and by "name@EID"
 * from everywhere, as "table@10.0.0.1". First come, first served. It is gone with its segment, its program or its NIC.
 *
 * Everybody who reaches the NIC may see a name and what segment it stands for, but not its token. The token goes to
 * whoever has published the name, so ask for names only where you trust those who may publish them.
 */

#define SOFTUB_MAX_NAME 63u /* letters, digits, and . : - _ */

typedef struct softub_create_options {
  uint32_t share;            /* SOFTUB_SHARE_*: others of this host may map it; 0: they may not */
  uint32_t access;           /* URMA_ACCESS_*; 0: read, write and atomic */
  const urma_token_t* token; /* which others have to know; NULL: none */
} softub_create_options_t;

/**
 * Allocates memory (as softub_alloc(), or softub_alloc_shared()), registers all of it and publishes it under a name. Any
 * thread; a control call, waits as softub_publish().
 *
 * @param name    1 to SOFTUB_MAX_NAME characters. @param options NULL: all defaults.
 * @return the memory, zero, for softub_destroy(). NULL: errno EINVAL (no context, bytes 0, a name or option that there
 *         cannot be), EEXIST (the name is taken), ENODEV (the library is not started), ENOMEM, or EIO (the log says why).
 */
void* softub_create(urma_context_t* context, const char* name, size_t bytes, const softub_create_options_t* options);

/**
 * Takes the name, the segment and the memory away. Whoever has mapped it loses it as with urma_unregister_seg(). Any
 * thread, before the context is deleted.
 *
 * @param memory of softub_create(). @return URMA_EINVAL: it is no such memory; else as urma_unregister_seg().
 */
urma_status_t softub_destroy(void* memory);

/**
 * Finds a name and maps what it stands for: softub_find() and softub_map() in one call. Any thread, not from signal
 * handlers.
 *
 * @param name    "name" or "name@EID". @param token looked at if the segment asks for one. @param options as softub_map().
 * @return the window, for softub_detach(). NULL: errno as softub_find() and softub_map().
 */
void* softub_attach(urma_context_t* context, const char* name, urma_token_t token, const softub_map_options_t* options);

/**
 * Writes back what is dirty, unmaps the window and forgets the segment. As softub_unmap().
 *
 * @param window of softub_attach(). @return URMA_EINVAL: it is no such window; else as softub_unmap().
 */
urma_status_t softub_detach(void* window);

/**
 * Publishes a registered segment under a name, until softub_unpublish() or until it is unregistered. A segment has one
 * name, a program 64. Any thread; a control call: some ms, and up to 4 s if a program of this host that may have the
 * name is stopped.
 *
 * @param seg of urma_register_seg(). @param name 1 to SOFTUB_MAX_NAME characters, without @.
 * @return URMA_SUCCESS; otherwise the log says why: URMA_EINVAL: no segment of ours, one with LOCAL_ONLY, or no name;
 *         URMA_EEXIST: the segment has a name, or another segment of this host has this one (of two programs that
 *         publish it in the same moment both may get this); URMA_ENOMEM: too many names of this program or this host;
 *         URMA_FAIL: the library is not started, or the daemon is gone.
 */
urma_status_t softub_publish(urma_target_seg_t* seg, const char* name);

/**
 * Takes the name of a segment away. Who has found it keeps what he has. Any thread; a control call.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: it has no name; URMA_FAIL: the daemon is gone.
 */
urma_status_t softub_unpublish(urma_target_seg_t* seg);

/**
 * Finds a name and imports what it stands for. Any thread; a control call: some ms, but 4 s for a name that nobody of
 * another host has published.
 *
 * @param name  "name": at the EID of the context; "name@EID": there. @param token as urma_import_seg(): wrong ones are
 *         refused when the memory is accessed; looked at if the segment asks for one.
 * @return for urma_unimport_seg(). NULL: errno ENOENT (nobody has published it, or nobody answers), EINVAL (no context,
 *         or no name), ENODEV (the library is not started), ENOMEM.
 */
urma_target_seg_t* softub_find(urma_context_t* context, const char* name, urma_token_t token);

#pragma GCC visibility pop
#undef SOFTUB_ANY_NUMBER

#ifdef __cplusplus
}
#endif

#endif /* SOFTUB_APERTURE_H */
