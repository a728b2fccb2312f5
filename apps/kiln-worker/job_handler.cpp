// SPDX-License-Identifier: Apache-2.0
#include "job_handler.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "backends/cccl/cccl_check.hpp"
#include "backends/command/command_compiler.hpp"
#include "backends/cuda/bundled_headers.hpp"
#include "backends/cuda/nvjitlink_compiler.hpp"
#include "backends/factory/backend_table.hpp"
#include "backends/source_scan.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/process/system_info.hpp"
#include "file_broker.hpp"
#include "interpose.hpp"
#include "loaded_files.hpp"
#include "worker/worker.hpp"

namespace kiln {
namespace {

constexpr const char* kEndOfHeaders = "kiln_end_of_headers";

Frame failed(const Error& error, std::vector<FileAccess> observations = {}) {
  return frame_of(WorkerFailure{error, std::move(observations)});
}

// A header that exists only in this process, under two names, and the name of a header that does not exist.
struct TracingProbe {
  static constexpr std::string_view kText = "#pragma once\n";
  Fd header{static_cast<int>(memfd_create("kiln-canary", MFD_CLOEXEC))};
  Fd same{fcntl(header.get(), F_DUPFD_CLOEXEC, 0)};
  std::string present = "/proc/self/fd/" + std::to_string(header.get());
  std::string again = "/proc/self/fd/" + std::to_string(same.get());
  std::string missing = "kiln-canary-that-is-not-there.h";
};

// Returns the reason why the file accesses of this library are not intercepted; empty if they are. A probe makes the
// library access files with known results: one that it reads, the same file under another name, whose identity it
// checks, and a missing one. The probe detects a compiler that uses other means (a static libc, direct system calls).
// `passed_before` means that a worker with the same files has run the probe; it takes as long as a small compile.
std::string unobservable_reason(NvrtcCompiler& compiler, const Recipe& recipe, bool passed_before) {
  const TracingProbe canary;
  const bool is_written = canary.header && write_all(canary.header.get(), TracingProbe::kText, "the canary");
  if (!is_written || !canary.same)
    return "kiln-worker cannot create memory files, which it needs to check that it sees all reads";
  if (!exists(canary.present)) {
    return "kiln-worker cannot find " + parent_path(canary.present) +
           ", which it needs to check that it sees all reads; mount /proc in this container or chroot";
  }
  if (passed_before) return {};
  Recipe probe = recipe;
  // Uses an include root: a file that is included by its absolute path is opened at once, without a check before.
  const auto include = [](const std::string& path) {
    return "#include <" + path.substr(std::string_view("/proc/self/").size()) + ">\n";
  };
  probe.unit = Unit::cuda("kiln-canary", include(canary.present) + include(canary.again) + "#if __has_include(\"" +
                                             canary.missing + "\")\n#endif\n#error done\n")
                   .with_include_root("/proc/self");
  FileAccessRecorder recorder;
  {
    const ScopedFileTracing watch(recorder, {});
    (void)compiler.compile(probe, {});
  }
  bool saw_present = false;
  bool saw_again = false;
  bool saw_missing = false;
  const Digest digest = sha256(TracingProbe::kText);
  for (const FileAccess& o : recorder.take()) {
    const bool is_read = o.state == FileAccess::State::Read && o.content.digest == digest && !o.inconsistent;
    saw_present = saw_present || (o.path == canary.present && is_read);
    saw_again = saw_again || (o.path == canary.again && (is_read || o.state == FileAccess::State::Exists));
    saw_missing = saw_missing || (o.path.ends_with(canary.missing) && o.state == FileAccess::State::Missing);
  }
  if (saw_present && saw_again && saw_missing) return {};
  return "this compiler (" + recipe.compiler.path + ") opens files in a way that kiln cannot intercept";
}

// Records the sentinels of roots, which the compiler does not read. They are read before and after the compile.
void record_sentinels(const Recipe& recipe, FileAccessRecorder& recorder) {
  for (const IncludeRoot& root : recipe.path_roots().roots) {
    if (root.sentinel.empty()) continue;
    const std::string path = join_path(root.path, root.sentinel);
    const auto stamp = stamp_of(path.c_str());
    const auto text = read_file(path);
    if (stamp && text && *text) {
      recorder.read(path, *stamp, {sha256((*text)->view()), {}, {}});
    } else {
      recorder.missing(path);
    }
  }
}

// Compiles only the headers of a unit and a warning after them. Returns the log up to that warning; nothing if it is
// not in the log.
std::optional<std::string> log_of_headers(NvrtcCompiler& compiler, const Recipe& recipe) {
  const Unit& unit = recipe.unit;
  const std::string source = unit.full_source();
  Recipe headers = recipe;
  headers.unit = Unit::cuda(unit.name(), std::string(leading_directives(source)) + "\n#warning " + kEndOfHeaders + "\n")
                     .with_options(unit.options());
  for (const IncludeRoot& root : unit.include_roots())
    headers.unit = headers.unit.with_include_root(root.path, root.sentinel);
  for (const Header& header : unit.headers()) headers.unit = headers.unit.with_header(header.name, header.content);
  const auto compiled = compiler.compile(headers, {});
  if (!compiled) return std::nullopt;
  const std::string& log = compiled->artifact.metadata.log;
  const std::size_t at = log.find(kEndOfHeaders);
  if (at == std::string::npos) return std::nullopt;
  return log.substr(0, log.rfind('\n', at) + 1);
}

}  // namespace

JobHandler::Nvrtc& JobHandler::nvrtc(const std::string& path, const WorkerJob& job) {
  Nvrtc& known = nvrtcs_[path];
  if (known.compiler != nullptr) return known;
  known.compiler = std::make_unique<NvrtcCompiler>(path, digests_, InputTracking::On);
  known.heap = PchHeap(*known.compiler, memory_limit_);
  const Digest files = loaded_files_digest();
  const bool passed_before = files != Digest() && files == job.access_check;
  known.unobservable_because = unobservable_reason(*known.compiler, job.recipe, passed_before);
  if (known.unobservable_because.empty()) known.access_check = files;
  return known;
}

// Detects out of memory. NVRTC's front end survives a failed allocation and reports it in its log as if the unit were
// wrong. It doubles its memory when that is full, so that it may have used only a quarter of the limit. Its back end
// reports various errors; by then it has used more.
WorkerFailure JobHandler::failure_of(const Error& error, std::vector<FileAccess> observations) const {
  const std::uint64_t peak = peak_memory();
  const bool says_so = error.log.find("out of memory") != std::string::npos;
  if (error.code != Code::CompileFailed || peak < memory_limit_ / (says_so ? 4 : 2)) {
    return {error, std::move(observations)};
  }
  const std::string what = "ran out of memory " + format_memory_usage(peak, memory_limit_);
  return {make_error(Code::CompileFailed, what, error.log), {}, WorkerFailure::Cause::Exhausted};
}

Frame JobHandler::compile_watched(const WorkerJob& job, Nvrtc& by, const PchJob::Compile& make) {
  if (must_see_opens_ && !by.unobservable_because.empty()) {
    const Error error = make_error(Code::Unsupported, by.unobservable_because);
    return frame_of(WorkerFailure{error, {}, WorkerFailure::Cause::Unseen});
  }
  WorkerReply reply;
  FileAccessRecorder recorder(job.pch.path);
  const PchJob::Compile compile = [&](const PchRequest& order, PchResult& report) {
    record_sentinels(job.recipe, recorder);
    auto made = [&] {
      const ScopedFileTracing watch(recorder, TextScanner(job.recipe));
      return make(order, report);
    }();
    record_sentinels(job.recipe, recorder);
    return made;
  };
  PchJob::HeaderLog header_log;
  if (job.recipe.unit.kind() == "cuda") {
    header_log = [&] {
      FileAccessRecorder other;  // not of the unit: its dependencies are those of the compile without this one
      const ScopedFileTracing watch(other, TextScanner(job.recipe));
      return log_of_headers(*by.compiler, job.recipe);
    };
  }
  const bool is_attempt = job.recipe.compiler.roots.empty() && has_bundled_headers(job.recipe.compiler);
  PchJob with_pch(job.pch, by.heap, recorder, is_attempt);
  Result<CompileResult> compiled =
      job.pch.mode == PchRequest::Mode::None ? compile({}, reply.pch) : with_pch.run(compile, header_log, reply.pch);
  if (!compiled) return frame_of(failure_of(compiled.error(), recorder.take()));
  reply.compiled = std::move(*compiled);
  reply.accesses_complete = by.unobservable_because.empty();
  reply.unobserved_because = by.unobservable_because;
  reply.access_check = by.access_check;
  reply.observations = recorder.take();
  return frame_of(reply);
}

Frame JobHandler::compile_cuda(const WorkerJob& job) {
  Nvrtc& known = nvrtc(job.recipe.compiler.path, job);
  return compile_watched(job, known, [&](const PchRequest& order, PchResult& report) {
    return known.compiler->compile(job.recipe, order, report);
  });
}

// NVRTC, whose accesses are recorded, reads the files of the CCCL library's compiles.
Frame JobHandler::compile_cccl(const WorkerJob& job) {
  const CompilerIdentity& compiler = job.recipe.compiler;
  const auto path = CcclCompiler::nvrtc_of(compiler);
  if (!path) return failed(path.error());
  Nvrtc& by = nvrtc(*path, job);
  std::unique_ptr<CcclCompiler>& known = cccls_[compiler.path];
  if (known == nullptr) known = std::make_unique<CcclCompiler>(compiler, digests_);
  if (Status opened = known->open(job.recipe); !opened) return failed(opened.error());
  const bool is_check = job.recipe.unit.kind() == kCcclCheckKind;
  return compile_watched(job, by, [&](const PchRequest& order, PchResult& report) {
    return is_check ? known->check(job.recipe) : known->compile(job.recipe, order, report);
  });
}

// Only with the host's compiler: if this process finds another driver or no device, the host decides what to do.
Frame JobHandler::compile_by(const BackendFactory& backend, const Recipe& recipe) {
  const std::string device = recipe.target.form == Form::OpenClBinary ? recipe.target.architecture : std::string();
  std::unique_ptr<Compiler>& compiler = compilers_[backend.kind() + ' ' + device];
  if (compiler == nullptr) compiler = backend.make_compiler(device);
  const auto identity = compiler->identity({});
  if (identity && identity->digest == recipe.compiler.digest) return compile_with(*compiler, recipe);
  std::string reason =
      "kiln-worker does not have the " + backend.kind() + " compiler of " + recipe.target.name() + ": ";
  reason += identity ? "it has " + identity->version + ", not " + recipe.compiler.version : identity.error().message;
  return frame_of(
      WorkerFailure{make_error(Code::Unavailable, std::move(reason)), {}, WorkerFailure::Cause::NoCompiler});
}

Compiler* JobHandler::other_compiler(const Recipe& recipe) {
  std::unique_ptr<Compiler>& compiler = compilers_[recipe.unit.kind() + ' ' + recipe.compiler.path];
  if (compiler == nullptr && recipe.unit.kind() == "link") {
    compiler = std::make_unique<NvJitLinkCompiler>(recipe.compiler.path, std::string(), digests_, InputTracking::On);
  }
  if (compiler == nullptr && recipe.unit.kind() == "command" && !recipe.unit.options().empty()) {
    compiler = std::make_unique<CommandCompiler>(recipe.unit.options().front(), digests_);
  }
  return compiler.get();
}

Frame JobHandler::compile_with(Compiler& compiler, const Recipe& recipe) const {
  auto compiled = compiler.compile(recipe, {});
  if (!compiled) return frame_of(failure_of(compiled.error(), {}));
  WorkerReply reply;
  reply.compiled = std::move(*compiled);
  reply.accesses_complete = true;
  reply.has_dependency_set = true;
  return frame_of(reply);
}

// Called before a compiler is opened. A sandbox can only become stricter, and all jobs of a worker have the same plan.
void JobHandler::confine(SandboxPlan plan) {
  is_confined_ = true;
  const char* const own = getenv("TMPDIR");  // private to this worker if it can run programs
  if (plan.mode == SandboxPlan::Mode::MayRunPrograms && own != nullptr) {
    plan.writable.emplace_back(own);
    setenv("POCL_CACHE_DIR", own, 1);  // PoCL stores its intermediate files there
  }
  const bool is_denied_files = enter_sandbox(plan).landlock_abi != 0;
  use_file_broker(kWorkerChannel, is_denied_files ? BrokeredFiles::AllDenied : BrokeredFiles::NamelessPch);
  must_see_opens_ = is_denied_files && !plan.reads_roots;
}

Frame JobHandler::handle(const Frame& request) {
  if (request.type != Frame::Type::Compile) return failed(make_error(Code::Corrupt, "a worker accepts only jobs"));
  const auto job = decode_job(request.payload);
  if (!job) return failed(job.error());
  const std::string& directory = job->recipe.working_directory;
  if (chdir(directory.c_str()) != 0) return failed(io_error("cannot change to directory", directory, errno));
  // NVRTC writes PWD as the working directory into debug information if both are the same directory.
  setenv("PWD", directory.c_str(), 1);
  if (!is_confined_) confine(job->sandbox);
  if (job->recipe.unit.kind() == "cuda") return compile_cuda(*job);
  if (job->recipe.unit.kind() == "cccl" || job->recipe.unit.kind() == kCcclCheckKind) return compile_cccl(*job);
  if (const BackendFactory* const backend = find_backend(job->recipe.unit.kind())) {
    return compile_by(*backend, job->recipe);
  }
  if (Compiler* compiler = other_compiler(job->recipe)) return compile_with(*compiler, job->recipe);
  return failed(
      make_error(Code::InvalidArgument, "a worker does not compile units of kind '" + job->recipe.unit.kind() + "'"));
}

}  // namespace kiln
