// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <thread>
#include <utility>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "remote/s3/metadata_service.hpp"

namespace kiln {

/// The current keys of a metadata service. A thread fetches them if there are none or they expire within
/// kRenewBefore, and ends; a caller uses the old ones meanwhile. Thread-safe.
class MetadataCredentials {
 public:
  static constexpr std::chrono::minutes kRenewBefore{5};
  static constexpr std::chrono::seconds kFetchTime{2};   ///< maximum duration of a fetch
  static constexpr std::chrono::seconds kRetryAfter{5};  ///< after a failed fetch, and after one whose keys expire soon

  MetadataCredentials(MetadataService service, const Clock& clock) : service_(std::move(service)), clock_(clock) {}
  ~MetadataCredentials();
  MetadataCredentials(const MetadataCredentials&) = delete;
  MetadataCredentials& operator=(const MetadataCredentials&) = delete;

  /// Returns the keys. Without valid ones, waits for those being fetched, at most a quarter of the deadline, and then
  /// returns Code::Cancelled, which says nothing about the store. Returns the error of a fetch that failed.
  Result<AwsCredentials> get(const Deadline& deadline);
  /// Drops keys that the server rejected, so that the next call fetches others.
  void drop(const AwsCredentials& rejected);

 private:
  bool has_valid() const KILN_REQUIRES(mutex_);
  /// Starts a fetch if one is due.
  void start_if_due() KILN_REQUIRES(mutex_);
  void run();

  const MetadataService service_;
  const Clock& clock_;
  mutable Mutex mutex_;
  Condition changed_;
  std::optional<AwsCredentials> current_ KILN_GUARDED_BY(mutex_);
  std::optional<Error> error_ KILN_GUARDED_BY(mutex_);  // of the last fetch
  std::chrono::nanoseconds next_fetch_ KILN_GUARDED_BY(mutex_){};
  bool is_fetching_ KILN_GUARDED_BY(mutex_) = false;
  bool stops_ KILN_GUARDED_BY(mutex_) = false;
  std::thread thread_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
