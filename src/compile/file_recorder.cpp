#include "compile/file_recorder.hpp"

#include "base/clock.hpp"
#include "base/codec.hpp"
#include "base/error.hpp"

namespace kiln {

void FileRecorder::note(std::string_view path, Observation::State state, const FileStamp& stamp) {
  const MutexLock lock(mutex_);
  const auto [at, is_new] = index_.try_emplace(std::string(path), observations_.size());
  if (is_new) {
    observations_.push_back({std::string(path), state, false, stamp, system_clock().wall().count()});
    return;
  }
  Observation& seen = observations_[at->second];
  const bool was_missing = seen.state == Observation::State::Missing;
  const bool is_missing = state == Observation::State::Missing;
  if (was_missing != is_missing || (!is_missing && !(seen.stamp == stamp))) seen.both = true;
  if (static_cast<int>(state) > static_cast<int>(seen.state)) seen.state = state;
}

std::vector<Observation> FileRecorder::take() {
  const MutexLock lock(mutex_);
  index_.clear();
  return std::exchange(observations_, {});
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
