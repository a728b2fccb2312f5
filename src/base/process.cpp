#include "base/process.hpp"

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

#include "base/error.hpp"

extern char** environ;

namespace kiln {
namespace {

constexpr std::chrono::milliseconds kNap{5};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// What the kernel is told of a program to be. An error on the way there is that of the start: a child that lacks one of
// its descriptors is not the one that was asked for.
class SpawnPlan {
 public:
  explicit SpawnPlan(const Process::Start& start) {
    note(posix_spawn_file_actions_init(&actions_));
    note(posix_spawnattr_init(&attributes_));
    int highest = 2;
    for (const auto& [ours, theirs] : start.descriptors) {
      note(posix_spawn_file_actions_adddup2(&actions_, ours, theirs));
      highest = std::max(highest, theirs);
    }
    if (!start.folder.empty()) note(posix_spawn_file_actions_addchdir_np(&actions_, start.folder.c_str()));
    // The host program may have descriptors that it forgot to mark close-on-exec.
    note(posix_spawn_file_actions_addclosefrom_np(&actions_, highest + 1));
    // The child starts with default handling of every signal and none blocked, whatever the host program did.
    sigset_t all;
    sigset_t blocked;
    sigfillset(&all);
    sigemptyset(&blocked);
    for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGTSTP}) {
      if (start.deaf_to_terminal) sigaddset(&blocked, signal);
    }
    note(posix_spawnattr_setsigdefault(&attributes_, &all));
    note(posix_spawnattr_setsigmask(&attributes_, &blocked));
    const int session = start.own_session ? POSIX_SPAWN_SETSID : 0;
    note(posix_spawnattr_setflags(&attributes_,
                                  static_cast<short>(session | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK)));
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

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

Result<Process> Process::spawn(const Start& start) {
  const std::string& program = start.arguments.at(0);
  const SpawnPlan plan(start);
  const std::vector<char*> arguments = pointers(start.arguments);
  const std::vector<char*> environment = pointers(start.environment);
  pid_t pid = -1;
  const int error = plan.spawn(pid, arguments, environment);
  if (error != 0) return io_failure("cannot start", program, error);
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // Until it became another program the child shared our memory, and the kernel remembers that as the child's. Asked
  // only now, when it has: our own peak does not fall.
  rusage ours{};
  (void)getrusage(RUSAGE_SELF, &ours);
  return Process(pid, std::move(pidfd), peak_of(ours));
}

std::optional<Process::Exit> Process::wait(std::chrono::milliseconds limit) {
  if (exit_) return exit_;
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  rusage used{};
  pid_t got = 0;
  while ((got = wait4(pid_, &status, WNOHANG, &used)) == 0 || (got < 0 && errno == EINTR)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    // Without a descriptor, which an old kernel does not have and a busy program has none left for, this is a nap.
    pollfd watched{pidfd_.get(), POLLIN, 0};
    (void)poll(&watched, 1, static_cast<int>(std::min(left, pidfd_ ? left : kNap).count()));
  }
  // A host that ignores SIGCHLD or waits for any child may have taken the status: it ended, and that is all we know.
  exit_ = Exit{};
  if (got == pid_ && peak_of(used) > inherited_peak_) exit_->peak_bytes = peak_of(used);
  if (got == pid_ && WIFEXITED(status)) exit_->code = WEXITSTATUS(status);
  if (got == pid_ && WIFSIGNALED(status)) exit_->signal = WTERMSIG(status);
  return exit_;
}

void Process::kill() {
  // A descriptor still names this process when its number is another's already, so nothing needs to be looked up.
  if (pidfd_ && (syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0) == 0 || errno == ESRCH)) return;
  if (pid_ >= 0 && !exit_) ::kill(pid_, SIGKILL);
}

std::vector<std::string> current_environment() {
  std::vector<std::string> texts;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) texts.emplace_back(*entry);
  return texts;
}

}  // namespace kiln
