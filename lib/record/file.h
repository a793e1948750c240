// SPDX-License-Identifier: Apache-2.0
//
// The file of a recording: a header of one page, then an image, then entries (docs/recording-design.md). It is written
// through a shared mapping: what was committed is in the file even if the process is killed. `written` in the header
// says how far that is.
//
// Thread: one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/transport/core_types.h"

namespace ub::record {

// What stands at the beginning of an entry. Numbers are varints unless it says something else.
enum class Entry : uint8_t {
  kNothing,  // nothing was written here
  kPiece,    // bytes of the entries that follow, up to the next piece, in 4 bytes; their CRC-32 in 4 bytes; both are 0
             // while the piece grows, so they stay 0 if the writer is killed
  // What applications did before the next call.
  kPosted,     // ring, slots, differences of these slots to the last one of the ring
  kJumped,     // ring, value: an index that a producer set without producing
  kConsumed,   // ring, slots, of a JFC
  kArmed,      // ring, Armed, armed_at, of a JFC
  kRate,       // ring, bytes per second: the limit of a queue's owner, which begins again
  kLent,       // ring, bytes of its record: memory for the object that the next call makes
  // A call: its number is that of the enumeration Call.
  kCall,       // call, bytes, arguments
  kTurnCall,   // call, time since the last one, arguments
  kFrame,      // call (on_packet or on_lane_frame), time, link, length, payload at, payload bytes, differences of what
               // is left to the last such frame; then the payload, if that is wanted
  // What happened during the call.
  kRefused,    // the number of the tx_begin() of this call that got no room
  kCopy,       // the number of the copy of this call that was not done at once, CopyResult
  kBadIcrc,    // the frame of this call was dropped, and its CRC is wrong
  kSent,       // link, bytes of the frame, the digest of its header in 4 bytes: a frame was sent
  kHeader,     // differences of the header to that of the last frame sent: before kSent, if headers are wanted
  kPayload,    // bytes, payload, the digest of the whole frame in 4 bytes: of a frame sent, before kSent, if payload is
               // wanted
  kResult,     // bytes, results of the call
  // A turn ends: what it has done to rings is seen by applications.
  kTurnEnd,
  kOutput,     // the same, with the digest of what applications see, 4 bytes
};

constexpr char kFileMagic[8] = {'S', 'O', 'F', 'T', 'U', 'B', 'R', '1'};
constexpr uint32_t kFileFormat = 2;
constexpr size_t kHeaderPage = 4096;

struct FileHeader {
  char magic[8];
  uint32_t format;
  uint16_t machine;      // of elf.h
  uint8_t little_endian;
  uint8_t has_headers;   // kHeader entries precede kSent
  uint8_t foreign_only;  // kCopy counts copies of foreign memory alone (foreign_pointer.h); others are done at once
  uint8_t has_payload;   // of frames, and of elements that carry it
  char version[32];
  char commit[64];
  uint64_t layout;       // layout_of_state(): a Core with another one cannot take the image
  uint32_t page_bytes;
  uint32_t number;       // of this file, in a recording of several
  uint64_t recording;    // the same in all files of a recording
  uint64_t arena, arena_bytes;
  uint64_t shadows, shadows_bytes;
  uint64_t began_ns;     // CLOCK_REALTIME
  int32_t process;
  uint32_t rings;        // in the image
  CoreConfig config;
  uint64_t image_end;    // 0: it is not complete
  uint32_t image_sum;    // CRC-32 of the image
  uint32_t header_sum;   // and of this header, up to here
  std::atomic<uint32_t> ended;    // Ended
  std::atomic<uint64_t> written;  // bytes of the file that are whole
};
static_assert(sizeof(FileHeader) <= kHeaderPage);

// Why a file has no more entries.
enum class Ended : uint32_t { kNot, kStopped, kNextFile, kFull, kNoSpace, kNoMemory };
const char* sentence_of(Ended);

class FileWriter {
 public:
  ~FileWriter();

  // Makes the file, which must not exist, with mode 0600, for at most `most_bytes`. Null and `*why`.
  static std::unique_ptr<FileWriter> create(const std::string& path, size_t most_bytes, std::string* why);

  FileHeader& header() { return *reinterpret_cast<FileHeader*>(data_); }
  const std::string& path() const { return path_; }

  // Room for `bytes`; null: the disk is full, or the file has no more room.
  std::byte* room(size_t bytes) {
    if (bytes <= allocated_ - used_) [[likely]]
      return data_ + used_;
    return allocate(bytes) ? data_ + used_ : nullptr;
  }
  // What was written from room() on, up to `end`, is whole.
  void commit(const std::byte* end) {
    used_ = static_cast<size_t>(end - data_);
    header().written.store(used_, std::memory_order_release);
  }
  size_t used() const { return used_; }
  // There is room for an entry of that many bytes, and for the end.
  bool fits(size_t bytes) const { return used_ + bytes <= most_; }

  // What was written behind the header is the image, and it is complete.
  void seal_image();
  // Between two entries: those so far get a sum if there are enough of them.
  void end_piece_if_large() {
    if (used_ - piece_ < kPieceOfEntries) [[likely]]
      return;
    seal_piece();
    begin_piece();
  }
  // Cuts the file to what was written.
  void finish(Ended);

 private:
  FileWriter() = default;
  static constexpr size_t kPieceOfEntries = 1 << 16;

  bool allocate(size_t bytes);
  void begin_piece();
  void seal_piece();

  std::string path_;
  int fd_ = -1;
  std::byte* data_ = nullptr;
  size_t most_ = 0, allocated_ = 0, used_ = 0;
  size_t piece_ = 0;  // where the entries of the piece begin; 0: none was begun
};

class FileReader {
 public:
  ~FileReader();
  // Null and `*why`: it is no recording, or one of another version or architecture, or cut off before its first entry.
  static std::unique_ptr<FileReader> open(const std::string& path, std::string* why);

  const FileHeader& header() const { return *reinterpret_cast<const FileHeader*>(data_); }
  // All that is whole, behind the header.
  std::span<const std::byte> body() const { return {data_ + kHeaderPage, whole_ - kHeaderPage}; }
  // False: the image is not complete, or it or the header is damaged.
  bool has_good_image() const;
  // Behind the header of a piece of entries. False: they are damaged.
  bool is_good_piece(const std::byte* entries, uint32_t bytes, uint32_t sum) const;
  // Does the file end as whoever wrote it meant, and not within a call?
  bool is_complete() const;
  size_t bytes() const { return bytes_; }
  bool is_cut() const { return header().written.load(std::memory_order_relaxed) > bytes_; }

 private:
  FileReader() = default;
  const std::byte* data_ = nullptr;
  size_t bytes_ = 0, whole_ = 0;
};

// The version and commit of this program, and a number that is another one where the state of a Core is.
const char* built_version();
const char* built_commit();
uint64_t layout_of_state();

}  // namespace ub::record
