#include "workshop.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/machine.hpp"
#include "compile/command_compiler.hpp"
#include "compile/nvjitlink_compiler.hpp"
#include "compile/worker.hpp"
#include "interpose.hpp"

namespace kiln {
namespace {

Frame failed(const Error& error, std::vector<Observation> observations = {}) {
  return frame_of(WorkerFailure{error, std::move(observations), false});
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

// Mapped rather than read: it is in the page cache, and the compiler is about to read all of it anyway.
std::optional<std::uint64_t> checksum_of(const std::string& path, std::uint64_t& size) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) return std::nullopt;
  size = static_cast<std::uint64_t>(status.st_size);
  void* const start = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file.get(), 0);
  if (start == MAP_FAILED) return std::nullopt;
  const std::uint64_t checksum = xxh3({static_cast<const std::uint8_t*>(start), size});
  munmap(start, size);
  return checksum;
}

// What of the order can be done; the report says why not all of it.
PchOrder what_can_be_done(const PchOrder& order, PchReport& report) {
  if (order.mode == PchOrder::Mode::None) return {};
  std::uint64_t size = 0;
  if (order.mode == PchOrder::Mode::Use && (checksum_of(order.path, size) != order.checksum || size != order.size)) {
    report.outcome = PchReport::Outcome::Refused;
    report.reason = "the file is damaged";
    return {};
  }
  return order;
}

// With a warning that it does not take a precompiled header NVRTC says how warnings are suppressed, which it says once:
// what else it warns of then lacks that remark, and the log is not that of a compile without.
bool has_gap_in_log(const PchReport& report, const Compiled& compiled) {
  const bool took_it = report.outcome == PchReport::Outcome::Created || report.outcome == PchReport::Outcome::Used;
  return !took_it && !compiled.artifact.about.log.empty();
}

// A precompiled header that was written, as it lies on the disk.
void complete(PchReport& report, const PchOrder& order, FileRecorder& recorder) {
  auto before = recorder.take_before_writing();
  const auto checksum = checksum_of(order.path, report.size);
  if (!before || !checksum) {
    report = {PchReport::Outcome::Refused, "what the compiler wrote cannot be read again", 0, 0, {}};
    return;
  }
  report.checksum = *checksum;
  report.observations = std::move(*before);
}

}  // namespace

Workshop::Nvrtc& Workshop::nvrtc(const std::string& path, const Recipe& recipe) {
  Nvrtc& known = nvrtcs_[path];
  if (known.compiler != nullptr) return known;
  known.compiler = std::make_unique<NvrtcCompiler>(path, digests_, Watched::Yes);
  place_pch_heap(known.compiler->pch_heap_size());
  known.observable = is_observable(*known.compiler, recipe);
  return known;
}

// NVRTC's front end survives a refused allocation, and says so in its log as if the unit were wrong. It asks for twice
// of what it has when that is full, so it may have had a quarter of the limit only. Its back end says all sorts of
// things, by then it has had more.
WorkerFailure Workshop::failure_of(const Error& error, std::vector<Observation> observations) const {
  const std::uint64_t peak = peak_memory();
  const bool says_so = error.log.find("out of memory") != std::string::npos;
  if (error.code != Code::CompileFailed || peak < memory_limit_ / (says_so ? 4 : 2)) {
    return {error, std::move(observations), false};
  }
  const std::string what = "got no more memory, " + used_of_limit(peak, memory_limit_);
  return {failure(Code::CompileFailed, what, error.log), {}, true};
}

