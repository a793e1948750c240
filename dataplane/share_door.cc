// SPDX-License-Identifier: Apache-2.0
#include "dataplane/share_door.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "lib/ipc/memfd.h"
#include "lib/ipc/pause.h"
#include "lib/ipc/unix_socket.h"
#include "lib/transport/core_types.h"

namespace ub {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

void refuse(int socket, const std::string& text) {
  ipc::send_message(socket, bytes_of(ipc::make_share_refusal(text)), {});
}

RemoteAccess access_of(const ipc::ShareRequest& r, uint8_t right) {
  return {r.token_id, r.token_required != 0, r.token_value, r.address, r.length, right};
}

// The right to write includes that to read: a mapping cannot be written without being read.
bool still_may(const ipc::ShareRequest& r, uint32_t segment, const ShareDoor::Rights& rights) {
  return rights.segment_of(access_of(r, kAccessRead)) == segment &&
         (r.writes == 0 || rights.segment_of(access_of(r, kAccessWrite)) == segment) &&
         (r.atomics == 0 || rights.segment_of(access_of(r, kAccessAtomic)) == segment);
}

ino_t file_of(int memory) {
  struct stat st;
  return ::fstat(memory, &st) == 0 ? st.st_ino : 0;
}

// A holder has nothing to say: what it says is in the way of its hang-up, and is taken off in bounded pieces.
bool is_hung_up(int socket) {
  for (int i = 0; i < 16; ++i) {
    std::byte nothing[8];
    size_t bytes;
    bool had_fds;
    const auto status = ipc::receive_plain(socket, nothing, &bytes, &had_fds);
    if (status == ipc::SocketStatus::kAgain) return false;
    if (status != ipc::SocketStatus::kOk) return true;
  }
  return false;
}

}  // namespace

void ShareDoor::close() {
  for (Holder& holder : holders_) {
    if (!holder.told) holder.close_gate();
  }
  await_outside();
}

void ShareDoor::Holder::close_gate() {
  if (!gate) return;
  access()->close();
  awaited = true;
}

void ShareDoor::admit(ipc::Fd socket, const ipc::ShareHello& hello) {
  if (hello.version != ipc::kShareVersion || hello.bytes != sizeof hello) {
    return refuse(socket.get(), "the NIC speaks version " + std::to_string(ipc::kShareVersion) +
                                    " of shared memory, the program version " + std::to_string(hello.version) +
                                    "; update the older of the two");
  }
  std::lock_guard guard(askers_mutex_);
  if (askers_.size() == kMaxHolders) return refuse(socket.get(), "too many programs ask at once");
  askers_.push_back({std::move(socket), hello});
  pending_.store(true, std::memory_order_release);
}

void ShareDoor::serve(const Rights& rights) {
  std::vector<Asker> askers;
  {
    std::lock_guard guard(askers_mutex_);
    askers.swap(askers_);
    pending_.store(false, std::memory_order_release);
  }
  if (std::exchange(seen_revocations_, rights.revocations) != rights.revocations) tell_holders(rights);
  for (Asker& asker : askers) answer(asker, rights);
}

void ShareDoor::answer(Asker& asker, const Rights& rights) {
  if (holders_.size() >= sweep_at_) {
    sweep();
    sweep_at_ = std::clamp(2 * holders_.size(), kFewHolders, kMaxHolders);
  }
  if (holders_.size() == kMaxHolders) {
    return refuse(asker.socket.get(), "all " + std::to_string(kMaxHolders) + " mappings of the NIC are in use");
  }
  ipc::ShareRequest& request = asker.hello.request;
  uint32_t segment = 0;
  bool writable = false;
  std::string why;
  const Offer* offer = find(request, rights, &segment, &writable, &why);
  if (offer == nullptr) return refuse(asker.socket.get(), why);
  request.writes = writable ? 1 : 0;
  request.atomics = writable && request.atomics != 0 && rights.segment_of(access_of(request, kAccessAtomic)) == segment;
  ipc::Fd reader;
  if (!writable && !(reader = ipc::reopen_to_read(offer->memory.get(), &why))) return refuse(asker.socket.get(), why);
  // Known before it has the memory: there is no holder whom nobody knows.
  holders_.push_back({std::move(asker.socket), segment, offer->file, request, false, {}, false, {}});
  Holder& holder = holders_.back();
  ipc::Fd gate;
  if (request.places != 0 && !make_gate(holder, &gate, &why)) {
    refuse(holder.socket.get(), why);
    return holders_.pop_back();
  }
  const ipc::ShareReply reply = ipc::make_share_reply(writable, request.atomics != 0);
  const int fds[] = {writable ? offer->memory.get() : reader.get(), gate.get(), life_};
  const std::span<const int> sent(fds, request.places != 0 ? 3 : 1);
  if (ipc::send_message(holder.socket.get(), bytes_of(reply), sent) != ipc::SocketStatus::kOk) holders_.pop_back();
}

