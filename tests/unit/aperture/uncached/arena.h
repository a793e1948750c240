// SPDX-License-Identifier: Apache-2.0
//
// A window that can also be ordinary memory, at the same address: code runs on the one and on the other from the same
// state, and then everything must be the same. The pages before and behind it are ordinary memory.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "fake_path.h"
#include "lib/urma/aperture/uncached/uncached_window.h"
#include "probe.h"

namespace ub::aperture::test {

class Arena {
 public:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kBytes = 4 * kPage;
  static constexpr uint64_t kPlace = 3 * kPage;  // of the window in the segment
  // The stack is aligned to its size, so an instruction that changes SP alone leaves RSP within it. Were RSP within the
  // stack of signals, the kernel might find no room there for the one that ends the run.
  static constexpr size_t kStackBytes = 16 * kPage;
  static_assert(kStackBytes == 1 << 16);

  Arena() : memory_(kPlace + kBytes) {
    take_signals();
    around_ = make_hole();
    auto path = std::make_unique<FakePath>(memory_);
    path_ = path.get();
    std::vector<std::unique_ptr<RemotePath>> paths;
    paths.push_back(std::move(path));
    WindowError error;
    window_ = UncachedWindow::create({.place = kPlace, .bytes = kBytes}, std::move(paths), &error);
    if (window_ == nullptr) throw std::runtime_error(error.why);
    if (window_->data() != around_ + kPage) throw std::runtime_error("the window lies elsewhere");
    window_->on_fault(on_fault, this);
    protect_around(PROT_READ | PROT_WRITE);
    code_ = reinterpret_cast<uint8_t*>(map(PROT_READ | PROT_WRITE | PROT_EXEC, 2 * kPage));
    nothing_ = map(PROT_NONE, kBytes);
    stack_memory_ = map(PROT_READ | PROT_WRITE, 2 * kStackBytes);
    stack_ = stack_memory_ + (-reinterpret_cast<uintptr_t>(stack_memory_) & (kStackBytes - 1));
  }
  ~Arena() {
    window_.reset();
    ::munmap(around_, kPage);
    ::munmap(around_ + kPage + kBytes, kPage);
    ::munmap(code_, 2 * kPage);
    ::munmap(nothing_, kBytes);
    ::munmap(stack_memory_, 2 * kStackBytes);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  uint64_t start() const { return reinterpret_cast<uint64_t>(window_->data()); }
  UncachedWindow& window() { return *window_; }
  FakePath& path() { return *path_; }
  std::byte* remote() { return memory_.data() + kPlace; }
  std::byte* stack() { return stack_; }
  uint64_t stack_top() const { return reinterpret_cast<uint64_t>(stack_) + kStackBytes / 2; }

  // What both kinds of memory hold when code begins, and the ordinary pages around the window.
  std::byte* contents() { return contents_; }
  void fill(std::mt19937_64& random) {
    for (std::byte* part : {contents_, before_, behind_}) {
      for (size_t i = 0; i < (part == contents_ ? kBytes : kPage); i += 8) {
        const uint64_t value = random();
        std::memcpy(part + i, &value, 8);
      }
    }
  }
  // The pages before and behind the window.
  void protect_around(int protection) {
    ::mprotect(around_, kPage, protection);
    ::mprotect(around_ + kPage + kBytes, kPage, protection);
    has_around_ = protection != PROT_NONE;
  }

  // The code, behind it an `int3`.
  uint64_t put_code(const std::vector<uint8_t>& code, size_t at = 0) {
    std::memset(code_, 0xcc, 2 * kPage);
    std::copy(code.begin(), code.end(), code_ + at);
    return reinterpret_cast<uint64_t>(code_ + at);
  }

  Stop run_on_memory(Cpu* cpu) {
    protect(PROT_READ | PROT_WRITE);
    std::memcpy(window_->data(), contents_, kBytes);
    put_around();
    const Stop stop = run(cpu);
    std::memcpy(result_, window_->data(), kBytes);
    if (has_around_) {
      std::memcpy(result_before_, around_, kPage);
      std::memcpy(result_behind_, around_ + kPage + kBytes, kPage);
    }
    protect(PROT_NONE);
    return stop;
  }
  Stop run_on_window(Cpu* cpu) {
    std::memcpy(remote(), contents_, kBytes);
    put_around();
    path_->forget();
    refusal_.clear();
    cause_ = URMA_CR_SUCCESS;
    return run(cpu);
  }
  // With these registers pointing to where nobody may access anything, and then again to the window. A CPU may change
  // registers before an access of it faults: MMX takes over x87, a conversion raises its flags, a gather clears the
  // upper half of its mask. So this is how an access that the window refuses leaves them.
  Stop run_on_nothing(Cpu* cpu, std::initializer_list<int> pointers) {
    const uint64_t away = reinterpret_cast<uint64_t>(nothing_) - start();
    for (int pointer : pointers) cpu->general[pointer] += away;
    const Stop stop = run(cpu);
    for (int pointer : pointers) cpu->general[pointer] -= away;
    return stop;
  }
  // The same without setting memory to its contents first.
  Stop go_on(Cpu* cpu) { return run(cpu); }
  // After both ran: the first byte in which they differ, or -1.
  ptrdiff_t first_difference() {
    for (size_t i = 0; i < kBytes; ++i)
      if (result_[i] != remote()[i]) return static_cast<ptrdiff_t>(i);
    return -1;
  }
  std::string around_differs() const {
    if (!has_around_) return "";
    if (std::memcmp(result_before_, around_, kPage) != 0) return "the page before the window differs";
    if (std::memcmp(result_behind_, around_ + kPage + kBytes, kPage) != 0) return "the page behind the window differs";
    return "";
  }

  // What the window told of its last error.
  const std::string& refusal() const { return refusal_; }
  urma_cr_status_t cause() const { return cause_; }
  const std::byte* error_address() const { return error_address_; }
  // How often the next errors are answered with "try again".
  void retry(int times) { retries_ = times; }
  // The window is never destroyed: a signal handler was left while it was in it.
  void keep_window() { static_cast<void>(window_.release()); }

 private:
  static std::byte* map(int protection, size_t bytes) {
    void* at = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error("mmap");
    return static_cast<std::byte*>(at);
  }
  // Two pages with room for the window between them: the place that the kernel will choose for it, since all others
  // that are large enough are taken first.
  static std::byte* make_hole() {
    std::byte* const around = map(PROT_NONE, kBytes + 2 * kPage);
    ::munmap(around + kPage, kBytes);
    for (int i = 0; i < 1000; ++i) {
      if (map(PROT_NONE, kBytes) != around + kPage) continue;
      ::munmap(around + kPage, kBytes);
      return around;
    }
    throw std::runtime_error("no hole");
  }
  void put_around() {
    if (!has_around_) return;
    std::memcpy(around_, before_, kPage);
    std::memcpy(around_ + kPage + kBytes, behind_, kPage);
  }
  void protect(int protection) { ::mprotect(around_ + kPage, kBytes, protection); }
  static bool on_fault(const softub_fault_t* fault, void* context) {
    auto* arena = static_cast<Arena*>(context);
    arena->cause_ = fault->cause;
    arena->error_address_ = static_cast<std::byte*>(fault->address);
    if (fault->instruction != nullptr) arena->refusal_ = std::string(fault->instruction) + ": " + fault->why;
    if (arena->retries_ == 0) return false;
    --arena->retries_;
    return true;
  }

  FakeMemory memory_;
  FakePath* path_ = nullptr;
  std::unique_ptr<UncachedWindow> window_;
  std::byte* around_ = nullptr;
  bool has_around_ = false;
  uint8_t* code_ = nullptr;
  std::byte* nothing_ = nullptr;
  std::byte* stack_memory_ = nullptr;
  std::byte* stack_ = nullptr;
  std::byte contents_[kBytes], before_[kPage], behind_[kPage];
  std::byte result_[kBytes], result_before_[kPage], result_behind_[kPage];
  std::string refusal_;
  urma_cr_status_t cause_ = URMA_CR_SUCCESS;
  const std::byte* error_address_ = nullptr;
  int retries_ = 0;
};

}  // namespace ub::aperture::test
