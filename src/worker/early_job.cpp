// SPDX-License-Identifier: Apache-2.0
#include "worker/early_job.hpp"

#include <pthread.h>

#include <system_error>

#include "base/catch_to_error.hpp"
#include "base/clock.hpp"
#include "base/hash.hpp"
#include "base/process/signals.hpp"
#include "base/process/system_info.hpp"

namespace kiln {
namespace {

constexpr std::chrono::seconds kMaxHold{1};

LockFile::ScopedLock take_turn() {
  const Result<std::string> directory = host_local_directory();
  if (!directory) return {};
  const Result<LockFile*> locks = LockFile::open(*directory + "/digesting");
  return locks ? (*locks)->try_lock_scoped(sha256("kiln early compile")) : LockFile::ScopedLock();
}

}  // namespace

EarlyJob::EarlyJob(WorkerJob job, const Digest& files, Options options, LockFile::ScopedLock turn)
    : job_(std::move(job)), files_(files), options_(std::move(options)), turn_(std::move(turn)) {}

std::unique_ptr<EarlyJob> EarlyJob::start(WorkerJob job, const Digest& files, Options options) {
  LockFile::ScopedLock turn = take_turn();
  if (!turn) return nullptr;
  std::unique_ptr<EarlyJob> early(new EarlyJob(std::move(job), files, std::move(options), std::move(turn)));
  const ScopedSignalBlock blocked;
  try {
    early->thread_ = std::thread([self = early.get()] { self->run(); });
  } catch (const std::system_error&) {  // no thread
    return nullptr;
  }
  early->outer_.emplace(early->options_.stop, [self = early.get()] { self->stop_.request_stop(); });
  return early;
}

EarlyJob::~EarlyJob() {
  outer_.reset();
  stop_.request_stop();
  join();
  if (done_ && done_->lease) done_->lease->discard();
}

void EarlyJob::join() {
  {
    const MutexLock lock(mutex_);
    is_wanted_ = true;
    wanted_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void EarlyJob::run() {
  pthread_setname_np(pthread_self(), "kiln-early");
  ignore_failures([this] {
    auto lease = options_.pool.take(options_.worker, stop_.get_token());
    if (!lease) return;
    Worker::Exchange talk = lease->worker().request(job_, options_.timeout, stop_.get_token());
    done_.emplace(Done{std::move(*lease), std::move(talk)});
    hold_worker();
  });
}

void EarlyJob::hold_worker() {
  {
    const Deadline deadline(system_clock(), kMaxHold);
    const MutexLock lock(mutex_);
    while (!is_wanted_ && deadline.remaining().count() > 0) wanted_.wait_for(mutex_, deadline.remaining());
    if (is_wanted_) return;
  }
  // It has no compiler that another request could ask for, because the digest is not known.
  done_->lease->discard();
  done_->lease.reset();
}

bool EarlyJob::is_for(const Recipe& recipe) const {
  Recipe undigested = recipe;
  undigested.compiler.digest = {};
  return encode(undigested) == encode(job_.recipe);
}

std::optional<EarlyJob::Done> EarlyJob::take() {
  join();
  std::optional<Done> done;
  if (done_) done.emplace(std::move(*done_));
  done_.reset();
  return done;
}

}  // namespace kiln