bool ShareDoor::make_gate(Holder& holder, ipc::Fd* descriptor, std::string* why) const {
  if (life_ < 0) {
    *why = "the owner's NIC lets no other one access memory itself (port.shm_place)";
    return false;
  }
  *descriptor = ipc::create_sealed_memfd("softub-gate", ipc::AccessGate::kBytes, why);
  return *descriptor && holder.gate.map(descriptor->get(), ipc::AccessGate::kBytes, why);
}

const ShareDoor::Offer* ShareDoor::find(const ipc::ShareRequest& request, const Rights& rights, uint32_t* segment,
                                        bool* writable, std::string* why) {
  *segment = rights.segment_of(access_of(request, kAccessRead));
  if (*segment == 0) {
    *why = "there is no such segment, or the token or its permissions do not allow to read it";
    return nullptr;
  }
  const auto found = offers_.find(*segment);
  if (found == offers_.end() || found->second.length != request.length) {
    *why = "the owner does not offer all of that memory (softub_alloc_shared)";
    return nullptr;
  }
  const Offer& offer = found->second;
  *writable = request.writes != 0 && offer.writable && rights.segment_of(access_of(request, kAccessWrite)) == *segment;
  return &offer;
}

void ShareDoor::tell_holders(const Rights& rights) {
  std::erase_if(offers_, [&](const auto& each) {
    const auto& [segment, offer] = each;
    return !rights.has_segment(offer.owner, segment, offer.local_address);
  });
  for (Holder& holder : holders_) {
    if (holder.told || still_may(holder.right, holder.segment, rights)) continue;
    holder.close_gate();
    const ipc::ShareNotice notice{ipc::kShareMagic};
    ipc::send_message(holder.socket.get(), bytes_of(notice), {});
    holder.told = true;
  }
  await_outside();
}

// Nobody enters the gates that were closed. Waits for those who are inside; whoever was killed there does not come out.
void ShareDoor::await_outside() {
  constexpr int kLooks = 1000;  // before the processor is left to them; most copies are over then
  constexpr Duration kPause = microseconds(20);
  const auto may_be_inside = [this] {
    for (Holder& holder : holders_) holder.awaited = holder.awaited && holder.access()->is_inside();
    return std::ranges::any_of(holders_, &Holder::awaited);
  };
  for (int look = 0; look < kLooks; ++look) {
    if (!may_be_inside()) return;
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kGatePatience.ns);
  while (may_be_inside() && std::chrono::steady_clock::now() < until) {
    for (Holder& holder : holders_) holder.awaited = holder.awaited && !is_hung_up(holder.socket.get());
    ipc::pause_for(kPause);
  }
  for (Holder& holder : holders_) holder.awaited = false;  // who stays inside is not awaited again
}

void ShareDoor::sweep() {
  std::erase_if(holders_, [this](Holder& holder) {
    if (!is_hung_up(holder.socket.get())) return false;
    count_accesses(holder);
    return true;
  });
}

void ShareDoor::count_accesses(Holder& holder) {
  if (!holder.gate) return;
  const ipc::AccessGate::Counts now = holder.access()->counts();
  const Accesses all{now.writes + now.reads + now.atomics, now.bytes};
  // Whoever writes to its gate what it likes takes nothing from the counts of others.
  accesses_.requests += std::max(all.requests, holder.taken.requests) - holder.taken.requests;
  accesses_.bytes += std::max(all.bytes, holder.taken.bytes) - holder.taken.bytes;
  holder.taken = all;
}

ShareDoor::Accesses ShareDoor::take_accesses() {
  for (Holder& holder : holders_) count_accesses(holder);
  return std::exchange(accesses_, {});
}

bool ShareDoor::offer(uint32_t segment, const SegmentConfig& config, int memory, bool writable) {
  ipc::Fd own(::fcntl(memory, F_DUPFD_CLOEXEC, 0));
  const ino_t file = file_of(memory);
  if (!own || file == 0) return false;
  Offer offer{std::move(own), file, config.owner, config.local_address, config.length, writable};
  offers_.insert_or_assign(segment, std::move(offer));
  return true;
}

std::vector<ipc::ShareHolder> ShareDoor::holders(int memory, const Rights& rights) {
  tell_holders(rights);
  sweep();
  const ino_t file = file_of(memory);
  std::vector<ipc::ShareHolder> found;
  for (const Holder& holder : holders_) {
    if (holder.file != file || (holder.gate && !(holder.told && holder.access()->is_inside()))) continue;
    found.push_back({holder.right.process, holder.told ? 1u : 0u});
  }
  return found;
}

}  // namespace ub
