// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_state.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/catch_to_error.hpp"
#include "base/error.hpp"
#include "core/unit_access.hpp"

namespace kiln {
namespace {

using Stage = CompileTask::Stage;

// Below the priority of the caller's threads, so that warming does not slow them down.
constexpr int kBackgroundNiceness = 10;

// Returns true for a failure that equal inputs would cause again. Other failures (no compiler, no disk) are retried.
bool is_remembered(const Error& error) { return error.code == Code::CompileFailed || error.code == Code::LoadRejected; }

// The resolver may run out of memory or call a user function that throws, which would end a process on a pool thread.
template <class T, class Function>
Result<T> run_for_request(const CompileRequest& request, const Function& function) noexcept {
  return catch_to_error([&]() -> Result<T> {
    try {
      return function();
    } catch (const std::bad_alloc&) {
      Error error = out_of_memory();
      ignore_failures([&] { error.message = describe(request) + " could not be built: " + error.message; });
      return error;
    } catch (const std::exception& thrown) {
      return make_error(Code::Internal, describe(request) + " could not be built: " + thrown.what());
    } catch (...) {
      return make_error(Code::Internal, describe(request) + " could not be built: unknown exception");
    }
  });
}

// Returns a copy for the waiting threads.
Error copy_error(const Error& error) noexcept {
  Error copy = out_of_memory();
  ignore_failures([&] { copy = error; });
  return copy;
}

}  // namespace

Engine::State::State(ResolverSource& its_source, Options its_options)
    : source(its_source), options(std::move(its_options)), table(index, options.max_queued),
      background({"kiln-compile", kBackgroundNiceness, options.max_threads},
                 [this] { (void)work(Priority::Background, {&background}); }),
      waited({"kiln-get", 0, options.max_threads}, [this] { (void)work(Priority::Foreground, {&waited}); }) {}

bool Engine::State::schedule(CompileTask& task, const CompileRequest& request, Priority priority) {
  switch (task.stage) {
    case Stage::Ready:
      if (serves(task, request)) return false;
      break;
    case Stage::Running:
      if (priority == Priority::Foreground) raise(task);
      if (task.is_cancelling) {
        task.requeue_priority = std::max(task.requeue_priority.value_or(priority), priority);
        task.requested_at = options.clock->steady();
      }
      return false;
    case Stage::Queued:
      if (priority == task.priority || priority == Priority::Background) return false;
      table.promote(task);
      return true;
    case Stage::Failed:
      if (is_remembered(*task.error)) return false;
      break;
    case Stage::Cancelled: break;
  }
  if (!task.unit) {
    task.unit = request.unit;
    task.load = request.load_on_device;
  }
  task.requested_at = options.clock->steady();
  table.enqueue(task, priority);
  return true;
}

void Engine::State::raise(CompileTask& task) {
  task.urgent.raise();
  for (const auto& [request, leader] : in_flight) {
    if (std::count(leader->coalesced_tasks.begin(), leader->coalesced_tasks.end(), &task) != 0) leader->urgent.raise();
  }
}

bool Engine::State::serves(const CompileTask& task, const CompileRequest& request) {
  return is_done(task) && (request.load_on_device || !task.result->is_slim);
}

ResolveResultPtr Engine::State::result_of(const CompileRequest& request) {
  const MutexLock lock(mutex);
  const CompileTask* task = table.find(request);
  return task != nullptr && serves(*task, request) ? task->result : nullptr;
}

void Engine::State::wake(CompileTask& task, const Result<ResolveResultPtr>& outcome) noexcept {
  for (Waiter* waiter : task.waiters) {
    ignore_failures([&] { waiter->outcome.emplace(outcome); });
    if (!waiter->outcome) waiter->outcome.emplace(out_of_memory());
    waiter->woken.notify_all();
  }
  task.waiters.clear();
}

Engine::State::AttachResult Engine::State::attach_waiter(const CompileRequest& request, Priority priority,
                                                         const Deadline& deadline, Waiter& waiter) {
  const std::optional<std::chrono::nanoseconds> since = deadline.polled_since();
  std::uint64_t verified = 0;  // completion count of the failure that was found worth a retry
  for (;;) {
    std::unique_ptr<const Recipe> recipe;
    std::uint64_t completion = 0;
    {
      const MutexLock lock(mutex);
      CompileTask* task = table.find(request);
      if (task == nullptr) task = &table.add(request, options.clock->steady());
      const bool failed = task->stage == Stage::Failed && is_remembered(*task->error);
      if (stopping) {
        waiter.outcome.emplace(cancelled(request));
      } else if (serves(*task, request)) {
        waiter.outcome.emplace(task->result);
      } else if (task->stage == Stage::Failed && since && task->ended >= *since) {
        waiter.outcome.emplace(*task->error);
      }
      if (waiter.outcome) return {};
      if (!failed || task->completion_count == verified) {
        if (failed) table.set_cancelled(*task);
        task->waiters.push_back(&waiter);
        return {task, schedule(*task, request, priority)};
      }
      waiter.outcome.emplace(*task->error);
      completion = task->completion_count;
      if (task->recipe != nullptr) recipe = std::make_unique<const Recipe>(*task->recipe);
    }
    if (would_fail_again(recipe.get())) return {};
    waiter.outcome.reset();
    verified = completion;
  }
}

bool Engine::State::would_fail_again(const Recipe* recipe) const {
  if (recipe == nullptr) return true;
  try {
    return !source.resolver().inputs_changed(*recipe);
  } catch (...) {
    return true;  // no change is known
  }
}

void Engine::State::wait(CompileTask& task, const Deadline& deadline, Waiter& waiter) {
  const MutexLock lock(mutex);
  while (!waiter.outcome) {
    if (deadline.remaining() == std::chrono::nanoseconds(0)) {
      std::erase(task.waiters, &waiter);
      std::string what = describe(task) + " is not ready yet; its compile continues in the background";
      if (task.error) what += ", last error: " + task.error->message;
      waiter.outcome.emplace(make_error(Code::TimedOut, std::move(what)));
      return;
    }
    options.clock->wait_until(waiter.woken, mutex, deadline);
  }
}

ResolveResultPtr Engine::State::lookup(const CompileRequest& request) {
  std::uint64_t number = 0;
  std::uint64_t refreshes = 0;
  ResolveResultPtr stale;
  const auto start = options.clock->steady();
  auto asked = start;
  {
    const MutexLock lock(mutex);
    CompileTask* task = table.find(request);
    if (stopping || (task != nullptr && (task->stage == Stage::Running || task->stage == Stage::Failed))) {
      return nullptr;
    }
    if (task == nullptr) task = &table.add(request, start);
    if (task->stage == Stage::Queued) asked = task->requested_at;
    if (task->is_stale) stale = task->result;
    number = task->number;
    refreshes = task->refreshes;
  }
  RequestContext context;
  context.task_id = number;
  context.requested_at = asked;
  Completion completion;
  completion.result = still_current(request, std::move(stale), context);
  if (completion.result == nullptr) {
    auto found = run_for_request<std::optional<ResolveResult>>(
        request, [&] { return source.resolver().lookup(request, context); });
    if (!found || !*found) return nullptr;
    (*found)->flow = number;
    completion = make_completion(std::make_shared<const ResolveResult>(std::move(**found)), nullptr);
  }
  const MutexLock lock(mutex);
  CompileTask* task = table.find(number);
  // The task was released, refreshed or started during the lookup. This result is used for this caller only.
  if (task == nullptr || task->is_detached || task->refreshes != refreshes) return completion.result;
  if (task->stage == Stage::Running) return completion.result;
  if (serves(*task, request)) return task->result;
  task->began = start;
  (void)apply_completion(*task, std::move(completion));
  return task->result;
}

ResolveResultPtr Engine::State::still_current(const CompileRequest& request, ResolveResultPtr stale,
                                              const RequestContext& context) const {
  if (stale == nullptr || (!request.load_on_device && stale->is_slim)) return nullptr;
  const Result<bool> same = run_for_request<bool>(
      request, [&]() -> Result<bool> { return source.resolver().is_current(request, *stale, context); });
  return same && *same ? std::move(stale) : nullptr;
}

bool Engine::State::work(Priority priority, const Runner& runner) noexcept {
  CompileTask* task = nullptr;
  const FleetPlace place = fleet_place(priority);
  {
    const MutexLock lock(mutex);
    if (stopping) return false;
    task = table.take(priority, options.clock->steady(), place);
  }
  if (task == nullptr) return false;
  task = hash_and_identify(*task, priority);
  if (task != nullptr) run_task(*task, runner);
  return true;
}

CompileTask* Engine::State::hash_and_identify(CompileTask& task, Priority priority) noexcept {
  CompileTask* left = &task;
  bool queued = false;
  const Status hashed = catch_to_error([&]() -> Status {
    const CompileRequest request = task.request();
    (void)UnitAccess::identity(request.unit);
    const MutexLock lock(mutex);
    CompileTask& known = table.identify(task);
    if (&known != left) {
      queued = !stopping && !is_done(known) && schedule(known, request, priority);
      left = nullptr;
    }
    return {};
  });
  if (queued) (void)pool(priority).submit(1);
  if (hashed) return left;
  complete(task, make_completion(out_of_memory(), nullptr));
  return nullptr;
}

void Engine::State::run_task(CompileTask& task, const Runner& runner) noexcept {
  std::optional<Recipe> recipe;
  std::optional<Result<ResolveResultPtr>> result;
  const Status made = catch_to_error([&]() -> Status {
    result = execute(task, runner, recipe);
    return {};
  });
  if (!made) result.emplace(made.error());
  if (!result) return;
  complete(task, make_completion(*std::move(result), recipe ? &*recipe : nullptr));
}

std::optional<Result<ResolveResultPtr>> Engine::State::execute(CompileTask& task, const Runner& runner,
                                                               std::optional<Recipe>& recipe) {
  const CompileRequest request = task.request();
  RequestContext context;
  context.task_id = task.number;
  context.deadline = runner.deadline;
  context.waits = runner.waits;
  ResolveResultPtr stale;
  {
    const MutexLock lock(mutex);
    context.requested_at = task.requested_at;
    context.stop = task.stop.get_token();
    context.urgent = task.urgent;
    if (task.is_stale) stale = task.result;
  }
  if (ResolveResultPtr same = still_current(request, std::move(stale), context)) return same;
  auto prebuilt = run_for_request<std::optional<ResolveResult>>(
      request, [&] { return source.resolver_for_task().find_prebuilt(request, context); });
  if (prebuilt && *prebuilt) return std::make_shared<const ResolveResult>(std::move(**prebuilt));
  const std::unique_ptr<EarlyCompile> early = start_early(task, request, context);
  context.early = early.get();
  auto described = run_for_request<Recipe>(request, [&] { return source.resolver().recipe(request, context); });
  if (!described) return std::move(described).error();
  recipe = std::move(*described);
  const RequestKey key = recipe->request_key();
  if (coalesce_with_running(task, key, context)) return std::nullopt;
  // A resolve must not start after `interrupt`, which would not end it.
  Result<ResolveResult> resolved = is_stopping() ? cancelled(request) : run_for_request<ResolveResult>(request, [&] {
    return source.resolver().resolve(request, *recipe, context);
  });
  {
    const MutexLock lock(mutex);
    in_flight.erase(key);
  }
  if (!resolved) return std::move(resolved).error();
  return std::make_shared<const ResolveResult>(std::move(*resolved));
}

std::unique_ptr<EarlyCompile> Engine::State::start_early(const CompileTask& task, const CompileRequest& request,
                                                         const RequestContext& context) {
  {
    const MutexLock lock(mutex);
    if (stopping || table.running().size() > 1 || table.queued_similar(task) > 0) return nullptr;
  }
  auto started = run_for_request<std::unique_ptr<EarlyCompile>>(
      request,
      [&]() -> Result<std::unique_ptr<EarlyCompile>> { return source.resolver().start_early(request, context); });
  return started ? std::move(*started) : nullptr;
}

bool Engine::State::coalesce_with_running(CompileTask& task, const RequestKey& request, RequestContext& context) {
  const MutexLock lock(mutex);
  context.queued_similar = table.queued_similar(task);
  const auto [known, first] = in_flight.emplace(request, &task);
  if (!first) {
    known->second->coalesced_tasks.push_back(&task);
    if (task.urgent.is_raised()) known->second->urgent.raise();
  }
  return !first;
}

Engine::State::Completion Engine::State::make_completion(Result<ResolveResultPtr> result,
                                                         const Recipe* recipe) noexcept {
  Completion completion;
  try {
    if (result) {
      completion.result = std::move(*result);
      return completion;
    }
    if (recipe != nullptr) completion.recipe = std::make_unique<const Recipe>(*recipe);
    completion.error = std::move(result).error();
    if (completion.error.code == Code::TimedOut) completion.error.code = Code::Io;  // the task does not continue
  } catch (const std::bad_alloc&) {
    completion.error = out_of_memory();
  }
  return completion;
}

void Engine::State::complete(CompileTask& task, Completion completion) noexcept {
  std::size_t queued = 0;
  bool is_queued_again = false;
  Priority priority = Priority::Background;
  {
    const MutexLock lock(mutex);
    is_queued_again = apply_completion(task, std::move(completion));
    priority = task.priority;
    // The coalesced tasks find the result of this task in the store.
    for (CompileTask* follower : task.coalesced_tasks) {
      if (follower->is_detached && follower->waiters.empty()) {
        table.remove(*follower);
      } else if (stopping) {
        table.set_cancelled(*follower);
        wake(*follower, cancelled(*follower));
      } else {
        table.enqueue(*follower, Priority::Foreground);  // it has already waited in the queue
        ++queued;
      }
    }
    task.coalesced_tasks.clear();
    if (task.is_detached && !is_queued_again) table.remove(task);
  }
  (void)waited.submit(queued);
  if (is_queued_again) (void)pool(priority).submit(1);
}

bool Engine::State::apply_completion(CompileTask& task, Completion completion) noexcept {
  ++task.completion_count;
  table.end_run(task, options.clock->steady());
  const std::optional<Priority> again = std::exchange(task.requeue_priority, std::nullopt);
  const bool is_cancelled = completion.result == nullptr && completion.error.code == Code::Cancelled;
  if (is_cancelled && (task.is_cancelling || stopping)) {
    table.set_cancelled(task);
    if (again && !stopping) {  // the waiting callers arrived after the cancellation
      table.enqueue(task, *again);
      return true;
    }
    wake(task, cancelled(task));
    return false;
  }
  if (completion.result != nullptr) {
    task.error.reset();
    task.recipe.reset();
    table.set_result(task, std::move(completion.result));
    wake(task, task.result);
  } else {
    table.hide_result(task);
    task.result.reset();
    task.is_stale = false;
    table.set_failed(task);
    task.error = std::move(completion.error);
    task.recipe = std::move(completion.recipe);
    wake(task, copy_error(*task.error));
  }
  return false;
}

}  // namespace kiln
