#include "compile/worker_compiler.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/dynamic_library.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/process.hpp"
#include "base/process_life.hpp"
#include "compile/closure_builder.hpp"
#include "compile/worker_protocol.hpp"

namespace kiln {
namespace {

// Of how many refused units it is remembered what they had read. Forgetting one costs a compile when it is asked for.
constexpr std::size_t kMostFailures = 1024;

// All that a worker sees of our environment: what finds libraries, what sanitizers need, and the recipe's own part.
std::vector<std::string> worker_environment(const Recipe& recipe) {
  // NVRTC spells the working directory as PWD does, in debug information, where the two are one.
  std::vector<std::string> environment{"CUDA_CACHE_DISABLE=1", "PWD=" + recipe.working_directory};
  for (const char* name : {"LD_LIBRARY_PATH", "PATH", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const auto value = environment_variable(name)) environment.push_back(std::string(name) + "=" + *value);
  }
  for (const auto& [name, value] : recipe.compiler.environment) environment.push_back(name + "=" + value);
  return environment;
}

Error ended(const Recipe& recipe, Process& process) {
  std::string how = "ended without an answer";
  if (const auto exit = process.wait(std::chrono::seconds(1)); exit && exit->signal != 0) {
    how = "was ended by signal " + std::to_string(exit->signal);
  } else if (exit && exit->code != 0) {
    how = "ended with code " + std::to_string(exit->code);
  }
  return failure(Code::CompileFailed, "the worker that compiled unit '" + recipe.unit.name() + "' " + how);
}

Error interrupted(const Recipe& recipe) {
  return failure(Code::Cancelled, "unit '" + recipe.unit.name() + "' was not compiled: the program is ending");
}

}  // namespace

std::string find_worker(const std::string& configured) {
  if (!configured.empty()) return access(configured.c_str(), X_OK) == 0 ? configured : std::string();
  std::string folder = path_of_code(reinterpret_cast<const void*>(&find_worker));
  // The program's own path is told as it was typed, which the working directory or PATH may have completed.
  if (folder.empty() || folder.front() != '/') {
    char self[4096];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
    if (size > 0) folder.assign(self, static_cast<std::size_t>(size));
  }
  folder.resize(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/'));
  for (const char* place :
       {"/kiln-worker", "/../bin/kiln-worker", "/../libexec/kiln/kiln-worker", "/../../libexec/kiln/kiln-worker"}) {
    if (access((folder + place).c_str(), X_OK) == 0) return folder + place;
  }
  return {};
}

WorkerCompiler::WorkerCompiler(std::unique_ptr<NvrtcCompiler> inner, FileDigests& digests, Options options,
                               Observer observer)
    : inner_(std::move(inner)), digests_(digests), options_(std::move(options)), observer_(std::move(observer)) {}

Result<Compiled> WorkerCompiler::compile(const Recipe& recipe) {
  // NVRTC's lock may be locked for ever in a child of fork, so that one does not compile by itself.
  if (inner_->closed(recipe) && fork_generation() == 0) return inner_->compile(recipe);
  const std::string worker = find_worker(options_.worker);
  if (worker.empty()) {
    observer_.tell(
        Event::Kind::WorkerUnavailable, "compiled",
        "kiln-worker was not found" + (options_.worker.empty() ? std::string() : " at " + options_.worker) +
            "; compiling in this process, and what includes headers is not kept. Set KILN_WORKER to its path");
    return inner_->compile(recipe);
  }
  return compile_in(worker, recipe);
}

Result<WorkerReply> WorkerCompiler::converse(int channel, Process& process, const Recipe& recipe) {
  {
    const MutexLock lock(mutex_);
    if (interrupted_) return interrupted(recipe);
    channels_.push_back(channel);
  }
  const bool sent = send_frame(channel, {Frame::Type::Compile, encode(recipe)}).ok();
  const auto frame = sent ? receive_frame(channel, options_.limit) : Result<std::optional<Frame>>(std::nullopt);
  {
    const MutexLock lock(mutex_);
    std::erase(channels_, channel);
    if (interrupted_ && (!frame || !*frame)) {
      process.kill();
      return interrupted(recipe);
    }
  }
  if (!frame && frame.error().code == Code::TimedOut) {
    process.kill();
    return failure(Code::TimedOut, "unit '" + recipe.unit.name() + "' was still compiling after " +
                                       std::to_string(options_.limit.count() / 1000) + " s and was given up");
  }
  if (!frame) return frame.error();
  if (!*frame) return ended(recipe, process);
  if ((*frame)->type == Frame::Type::Failed) {
    WorkerFailure failed = decode_failure((*frame)->payload);
    if (failed.error.code == Code::CompileFailed) remember_failure(recipe, failed.observations);
    return failed.error;
  }
  return decode_reply((*frame)->payload);
}

void WorkerCompiler::remember_failure(const Recipe& recipe, const std::vector<Observation>& observations) {
  BuiltClosure built = build_closure(recipe, observations, false, {}, digests_);
  const MutexLock lock(mutex_);
  if (failed_.size() >= kMostFailures) failed_.clear();
  // A closure that cannot be trusted is as good as none: such a unit is always worth another try.
  if (built.not_cacheable.empty()) failed_.insert_or_assign(recipe.request_key(), std::move(built.closure));
}

bool WorkerCompiler::worth_another_try(const Recipe& recipe) {
  if (closed(recipe)) return false;
  Closure read;
  {
    const MutexLock lock(mutex_);
    const auto known = failed_.find(recipe.request_key());
    if (known == failed_.end()) return true;
    read = known->second;
  }
  return check(read, recipe.places(), digests_).has_value();
}

// A worker that has lost its channel is killed by whoever talked to it.
void WorkerCompiler::interrupt() {
  const MutexLock lock(mutex_);
  interrupted_ = true;
  for (const int channel : channels_) (void)shutdown(channel, SHUT_RDWR);
}

Result<Compiled> WorkerCompiler::compile_in(const std::string& worker, const Recipe& recipe) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return io_failure("cannot make", "a channel to the worker", errno);
  }
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const Fd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  auto process = Process::spawn({{worker, std::to_string(getpid())},
                                 worker_environment(recipe),
                                 {{nothing.get(), 0}, {nothing.get(), 1}, {theirs.get(), kWorkerChannel}}});
  if (!process) return process.error();
  theirs = Fd();

  auto reply = converse(ours.get(), *process, recipe);
  if (!reply) return std::move(reply).error();
  Compiled compiled = std::move(reply->compiled);
  const BuiltClosure built =
      build_closure(recipe, reply->observations, has_debug_options(recipe), compiled.artifact.bytes.view(), digests_);
  compiled.artifact.closure = std::make_shared<const Closure>(built.closure);
  if (compiled.not_cacheable.empty()) compiled.not_cacheable = built.not_cacheable;
  if (!reply->observed) {
    compiled.not_cacheable = "this NVRTC (" + recipe.compiler.path + ") opens files in a way that kiln does not see";
  }
  const auto now = inner_->identity();
  if (!now || now->digest != recipe.compiler.digest) compiled.not_cacheable = "the compiler changed while it ran";
  return compiled;
}

}  // namespace kiln
