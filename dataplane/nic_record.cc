// SPDX-License-Identifier: Apache-2.0
//
// Recordings of what enters the Core (docs/recording.md), which tools ask for.
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <string_view>
#include <utility>

#include "dataplane/nic.h"
#include "dataplane/nic_recording.h"
#include "dataplane/words.h"
#include "lib/record/image.h"

namespace ub {
namespace {

constexpr std::string_view kUsage =
    "requests are: record on BYTES FILES HEADERS PAYLOAD file=PATH, record status, record off";

// "BYTES FILES HEADERS PAYLOAD file=PATH": the path is the rest of the line.
bool read_wish(std::string_view text, NicRecording* recording, std::string* why) {
  *why = kUsage;
  uint64_t bytes = 0, headers = 0, payload = 0;
  if (!read_number(take_part(&text, ' '), &bytes)) return false;
  if (!read_number(take_part(&text, ' '), &recording->files)) return false;
  if (!read_number(take_part(&text, ' '), &headers) || !read_number(take_part(&text, ' '), &payload)) return false;
  if (!text.starts_with("file=")) return false;
  recording->path = text.substr(5);
  recording->options.headers = headers != 0;
  recording->options.payload = payload != 0;
  recording->options.most_bytes = bytes;
  if (!recording->path.starts_with('/')) {
    *why = "the path of a recording has to be absolute";
    return false;
  }
  if (bytes < NicRecording::kLeastBytes) {
    *why = "a file of a recording has at least " + std::to_string(NicRecording::kLeastBytes) +
           " bytes, and room for an image of the NIC";
    return false;
  }
  return true;
}

}  // namespace

NicRecording::NicRecording() = default;
NicRecording::~NicRecording() = default;

// The first file has the name that was asked for, and those behind it a number more.
std::string NicRecording::path_of(uint32_t number) const {
  return number == 0 ? path : path + "." + std::to_string(number);
}

std::string NicRecording::status() const {
  const char* state = recorder.recorded() ? "running" : "ended";
  char text[160];
  std::snprintf(text, sizeof text, "; file %u, %" PRIu64 " bytes in it", options.number + 1,
                static_cast<uint64_t>(recorder.file() != nullptr ? recorder.file()->used() : 0));
  std::string said = std::string("ok ") + state + "; " + path_of(options.number) + text;
  if (recorder.recorded()) return said;
  return said + "; " + (why_no_more.empty() ? std::string(sentence_of(recorder.ended())) : why_no_more);
}

// Owned. "ok ...", or what is wrong.
std::string Nic::answer_record(std::string_view request) {
  const std::string_view verb = take_part(&request, ' ');
  std::string why;
  if (verb == "on") {
    if (!begin_recording(request, &why)) return why;
  } else if (verb == "off") {
    if (recording_ == nullptr) return "there is no recording";
    end_recording(record::Ended::kStopped);
  } else if (verb != "status") {
    return std::string(kUsage);
  }
  return recording_ != nullptr ? recording_->status() : "ok there is no recording";
}

bool Nic::begin_recording(std::string_view wish, std::string* why) {
  auto recording = std::make_unique<NicRecording>();
  if (!read_wish(wish, recording.get(), why)) return false;
  if (is_recording()) {
    *why = "there is a recording already, in " + recording_->path_of(recording_->options.number) +
           "; `urma_admin record off` ends it";
    return false;
  }
  recording->options.foreign_only = true;
  recording->options.recording = static_cast<uint64_t>(getpid()) << 32 ^ worker_->monotonic_ns();
  if (!recording->recorder.begin_shadows()) {
    *why = "there is no address space for rings";
    return false;
  }
  NicCore& core = worker_->core();
  if (!record::lend_rings(recording->recorder, core)) {
    *why = "there is no memory for the rings of all queues";
    return false;
  }
  recording_ = std::move(recording);
  if (!begin_record_file(why)) {
    record::return_rings(recording_->recorder, core);
    recording_.reset();
    return false;
  }
  core.log_calls(&recording_->recorder);
  ports_.set_recorder(&recording_->recorder);
  is_recording_ = true;
  choose_memory();
  note_special();
  ring_all();
  return true;
}

bool Nic::begin_record_file(std::string* why) {
  const std::span<std::byte> arena(arena_.data(), arena_.bytes());
  record::Recorder& recorder = recording_->recorder;
  const std::string path = recording_->path_of(recording_->options.number);
  if (!recorder.begin(path, recording_->options, worker_->core().config(), arena, why)) return false;
  record::put_image(recorder, worker_->core(), arena);
  if (recorder.recorded()) return true;
  *why = "an image of the NIC has no room in " + path + ": " + sentence_of(recorder.ended());
  unlink(path.c_str());
  return false;
}

// Owned, between two turns.
void Nic::end_recording(record::Ended why) {
  if (!is_recording()) return;
  NicCore& core = worker_->core();
  recording_->recorder.stop(why);
  is_recording_ = false;
  note_special();
  core.log_calls(nullptr);
  ports_.set_recorder(nullptr);
  choose_memory();
  record::return_rings(recording_->recorder, core);
  ring_all();
}

// What applications do to their rings while these are exchanged is looked at, as if they had rung.
void Nic::ring_all() {
  NicCore& core = worker_->core();
  const Instant now = worker_->turn();
  record::each_queue(core, [&](uint32_t id) { worker_->posted().set(id); });
  record::each_failed_jfr(core, [&](uint32_t id) { core.set_state(now, id, QueueState::kError); });
  for (uint32_t jfc = 1; jfc <= core.state().jfcs.high_water(); ++jfc) {
    core.on_completions_read(now, jfc);
    core.on_armed(now, jfc);
  }
}

// Owned, between two turns: another file if this one is nearly full; the end if it cannot go on.
void Nic::look_after_recording() {
  record::Recorder& recorder = recording_->recorder;
  if (!recorder.recorded()) return end_recording(recorder.ended());
  if (!recorder.is_nearly_full()) return;
  if (recording_->files == 1) return end_recording(record::Ended::kFull);
  recorder.stop(record::Ended::kNextFile);
  ++recording_->options.number;
  const uint64_t kept = recording_->files;
  if (kept != 0 && recording_->options.number >= kept)
    unlink(recording_->path_of(recording_->options.number - static_cast<uint32_t>(kept)).c_str());
  if (begin_record_file(&recording_->why_no_more)) return;
  if (notice_) notice_("the recording ends: " + recording_->why_no_more);
  end_recording(record::Ended::kStopped);
}

}  // namespace ub
