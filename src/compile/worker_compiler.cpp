#include "compile/worker_compiler.hpp"

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/process_life.hpp"
#include "compile/closure_builder.hpp"
#include "compile/source_text.hpp"

namespace kiln {
namespace {

// How many workers a unit may cost by its own fault, and how often somebody else may kill them.
constexpr unsigned kMostOwnFaults = 2;
constexpr unsigned kMostForeignFaults = 20;

// All that a worker sees of our environment: what finds libraries, what sanitizers need, and the recipe's own part.
std::vector<std::string> worker_environment(const Recipe& recipe) {
  static constexpr const char* kSeen[] = {"LD_LIBRARY_PATH", "PATH",          "TMPDIR",
                                          "ASAN_OPTIONS",    "UBSAN_OPTIONS", "TSAN_OPTIONS"};
  std::vector<std::string> environment{"CUDA_CACHE_DISABLE=1"};
  for (const auto& [name, value] : environment_variables(kSeen)) environment.push_back(name + "=" + value);
  for (const auto& [name, value] : recipe.compiler.environment) environment.push_back(name + "=" + value);
  return environment;
}

Error not_wanted(const Recipe& recipe, bool ending) {
  return failure(Code::Cancelled, "unit '" + recipe.unit.name() +
                                      "' was not compiled: " + (ending ? "the program is ending" : "it was cancelled"));
}

std::string nonsense(const std::string& what) { return "gave no answer that makes sense: " + what; }

}  // namespace

WorkerCompiler::WorkerCompiler(std::unique_ptr<Compiler> inner, FileDigests& digests, Options options,
                               Observer observer)
    : inner_(std::move(inner)), digests_(digests), options_(options), observer_(std::move(observer)),
      refusals_(digests) {}

void WorkerCompiler::tell(Event::Kind kind, const Recipe& recipe, std::string message) const {
  if (!observer_) return;
  Event event = event_of(kind, recipe.unit, recipe.target, recipe.flow);
  event.message = std::move(message);
  observer_.tell(event);
}

Result<Compiled> WorkerCompiler::compile(const Recipe& recipe) {
  // A vendor's lock may be locked for ever in a child of fork, so that one does not compile by itself.
  const bool may_stay = !options_.everything && inner_->closed(recipe) && fork_generation() == 0;
  if (options_.pool == nullptr || may_stay || recipe.unit.kind() != kind()) return inner_->compile(recipe);
  if (options_.pool->program().empty()) return compile_here(recipe, "kiln-worker was not found");
  return compile_in_worker(recipe);
}

Result<Compiled> WorkerCompiler::compile_here(const Recipe& recipe, const std::string& why) {
  observer_.tell(
      Event::Kind::WorkerUnavailable, "compiled",
      why + "; compiling in this process, and what includes headers is not kept. Set KILN_WORKER to its path");
  return inner_->compile(recipe);
}

Result<Compiled> WorkerCompiler::compile_in_worker(const Recipe& recipe) {
  std::optional<Digest> headers;
  std::optional<PrecompiledHeaders::Interest> interest;
  if (options_.headers != nullptr) headers = options_.headers->headers_of(recipe);
  if (headers) interest.emplace(*options_.headers, *headers);
  unsigned own = 0;
  unsigned foreign = 0;
  for (;;) {
    Fault fault = Fault::Own;
    std::string cause;
    if (auto result = try_once(recipe, headers, fault, cause)) return std::move(*result);
    tell(Event::Kind::WorkerLost, recipe, "the worker " + cause);
    const unsigned& count = fault == Fault::Own ? ++own : ++foreign;
    if (own >= kMostOwnFaults || foreign >= kMostForeignFaults) {
      return set_aside(recipe, cause + " (" + std::to_string(count) + " times)");
    }
    headers.reset();  // whatever it was, it cannot have been the precompiled headers again
  }
}

std::optional<Result<Compiled>> WorkerCompiler::try_once(const Recipe& recipe, const std::optional<Digest>& headers,
                                                         Fault& fault, std::string& cause) {
  WorkerPool::Wish wish{
      recipe.compiler.path + recipe.compiler.digest.hex(), worker_environment(recipe), {}, recipe.urgent};
  if (headers) wish.headers = *headers;
  auto lease = options_.pool->take(wish, recipe.stop);
  if (!lease && lease.error().code == Code::Cancelled) return not_wanted(recipe, options_.pool->is_ending());
  if (!lease) return compile_here(recipe, lease.error().message);
  PrecompiledHeaders::Plan plan;
  if (headers) plan = options_.headers->plan(recipe, *headers);
  using End = Worker::Talk::End;
  Worker::Talk talk;
  const auto ask = [&] {
    talk = lease->worker().ask(frame_of(WorkerJob{recipe, plan.order}), options_.limit, recipe.stop);
    return talk.end == End::Answered ? conclude(recipe, talk.answer, plan, cause) : std::nullopt;
  };
  if (auto result = ask()) return result;
  if (plan.made_alone) {
    plan = options_.headers->plan(recipe, *headers);
    if (plan.order.mode == PchOrder::Mode::Create) plan = {};  // whatever came between, once is enough
    if (auto result = ask()) return result;
  }
  lease->spoil();
  const bool ending = options_.pool->is_ending();
  if (talk.end == End::Stopped || ending) return not_wanted(recipe, ending);
  if (headers && !talk.blameless) options_.headers->suspect(plan, recipe);
  fault = talk.blameless ? Fault::Foreign : Fault::Own;
  if (talk.end == End::Died) cause = talk.how;
  if (talk.end == End::Silent) {
    cause = "was still compiling after " + std::to_string(options_.limit.count() / 1000) +
            " s (KILN_WORKER_TIME_LIMIT) and was killed";
  }
  if (talk.end == End::Garbled) cause = nonsense(talk.how);
  return std::nullopt;
}

std::optional<Result<Compiled>> WorkerCompiler::conclude(const Recipe& recipe, const Frame& answer,
                                                         PrecompiledHeaders::Plan& plan, std::string& cause) {
  if (answer.type == Frame::Type::Failed) {
    WorkerFailure failed = decode_failure(answer.payload);
    if (failed.exhausted) cause = failed.error.message;
    if (failed.error.code == Code::Corrupt) cause = nonsense(failed.error.message);
    if (!cause.empty()) return std::nullopt;
    if (failed.error.code == Code::CompileFailed) remember_refusal(recipe, failed.observations);
    return failed.error;
  }
  auto reply = decode_reply(answer);
  // Only where it was ordered: a worker that says so by itself has no plan of ours to settle.
  if (reply && plan.order.mode == PchOrder::Mode::Create && reply->pch.outcome == PchReport::Outcome::Created &&
      reply->compiled.artifact.bytes.size() == 0) {
    plan.made_alone = true;
    (void)options_.headers->settle(plan, recipe, *reply);
    return std::nullopt;
  }
  if (reply && answer.type == Frame::Type::Compiled) return complete(recipe, std::move(*reply), plan);
  cause = nonsense(reply ? "a job" : reply.error().message);
  return std::nullopt;
}

Compiled WorkerCompiler::complete(const Recipe& recipe, WorkerReply reply, PrecompiledHeaders::Plan& plan) {
  Compiled& compiled = reply.compiled;
  if (!reply.has_closure) {
    const std::vector<Observation> observations =
        options_.headers != nullptr ? options_.headers->settle(plan, recipe, reply) : reply.observations;
    BuiltClosure built =
        build_closure(recipe, observations, has_debug_options(recipe), compiled.artifact.bytes.view(), digests_);
    compiled.artifact.closure = std::make_shared<const Closure>(std::move(built.closure));
    if (compiled.not_cacheable.empty()) compiled.not_cacheable = std::move(built.not_cacheable);
    if (!reply.observed) {
      compiled.not_cacheable =
          "this compiler (" + recipe.compiler.path + ") opens files in a way that kiln does not see";
    }
  }
  const auto now = inner_->identity();
  if (!now || now->digest != recipe.compiler.digest) compiled.not_cacheable = "the compiler changed while it ran";
  return std::move(compiled);
}

void WorkerCompiler::remember_refusal(const Recipe& recipe, const std::vector<Observation>& observations) {
  BuiltClosure built = build_closure(recipe, observations, false, {}, digests_);
  // A closure that cannot be trusted is as good as none: such a unit is always worth another try.
  if (built.not_cacheable.empty()) refusals_.remember(recipe, std::move(built.closure));
}

Error WorkerCompiler::set_aside(const Recipe& recipe, const std::string& cause) {
  refusals_.remember(recipe, [](const Recipe&) { return false; });
  const std::string what = "unit '" + recipe.unit.name() + "' is set aside: the worker that compiled it " + cause;
  tell(Event::Kind::SetAside, recipe, what);
  return failure(Code::CompileFailed, what);
}

bool WorkerCompiler::worth_another_try(const Recipe& recipe) {
  return !closed(recipe) && refusals_.worth_another_try(recipe);
}

void WorkerCompiler::interrupt() {
  if (options_.pool != nullptr) options_.pool->interrupt();
  inner_->interrupt();
}

}  // namespace kiln
