/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extensions of SoftUB to the URMA interface.
 *
 * Idea: a NIC in a daemon reaches memory of a program in two ways. Memory of softub_alloc is shared with it: the NIC
 * copies once, by itself. Any other memory is only known by its address, and the library copies for the NIC. Both
 * are registered by urma_register_seg and used alike; the first is faster. With a NIC in the process itself there is
 * no difference, so a program may always allocate its buffers here.
 */
#ifndef SOFTUB_API_H
#define SOFTUB_API_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- Memory that a daemon reaches, and where the NIC runs ----------------------------------------- */

/**
 * Allocates memory that the NIC reaches directly. It is zero, aligned to 64 bytes, from 4096 bytes on to a page, and
 * meant for few large buffers rather than many small ones. Any thread, after urma_init; may block while it asks the
 * daemon for more.
 *
 * @return memory for softub_free, which stays usable after urma_uninit; registering it again then works, too, but
 *         as any other memory. It is not there in the child of a fork.
 *         NULL: errno EINVAL (bytes 0), ENODEV (the library is not started) or ENOMEM.
 */
void* softub_alloc(size_t bytes);

/**
 * Gives memory of softub_alloc back. As long as it is registered it does not serve anybody else. Any thread, at any
 * time, also after urma_uninit. NULL, and what is not from softub_alloc, is ignored.
 */
void softub_free(void* memory);

/**
 * Tells where the NIC runs. Any thread; does not block.
 *
 * @return "embedded" (in this process) or "daemon", a constant; NULL: the library is not started.
 */
const char* softub_placement(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* SOFTUB_API_H */
