/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory barriers (URMA API 0.9).
 *
 * Idea: the names that device code uses, for x86-64 and AArch64, as macros. wmb and rmb order stores and
 * loads against devices, wc_wmb flushes write-combining stores, ub_smp_mb orders everything between
 * processors, ub_compiler_barrier only keeps the compiler from reordering. dmb(opt) takes the option of the
 * AArch64 instruction (ish, ishld, ishst, ...) and is a full barrier elsewhere.
 */
#ifndef UB_BARRIER_H
#define UB_BARRIER_H

#define ub_compiler_barrier() __asm__ __volatile__("" ::: "memory")

#if defined(__x86_64__)
#define dmb(opt) __asm__ __volatile__("mfence" ::: "memory")
#define wmb() __asm__ __volatile__("sfence" ::: "memory")
#define rmb() __asm__ __volatile__("lfence" ::: "memory")
#define wc_wmb() __asm__ __volatile__("sfence" ::: "memory")
#define ub_smp_mb() __asm__ __volatile__("mfence" ::: "memory")
#elif defined(__aarch64__)
#define dmb(opt) __asm__ __volatile__("dmb " #opt ::: "memory")
#define wmb() __asm__ __volatile__("dsb st" ::: "memory")
#define rmb() __asm__ __volatile__("dsb ld" ::: "memory")
#define wc_wmb() __asm__ __volatile__("dsb st" ::: "memory")
#define ub_smp_mb() dmb(ish)
#else
#define dmb(opt) __sync_synchronize()
#define wmb() __sync_synchronize()
#define rmb() __sync_synchronize()
#define wc_wmb() __sync_synchronize()
#define ub_smp_mb() __sync_synchronize()
#endif

#endif /* UB_BARRIER_H */
