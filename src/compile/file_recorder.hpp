#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <kiln/result.hpp>

#include "base/files.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// One name that a compiler asked the file system for.
struct Observation {
  enum class State : std::uint8_t { Missing = 1, Found = 2, Read = 3 };
  std::string path;  ///< as the compiler spelt it
  State state = State::Missing;
  bool both = false;          ///< it was missing at one moment and there at another: somebody is changing things
  FileStamp stamp;            ///< Found and Read: of the first time
  std::int64_t asked_ns = 0;  ///< wall time of the first time
};

/// Takes down what a compiler asks the file system, in the order of the first question. Any thread.
class FileRecorder {
 public:
  FileRecorder() = default;
  /// One that leaves out this file, which is ours, and remembers when it was written.
  explicit FileRecorder(std::string ours) : ours_(std::move(ours)) {}

  void missing(std::string_view path) { note(path, Observation::State::Missing, {}); }
  void found(std::string_view path, const FileStamp& stamp) { note(path, Observation::State::Found, stamp); }
  void read(std::string_view path, const FileStamp& stamp) { note(path, Observation::State::Read, stamp); }

  /// It begins to write a file: whatever it asks about that one, before or after, is about its own work.
  void writing(std::string_view path);

  std::vector<Observation> take();
  /// What had been taken down when our file began to be written; nothing where it was not.
  std::optional<std::vector<Observation>> take_before_writing();

 private:
  void note(std::string_view path, Observation::State state, const FileStamp& stamp);
  std::vector<Observation> noted() const KILN_REQUIRES(mutex_);

  const std::string ours_;
  Mutex mutex_;
  std::optional<std::vector<Observation>> before_writing_ KILN_GUARDED_BY(mutex_);
  std::vector<Observation> observations_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::size_t> index_ KILN_GUARDED_BY(mutex_);
  std::unordered_set<std::string> written_ KILN_GUARDED_BY(mutex_);
};

/// As if one recorder had taken down both, the second after the first.
std::vector<Observation> join(std::vector<Observation> first, const std::vector<Observation>& second);

std::string encode(const std::vector<Observation>& observations);
Result<std::vector<Observation>> decode_observations(std::string_view bytes);

}  // namespace kiln
