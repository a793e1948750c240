// SPDX-License-Identifier: Apache-2.0
//
// While an object of this class lives, its thread reads and writes memory of applications as a NIC does, at any time.
// Who needs an order waits for a completion, or for a word to change. ThreadSanitizer would call that a race of the
// application with us, so it does not look. Without the sanitizer there is nothing here.
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace ub {

struct ApplicationMemory {
#if defined(__SANITIZE_THREAD__)
  ApplicationMemory() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~ApplicationMemory() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  ApplicationMemory() {}  // not trivial, so that an object counts as used
#endif
  ApplicationMemory(const ApplicationMemory&) = delete;
  ApplicationMemory& operator=(const ApplicationMemory&) = delete;
};

}  // namespace ub
