// kiln-worker: compiles what it is sent on descriptor 3 and says what the compiler read. Started by kiln, never by
// hand.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/files.hpp"
#include "compile/worker_protocol.hpp"
#include "workshop.hpp"

namespace kiln {
namespace {

// Below the threads of the program that waits for us, where they compete.
constexpr int kNiceness = 5;

// A sanitizer's own bookkeeping counts as our memory, and has no bound.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasShadowMemory = true;
#elif defined(__has_feature)
constexpr bool kHasShadowMemory = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kHasShadowMemory = false;
#endif

// Ends this process when the thread that started it ends, which lives as long as there are workers. Not a thread that
// watches the channel: a second thread takes malloc and stdio off their single-threaded roads, and NVRTC's front end
// lives on malloc.
bool follow_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent;  // it may have died before the line above
}

// A compile that takes more than this is ended by its own failing to get more, not by the kernel's choosing a victim;
// and where the kernel must choose, it shall be us and not the program that we work for.
void limit_memory(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  if (!kHasShadowMemory) (void)setrlimit(RLIMIT_DATA, &limit);
  const rlimit none{0, 0};
  (void)setrlimit(RLIMIT_CORE, &none);
  const Fd score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score) (void)write_all(score.get(), "500", "oom_score_adj");
}

// A Ctrl-C is for the host program, which may go on. One that came before we had a session of our own is still blocked
// and waiting; to ignore a signal is to forget those that wait.
void ignore_terminal() {
  for (const int number : {SIGINT, SIGQUIT, SIGHUP, SIGTSTP}) signal(number, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGQUIT, SIGHUP, SIGTSTP}) signal(number, SIG_DFL);
}

int run(int argc, char** argv) {
  if (argc != 3 || fcntl(kWorkerChannel, F_GETFD) < 0) {
    std::fputs("kiln-worker is started by kiln; it has no use by hand.\n", stderr);
    return 2;
  }
  ignore_terminal();
  if (!follow_parent(static_cast<pid_t>(std::atoi(argv[1])))) return 0;
  (void)fcntl(kWorkerChannel, F_SETFD, FD_CLOEXEC);
  (void)setpriority(PRIO_PROCESS, 0, kNiceness);
  const std::uint64_t memory_limit = std::strtoull(argv[2], nullptr, 10);
  limit_memory(memory_limit);
  Workshop workshop(memory_limit);
  while (true) {
    const auto request = receive_frame(kWorkerChannel, std::chrono::hours(24));
    // Whoever sent what cannot be read learns why, in our words: it may come from another installation.
    if (!request) (void)send_frame(kWorkerChannel, frame_of(WorkerFailure{request.error(), {}, false}));
    if (!request || !*request) return request ? 0 : 1;
    if (!send_frame(kWorkerChannel, workshop.answer(**request))) return 1;
  }
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::run(argc, argv); }
