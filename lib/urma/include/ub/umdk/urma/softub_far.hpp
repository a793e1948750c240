// SPDX-License-Identifier: Apache-2.0
//
// Remote memory in C++20, header only, on top of softub_aperture.h:
//
//   far_handle        a handle (softub_open) that closes itself
//   far_ptr<T>        a place in remote memory: loads, stores and atomics of a T through a handle
//   far_window        a window (softub_map) that unmaps itself: plain pointers reach remote memory
//   far_arena         hands out the memory of a window in blocks
//   far_allocator<T>  lets containers of the standard library live there
//
//   softub::far_window window(segment);
//   softub::far_arena arena(window);
//   std::map<int, int, std::less<>, softub::far_allocator<std::pair<const int, int>>> map(arena);
//
// Errors are exceptions: std::system_error where something cannot be opened or mapped (its code is errno of the C call,
// where each value is explained), far_error where an access through a handle or a call on a window fails, std::bad_alloc
// where an arena is used up. A plain pointer that cannot be served throws nothing: the handler of on_fault() is asked, and
// without one the process gets SIGBUS as from real memory.
//
// Ownership: a far_ptr does not own its handle, an arena not its window, an allocator not its arena. So they are declared
// in this order: window, arena, containers. The imported segment outlives all of them.
//
// What lives in a window and what does not:
//   - A container's elements and nodes do; the container object itself lives where it is declared. Elements that own
//     memory (std::string) need an allocator of their own for it: std::basic_string<char, ..., far_allocator<char>>.
//   - Pointers in the window are addresses of this window. Another program could follow them only if its window were
//     at the same address, and softub_map() chooses the address: containers are for the program that made them. Data
//     without pointers (an array of numbers) may be read by any number of programs, at the same places of the segment.
//   - The arena's lists are in this process. What it handed out is not found again after the process has ended.
//   - std::atomic in a cached window is atomic among the threads of this process only; far_ptr's atomics are for all.
//   - System calls refuse addresses of a window whose page is not present; far_window::sync() makes it so.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "softub_aperture.h"

namespace softub {

// ---- errors ----------------------------------------------------------------------------------------------------

// An access, or a call on a window, that failed; the causes are those of softub_load() and softub_sync().
class far_error : public std::runtime_error {
 public:
  far_error(const std::string& what, urma_cr_status_t status)
      : std::runtime_error(what + " failed: " + text_of(status)), status_(status) {}

  urma_cr_status_t status() const noexcept { return status_; }

  static std::string text_of(urma_cr_status_t status) {
    switch (status) {
      case URMA_CR_REM_ACCESS_ABORT_ERR:
        return "beyond the remote memory, no permission, or no longer registered";
      case URMA_CR_ACK_TIMEOUT_ERR:
        return "the owner of the memory is gone or does not answer";
      case URMA_CR_LOC_OPERATION_ERR:
        return "opened by another process, or refused by the kernel";
      case URMA_CR_LOC_LEN_ERR:
        return "too many bytes, or a range that is not that of a window";
      case URMA_CR_LOC_ACCESS_ERR:
        return "the window is read-only, or the page is not owned";
      case URMA_CR_REM_UNSUPPORTED_REQ_ERR:
        return "not aligned";
      default:
        return "status " + std::to_string(static_cast<int>(status));
    }
  }

  // Throws unless the status is success.
  static void check(urma_cr_status_t status, const char* what) {
    if (status != URMA_CR_SUCCESS) throw far_error(what, status);
  }

