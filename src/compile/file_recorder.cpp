#include "compile/file_recorder.hpp"

#include "base/clock.hpp"
#include "base/codec.hpp"
#include "base/error.hpp"

namespace kiln {

namespace {

void add(Observation& seen, Observation::State state, const FileStamp& stamp) {
  const bool was_missing = seen.state == Observation::State::Missing;
  const bool is_missing = state == Observation::State::Missing;
  if (was_missing != is_missing || (!is_missing && !(seen.stamp == stamp))) seen.both = true;
  if (static_cast<int>(state) > static_cast<int>(seen.state)) seen.state = state;
}

}  // namespace

void FileRecorder::note(std::string_view path, Observation::State state, const FileStamp& stamp) {
  if (path == ours_) return;
  const MutexLock lock(mutex_);
  const auto [at, is_new] = index_.try_emplace(std::string(path), observations_.size());
  if (is_new) {
    observations_.push_back({std::string(path), state, false, stamp, system_clock().wall().count()});
  } else {
    add(observations_[at->second], state, stamp);
  }
}

void FileRecorder::writing(std::string_view path) {
  const MutexLock lock(mutex_);
  written_.emplace(path);
  if (!ours_.empty() && path == ours_ && !before_writing_) before_writing_ = noted();
}

std::vector<Observation> FileRecorder::noted() const {
  std::vector<Observation> noted;
  noted.reserve(observations_.size());
  for (const Observation& observation : observations_) {
    if (!written_.contains(observation.path)) noted.push_back(observation);
  }
  return noted;
}

std::vector<Observation> FileRecorder::take() {
  const MutexLock lock(mutex_);
  std::vector<Observation> taken = noted();
  index_.clear();
  observations_.clear();
  written_.clear();
  return taken;
}

std::optional<std::vector<Observation>> FileRecorder::take_before_writing() {
  const MutexLock lock(mutex_);
  return std::exchange(before_writing_, {});
}

std::vector<Observation> join(std::vector<Observation> first, const std::vector<Observation>& second) {
  std::unordered_map<std::string_view, std::size_t> index;
  const std::size_t known = first.size();
  first.reserve(known + second.size());  // so that the views stay good
  for (std::size_t i = 0; i < known; ++i) index.emplace(first[i].path, i);
  for (const Observation& observation : second) {
    const auto at = index.find(observation.path);
    if (at == index.end()) {
      first.push_back(observation);
    } else {
      add(first[at->second], observation.state, observation.stamp);
      first[at->second].both = first[at->second].both || observation.both;
    }
  }
  return first;
}

std::string encode(const std::vector<Observation>& observations) {
  Writer out;
  out.u32(static_cast<std::uint32_t>(observations.size()));
  for (const Observation& o : observations) {
    out.text(o.path).u8(static_cast<std::uint8_t>(o.state)).u8(o.both ? 1 : 0);
    out.u64(o.stamp.device).u64(o.stamp.inode).u64(o.stamp.size);
    out.u64(static_cast<std::uint64_t>(o.stamp.modified_ns)).u64(static_cast<std::uint64_t>(o.stamp.changed_ns));
    out.u64(static_cast<std::uint64_t>(o.asked_ns));
  }
  return std::move(out).bytes();
}

Result<std::vector<Observation>> decode_observations(std::string_view bytes) {
  Reader in(bytes);
  std::vector<Observation> observations(in.count(54));
  for (Observation& o : observations) {
    o.path = in.text();
    const std::uint8_t state = in.u8();
    if (state < 1 || state > 3) in.fail();
    o.state = static_cast<Observation::State>(state);
    o.both = in.u8() != 0;
    o.stamp.device = in.u64();
    o.stamp.inode = in.u64();
    o.stamp.size = in.u64();
    o.stamp.modified_ns = static_cast<std::int64_t>(in.u64());
    o.stamp.changed_ns = static_cast<std::int64_t>(in.u64());
    o.asked_ns = static_cast<std::int64_t>(in.u64());
  }
  if (!in.done()) return failure(Code::Corrupt, "observations that are cut short or have something behind them");
  return observations;
}

}  // namespace kiln
