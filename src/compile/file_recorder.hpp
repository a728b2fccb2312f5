#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <unordered_map>
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
  void missing(std::string_view path) { note(path, Observation::State::Missing, {}); }
  void found(std::string_view path, const FileStamp& stamp) { note(path, Observation::State::Found, stamp); }
  void read(std::string_view path, const FileStamp& stamp) { note(path, Observation::State::Read, stamp); }

  std::vector<Observation> take();

 private:
  void note(std::string_view path, Observation::State state, const FileStamp& stamp);

  Mutex mutex_;
  std::vector<Observation> observations_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::size_t> index_ KILN_GUARDED_BY(mutex_);
};

std::string encode(const std::vector<Observation>& observations);
Result<std::vector<Observation>> decode_observations(std::string_view bytes);

}  // namespace kiln
