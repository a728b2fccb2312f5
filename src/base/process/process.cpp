// SPDX-License-Identifier: Apache-2.0
#include "base/process/process.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "base/error.hpp"

extern char** environ;

namespace kiln {
namespace {

constexpr std::chrono::milliseconds kPollInterval{5};

// Returns a function of the C library, or null where the library is older: the wheel also runs with glibc 2.28.
template <class F>
F* newer_function(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

// Adds the descriptors from `first` on that are open now. Before glibc 2.34 a descriptor that another thread opens
// without close-on-exec at the same time reaches the child.
int close_open_descriptors(posix_spawn_file_actions_t& actions, int first) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return errno;
  int error = 0;
  while (const dirent* entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (fd >= first && error == 0) error = posix_spawn_file_actions_addclose(&actions, fd);
  }
  closedir(folder);
  return error;
}

// The posix_spawn settings of a child. An error while they are set makes the start fail: a child that lacks one of its
// descriptors must not run.
class SpawnAttributes {
 public:
  explicit SpawnAttributes(const Process::SpawnOptions& start) {
    note(posix_spawn_file_actions_init(&actions_));
    note(posix_spawnattr_init(&attributes_));
    int highest = 2;
    for (const auto& [ours, theirs] : start.descriptors) {
      note(posix_spawn_file_actions_adddup2(&actions_, ours, theirs));
      highest = std::max(highest, theirs);
    }
    if (!start.working_directory.empty()) {  // since glibc 2.29
      using Change = int(posix_spawn_file_actions_t*, const char*);
      static auto* const change = newer_function<Change>("posix_spawn_file_actions_addchdir_np");
      note(change == nullptr ? ENOSYS : change(&actions_, start.working_directory.c_str()));
    }
    // The host program may have descriptors that lack close-on-exec.
    using CloseFrom = int(posix_spawn_file_actions_t*, int);
    static auto* const close_from = newer_function<CloseFrom>("posix_spawn_file_actions_addclosefrom_np");
    note(close_from != nullptr ? close_from(&actions_, highest + 1) : close_open_descriptors(actions_, highest + 1));
    // The child starts with default signal handlers and no blocked signals, regardless of the host program.
    sigset_t all;
    sigset_t blocked;
    sigfillset(&all);
    sigemptyset(&blocked);
    for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGTSTP}) {
      if (start.block_terminal_signals) sigaddset(&blocked, signal);
    }
    note(posix_spawnattr_setsigdefault(&attributes_, &all));
    note(posix_spawnattr_setsigmask(&attributes_, &blocked));
    const int session = start.new_session ? POSIX_SPAWN_SETSID : 0;
    note(posix_spawnattr_setflags(&attributes_,
                                  static_cast<short>(session | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK)));
  }
  ~SpawnAttributes() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  int spawn(pid_t& pid, const std::vector<char*>& arguments, const std::vector<char*>& environment) const {
    if (error_ != 0) return error_;
    return posix_spawn(&pid, arguments[0], &actions_, &attributes_, arguments.data(), environment.data());
  }

 private:
  void note(int error) {
    if (error_ == 0) error_ = error;
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  int error_ = 0;
};

std::uint64_t peak_of(const rusage& used) { return static_cast<std::uint64_t>(used.ru_maxrss) << 10; }

}  // namespace

Process::Process(pid_t pid, Fd pidfd, std::uint64_t inherited_peak)
    : pid_(pid), pidfd_(std::move(pidfd)), inherited_peak_(inherited_peak) {}
Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)), inherited_peak_(other.inherited_peak_),
      exit_(other.exit_) {}
Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(inherited_peak_, other.inherited_peak_);
  std::swap(exit_, other.exit_);
  return *this;
}

Process::~Process() {
  if (pid_ < 0 || exit_) return;
  kill();
  (void)wait(std::chrono::seconds(5));
}

Result<Process> Process::spawn(const SpawnOptions& start) {
  const std::string& program = start.arguments.at(0);
  const SpawnAttributes plan(start);
  const std::vector<char*> arguments = argument_pointers(start.arguments);
  const std::vector<char*> environment = argument_pointers(start.environment);
  pid_t pid = -1;
  const int error = plan.spawn(pid, arguments, environment);
  if (error != 0) return io_error("cannot start", program, error);
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // Until exec, the child shared our memory, and the kernel counts that as the child's peak. Read after exec; our own
  // peak does not decrease.
  rusage ours{};
  (void)getrusage(RUSAGE_SELF, &ours);
  return Process(pid, std::move(pidfd), peak_of(ours));
}

std::optional<Process::Exit> Process::wait(std::chrono::milliseconds timeout) {
  if (exit_) return exit_;
  const auto end = std::chrono::steady_clock::now() + timeout;
  int status = 0;
  rusage used{};
  pid_t got = 0;
  while ((got = wait4(pid_, &status, WNOHANG, &used)) == 0 || (got < 0 && errno == EINTR)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    // Without a pidfd (old kernel, or no descriptors left) this only sleeps.
    pollfd watched{pidfd_.get(), POLLIN, 0};
    (void)poll(&watched, 1, static_cast<int>(std::min(left, pidfd_ ? left : kPollInterval).count()));
  }
  // A host that ignores SIGCHLD or waits for any child may have reaped it: it ended, with unknown status.
  exit_ = Exit{};
  if (got == pid_ && peak_of(used) > inherited_peak_) exit_->peak_bytes = peak_of(used);
  if (got == pid_ && WIFEXITED(status)) exit_->code = WEXITSTATUS(status);
  if (got == pid_ && WIFSIGNALED(status)) exit_->signal = WTERMSIG(status);
  return exit_;
}

void Process::kill() {
  // The pidfd still refers to this process after its id was reused, so no check is needed.
  if (pidfd_ && (syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0) == 0 || errno == ESRCH)) return;
  if (pid_ >= 0 && !exit_) ::kill(pid_, SIGKILL);
}

std::vector<char*> argument_pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> current_environment() {
  std::vector<std::string> texts;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) texts.emplace_back(*entry);
  return texts;
}

}  // namespace kiln
