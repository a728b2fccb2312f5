#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "base/process.hpp"
#include "compile/worker_protocol.hpp"

namespace kiln {

/// What a worker says of its memory, and what is said of one that cannot any more: bytes, told in megabytes.
std::string used_of_limit(std::uint64_t used, std::uint64_t limit);

/// One kiln-worker process and the channel to it. One thread at a time, except `kill`.
class Worker {
 public:
  struct Start {
    std::string program;
    std::vector<std::string> environment;  ///< all of it
    std::uint64_t memory_limit = 0;        ///< bytes that it may allocate
  };
  /// The worker ends when the thread that calls this does.
  static Result<std::unique_ptr<Worker>> start(const Start& start);

  /// How a conversation came to its end.
  struct Talk {
    enum class End : std::uint8_t { Answered, Died, Silent, Garbled, Stopped };
    End end = End::Died;
    Frame answer = {};  ///< Answered
    std::string how;    ///< Died and Garbled: in words
    /// Died: somebody else ended it, as far as one can tell: by SIGKILL, while it was small. No compiler does that.
    bool blameless = false;
  };
  /// Sends a request and waits for the answer. But for Answered the worker is of no use any more, and is killed.
  Talk ask(const Frame& request, std::chrono::milliseconds limit, const std::stop_token& stop);

  /// Ends it within milliseconds. Any thread.
  void kill() { process_.kill(); }
  /// Whether it has ended by itself, which it does only when something is wrong.
  bool has_ended() { return process_.wait(std::chrono::milliseconds(0)).has_value(); }
  /// Readable when it has ended.
  int watched() const { return process_.descriptor(); }
  pid_t id() const { return process_.id(); }

 private:
  Worker(Process process, Fd channel, std::uint64_t memory_limit);
  Talk after_death(std::chrono::milliseconds limit);

  Process process_;
  Fd channel_;
  const std::uint64_t memory_limit_;
};

}  // namespace kiln
