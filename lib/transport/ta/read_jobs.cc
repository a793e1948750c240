// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/read_jobs.h"

#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/ta/sent_messages.h"
#include "lib/transport/wire/response_status.h"

namespace ub::ta {

namespace {

void release_job(CoreState& s, uint32_t index) {
  s.jobs[index].in_use = false;
  s.jobs.free(index);
  --s.channels[s.jobs[index].channel].read_jobs;
}

}  // namespace

uint32_t start_read_job(CoreState& s, uint32_t channel, const ReadJob& job) {
  tp::Channel& ch = s.channels[channel];
  if (!has_share(s.jobs, ch.read_jobs)) return 0;
  uint32_t index = s.jobs.alloc();
  ++ch.read_jobs;
  auto generation = static_cast<uint8_t>(s.jobs[index].generation + 1);
  s.jobs[index] = job;
  s.jobs[index].generation = generation;
  s.jobs[index].in_use = true;
  answer_read(s, channel, index);
  return index;
}

ReadJob* job_of(CoreState& s, const tp::TxMessage& m) {
  ReadJob& job = s.jobs[m.source];
  return job.in_use && job.generation == m.generation && !job.vanished ? &job : nullptr;
}

void finish_read_job(CoreState& s, const tp::TxMessage& m) {
  ReadJob& job = s.jobs[m.source];
  if (!job.in_use || job.generation != m.generation) return;
  release_job(s, m.source);
}

void refuse_read(CoreState& s, tp::TxMessage& m) {
  const ReadJob& job = s.jobs[m.source];
  tp::TxMessage answer{};
  answer.kind = tp::MessageKind::kAnswer;
  answer.source = job.source;
  answer.tassn = job.tassn;
  answer.opcode = wire::TaOpcode::kReadResponse;
  answer.rspst = wire::kRspError;
  answer.rspinfo = wire::kErrRemoteAbort;
  finish_read_job(s, m);
  m = answer;
}

void abort_job(CoreState& s, uint32_t index) {
  ReadJob& job = s.jobs[index];
  if (job.vanished) return;
  job.vanished = true;
  if (s.channels[job.channel].compact) return;  // refuse_read() comes in its turn
  stop_response(s, job.channel, index);
  wire::Btah request;
  request.rc_id = job.source;
  request.tassn = job.tassn;
  answer_failed_read(s, job.channel, request, job.offset_kib, job.taid, wire::kRspError, wire::kErrRemoteAbort);
}

void abort_jobs_of_segment(CoreState& s, uint32_t segment) {
  for (uint32_t i = 1; i <= s.jobs.high_water(); ++i) {
    if (s.jobs[i].in_use && s.jobs[i].segment == segment) abort_job(s, i);
  }
}

void drop_jobs_of_channel(CoreState& s, uint32_t channel) {
  for (uint32_t i = 1; i <= s.jobs.high_water(); ++i) {
    if (s.jobs[i].in_use && s.jobs[i].channel == channel) release_job(s, i);
  }
}

}  // namespace ub::ta
