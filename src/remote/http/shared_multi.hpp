// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/files/files.hpp"
#include "base/mutex.hpp"
#include "remote/http/curl_library.hpp"

namespace kiln {

/// A libcurl multi handle whose connections all callers share, so that HTTP/2 requests use one connection. It has no
/// thread: one of the callers, the driver, moves the data of all transfers until its own transfer ends, and then
/// another caller becomes the driver. Only the driver uses the multi handle, and a driver calls no code of users.
/// Thread-safe.
class SharedMulti {
 public:
  /// Maximum number of connections to the server.
  static constexpr std::size_t kMaxConnections = 16;
  /// Maximum number of concurrent transfers over HTTP/2. Servers usually allow 100 or 128.
  static constexpr std::size_t kMaxStreams = 100;

  /// `tls` means that the server may offer HTTP/2.
  static Result<std::unique_ptr<SharedMulti>> open(std::shared_ptr<const CurlLibrary> curl, bool tls);
  ~SharedMulti();
  SharedMulti(const SharedMulti&) = delete;
  SharedMulti& operator=(const SharedMulti&) = delete;

  /// Performs the transfer of `handle`, like curl_easy_perform. Ends at the deadline with CURLE_OPERATION_TIMEDOUT, or
  /// after an interruption with CURLE_ABORTED_BY_CALLBACK; libcurl then no longer uses the handle, and sets its
  /// CURLOPT_FORBID_REUSE. The handle has no CURLOPT_TIMEOUT_MS, and its callbacks throw nothing.
  CURLcode perform(CURL* handle, const Deadline& deadline);

  /// Returns how many transfers are useful at the same time: more than one per connection if the server uses HTTP/2.
  std::size_t max_transfers();

 private:
  enum class Multiplexing : unsigned char { Unknown, Available, Unavailable };

  /// The transfer of a caller, on the stack of its `perform`. The mutex guards its fields up to `changed`; only the
  /// driver uses the others.
  struct Transfer {
    enum class State : unsigned char { Queued, Running, Abandoned, Done };
    CURL* const handle;
    State state = State::Queued;
    CURLcode code = CURLE_OK;
    bool waiting = false;  // the caller waits for `changed` and can become the driver
    Condition changed{};
    CURLcode outcome = CURLE_OK;  // becomes `code` at the end of the round
    Transfer* next = nullptr;     // in a list of the round
  };

  SharedMulti(std::shared_ptr<const CurlLibrary> curl, Fd wakeup, bool tls)
      : curl_(std::move(curl)), multi_(curl_->multi_init()), wakeup_(std::move(wakeup)),
        multiplexing_(tls ? Multiplexing::Unknown : Multiplexing::Unavailable) {}

  /// Moves data until the caller's transfer ends or `longest` has passed. Releases the mutex meanwhile.
  void drive(Transfer& own, std::chrono::nanoseconds longest) KILN_REQUIRES(mutex_);
  /// Calls code of the user, which may wait for another caller. Hands over first, and releases the mutex meanwhile.
  void poll(InterruptCheck& interrupt) KILN_REQUIRES(mutex_);
  /// Starts queued transfers, stops abandoned ones, and moves the data that is ready. Releases the mutex meanwhile.
  void drive_once(Transfer& own) KILN_REQUIRES(mutex_);
  /// Adds the transfers that have ended to `ended`. Returns what they say of the server.
  Multiplexing read_messages(Transfer*& ended);
  static void push(Transfer*& list, Transfer& transfer);
  /// Removes the first transfer of a list and returns it, or null.
  static Transfer* pop(Transfer*& list);
  void wait_for_data(std::chrono::nanoseconds longest);
  /// Stops a transfer, perhaps only as soon as the driver gets to it.
  void abandon(Transfer& transfer, CURLcode code) KILN_REQUIRES(mutex_);
  void finish(Transfer& transfer, CURLcode code) KILN_REQUIRES(mutex_);
  /// If no caller is the driver, wakes one that can be.
  void hand_over() KILN_REQUIRES(mutex_);
  void wake_driver();

  const std::shared_ptr<const CurlLibrary> curl_;
  CURLM* const multi_;  // used by the driver only; null only in `open`
  const Fd wakeup_;     // an eventfd that ends the driver's wait

  Mutex mutex_;
  bool driven_ KILN_GUARDED_BY(mutex_) = false;
  Multiplexing multiplexing_ KILN_GUARDED_BY(mutex_);
  std::vector<Transfer*> transfers_ KILN_GUARDED_BY(mutex_);  // those that are not done, oldest first
};

}  // namespace kiln
