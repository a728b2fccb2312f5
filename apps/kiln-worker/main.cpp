// kiln-worker: compiles what it is sent on descriptor 3 and says what the compiler read. Started by kiln, never by
// hand.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "compile/worker_protocol.hpp"
#include "interpose.hpp"

namespace kiln {
namespace {

// Ends this process when the thread that started it ends, which waits for our answer and so ends early only with its
// process. Not a thread that watches the channel: a second thread takes malloc and stdio off their single-threaded
// roads, and NVRTC's front end lives on malloc.
bool follow_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent;  // it may have died before the line above
}

// A header that exists only for us, and one that does not exist at all.
struct Canary {
  Fd header{static_cast<int>(memfd_create("kiln-canary", MFD_CLOEXEC))};
  std::string present = "/proc/self/fd/" + std::to_string(header.get());
  std::string missing = "kiln-canary-that-is-not-there.h";
};

// Whether what this library asks the file system really comes by us: it is made to ask two questions whose answers are
// known. A compiler that goes another way (a static libc, bare system calls) is found out here.
bool is_observable(NvrtcCompiler& compiler, const Recipe& recipe) {
  const Canary canary;
  Recipe probe = recipe;
  probe.unit = Unit::cuda("kiln-canary", "#include \"" + canary.present + "\"\n#if __has_include(\"" + canary.missing +
                                             "\")\n#endif\n#error done\n");
  FileRecorder recorder;
  {
    const FileWatch watch(recorder);
    (void)compiler.compile(probe);
  }
  bool saw_present = false;
  bool saw_missing = false;
  for (const Observation& o : recorder.take()) {
    saw_present = saw_present || (o.path == canary.present && o.state == Observation::State::Read);
    saw_missing = saw_missing || (o.path.ends_with(canary.missing) && o.state == Observation::State::Missing);
  }
  return saw_present && saw_missing;
}

class Worker {
 public:
  Frame answer(const Frame& request) {
    if (request.type != Frame::Type::Compile) return failed(failure(Code::Corrupt, "a worker takes only recipes"));
    auto recipe = decode_recipe(request.payload);
    if (!recipe) return failed(recipe.error());
    if (chdir(recipe->working_directory.c_str()) != 0) {
      return failed(io_failure("cannot go to", recipe->working_directory, errno));
    }
    auto& known = compilers_[recipe->compiler.path];
    if (known.compiler == nullptr) {
      known.compiler = std::make_unique<NvrtcCompiler>(recipe->compiler.path, digests_, NvrtcCompiler::Watched::Yes);
      known.observable = is_observable(*known.compiler, *recipe);
    }
    FileRecorder recorder;
    Result<Compiled> compiled = [&] {
      const FileWatch watch(recorder);
      return known.compiler->compile(*recipe);
    }();
    if (!compiled) return failed(compiled.error(), recorder.take());
    WorkerReply reply{std::move(*compiled), known.observable, recorder.take()};
    return {Frame::Type::Compiled, encode(reply)};
  }

 private:
  static Frame failed(const Error& error, std::vector<Observation> observations = {}) {
    return {Frame::Type::Failed, encode(WorkerFailure{error, std::move(observations)})};
  }

  struct Known {
    std::unique_ptr<NvrtcCompiler> compiler;
    bool observable = false;
  };
  FileDigests digests_{std::string()};
  std::map<std::string, Known> compilers_;
};

int run(int argc, char** argv) {
  if (argc != 2 || fcntl(kWorkerChannel, F_GETFD) < 0) {
    std::fputs("kiln-worker is started by kiln; it has no use by hand.\n", stderr);
    return 2;
  }
  signal(SIGINT, SIG_IGN);  // a Ctrl-C is for the host program, which may go on
  if (!follow_parent(static_cast<pid_t>(std::atoi(argv[1])))) return 0;
  Worker worker;
  while (true) {
    const auto request = receive_frame(kWorkerChannel, std::chrono::hours(1));
    if (!request || !*request) return request ? 0 : 1;
    if (!send_frame(kWorkerChannel, worker.answer(**request))) return 1;
  }
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::run(argc, argv); }