Frame Workshop::compile_watched(const WorkerJob& job, bool observable, const Compile& make) {
  WorkerReply reply;
  const PchOrder order = what_can_be_done(job.pch, reply.pch);
  FileRecorder recorder(order.path);
  const auto compile = [&](const PchOrder& with, PchReport& report) {
    const FileWatch watch(recorder);
    return make(with, report);
  };
  PchReport report;
  Result<Compiled> compiled = compile(order, report);
  if (order.mode != PchOrder::Mode::None) {
    reply.pch = std::move(report);
    if (!is_pch_heap_placed()) {
      const char* const reason = "this NVRTC's memory for them cannot be put where all workers have it";
      reply.pch = {PchReport::Outcome::Unavailable, reason, 0, 0, {}};
    }
    // It may have failed for the sake of the precompiled header, which somebody may have taken away by now.
    if (!compiled) reply.pch = {PchReport::Outcome::Refused, "the compile failed with it", 0, 0, {}};
    if (!compiled || has_gap_in_log(reply.pch, *compiled)) {
      (void)recorder.take();
      compiled = compile({}, report);
    }
  }
  if (!compiled) return frame_of(failure_of(compiled.error(), recorder.take()));
  if (reply.pch.outcome == PchReport::Outcome::Created) complete(reply.pch, order, recorder);
  reply.compiled = std::move(*compiled);
  reply.observed = observable;
  reply.observations = recorder.take();
  return frame_of(reply);
}

Frame Workshop::compile_cuda(const WorkerJob& job) {
  Nvrtc& known = nvrtc(job.recipe.compiler.path, job.recipe);
  return compile_watched(job, known.observable, [&](const PchOrder& order, PchReport& report) {
    return known.compiler->compile(job.recipe, order, report);
  });
}

// The files that the CCCL library's compiles read are read by NVRTC, whom we watch.
Frame Workshop::compile_cccl(const WorkerJob& job) {
  const CompilerIdentity& compiler = job.recipe.compiler;
  const auto path = CcclCompiler::nvrtc_of(compiler);
  if (!path) return failed(path.error());
  const bool observable = nvrtc(*path, job.recipe).observable;
  std::unique_ptr<CcclCompiler>& known = cccls_[compiler.path];
  if (known == nullptr) known = std::make_unique<CcclCompiler>(compiler, digests_);
  if (Status opened = known->open(job.recipe); !opened) return failed(opened.error());
  return compile_watched(job, observable, [&](const PchOrder& order, PchReport& report) {
    return known->compile(job.recipe, order, report);
  });
}

Compiler* Workshop::other(const Recipe& recipe) {
  std::unique_ptr<Compiler>& compiler = compilers_[recipe.unit.kind() + ' ' + recipe.compiler.path];
  if (compiler == nullptr && recipe.unit.kind() == "link") {
    compiler = std::make_unique<NvJitLinkCompiler>(recipe.compiler.path, std::string(), digests_, Watched::Yes);
  }
  if (compiler == nullptr && recipe.unit.kind() == "command" && !recipe.unit.options().empty()) {
    compiler = std::make_unique<CommandCompiler>(recipe.unit.options().front(), digests_);
  }
  return compiler.get();
}

Frame Workshop::compile_by(Compiler& compiler, const Recipe& recipe) const {
  auto compiled = compiler.compile(recipe);
  if (!compiled) return frame_of(failure_of(compiled.error(), {}));
  WorkerReply reply;
  reply.compiled = std::move(*compiled);
  reply.observed = true;
  reply.has_closure = true;
  return frame_of(reply);
}

Frame Workshop::answer(const Frame& request) {
  if (request.type != Frame::Type::Compile) return failed(failure(Code::Corrupt, "a worker takes only jobs"));
  const auto job = decode_job(request.payload);
  if (!job) return failed(job.error());
  const std::string& folder = job->recipe.working_directory;
  if (chdir(folder.c_str()) != 0) return failed(io_failure("cannot go to", folder, errno));
  // NVRTC spells the working directory as PWD does, in debug information, where the two are one.
  setenv("PWD", folder.c_str(), 1);
  if (job->recipe.unit.kind() == "cuda") return compile_cuda(*job);
  if (job->recipe.unit.kind() == "cccl") return compile_cccl(*job);
  if (Compiler* compiler = other(job->recipe)) return compile_by(*compiler, job->recipe);
  return failed(failure(Code::InvalidArgument, "a worker compiles no units of kind '" + job->recipe.unit.kind() + "'"));
}

}  // namespace kiln
