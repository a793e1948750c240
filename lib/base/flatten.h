// SPDX-License-Identifier: Apache-2.0
// flatten.h - UB_FLATTEN makes a function out of all that it calls. The data path uses it where a call would cost as
// much as the work. A build with sanitizers goes without: its code is many times larger, and such a function takes the
// compiler minutes.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UB_FLATTEN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UB_FLATTEN
#endif
#endif
#ifndef UB_FLATTEN
#define UB_FLATTEN [[gnu::flatten]]
#endif