 private:
  urma_cr_status_t status_;
};

// ---- handles ---------------------------------------------------------------------------------------------------

// Thread: one at a time; duplicate() makes another handle for another thread.
class far_handle {
 public:
  // std::system_error as softub_open() fails. `path`: SOFTUB_PATH_NONE: the best there is.
  explicit far_handle(urma_target_seg_t* segment, softub_path_t path = SOFTUB_PATH_NONE)
      : far_handle(open(segment, path)) {}
  far_handle(far_handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  far_handle& operator=(far_handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~far_handle() { softub_close(handle_); }

  far_handle duplicate() const { return far_handle(checked(softub_dup(handle_))); }
  // Waits until all stores are executed. far_error: the first one of them that failed since the last call.
  void fence() const { far_error::check(softub_fence(handle_), "a store"); }
  softub_cost_t cost() const {
    softub_cost_t cost = {};
    if (softub_get_cost(handle_, &cost) != URMA_SUCCESS) throw far_error("a question", URMA_CR_LOC_OPERATION_ERR);
    return cost;
  }
  softub_aperture_t* get() const noexcept { return handle_; }

 private:
  explicit far_handle(softub_aperture_t* handle) noexcept : handle_(handle) {}
  static softub_aperture_t* checked(softub_aperture_t* handle) {
    if (handle == nullptr) throw std::system_error(errno, std::generic_category(), "cannot open remote memory");
    return handle;
  }
  static softub_aperture_t* open(urma_target_seg_t* segment, softub_path_t path) {
    softub_aperture_options_t options = {};
    options.path = path;
    return checked(softub_open(segment, &options));
  }

  softub_aperture_t* handle_;
};

// ---- pointers --------------------------------------------------------------------------------------------------

// What atomics work on.
template <class T>
concept far_integer = std::integral<T> && (sizeof(T) == 4 || sizeof(T) == 8);

template <class T>
class far_ref;

// A place in the memory of a handle, counted in bytes from the first one of the segment. It behaves like a T*: *p and
// p[i] can be read and assigned to, and it can be counted up. Each access is one of the remote memory: nothing is kept
// here. A T of up to 64 bytes that does not cross a line of 64 is one load or store; aligned words of it are never torn.
//
// A store does not wait: far_handle::fence() does, and tells errors. Atomics are executed once, after the stores of the
// handle, and wait; where one throws far_error with URMA_CR_ACK_TIMEOUT_ERR it may have been executed.
template <class T>
class far_ptr {
  static_assert(std::is_trivially_copyable_v<T> && std::is_same_v<T, std::remove_cv_t<T>>,
                "remote memory has bytes: T must be trivially copyable, and neither const nor volatile");
  static_assert(sizeof(T) <= 8192, "a load or store has at most 8192 bytes");

 public:
  using element_type = T;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using reference = far_ref<T>;

  far_ptr() = default;
  far_ptr(std::nullptr_t) noexcept {}
  explicit far_ptr(const far_handle& handle, uint64_t at = 0) noexcept : far_ptr(handle.get(), at) {}
  far_ptr(softub_aperture_t* handle, uint64_t at) noexcept : handle_(handle), at_(at) {}

  T load() const {
    std::array<std::byte, sizeof(T)> bytes;
    far_error::check(softub_load(handle_, at_, bytes.data(), sizeof(T)), "a load");
    return std::bit_cast<T>(bytes);
  }
  void store(const T& value) const { far_error::check(softub_store(handle_, at_, &value, sizeof(T)), "a store"); }

  // Each returns what was there before.
  T exchange(T value) const requires far_integer<T> { return atomic(SOFTUB_ATOMIC_SWAP, value); }
  T fetch_add(T value) const requires far_integer<T> { return atomic(SOFTUB_ATOMIC_ADD, value); }
  T fetch_sub(T value) const requires far_integer<T> { return atomic(SOFTUB_ATOMIC_SUB, value); }
  T fetch_and(T value) const requires far_integer<T> { return atomic(SOFTUB_ATOMIC_AND, value); }
  T fetch_or(T value) const requires far_integer<T> { return atomic(SOFTUB_ATOMIC_OR, value); }
  T fetch_xor(T value) const requires far_integer<T> { return atomic(SOFTUB_ATOMIC_XOR, value); }
  // True: `expected` was there, and now `desired` is. False: `expected` becomes what is there.
  bool compare_exchange(T& expected, T desired) const requires far_integer<T> {
    const T before = atomic(SOFTUB_ATOMIC_COMPARE_SWAP, desired, expected);
    return before == expected || (expected = before, false);
  }

  far_ref<T> operator*() const noexcept { return far_ref<T>(*this); }
  far_ref<T> operator[](difference_type n) const noexcept { return *(*this + n); }

  // A member of the T there: p.member(&Record::count).
  template <class Member, class Of>
  far_ptr<Member> member(Member Of::*which) const noexcept {
    alignas(T) static const std::byte place[sizeof(T)] = {};  // asked for addresses alone
    const auto* inside = &(reinterpret_cast<const T*>(place)->*which);
    return as<Member>(static_cast<uint64_t>(reinterpret_cast<const std::byte*>(inside) - place));
  }
  // Another type, so many bytes behind.
  template <class Other>
  far_ptr<Other> as(uint64_t offset = 0) const noexcept {
    return {handle_, at_ + offset};
  }

  far_ptr& operator+=(difference_type n) noexcept {
    at_ += static_cast<uint64_t>(n) * sizeof(T);
    return *this;
  }
  far_ptr& operator-=(difference_type n) noexcept { return *this += -n; }
  far_ptr& operator++() noexcept { return *this += 1; }
  far_ptr& operator--() noexcept { return *this -= 1; }
  far_ptr operator++(int) noexcept { return std::exchange(*this, *this + 1); }
  far_ptr operator--(int) noexcept { return std::exchange(*this, *this - 1); }
  friend far_ptr operator+(far_ptr p, difference_type n) noexcept { return p += n; }
  friend far_ptr operator+(difference_type n, far_ptr p) noexcept { return p += n; }
  friend far_ptr operator-(far_ptr p, difference_type n) noexcept { return p -= n; }
  // In T's, of pointers through the same handle.
  friend difference_type operator-(far_ptr a, far_ptr b) noexcept {
    return static_cast<difference_type>(a.at_ - b.at_) / static_cast<difference_type>(sizeof(T));
  }
  friend bool operator==(const far_ptr&, const far_ptr&) = default;
  friend auto operator<=>(const far_ptr&, const far_ptr&) = default;

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  softub_aperture_t* handle() const noexcept { return handle_; }
  uint64_t at() const noexcept { return at_; }

 private:
  T atomic(softub_atomic_op_t op, T operand, T compare = 0) const {
    using Bits = std::make_unsigned_t<T>;
    uint64_t old = 0;
    far_error::check(
        softub_atomic(handle_, op, at_, sizeof(T), static_cast<Bits>(operand), static_cast<Bits>(compare), &old),
        "an atomic");
    return static_cast<T>(old);
  }

  softub_aperture_t* handle_ = nullptr;
  uint64_t at_ = 0;
};

// What *p and p[i] are: read it as a T, or assign a T to it.
template <class T>
class far_ref {
 public:
  explicit far_ref(far_ptr<T> place) noexcept : place_(place) {}
  far_ref(const far_ref&) = default;

  operator T() const { return place_.load(); }
  const far_ref& operator=(const T& value) const {
    place_.store(value);
    return *this;
  }
  const far_ref& operator=(const far_ref& other) const { return *this = static_cast<T>(other); }
  far_ptr<T> operator&() const noexcept { return place_; }

 private:
  far_ptr<T> place_;
};

// ---- windows ---------------------------------------------------------------------------------------------------

// Thread: any, but no other thread uses the window while it is closed or destroyed.
class far_window {
 public:
  // std::system_error as softub_map() fails.
  explicit far_window(urma_target_seg_t* segment, const softub_map_options_t& options = {})
      : data_(static_cast<std::byte*>(softub_map(segment, &options))), offset_(options.offset) {
    if (data_ == nullptr) throw std::system_error(errno, std::generic_category(), "cannot map remote memory");
    size_ = options.bytes != 0 ? options.bytes : segment->seg.len - options.offset;
  }
  far_window(const far_window&) = delete;
  far_window& operator=(const far_window&) = delete;
  // Writes back what is dirty and unmaps; that something could not be written is in the log alone.
  ~far_window() {
    if (data_ != nullptr) softub_unmap(data_);
  }

  // The same, and std::system_error with EIO if bytes could not be written back and are lost.
  void close() {
    if (softub_unmap(std::exchange(data_, nullptr)) != URMA_SUCCESS) {
      throw std::system_error(EIO, std::generic_category(), "what was written to remote memory is lost in part");
    }
  }

  std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  // Where an address of the window lies in the segment: what softub_load() and far_ptr call `at`.
  uint64_t at(const void* address) const noexcept {
    return offset_ + static_cast<uint64_t>(static_cast<const std::byte*>(address) - data_);
  }

  // SOFTUB_FLUSH and so on, of the whole window or a range. far_error as softub_sync() fails.
  void sync(uint32_t what) { sync(data_, size_, what); }
  void sync(void* at, size_t bytes, uint32_t what) { far_error::check(softub_sync(at, bytes, what), "a sync"); }
  void own(void* at, size_t bytes, softub_owned_t owned) {
    far_error::check(softub_own(at, bytes, owned), "a change of ownership");
  }
  void on_fault(softub_fault_handler_t handler, void* context) { softub_on_fault(data_, handler, context); }

  // Of a cached window; all zero for an uncached one.
  softub_window_counts_t counts() const {
    softub_window_counts_t counts = {};
    softub_get_window_counts(data_, &counts);
    return counts;
  }

 private:
  std::byte* data_;
  size_t size_ = 0;
  uint64_t offset_;
};

// ---- arenas ----------------------------------------------------------------------------------------------------

// Hands out a range of memory in blocks. Blocks of up to 64 bytes are multiples of 16; larger ones are whole lines of 64,
// begin with a line, and have a quarter more than was asked for at most, but for less than four lines. A block that
// comes back serves the next request of its size; blocks are neither merged nor divided, so a growing vector leaves
// some behind (reserve() avoids it). All notes about blocks are kept in local memory: neither taking a block nor giving
// it back touches the window.
//
// Thread: any.
class far_arena {
 public:
  static constexpr size_t most_alignment = 64;

  explicit far_arena(const far_window& window) : far_arena(window.data(), window.size()) {}
  // Any memory, a part of a window for example. It begins at a multiple of 64.
  far_arena(void* memory, size_t bytes) noexcept : next_(static_cast<std::byte*>(memory)), left_(bytes) {}
  far_arena(const far_arena&) = delete;
  far_arena& operator=(const far_arena&) = delete;

  // std::bad_alloc: used up, or an alignment above 64.
  void* allocate(size_t bytes, size_t alignment = alignof(std::max_align_t)) {
    const size_t size = size_of_block(bytes, alignment);
    if (size < bytes || alignment > most_alignment) throw std::bad_alloc();
    std::lock_guard guard(mutex_);
    void* block = take_former(size);
    if (block == nullptr) block = take_new(size);
    if (block == nullptr) throw std::bad_alloc();
    in_use_ += size;
    return block;
  }
  // With the same numbers. If there is no local memory to note the block, it is not used again.
  void deallocate(void* block, size_t bytes, size_t alignment = alignof(std::max_align_t)) noexcept try {
    const size_t size = size_of_block(bytes, alignment);
    std::lock_guard guard(mutex_);
    in_use_ -= size;
    former_[size].push_back(block);
  } catch (const std::bad_alloc&) {
  }

  // Bytes of all blocks that were not given back.
  size_t in_use() const {
    std::lock_guard guard(mutex_);
    return in_use_;
  }
  // Bytes that no block was made of yet.
  size_t untouched() const {
    std::lock_guard guard(mutex_);
    return left_;
  }

 private:
  static constexpr size_t kLine = 64;
  static constexpr size_t kGrain = 16;

  static size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }
  // Above a line: four sizes between a power of two and the next. What cannot be rounded becomes smaller.
  static size_t size_of_block(size_t bytes, size_t alignment) {
    const size_t least = std::max<size_t>(bytes, alignment > kGrain ? kLine : kGrain);
    return least <= kLine ? round_up(least, kGrain) : round_up(least, std::max(kLine, std::bit_floor(least - 1) / 4));
  }
  void* take_former(size_t size) {
    const auto found = former_.find(size);
    if (found == former_.end() || found->second.empty()) return nullptr;
    void* block = found->second.back();
    found->second.pop_back();
    return block;
  }
  void* take_new(size_t size) {
    const size_t unaligned = reinterpret_cast<uintptr_t>(next_) % kLine;
    const size_t skipped = size % kLine == 0 && unaligned != 0 ? kLine - unaligned : 0;
    if (skipped > left_ || size > left_ - skipped) return nullptr;
    std::byte* block = next_ + skipped;
    next_ = block + size;
    left_ -= skipped + size;
    return block;
  }

  mutable std::mutex mutex_;
  std::byte* next_;
  size_t left_;
  size_t in_use_ = 0;
  std::unordered_map<size_t, std::vector<void*>> former_;  // by their size
};

// An allocator as the standard library wants them; its arena outlives the container. A container that is moved or
// swapped takes its arena along, one that is assigned to keeps its own.
template <class T>
class far_allocator {
  static_assert(alignof(T) <= far_arena::most_alignment);

 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  far_allocator(far_arena& arena) noexcept : arena_(&arena) {}
  template <class Other>
  far_allocator(const far_allocator<Other>& other) noexcept : arena_(&other.arena()) {}

  // std::bad_alloc: the arena is used up.
  T* allocate(size_t n) {
    if (n > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(arena_->allocate(n * sizeof(T), alignof(T)));
  }
  void deallocate(T* block, size_t n) noexcept { arena_->deallocate(block, n * sizeof(T), alignof(T)); }
  far_arena& arena() const noexcept { return *arena_; }

  template <class Other>
  friend bool operator==(const far_allocator& a, const far_allocator<Other>& b) noexcept {
    return &a.arena() == &b.arena();
  }

 private:
  far_arena* arena_;
};

}  // namespace softub
