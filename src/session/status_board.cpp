#include "session/status_board.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/machine.hpp"
#include "session/status_folder.hpp"

namespace kiln {
namespace {

constexpr std::chrono::milliseconds kInterval{200};

// Of this process, and of this board in it: a process has one per session, and may have two copies of kiln.
std::string name_for(const void* board) {
  char text[64];
  std::snprintf(text, sizeof text, "%d-%llx.status", static_cast<int>(getpid()),
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(board)));
  return text;
}

}  // namespace

StatusBoard::StatusBoard(Parts parts)
    : parts_(std::move(parts)), name_(name_for(this)), pool_({"kiln-status", 0, 1}, [this] { work(); }) {}

StatusBoard::~StatusBoard() { stop(); }

void StatusBoard::touch(const Config& config) {
  if (knows_.load(std::memory_order_relaxed) || knows_.exchange(true)) return;
  std::string folder = status_folder(config);
  if (folder.empty()) return;  // and never again
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    folder_ = std::move(folder);
    if (status_.since.count() == 0) status_.since = parts_.clock->wall();
  }
  (void)pool_.add(1);
}

void StatusBoard::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    stopping_.notify_all();
  }
  if (!Pool::on_a_thread()) pool_.stop();
  const MutexLock lock(mutex_);
  if (directory_) (void)unlinkat(directory_->get(), name_.c_str(), 0);
  directory_.reset();
}

// Whether to go on.
bool StatusBoard::wait() {
  const MutexLock lock(mutex_);
  const Deadline deadline(*parts_.clock, kInterval);
  for (auto left = deadline.left(); !stopped_ && left.count() > 0; left = deadline.left()) {
    parts_.clock->wait(stopping_, mutex_, left);
  }
  return !stopped_;
}

void StatusBoard::work() {
  while (wait()) {
    // Before looking: whoever begins after that has this run again.
    knows_.store(false);
    Glance glance = parts_.look(ProcessStatus::kMostUnits);
    const bool pending = glance.sums.pending > 0;
    if (const Status published = publish(std::move(glance)); !published) {
      knows_.store(true);  // for good
      parts_.complain(published.error());
      return;
    }
    if (!pending || knows_.exchange(true)) return;
  }
}

Status StatusBoard::prepare() {
  if (folder_.starts_with(host_local_path() + '/')) {
    // In a folder for everybody somebody else may have been there first.
    if (const Result<std::string> local = host_local_directory(); !local) return local.error();
  }
  if (Status made = make_directories(folder_); !made) return made;
  Result<Fd> directory = open_trusted_directory(folder_);
  if (!directory) return directory.error();
  directory_ = std::move(*directory);
  sweep_status_folder(directory_->get());
  status_.pid = static_cast<std::uint32_t>(getpid());
  status_.started = start_of_process(getpid()).value_or(0);
  status_.name_space = process_name_space();
  status_.command = own_command();
  return {};
}

Status StatusBoard::publish(Glance glance) {
  const MutexLock lock(mutex_);
  if (stopped_) return {};
  if (!directory_) {
    if (Status prepared = prepare(); !prepared) return prepared;
  }
  status_.glance = std::move(glance);
  status_.written = parts_.clock->wall();
  return publish_file(directory_->get(), '.' + name_, name_, {encode(status_)}, Durability::Unsynced, 0600);
}

}  // namespace kiln
