// SPDX-License-Identifier: Apache-2.0
#include "remote/s3/metadata_credentials.hpp"

#include <pthread.h>

#include <exception>
#include <functional>

#include "base/catch_to_error.hpp"
#include "base/error.hpp"
#include "base/process/process_lifecycle.hpp"
#include "base/process/signals.hpp"

namespace kiln {

MetadataCredentials::~MetadataCredentials() {
  std::thread last;
  {
    const MutexLock lock(mutex_);
    stops_ = true;
    last.swap(thread_);
  }
  if (last.joinable()) last.join();
}

bool MetadataCredentials::has_valid() const {
  return current_ && (current_->expires == std::chrono::nanoseconds(0) || current_->expires > clock_.wall());
}

void MetadataCredentials::start_if_due() {
  const bool is_due = !current_ || (current_->expires != std::chrono::nanoseconds(0) &&
                                    current_->expires - clock_.wall() < kRenewBefore);
  if (!is_due || is_fetching_ || clock_.steady() < next_fetch_ || process_is_ending()) return;
  if (thread_.joinable()) thread_.join();  // it no longer takes the lock and is about to end
  const ScopedSignalBlock blocked;
  try {
    thread_ = std::thread([this] { run(); });
    is_fetching_ = true;
  } catch (const std::exception&) {
    error_ = make_error(Code::Unavailable, "cannot start a thread for AWS credentials");
  }
}

void MetadataCredentials::run() {
  pthread_setname_np(pthread_self(), "kiln-keys");
  const std::function<bool()> keep_waiting = [this] {
    const MutexLock lock(mutex_);
    return !stops_;
  };
  InterruptCheck interrupt(&keep_waiting);
  const Deadline deadline(system_clock(), kFetchTime, &interrupt);
  Result<AwsCredentials> fetched = catch_to_error([&] { return fetch_credentials(service_, deadline); });
  const MutexLock lock(mutex_);
  next_fetch_ = clock_.steady() + kRetryAfter;
  if (fetched) {
    current_ = *std::move(fetched);
    error_.reset();
  } else {
    error_ = make_error(Code::Unavailable, "no AWS credentials: " + fetched.error().message);
  }
  is_fetching_ = false;
  changed_.notify_all();
}

Result<AwsCredentials> MetadataCredentials::get(const Deadline& deadline) {
  const MutexLock lock(mutex_);
  start_if_due();
  if (has_valid()) return *current_;
  const Deadline wait(system_clock(), deadline.remaining() / 4, deadline.interrupt());
  while (is_fetching_ && wait.remaining() > std::chrono::nanoseconds(0)) {
    system_clock().wait_until(changed_, mutex_, wait);
  }
  if (has_valid()) return *current_;
  if (is_fetching_) return make_error(Code::Cancelled, "the AWS credentials are still being fetched");
  if (error_) return *error_;
  return make_error(Code::Unavailable, "the AWS credentials of this host have expired; check its metadata service");
}

void MetadataCredentials::drop(const AwsCredentials& rejected) {
  const MutexLock lock(mutex_);
  if (current_ == rejected) current_.reset();
}

}  // namespace kiln
