// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/window/faulting_memory.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "lib/urma/aperture/window/page_table.h"

namespace ub::aperture {
namespace {

// Of kernels that are newer than the headers may be.
constexpr int kUserModeOnly = 1;     // UFFD_USER_MODE_ONLY, 5.11
constexpr int kDropEvenLocked = 24;  // MADV_DONTNEED_LOCKED, 5.18

bool refuse(WindowError* error, urma_status_t status, const std::string& why) {
  *error = {status, why};
  return false;
}

std::string reason() { return std::string(" (") + std::strerror(errno) + ")"; }

// Nobody needs a right for a userfaultfd that serves accesses of the program alone. Kernels before 5.11 do not know it.
int open_userfaultfd() {
  const int fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly));
  return fd >= 0 || errno != EINVAL ? fd : static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
}

}  // namespace

FaultingMemory::~FaultingMemory() {
  if (data_ != nullptr && !is_inherited()) ::munmap(data_, bytes_);
}

bool FaultingMemory::create(uint64_t pages, WindowError* error) {
  if (!open_faults(error)) return false;
  void* at = MAP_FAILED;
  errno = ENOMEM;
  if (pages <= SIZE_MAX / kPageBytes) {
    at =
        ::mmap(nullptr, pages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (at == MAP_FAILED) {
    return refuse(error, URMA_ENOMEM, "no room for a window of " + std::to_string(pages) + " pages" + reason());
  }
  data_ = static_cast<std::byte*>(at);
  bytes_ = pages * kPageBytes;
  process_ = ipc::fork_generation();
  return watch(error);
}

std::byte* FaultingMemory::at(uint64_t page) const { return data_ + page * kPageBytes; }

bool FaultingMemory::open_faults(WindowError* error) {
  faults_ = ipc::Fd(open_userfaultfd());
  if (!faults_ && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
    const char* advice = errno == ENOMEM ? "" : ": raise the limit of open files (ulimit -n, or fs.file-max)";
    return refuse(error, URMA_ENOMEM, "no userfaultfd for a window" + reason() + advice);
  }
  if (!faults_) {
    return refuse(error, URMA_ENOPERM,
                  "userfaultfd is refused" + reason() +
                      ": set vm.unprivileged_userfaultfd=1, or let the filter of the container (seccomp) pass it");
  }
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  if (::ioctl(faults_.get(), UFFDIO_API, &api) == 0) return true;
  return refuse(error, URMA_ENOPERM, "this kernel's userfaultfd has no SIGBUS or no write protection: it needs 5.7");
}

bool FaultingMemory::watch(WindowError* error) {
  uffdio_register watched = {};
  watched.range = {reinterpret_cast<uint64_t>(data_), bytes_};
  watched.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP;
  // A huge page would make 512 pages present at once.
  if (::madvise(data_, bytes_, MADV_DONTFORK) != 0 || ::ioctl(faults_.get(), UFFDIO_REGISTER, &watched) != 0 ||
      (watched.ioctls & uint64_t{1} << _UFFDIO_WRITEPROTECT) == 0) {
    return refuse(error, URMA_ENOPERM, "the kernel does not let a program serve the faults of its memory" + reason());
  }
  ::madvise(data_, bytes_, MADV_NOHUGEPAGE);  // fails on a kernel that has none
  // After mlockall(MCL_FUTURE) the kernel has filled the pages already.
  return drop(0, bytes_ / kPageBytes) ||
         refuse(error, URMA_ENOPERM, "the pages of a window cannot be dropped" + reason());
}

uint64_t FaultingMemory::fill(uint64_t first, uint64_t count, const std::byte* from, bool writable) {
  uffdio_copy copy = {};
  copy.dst = reinterpret_cast<uint64_t>(at(first));
  copy.src = reinterpret_cast<uint64_t>(from);
  copy.len = count * kPageBytes;
  copy.mode = UFFDIO_COPY_MODE_DONTWAKE | (writable ? 0 : UFFDIO_COPY_MODE_WP);
  ::ioctl(faults_.get(), UFFDIO_COPY, &copy);
  return copy.copy > 0 ? static_cast<uint64_t>(copy.copy) / kPageBytes : 0;
}

bool FaultingMemory::set_protection(uint64_t first, uint64_t count, bool protect) {
  uffdio_writeprotect change = {};
  change.range = {reinterpret_cast<uint64_t>(at(first)), count * kPageBytes};
  change.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : UFFDIO_WRITEPROTECT_MODE_DONTWAKE;
  return ::ioctl(faults_.get(), UFFDIO_WRITEPROTECT, &change) == 0;
}

bool FaultingMemory::drop(uint64_t first, uint64_t count) {
  if (::madvise(at(first), count * kPageBytes, kDropEvenLocked) == 0) return true;
  return errno == EINVAL && ::madvise(at(first), count * kPageBytes, MADV_DONTNEED) == 0;
}

}  // namespace ub::aperture
