// SPDX-License-Identifier: Apache-2.0
#include "engine/status_writer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/process/system_info.hpp"
#include "engine/status_directory.hpp"

namespace kiln {
namespace {

// Interval between two writes: an eighth of the time since the work started, within these limits. Writing the file
// takes 0.2 ms, and hundreds of processes can wait for the same compiles.
constexpr std::chrono::milliseconds kMinInterval{200};
constexpr std::chrono::seconds kMaxInterval{1};
constexpr int kPartOfTime = 8;

// Returns a name that is unique for the process and the object: a process has one per session, and can contain two
// copies of kiln.
std::string name_for(const void* board) {
  char text[64];
  std::snprintf(text, sizeof text, "%d-%llx.status", static_cast<int>(getpid()),
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(board)));
  return text;
}

}  // namespace

StatusWriter::StatusWriter(Params params)
    : params_(std::move(params)), name_(name_for(this)), pool_({"kiln-status", 0, 1}, [this] { work(); }) {}

StatusWriter::~StatusWriter() { stop(); }

void StatusWriter::on_work_started(const std::string& setting) {
  if (is_active_.load(std::memory_order_relaxed) || is_active_.exchange(true)) return;
  std::string directory = status_directory(setting);
  if (directory.empty()) return;  // is_active_ stays true
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    path_ = std::move(directory);
    if (status_.since.count() == 0) status_.since = params_.clock->wall();
  }
  (void)pool_.submit(1);
}

void StatusWriter::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    stopping_.notify_all();
  }
  if (!ThreadPool::is_pool_thread()) pool_.stop();
  const MutexLock lock(mutex_);
  if (directory_) (void)unlinkat(directory_->get(), name_.c_str(), 0);
  directory_.reset();
}

// Returns false if the thread must stop.
bool StatusWriter::wait(std::chrono::nanoseconds interval) {
  const MutexLock lock(mutex_);
  const Deadline deadline(*params_.clock, interval);
  for (auto left = deadline.remaining(); !stopped_ && left.count() > 0; left = deadline.remaining()) {
    params_.clock->wait(stopping_, mutex_, left);
  }
  return !stopped_;
}

void StatusWriter::work() {
  const auto start = params_.clock->steady();
  const auto interval = [&] {
    const auto part = (params_.clock->steady() - start) / kPartOfTime;
    return std::clamp<std::chrono::nanoseconds>(part, kMinInterval, kMaxInterval);
  };
  while (wait(interval())) {
    // Cleared before the snapshot, so that work that begins afterwards starts another run.
    is_active_.store(false);
    StatusSnapshot snapshot = params_.snapshot(ProcessStatus::kMaxUnits);
    const bool pending = snapshot.totals.pending > 0;
    if (const Status published = publish(std::move(snapshot)); !published) {
      is_active_.store(true);  // permanently
      params_.warn(published.error());
      return;
    }
    if (!pending || is_active_.exchange(true)) return;
  }
}

Status StatusWriter::prepare() {
  if (path_.starts_with(host_local_path() + '/')) {
    // In a directory that all users can write to, another user may have created it first.
    if (const Result<std::string> local = host_local_directory(); !local) return local.error();
  }
  if (Status made = make_directories(path_); !made) return made;
  Result<Fd> directory = open_trusted_directory(path_);
  if (!directory) return directory.error();
  directory_ = std::move(*directory);
  remove_stale_status_files(directory_->get());
  status_.pid = static_cast<std::uint32_t>(getpid());
  status_.started = process_start_time(getpid()).value_or(0);
  status_.name_space = pid_namespace_id();
  status_.command = current_command_line();
  return {};
}

Status StatusWriter::publish(StatusSnapshot snapshot) {
  const MutexLock lock(mutex_);
  if (stopped_) return {};
  if (!directory_) {
    if (Status prepared = prepare(); !prepared) return prepared;
  }
  status_.snapshot = std::move(snapshot);
  status_.written = params_.clock->wall();
  return publish_file(directory_->get(), '.' + name_, name_, {encode(status_)}, Durability::Unsynced, 0600);
}

}  // namespace kiln
