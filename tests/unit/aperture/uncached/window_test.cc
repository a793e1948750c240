// SPDX-License-Identifier: Apache-2.0
//
// The window: how it is made, what it says of errors, threads, signals, children.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <functional>
#include <thread>

#include "fake_path.h"
#include "lib/urma/aperture/uncached/uncached_window.h"
#include "lib/urma/aperture/window/cached_window.h"

namespace ub::aperture::test {
namespace {

constexpr size_t kBytes = 8192;

// A window on memory of its own, by so many paths.
class Made {
 public:
  explicit Made(size_t paths = 1, UncachedOptions options = {.bytes = kBytes})
      : memory_(options.place + options.bytes) {
    std::vector<std::unique_ptr<RemotePath>> owned;
    for (size_t i = 0; i < paths; ++i) {
      auto path = std::make_unique<FakePath>(memory_);
      paths_.push_back(path.get());
      owned.push_back(std::move(path));
    }
    WindowError error;
    window_ = UncachedWindow::create(options, std::move(owned), &error);
    EXPECT_NE(window_, nullptr) << error.why;
  }
  template <class T>
  volatile T* at(size_t offset = 0) {
    return reinterpret_cast<volatile T*>(window_->data() + offset);
  }
  FakeMemory& memory() { return memory_; }
  FakePath& path(size_t i = 0) { return *paths_[i]; }
  UncachedWindow& window() { return *window_; }
  uint64_t sum(const std::atomic<uint64_t> FakePath::*count) const {
    uint64_t sum = 0;
    for (FakePath* path : paths_) sum += (path->*count).load();
    return sum;
  }

 private:
  FakeMemory memory_;
  std::vector<FakePath*> paths_;
  std::unique_ptr<UncachedWindow> window_;
};

std::vector<std::unique_ptr<RemotePath>> one_path(FakeMemory& memory, bool signal_safe = true) {
  auto path = std::make_unique<FakePath>(memory);
  path->signal_safe = signal_safe;
  std::vector<std::unique_ptr<RemotePath>> paths;
  paths.push_back(std::move(path));
  return paths;
}

// What an error handler was told; it answers "try again" so often.
struct Told {
  int retries = 0;
  std::atomic<int> count{0};
  softub_fault_t last{};
  std::string instruction, why;

