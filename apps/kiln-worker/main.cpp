// SPDX-License-Identifier: Apache-2.0
// kiln-worker: compiles jobs that it receives on descriptor 3 and reports the compiler's file accesses, or installs the
// headers that NVRTC bundles. Started by kiln, not by users.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "backends/cuda/bundled_headers.hpp"
#include "base/files/files.hpp"
#include "base/sanitized.hpp"
#include "install_headers.hpp"
#include "job_handler.hpp"
#include "worker/worker_protocol.hpp"

namespace kiln {
namespace {

// Lower priority than the host program's threads, with which it competes.
constexpr int kNiceness = 5;

// Ends this process when the thread that started it ends, which lives as long as there are workers. A thread that
// watches the channel would be slower: with a second thread, malloc and stdio leave their single-threaded fast paths,
// and NVRTC's front end depends on malloc.
bool follow_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent;  // the parent may have died before the line above
}

// Limits memory: a compile that exceeds the limit fails by itself instead of being killed by the kernel. If the kernel
// must kill a process, it kills the worker and not the host program.
void limit_memory(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  if (!kIsSanitized) (void)setrlimit(RLIMIT_DATA, &limit);
  const rlimit none{0, 0};
  (void)setrlimit(RLIMIT_CORE, &none);
  const Fd score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score) (void)write_all(score.get(), "500", "oom_score_adj");
}

// Ignores signals of the terminal: Ctrl-C is for the host program, which can continue. A signal that arrived before
// this process had its own session is still blocked and pending; ignoring the signal discards it.
void ignore_terminal() {
  for (const int number : {SIGINT, SIGQUIT, SIGHUP, SIGTSTP}) signal(number, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGQUIT, SIGHUP, SIGTSTP}) signal(number, SIG_DFL);
}

int run(int argc, char** argv) {
  const bool installs = argc >= 7 && std::string_view(argv[1]) == kInstallHeaders;
  if ((argc != 3 && !installs) || fcntl(kWorkerChannel, F_GETFD) < 0) {
    std::fputs("kiln-worker is started by kiln and cannot be used directly\n", stderr);
    return 2;
  }
  ignore_terminal();
  const char* const* const start = argv + (installs ? 2 : 1);
  if (!follow_parent(static_cast<pid_t>(std::atoi(start[0])))) return 0;
  (void)fcntl(kWorkerChannel, F_SETFD, FD_CLOEXEC);
  (void)setpriority(PRIO_PROCESS, 0, kNiceness);
  const std::uint64_t memory_limit = std::strtoull(start[1], nullptr, 10);
  limit_memory(memory_limit);
  if (installs)
    return install_headers(argv[4], argv[5], {std::string_view(argv[6]) == "sandboxed", {argv + 7, argv + argc}});
  JobHandler handler(memory_limit);
  while (true) {
    const auto request = receive_frame(kWorkerChannel, std::chrono::hours(24));
    // Reports why a frame cannot be read: its sender may be of another installation.
    if (!request) (void)send_frame(kWorkerChannel, frame_of(WorkerFailure{request.error(), {}}));
    if (!request || !*request) return request ? 0 : 1;
    if (!send_frame(kWorkerChannel, handler.handle(**request))) return 1;
  }
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::run(argc, argv); }
