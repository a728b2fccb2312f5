// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_compiler.hpp"

#include <algorithm>

#include "backends/cccl/cccl_check.hpp"
#include "backends/dependency_builder.hpp"
#include "backends/factory/backend_table.hpp"
#include "backends/source_scan.hpp"
#include "base/error.hpp"
#include "base/process/environment.hpp"
#include "base/process/process_lifecycle.hpp"
#include "worker/early_job.hpp"

namespace kiln {
namespace {

// Maximum number of workers lost by the unit's fault, and by external kills.
constexpr unsigned kMaxUnitFaults = 2;
constexpr unsigned kMaxExternalFaults = 20;
constexpr std::chrono::milliseconds kMaxCheckTime{60'000};  // for one small unit

// Returns the key of a worker. Workers differ in their compiler and in the files that their sandbox allows them to
// read.
std::string worker_of(const Recipe& recipe, const SandboxPlan& sandbox) {
  std::string name = recipe.unit.kind() + ' ' + recipe.compiler.path + recipe.compiler.digest.hex();
  for (const std::string& path : sandbox.readable) name.append("\n").append(path);
  return name;
}

// Next steps in the event about a compile in this process.
constexpr const char* kSetWorker = "set KILN_WORKER to its path";
constexpr const char* kSetDevice = "add the device to opencl.in_process (KILN_OPENCL_IN_PROCESS) to always do so";

Error cancelled_error(const Recipe& recipe, bool ending) {
  return make_error(Code::Cancelled, "unit '" + recipe.unit.name() + "' was not compiled: " +
                                         (ending ? "the program is ending" : "it was canceled"));
}

bool is_check(const Recipe& recipe) { return recipe.unit.kind() == kCcclCheckKind; }

// An error that is not a result of the check, so that the next compile checks again.
Error unfinished_check(const Recipe& recipe, const std::string& reason) {
  return make_error(Code::Unavailable, "the check of " + recipe.unit.name() + " did not finish: " + reason);
}

Error not_allowed(const Recipe& recipe, const std::string& path) {
  return make_error(is_check(recipe) ? Code::Unavailable : Code::CompileFailed,
                    "unit '" + recipe.unit.name() + "': the compiler was denied read access to " + path +
                        ", which is outside the unit's include roots; add its directory as an include root, list it in "
                        "worker.readable, or set worker.sandbox = off");
}

bool has_read(const std::vector<FileAccess>& observations) {
  return std::any_of(observations.begin(), observations.end(),
                     [](const FileAccess& seen) { return seen.state == FileAccess::State::Read; });
}

std::string invalid_reply(const std::string& what) { return "sent an invalid reply: " + what; }

}  // namespace

WorkerCompiler::WorkerCompiler(std::unique_ptr<Compiler> inner, FileDigestCache& digests, Options options,
                               EventEmitter emitter)
    : inner_(std::move(inner)), digests_(digests), options_(std::move(options)), emitter_(std::move(emitter)),
      failures_(digests) {}

std::vector<std::string> WorkerCompiler::worker_environment(const Recipe& recipe) {
  static constexpr const char* kSeen[] = {"LD_LIBRARY_PATH", "PATH",          "TMPDIR",
                                          "ASAN_OPTIONS",    "UBSAN_OPTIONS", "TSAN_OPTIONS"};
  std::vector<std::string> environment{"CUDA_CACHE_DISABLE=1"};
  for (const auto& [name, value] : environment_variables(kSeen)) environment.push_back(name + "=" + value);
  if (const BackendFactory* const backend = find_backend(recipe.unit.kind())) {
    for (const auto& [name, value] : backend->worker_environment()) environment.push_back(name + "=" + value);
  }
  for (const auto& [name, value] : recipe.compiler.environment) environment.push_back(name + "=" + value);
  return environment;
}

void WorkerCompiler::emit(Event::Kind kind, const Recipe& recipe, std::string message,
                          const RequestContext& context) const {
  if (!emitter_) return;
  Event event = make_event(kind, recipe.unit, recipe.target, context.task_id);
  event.message = std::move(message);
  emitter_.emit(event);
}

Result<CompileResult> WorkerCompiler::compile_with_roots(const Recipe& recipe, const RequestContext& context) {
  if (options_.pool == nullptr || stays_in_process(recipe) ||
      (recipe.unit.kind() != kind() && !(kind() == "cccl" && is_check(recipe))))
    return inner_->compile(recipe, context);
  if (options_.pool->program().empty())
    return compile_in_process(recipe, "kiln-worker was not found", kSetWorker, context);
  if (Status checked = check_library(recipe, context); !checked) return std::move(checked).error();
  return compile_in_worker(recipe, context);
}

// A forked child does not compile in its own process, because a lock of a vendor library can remain locked in it
// forever.
bool WorkerCompiler::stays_in_process(const Recipe& recipe) const {
  return options_.closed_in_process && fork_generation() == 0 && inner_->is_self_contained(recipe);
}

std::optional<CompilerIdentity> WorkerCompiler::undigested_identity() {
  auto identity = options_.pool != nullptr ? inner_->undigested_identity() : std::nullopt;
  return identity && !options_.pool->program().empty() ? std::move(identity) : std::nullopt;
}

std::unique_ptr<EarlyCompile> WorkerCompiler::start_early(const Recipe& undigested, const RequestContext& context) {
  // Taken before a worker can open the files.
  const auto files = inner_->files_state();
  if (!files || options_.pool == nullptr || stays_in_process(undigested)) return nullptr;
  // A precompiled header saves more than an early start, and only the digest finds it.
  if (options_.headers != nullptr && options_.headers->may_have_stored(undigested)) return nullptr;
  const SandboxPlan sandbox = sandbox_plan(undigested, options_.sandbox, is_unseen_);
  WorkerPool::WorkerRequest worker = worker_request(undigested, sandbox, context);
  return EarlyJob::start({undigested, {}, sandbox, {}}, *files,
                         {*options_.pool, std::move(worker), options_.timeout, context.stop});
}

std::optional<Result<CompileResult>> WorkerCompiler::take_early(const Recipe& recipe, FaultSource& fault,
                                                                std::string& cause, const RequestContext& context) {
  fault = FaultSource::None;
  auto* const early = dynamic_cast<EarlyJob*>(context.early);
  if (early == nullptr || !early->is_for(recipe)) return std::nullopt;
  auto done = early->take();
  if (!done) return std::nullopt;
  // The digest of the recipe was computed while the job ran. If the files are still in the state from before, it is
  // that of the library that the worker has opened.
  if (inner_->files_state() != early->files()) {
    if (done->lease) done->lease->discard();
    return std::nullopt;
  }
  if (done->lease) done->lease->set_compiler(worker_of(recipe, early->sandbox()));
  if (!done->talk.rejected.empty()) return not_allowed(recipe, done->talk.rejected.front());
  if (done->talk.end == Worker::Exchange::Outcome::Answered) {
    PchManager::PchPlan none;
    fault = FaultSource::Unit;
    if (auto result = handle_reply(recipe, done->talk.answer, none, fault, cause, context)) return result;
    if (is_unseen_) fault = FaultSource::Unseen;
  } else if (done->talk.end != Worker::Exchange::Outcome::Stopped && !options_.pool->is_ending()) {
    explain_loss(done->talk, fault, cause);
  }
  if (done->lease) done->lease->discard();
  return std::nullopt;
}

Status WorkerCompiler::check_library(const Recipe& recipe, const RequestContext& context) {
  const auto check = inner_->check_before(recipe);
  if (!check) return {};
  if (options_.checks == nullptr) {
    return make_error(Code::Unavailable, recipe.compiler.path + " is of an unknown release and cannot be checked here");
  }
  const Target target{"sm_" + std::to_string(kCcclCheckCapability), Form::Cccl};
  const Recipe checking{*check, target, recipe.compiler, recipe.working_directory};
  return options_.checks->pass(
      recipe, *check, [&] { return compile_in_worker(checking, context); }, context);
}

Result<CompileResult> WorkerCompiler::compile_in_process(const Recipe& recipe, const std::string& reason,
                                                         const char* next_step, const RequestContext& context) {
  if (is_check(recipe)) return unfinished_check(recipe, reason + "; " + next_step);
  if (emitter_) {
    const char* const kept = inner_->is_self_contained(recipe) ? "" : ", and units that include headers are not cached";
    emitter_.emit(Event::Kind::WorkerUnavailable, "compiled",
                  reason + ", compiling in this process" + kept + "; " + next_step);
  }
  return inner_->compile(recipe, context);
}

Result<CompileResult> WorkerCompiler::compile_in_worker(const Recipe& recipe, const RequestContext& context) {
  std::optional<Digest> headers;
  std::optional<PchManager::PendingUse> interest;
  if (options_.headers != nullptr) headers = options_.headers->headers_of(recipe);
  if (headers) interest.emplace(*options_.headers, *headers);
  unsigned own = 0;
  unsigned external = 0;
  for (bool is_first = true;; is_first = false) {
    FaultSource fault = FaultSource::Unit;
    std::string cause;
    auto result =
        is_first ? take_early(recipe, fault, cause, context) : try_compile(recipe, headers, fault, cause, context);
    if (result) {
      if (headers) remember_missing_header(*headers, *result);
      return std::move(*result);
    }
    if (fault == FaultSource::None || fault == FaultSource::Unseen) continue;
    if (fault == FaultSource::Headers) {
      headers.reset();
      continue;
    }
    emit(Event::Kind::WorkerLost, recipe, "the worker " + cause, context);
    const unsigned& count = fault == FaultSource::External ? ++external : ++own;
    if (own >= kMaxUnitFaults || external >= kMaxExternalFaults) {
      const std::string what = cause + " (" + std::to_string(count) + " times)";
      if (is_check(recipe) && fault != FaultSource::Unit) return unfinished_check(recipe, "the worker " + what);
      return quarantine(recipe, what, context);
    }
    headers.reset();  // the cause of a second failure cannot be the precompiled headers
  }
}

std::optional<Result<CompileResult>> WorkerCompiler::try_compile(const Recipe& recipe,
                                                                 const std::optional<Digest>& headers,
                                                                 FaultSource& fault, std::string& cause,
                                                                 const RequestContext& context) {
  const SandboxPlan sandbox = sandbox_plan(recipe, options_.sandbox, is_unseen_);
  WorkerPool::WorkerRequest request = worker_request(recipe, sandbox, context);
  if (headers) request.headers = *headers;
  request.request = recipe.request_key().digest;
  auto lease = options_.pool->take(request, context.stop);
  if (!lease && lease.error().code == Code::Cancelled) return cancelled_error(recipe, options_.pool->is_ending());
  if (!lease) return compile_in_process(recipe, lease.error().message, kSetWorker, context);
  const Digest access_check = options_.checks != nullptr ? options_.checks->access_check(recipe.compiler) : Digest();
  PchManager::PchPlan plan;
  if (headers) plan = options_.headers->plan(recipe, *headers, context);
  if (plan.order.mode == PchRequest::Mode::Create && had_missing_header(*headers)) plan = {};
  if (plan.check != nullptr) {
    const AskWorker asked = [&](const WorkerJob& job) {
      return send_job(lease->worker(), {job.recipe, job.pch, sandbox, access_check}, context.stop);
    };
    if (!options_.headers->passes_check(plan, recipe, asked, context)) {
      lease->discard();  // it may not compile correctly even without them
      fault = FaultSource::Headers;
      return std::nullopt;
    }
    plan.check.reset();
  }
  using End = Worker::Exchange::Outcome;
  Worker::Exchange talk;
  const auto ask_for_unit = [&] {
    const WorkerJob job{recipe, plan.order, sandbox, access_check};
    talk = lease->worker().request(job, options_.timeout, context.stop);
    if (!talk.rejected.empty()) return std::optional<Result<CompileResult>>(not_allowed(recipe, talk.rejected.front()));
    return talk.end == End::Answered ? handle_reply(recipe, talk.answer, plan, fault, cause, context) : std::nullopt;
  };
  if (auto result = ask_for_unit()) return result;
  if (talk.end == End::Answered && is_unseen_ && !sandbox.reads_roots) {
    lease->discard();
    fault = FaultSource::Unseen;
    return std::nullopt;
  }
  if (plan.headers_only) {
    plan = options_.headers->plan(recipe, *headers, context);
    // Create only once, regardless of changes in the meantime.
    if (plan.order.mode == PchRequest::Mode::Create || plan.check != nullptr) plan = {};
    if (auto result = ask_for_unit()) return result;
  }
  lease->discard();
  const bool ending = options_.pool->is_ending();
  if (talk.end == End::Stopped || ending) return cancelled_error(recipe, ending);
  // A creation needs more memory than a compile and may be why the system killed the worker.
  if (headers && (plan.order.mode == PchRequest::Mode::Create || !talk.killed_externally))
    options_.headers->invalidate(plan, recipe, context);
  explain_loss(talk, fault, cause);
  return std::nullopt;
}

WorkerPool::WorkerRequest WorkerCompiler::worker_request(const Recipe& recipe, const SandboxPlan& sandbox,
                                                         const RequestContext& context) const {
  WorkerPool::WorkerRequest request{worker_of(recipe, sandbox), worker_environment(recipe), {}, context.urgent};
  request.runs_programs = sandbox.mode == SandboxPlan::Mode::MayRunPrograms;
  return request;
}

void WorkerCompiler::explain_loss(const Worker::Exchange& talk, FaultSource& fault, std::string& cause) const {
  using End = Worker::Exchange::Outcome;
  if (talk.end == End::Answered) return;
  fault = talk.killed_externally ? FaultSource::External : FaultSource::Unit;
  if (talk.end == End::Died) cause = talk.description;
  if (talk.end == End::TimedOut) {
    fault = FaultSource::Limit;
    cause = "timed out after " + std::to_string(options_.timeout.count() / 1000) +
            " s (KILN_WORKER_TIME_LIMIT) and was killed";
  }
  if (talk.end == End::ProtocolError) cause = invalid_reply(talk.description);
}

Result<WorkerReply> WorkerCompiler::send_job(Worker& worker, const WorkerJob& job, const std::stop_token& stop) const {
  using End = Worker::Exchange::Outcome;
  const Worker::Exchange talk = worker.request(job, std::min(options_.timeout, kMaxCheckTime), stop);
  if (talk.end == End::Stopped || talk.killed_externally) return make_error(Code::Cancelled, "the worker was killed");
  if (talk.end == End::TimedOut) return make_error(Code::Io, "the worker timed out");
  if (talk.end == End::ProtocolError) return make_error(Code::Io, "the worker " + invalid_reply(talk.description));
  if (talk.end == End::Died) return make_error(Code::Internal, "the worker " + talk.description);
  if (!talk.rejected.empty())
    return make_error(Code::CompileFailed, "the compiler was denied read access to " + talk.rejected.front());
  if (talk.answer.type == Frame::Type::Failed) return decode_failure(talk.answer.payload).error;
  return decode_reply(talk.answer);
}

std::optional<Result<CompileResult>> WorkerCompiler::handle_reply(const Recipe& recipe, const Frame& answer,
                                                                  PchManager::PchPlan& plan, FaultSource& fault,
                                                                  std::string& cause, const RequestContext& context) {
  if (answer.type == Frame::Type::Failed) {
    WorkerFailure failed = decode_failure(answer.payload);
    if (failed.cause == WorkerFailure::Cause::Unseen) {
      is_unseen_ = true;
      return std::nullopt;
    }
    if (failed.cause == WorkerFailure::Cause::NoCompiler)
      return compile_in_process(recipe, failed.error.message, kSetDevice, context);
    if (failed.cause == WorkerFailure::Cause::Exhausted) {
      fault = FaultSource::Limit;
      cause = failed.error.message;
    }
    if (failed.error.code == Code::Corrupt) cause = invalid_reply(failed.error.message);
    if (!cause.empty()) return std::nullopt;
    const bool is_final = !is_missing_header(failed.error) || !may_need_bundled(recipe);
    if (failed.error.code == Code::CompileFailed && is_final) remember_rejection(recipe, failed.observations);
    return failed.error;
  }
  auto reply = decode_reply(answer);
  // Only if it was requested: there is no plan to finish if a worker reports it by itself.
  if (reply && plan.order.mode == PchRequest::Mode::Create && reply->pch.outcome == PchResult::Outcome::Created &&
      reply->compiled.artifact.bytes.size() == 0) {
    plan.headers_only = true;
    (void)options_.headers->finish(plan, recipe, *reply, context);
    return std::nullopt;
  }
  if (reply && answer.type == Frame::Type::Compiled) return build_result(recipe, std::move(*reply), plan, context);
  cause = invalid_reply(reply ? "wrong frame type" : reply.error().message);
  return std::nullopt;
}

CompileResult WorkerCompiler::build_result(const Recipe& recipe, WorkerReply reply, PchManager::PchPlan& plan,
                                           const RequestContext& context) {
  CompileResult& compiled = reply.compiled;
  if (options_.checks != nullptr && reply.accesses_complete)
    options_.checks->remember_access_check(recipe.compiler, reply.access_check);
  if (inner_->is_self_contained(recipe)) {
    // Later lookups find it by the empty dependency set, regardless of the compiler's accesses.
    compiled.artifact.dependency_set = std::make_shared<const DependencySet>();
    if (has_read(reply.observations))
      compiled.uncacheable_reason = "the compiler read a file that is not an input of the unit";
  } else if (!reply.has_dependency_set) {
    const std::vector<FileAccess> observations =
        options_.headers != nullptr ? options_.headers->finish(plan, recipe, reply, context) : reply.observations;
    DependencyResult built =
        build_dependency_set(recipe, observations, has_debug_options(recipe), compiled.artifact.bytes.view(), digests_);
    compiled.artifact.dependency_set = std::make_shared<const DependencySet>(std::move(built.dependency_set));
    if (compiled.uncacheable_reason.empty()) compiled.uncacheable_reason = std::move(built.uncacheable_reason);
    if (!reply.accesses_complete) {
      compiled.uncacheable_reason =
          !reply.unobserved_because.empty()
              ? std::move(reply.unobserved_because)
              : "this compiler (" + recipe.compiler.path + ") opens files in a way that kiln cannot intercept";
    }
  }
  const auto now = inner_->identity({});
  if (!now || now->digest != recipe.compiler.digest) compiled.uncacheable_reason = "the compiler changed while it ran";
  return std::move(compiled);
}

void WorkerCompiler::remember_rejection(const Recipe& recipe, const std::vector<FileAccess>& observations) {
  DependencyResult built = build_dependency_set(recipe, observations, false, {}, digests_);
  // An unreliable dependency set is not recorded: such a unit is always compiled again.
  if (built.uncacheable_reason.empty()) failures_.add(recipe, std::move(built.dependency_set));
}

Error WorkerCompiler::quarantine(const Recipe& recipe, const std::string& cause, const RequestContext& context) {
  failures_.add(recipe, [](const Recipe&) { return false; });
  const std::string what = "unit '" + recipe.unit.name() + "' is quarantined: its worker " + cause;
  emit(Event::Kind::Quarantined, recipe, what, context);
  return make_error(Code::CompileFailed, what);
}

bool WorkerCompiler::should_retry(const Recipe& recipe) {
  return !is_self_contained(recipe) && failures_.worth_another_try(recipe);
}

void WorkerCompiler::interrupt() {
  if (options_.pool != nullptr) options_.pool->interrupt();
  inner_->interrupt();
}

}  // namespace kiln
