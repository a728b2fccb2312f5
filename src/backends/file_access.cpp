// SPDX-License-Identifier: Apache-2.0
#include "backends/file_access.hpp"

#include <iterator>

#include "base/codec.hpp"
#include "base/error.hpp"

namespace kiln {

namespace {

constexpr std::uint8_t kMaxState = static_cast<std::uint8_t>(FileAccess::State::Read);

void add(FileAccess& seen, const FileAccess& other) {
  using State = FileAccess::State;
  const bool was_missing = seen.state == State::Missing;
  const bool is_missing = other.state == State::Missing;
  if (was_missing != is_missing || (!is_missing && !(seen.stamp == other.stamp)) || other.inconsistent)
    seen.inconsistent = true;
  const bool both_read = seen.state == State::Read && other.state == State::Read;
  if (both_read && seen.content.digest != other.content.digest) seen.inconsistent = true;
  if (both_read && seen.content.problem.empty()) seen.content.problem = other.content.problem;
  if (other.state == State::Read && !both_read) seen.content = other.content;
  if (static_cast<int>(other.state) > static_cast<int>(seen.state)) seen.state = other.state;
}

std::uint16_t bits_of(const TextFacts& facts) {
  const bool bits[] = {facts.names_file, facts.names_reader, facts.names_program,
                       facts.names_root, facts.starts_root,  facts.computes_include,
                       facts.has_once,   facts.pastes,       facts.is_vendors};
  unsigned packed = 0;
  for (std::size_t i = 0; i < std::size(bits); ++i) packed |= bits[i] ? 1U << i : 0U;
  return static_cast<std::uint16_t>(packed);
}

void set_bits(TextFacts& facts, std::uint16_t packed) {
  bool* const bits[] = {&facts.names_file, &facts.names_reader, &facts.names_program,
                        &facts.names_root, &facts.starts_root,  &facts.computes_include,
                        &facts.has_once,   &facts.pastes,       &facts.is_vendors};
  for (std::size_t i = 0; i < std::size(bits); ++i) *bits[i] = (packed >> i & 1U) != 0;
}

void write_content(BinaryWriter& out, const FileContent& content) {
  out.digest(content.digest).u16(bits_of(content.facts)).text(content.facts.time_macro).text(content.facts.pieces);
  out.text(content.problem);
}

FileContent read_content(BinaryReader& in) {
  FileContent content;
  content.digest = in.digest();
  set_bits(content.facts, in.u16());
  content.facts.time_macro = in.text();
  content.facts.pieces = in.text();
  content.problem = in.text();
  return content;
}

}  // namespace

void FileAccessRecorder::note(FileAccess observation) {
  if (observation.path == output_path_) return;
  const MutexLock lock(mutex_);
  const auto [at, is_new] = index_.try_emplace(observation.path, observations_.size());
  if (is_new) {
    observations_.push_back(std::move(observation));
  } else {
    add(observations_[at->second], observation);
  }
}

bool FileAccessRecorder::is_input(std::string_view path) const {
  const MutexLock lock(mutex_);
  return path != output_path_ && !written_.contains(std::string(path));
}

void FileAccessRecorder::writing(std::string_view path) {
  const MutexLock lock(mutex_);
  written_.emplace(path);
  if (!output_path_.empty() && path == output_path_ && !before_writing_) before_writing_ = noted();
}

std::vector<FileAccess> FileAccessRecorder::noted() const {
  std::vector<FileAccess> noted;
  noted.reserve(observations_.size());
  for (const FileAccess& observation : observations_) {
    if (!written_.contains(observation.path)) noted.push_back(observation);
  }
  return noted;
}

std::vector<FileAccess> FileAccessRecorder::take() {
  const MutexLock lock(mutex_);
  std::vector<FileAccess> taken = noted();
  index_.clear();
  observations_.clear();
  written_.clear();
  before_writing_.reset();
  return taken;
}

std::optional<std::vector<FileAccess>> FileAccessRecorder::take_until_output() {
  const MutexLock lock(mutex_);
  return std::exchange(before_writing_, {});
}

std::vector<FileAccess> merge_accesses(std::vector<FileAccess> first, const std::vector<FileAccess>& second) {
  std::unordered_map<std::string_view, std::size_t> index;
  const std::size_t known = first.size();
  first.reserve(known + second.size());  // keeps the views valid
  for (std::size_t i = 0; i < known; ++i) index.emplace(first[i].path, i);
  for (const FileAccess& observation : second) {
    const auto at = index.find(observation.path);
    if (at == index.end()) {
      first.push_back(observation);
    } else {
      add(first[at->second], observation);
    }
  }
  return first;
}

std::string encode(const std::vector<FileAccess>& observations) {
  BinaryWriter out;
  out.u32(static_cast<std::uint32_t>(observations.size()));
  for (const FileAccess& o : observations) {
    out.text(o.path).u8(static_cast<std::uint8_t>(o.state)).u8(o.inconsistent ? 1 : 0);
    out.u64(o.stamp.device).u64(o.stamp.inode).u64(o.stamp.size);
    out.u64(static_cast<std::uint64_t>(o.stamp.modified_ns)).u64(static_cast<std::uint64_t>(o.stamp.changed_ns));
    if (o.state == FileAccess::State::Read) write_content(out, o.content);
  }
  return std::move(out).bytes();
}

Result<std::vector<FileAccess>> decode_observations(std::string_view bytes) {
  BinaryReader in(bytes);
  std::vector<FileAccess> observations(in.count(46));
  for (FileAccess& o : observations) {
    o.path = in.text();
    const std::uint8_t state = in.u8();
    if (state < 1 || state > kMaxState) in.fail();
    o.state = static_cast<FileAccess::State>(state);
    o.inconsistent = in.u8() != 0;
    o.stamp.device = in.u64();
    o.stamp.inode = in.u64();
    o.stamp.size = in.u64();
    o.stamp.modified_ns = static_cast<std::int64_t>(in.u64());
    o.stamp.changed_ns = static_cast<std::int64_t>(in.u64());
    if (o.state == FileAccess::State::Read) o.content = read_content(in);
  }
  if (!in.at_end()) return make_error(Code::Corrupt, "invalid file accesses: truncated or trailing bytes");
  return observations;
}

}  // namespace kiln