  static bool on_fault(const softub_fault_t* fault, void* context) {
    auto* told = static_cast<Told*>(context);
    told->count.fetch_add(1);
    told->last = *fault;
    told->instruction = fault->instruction != nullptr ? fault->instruction : "";
    told->why = fault->why != nullptr ? fault->why : "";
    if (told->retries == 0) return false;
    --told->retries;
    return true;
  }
};

// The handler before ours: it leaves the access that was not handled.
sigjmp_buf g_leave;
volatile sig_atomic_t g_leaves = 0;
siginfo_t g_info;
void leave(int, siginfo_t* info, void*) {
  if (g_leaves == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    return;
  }
  g_info = *info;
  siglongjmp(g_leave, 1);
}
const bool g_taken = [] {
  struct sigaction ours = {};
  ours.sa_sigaction = leave;
  ours.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &ours, nullptr);
  return true;
}();

// False: the access was not handled, and the signal came to the handler before ours.
template <class Access>
bool succeeds(Access access) {
  g_leaves = 1;
  const bool left = sigsetjmp(g_leave, 1) != 0;
  if (!left) access();
  g_leaves = 0;
  return !left;
}

int status_of_child(const std::function<void()>& run) {
  const pid_t child = ::fork();
  if (child == 0) {
    run();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

// ---- making one ----

TEST(UncachedWindow, RefusesWhatCannotWork) {
  FakeMemory memory(kBytes);
  WindowError error;
  EXPECT_EQ(UncachedWindow::create({.bytes = 0}, one_path(memory), &error), nullptr);
  EXPECT_EQ(error.why, "a window has at least one byte");
  EXPECT_EQ(error.status, URMA_EINVAL);
  EXPECT_EQ(UncachedWindow::create({.bytes = kBytes}, {}, &error), nullptr);
  EXPECT_EQ(error.why, "an uncached window needs a path that works in a signal handler");
  error = {};
  EXPECT_EQ(UncachedWindow::create({.bytes = kBytes}, one_path(memory, false), &error), nullptr);
  EXPECT_EQ(error.why, "an uncached window needs a path that works in a signal handler");
  EXPECT_EQ(UncachedWindow::create({.bytes = size_t{1} << 62}, one_path(memory), &error), nullptr);
  EXPECT_NE(error.why.find("no addresses for a window of 4611686018427387904 bytes"), std::string::npos) << error.why;
  EXPECT_EQ(error.status, URMA_ENOMEM);
  const UncachedOptions all = {.bytes = SIZE_MAX, .remote_address = 2};
  EXPECT_EQ(UncachedWindow::create(all, one_path(memory), &error), nullptr);
  EXPECT_EQ(error.status, URMA_EINVAL);
}

TEST(UncachedWindow, BytesLieAsTheRemoteOnes) {
  Made made(1, {.place = 100, .bytes = 5000, .remote_address = 0x12345});
  EXPECT_EQ(reinterpret_cast<uint64_t>(made.window().data()) % 4096, (0x12345u + 100) % 4096);
  *made.at<uint8_t>(7) = 9;
  EXPECT_EQ(made.path().accesses(), (std::vector<Noted>{{Kind::kStore, 107, 1}}));
  EXPECT_EQ(made.memory().data()[107], std::byte{9});
  *made.at<uint8_t>(4999) = 10;
  EXPECT_EQ(made.memory().data()[5099], std::byte{10});
  // The rest of the pages is nobody's memory.
  EXPECT_FALSE(succeeds([&] { *made.at<uint8_t>(5000) = 1; }));
  EXPECT_FALSE(succeeds([&] { static_cast<void>(made.at<uint8_t>()[-1]); }));
}

TEST(UncachedWindow, OfMemoryThatIsNeverWritableAndExecutable) {
  constexpr int kSetMdwe = 65, kRefuseExecGain = 1;  // PR_SET_MDWE, younger than many headers
  const auto make = [] {
    if (::prctl(kSetMdwe, kRefuseExecGain, 0, 0, 0) != 0) ::_exit(77);
    Made made;
    *made.at<uint64_t>(8) = 5;
    if (*made.at<uint64_t>(8) != 5) ::_exit(1);
  };
  const int status = status_of_child(make);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "this kernel has no PR_SET_MDWE";
  EXPECT_EQ(status, 0);
}

// A filter that lets nobody map memory for executing it.
void refuse_executable_memory() {
  const sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {sizeof program / sizeof *program, const_cast<sock_filter*>(program)};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ::_exit(77);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) ::_exit(77);
}

TEST(UncachedWindow, SaysThatCodeMustNotBeExecuted) {
  const int status = status_of_child([] {
    refuse_executable_memory();
    FakeMemory memory(kBytes);
    WindowError error;
    if (UncachedWindow::create({.bytes = kBytes}, one_path(memory), &error) != nullptr) ::_exit(1);
    if (error.why.find("lets no program execute code that it made") == std::string::npos) ::_exit(2);
    if (error.why.find("Permission denied") == std::string::npos) ::_exit(3);
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "seccomp is refused here";
  EXPECT_EQ(status, 0);
}

// ---- errors ----

TEST(UncachedWindow, AReadOnlyOneCanBeRead) {
  Made made(1, {.bytes = kBytes, .read_only = true});
  Told told;
  made.window().on_fault(Told::on_fault, &told);
  made.memory().data()[16] = std::byte{42};
  EXPECT_EQ(*made.at<uint8_t>(16), 42);
  const std::vector<std::function<void()>> writes = {
      [&] { *made.at<uint64_t>(16) = 1; }, [&] { *made.at<uint32_t>(16) = *made.at<uint32_t>(16) + 1; },
      [&] { __atomic_fetch_add(made.at<uint32_t>(16), 1, __ATOMIC_SEQ_CST); },
      [&] { __atomic_exchange_n(made.at<uint8_t>(16), 1, __ATOMIC_SEQ_CST); },
      [&] {
        void* to = const_cast<uint8_t*>(made.at<uint8_t>(16));
        uint64_t count = 5;
        asm volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
      }};
  for (const auto& write : writes) {
    EXPECT_FALSE(succeeds(write));
    EXPECT_EQ(told.last.cause, URMA_CR_LOC_ACCESS_ERR);
    EXPECT_EQ(told.last.address, made.window().data() + 16);
    EXPECT_EQ(told.instruction, "");
  }
  EXPECT_EQ(made.path().stores.load() + made.path().atomics.load(), 0u);
  EXPECT_EQ(g_info.si_addr, made.window().data() + 16);
  EXPECT_EQ(made.memory().data()[16], std::byte{42});
}

TEST(UncachedWindow, ErrorsOfThePathAreToldWithTheirCause) {
  Made made;
  Told told;
  made.window().on_fault(Told::on_fault, &told);
  FakePath& path = made.path();
  const std::vector<std::pair<std::atomic<uint32_t>*, std::function<void()>>> cases = {
      {&path.failing_loads, [&] { static_cast<void>(*made.at<uint64_t>(8)); }},
      {&path.failing_stores, [&] { *made.at<uint64_t>(8) = 1; }},
      {&path.failing_fences, [&] { *made.at<uint64_t>(8) = 1; }},
      {&path.failing_atomics, [&] { __atomic_fetch_add(made.at<uint64_t>(8), 1, __ATOMIC_SEQ_CST); }},
      {&path.failing_loads, [&] { *made.at<uint64_t>(8) = *made.at<uint64_t>(8) + 1; }},
      {&path.failing_fences, [&] { *made.at<uint64_t>(8) = *made.at<uint64_t>(8) + 1; }}};
  for (const auto& [failing, access] : cases) {
    for (const urma_cr_status_t cause : {URMA_CR_REM_ACCESS_ABORT_ERR, URMA_CR_ACK_TIMEOUT_ERR}) {
      path.failure = cause;
      *failing = 1;
      told.retries = 0;
      EXPECT_FALSE(succeeds(access));
      EXPECT_EQ(told.last.cause, cause);
      EXPECT_EQ(told.last.address, made.window().data() + 8);
      EXPECT_EQ(told.instruction, "");
      // Again, three times until it works.
      told.count = 0;
      told.retries = 3;
      *failing = 3;
      EXPECT_TRUE(succeeds(access));
      EXPECT_EQ(told.count.load(), 3);
      EXPECT_FALSE(path.in_use.load());
    }
  }
}

TEST(UncachedWindow, TellsWhatIsNotSupported) {
  Made made;
  Told told;
  made.window().on_fault(Told::on_fault, &told);
  EXPECT_FALSE(succeeds([&] { asm volatile("fxsave64 (%0)" : : "r"(made.at<uint8_t>(1024)) : "memory"); }));
  EXPECT_EQ(told.last.cause, URMA_CR_UNSUPPORTED_OPCODE_ERR);
  EXPECT_EQ(told.instruction.substr(0, 8), "fxsave64");
  EXPECT_NE(told.why.find("more than 64 bytes"), std::string::npos);
  EXPECT_GE(told.last.address, made.window().data() + 1024);
  EXPECT_LT(told.last.address, made.window().data() + 1024 + 512);
  uint8_t opcode[3];
  std::memcpy(opcode, told.last.code, 3);  // the instruction that it is
  EXPECT_EQ(opcode[0] & 0xf8, 0x48);
  EXPECT_EQ(opcode[1], 0x0f);
  EXPECT_EQ(opcode[2], 0xae);
}

using Function = void (*)();
TEST(UncachedWindow, CodeInItIsNotExecuted) {
  Made made;
  Told told;
  made.window().on_fault(Told::on_fault, &told);
  EXPECT_FALSE(succeeds([&] { reinterpret_cast<Function>(made.window().data())(); }));
  EXPECT_EQ(told.why, "code in a window cannot be executed");
  EXPECT_EQ(told.last.code, made.window().data());
}

TEST(UncachedWindow, WithoutAHandlerTheErrorIsWritten) {
  Made made;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int status = status_of_child([&] {
    ::dup2(ends[1], STDERR_FILENO);
    Made of_child;
    of_child.path().failing_loads = 1;
    of_child.path().failure = URMA_CR_ACK_TIMEOUT_ERR;
    succeeds([&] { static_cast<void>(*of_child.at<uint64_t>(0xff8)); });
    succeeds([&] { asm volatile("fxsave64 (%0)" : : "r"(of_child.at<uint8_t>(1024)) : "memory"); });
  });
  EXPECT_EQ(status, 0);
  ::close(ends[1]);
  std::string text;
  char piece[256];
  for (ssize_t n; (n = ::read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, static_cast<size_t>(n));
  ::close(ends[0]);
  EXPECT_NE(text.find("softub: an access to remote memory at 0x"), std::string::npos) << text;
  EXPECT_NE(text.find("ff8 by the instruction at 0x"), std::string::npos) << text;
  EXPECT_NE(text.find(" failed: urma_cr_status_t 9\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" (fxsave64 ["), std::string::npos) << text;
  EXPECT_NE(text.find(") is not supported: its operand has no fixed size, or more than 64 bytes\n"), std::string::npos);
}

TEST(UncachedWindow, AHandlerCanBeTakenBackAndReplaced) {
  Made made;
  Told first, second;
  made.path().failing_loads = 2;
  made.window().on_fault(Told::on_fault, &first);
  EXPECT_FALSE(succeeds([&] { static_cast<void>(*made.at<uint8_t>()); }));
  made.window().on_fault(Told::on_fault, &second);
  EXPECT_FALSE(succeeds([&] { static_cast<void>(*made.at<uint8_t>()); }));
  EXPECT_EQ(first.count.load(), 1);
  EXPECT_EQ(second.count.load(), 1);
}

// ---- handlers that leave by a jump ----

sigjmp_buf g_jump;
bool jump(const softub_fault_t*, void*) { siglongjmp(g_jump, 1); }

template <class Access>
[[gnu::noinline]] bool is_left(Access access) {
  if (sigsetjmp(g_jump, 1) != 0) return true;
  access();
  return false;
}

TEST(UncachedWindow, AHandlerMayJump) {
  Made made;
  made.window().on_fault(jump, nullptr);
  made.path().failing_loads = 3;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(is_left([&] { static_cast<void>(*made.at<uint8_t>()); }));
  EXPECT_TRUE(is_left([&] { asm volatile("fxsave64 (%0)" : : "r"(made.at<uint8_t>(1024)) : "memory"); }));
  Made other;
  EXPECT_EQ(*other.at<uint8_t>(), 0);
  EXPECT_EQ(*made.at<uint8_t>(), 0);
}

// The handler of a cached window jumps out of an access to an uncached one.
TEST(UncachedWindow, AHandlerMayJumpOutOfAFaultInsideOfAFault) {
  Made made;
  FakeMemory memory(kBytes);
  auto path = std::make_unique<FakePath>(memory);
  path->failing_loads = 1;
  std::vector<std::unique_ptr<RemotePath>> paths;
  paths.push_back(std::move(path));
  WindowError error;
  const auto cached = CachedWindow::create({.segment_bytes = kBytes, .bytes = kBytes}, std::move(paths), &error);
  ASSERT_NE(cached, nullptr) << error.why;
  cached->on_fault(jump, nullptr);
  const auto copy = [&] {
    void* to = cached->data();
    const void* from = made.window().data();
    uint64_t count = 100;
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
  };
  made.memory().data()[7] = std::byte{7};
  EXPECT_TRUE(is_left(copy));
  Made other;
  EXPECT_EQ(*other.at<uint8_t>(), 0);
  EXPECT_FALSE(is_left(copy));
  EXPECT_EQ(cached->data()[7], std::byte{7});
}

// From one window to another: while the one is accessed, no path of the other is held.
TEST(UncachedWindow, StringsFromWindowToWindow) {
  Made from, to;
  for (size_t i = 0; i < 3000; ++i) from.memory().data()[i] = static_cast<std::byte>(i * 7);
  void* destination = to.window().data() + 100;
  const void* source = from.window().data();
  uint64_t count = 3000;
  asm volatile("rep movsb" : "+D"(destination), "+S"(source), "+c"(count) : : "memory");
  EXPECT_EQ(std::memcmp(to.memory().data() + 100, from.memory().data(), 3000), 0);
  EXPECT_EQ(destination, to.window().data() + 3100);
  EXPECT_FALSE(from.path().used_twice.load() || to.path().used_twice.load());
}

// ---- children ----

TEST(UncachedWindow, AChildHasNoWindowButMayMakeItsOwn) {
  Made made;
  *made.at<uint32_t>() = 1;
  made.path().forget();
  const int killed = status_of_child([&] {
    ::signal(SIGALRM, SIG_DFL);
    g_leaves = 0;
    *made.at<uint32_t>() = 2;
  });
  EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGSEGV);
  const int own = status_of_child([&] {
    Made of_child;
    *of_child.at<uint32_t>() = 3;
    if (*of_child.at<uint32_t>() != 3) ::_exit(1);
  });
  EXPECT_EQ(own, 0);
  EXPECT_EQ(*made.at<uint32_t>(), 1u);
}

// ---- threads ----

TEST(UncachedWindow, LockedCountersAreExact) {
  constexpr int kThreads = 6, kRounds = 400;
  Made made(2);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        __atomic_fetch_add(made.at<uint64_t>(0), 3, __ATOMIC_SEQ_CST);
        asm volatile("lock incl %0" : "+m"(*made.at<uint32_t>(8)));
        asm volatile("lock addb $1, %0" : "+m"(*made.at<uint8_t>(16 + i % 3)));  // neighbours in one word
        asm volatile("lock addw $1, %0" : "+m"(*made.at<uint16_t>(22)));
        asm volatile("lock negq %0" : "+m"(*made.at<uint64_t>(32)));
        asm volatile("lock btcl %1, %0" : "+m"(*made.at<uint32_t>(40)) : "r"(i * 32));
        uint64_t seen = *made.at<uint64_t>(64);
        while (!__atomic_compare_exchange_n(made.at<uint64_t>(64), &seen, seen + 1, false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_SEQ_CST)) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*made.at<uint64_t>(0), 3u * kThreads * kRounds);
  EXPECT_EQ(*made.at<uint32_t>(8), static_cast<uint32_t>(kThreads * kRounds));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(*made.at<uint8_t>(16 + i), static_cast<uint8_t>(2 * kRounds));
  EXPECT_EQ(*made.at<uint8_t>(19), 0);
  EXPECT_EQ(*made.at<uint16_t>(22), static_cast<uint16_t>(kThreads * kRounds));
  EXPECT_EQ(*made.at<uint64_t>(32), 0u);
  for (size_t i = 0; i < kThreads; ++i) EXPECT_EQ(*made.at<uint32_t>(40 + 4 * i), 0u);
  EXPECT_EQ(*made.at<uint64_t>(64), static_cast<uint64_t>(kThreads * kRounds));
  for (size_t i = 0; i < 2; ++i) EXPECT_FALSE(made.path(i).used_twice.load());
}

// A lock in the window keeps plain loads and stores apart, though they go by different paths.
TEST(UncachedWindow, ALockKeepsThreadsApart) {
  constexpr int kThreads = 4, kRounds = 300;
  Made made(3);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        while (__atomic_exchange_n(made.at<uint8_t>(0), 1, __ATOMIC_ACQUIRE) != 0) std::this_thread::yield();
        *made.at<uint64_t>(128) = *made.at<uint64_t>(128) + 1;
        __atomic_store_n(made.at<uint8_t>(0), 0, __ATOMIC_RELEASE);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*made.at<uint64_t>(128), static_cast<uint64_t>(kThreads * kRounds));
  for (size_t i = 0; i < 3; ++i) EXPECT_FALSE(made.path(i).used_twice.load());
}

// Vector registers of many threads at once, each with values of its own.
TEST(UncachedWindow, ThreadsKeepTheirVectorRegisters) {
  constexpr int kThreads = 4;
  Made made(2);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 300; ++round) {
        volatile double* mine = made.at<double>(256 + 64 * static_cast<size_t>(i));
        double sum = 0;
        for (int k = 0; k < 8; ++k) mine[k] = i + k;
        for (int k = 0; k < 8; ++k) sum += mine[k] * mine[k];
        double expected = 0;
        for (int k = 0; k < 8; ++k) expected += (i + k) * (i + k);
        if (sum != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

// ---- signals ----

std::atomic<bool> g_is_inside{false}, g_was_inside{false};
std::atomic<int> g_raised{0};
Made* g_made = nullptr;
std::atomic<uint64_t> g_seen_by_handler{0};

void raise_inside() {
  if (g_raised.fetch_add(1) != 0) return;  // the handler's own access
  g_is_inside = true;
  ::raise(SIGUSR1);
  g_is_inside = false;
}

// A handler that ran in the middle of an access, and used the window, could wait for its own thread.
TEST(UncachedWindow, ASignalDuringAnAccessWaitsForItsEnd) {
  Made made(1);
  const uint64_t there = 77;
  made.memory().copy_in(512, &there, sizeof there);
  g_made = &made;
  g_was_inside = true;
  ::signal(SIGUSR1, [](int) {
    g_was_inside = g_is_inside.load();
    g_seen_by_handler = *g_made->at<uint64_t>(512);
  });
  made.path().inside = raise_inside;
  EXPECT_EQ(*made.at<uint64_t>(512), 77u);
  EXPECT_EQ(g_raised.load(), 2);
  EXPECT_FALSE(g_was_inside.load());
  EXPECT_EQ(g_seen_by_handler.load(), 77u);
  made.path().inside = nullptr;
  ::signal(SIGUSR1, SIG_DFL);
}

// A signal stack as small as the C library used to make them.
TEST(UncachedWindow, ASignalStackOf8KiBIsEnough) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer makes frames larger";
#endif
  Made made;
  std::thread([&] {
    constexpr size_t kSmall = 8192;
    static std::byte memory[3 * kSmall];
    std::memset(memory, 0x5a, sizeof memory);
    stack_t stack = {};
    stack.ss_sp = memory + kSmall;
    stack.ss_size = kSmall;
    ASSERT_EQ(::sigaltstack(&stack, nullptr), 0);
    *made.at<double>(8) = 2.5;
    EXPECT_EQ(*made.at<double>(8) * 2, 5);
    __atomic_fetch_add(made.at<uint8_t>(3), 1, __ATOMIC_SEQ_CST);
    uint64_t count = 700;
    void* to = const_cast<uint8_t*>(made.at<uint8_t>(1000));
    asm volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
    stack.ss_flags = SS_DISABLE;
    ::sigaltstack(&stack, nullptr);
    for (size_t i = 0; i < kSmall; ++i) ASSERT_EQ(memory[i], std::byte{0x5a});
  }).join();
}

TEST(UncachedWindow, ErrnoStaysAsItIs) {
  Made made;
  errno = 1234;
  *made.at<uint8_t>() = 1;
  EXPECT_EQ(errno, 1234);
}

}  // namespace
}  // namespace ub::aperture::test
