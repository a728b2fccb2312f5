// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/export.hpp>
#include <kiln/operation_context.hpp>
#include <kiln/result.hpp>
#include <kiln/runtime/decision.hpp>
#include <kiln/runtime/mode.hpp>
#include <kiln/runtime/operation.hpp>
#include <kiln/session.hpp>

namespace kiln::runtime {

/// Options of a runtime.
struct RuntimeOptions {
  /// Overrides KILN_EXECUTION_MODE. The default is auto.
  std::optional<Mode> mode;
  /// Overrides KILN_REWRITES. The default is on.
  std::optional<bool> rewrites;
  /// Overrides KILN_DETERMINISTIC: restricts the choice to variants that give equal bytes for equal inputs. The default
  /// is off.
  std::optional<bool> deterministic;
  /// Overrides KILN_ALLOW_CPU_DEVICE: allows the modes gpu and auto to select an OpenCL device that is a CPU (PoCL).
  /// The default is off.
  std::optional<bool> allow_cpu_device;
  /// Overrides KILN_PRECISION (`auto` or `fp64`). The default is auto.
  std::optional<PrecisionPolicy> precision;
  /// Devices that can be used, in order of preference. The CPU is not a device: it is removed with a warning.
  std::vector<Backend> devices = {Backend::Cuda, Backend::OpenCl};
  /// Path of a file that `kiln calibrate` wrote. Empty means KILN_CALIBRATION or else the user's file
  /// (docs/internals/formats/small-files.md).
  std::string calibration;
  /// Overrides KILN_TIME_STAGES: synchronizes at the end of each stage, so that the trace shows the duration of each.
  /// The waits are marked with the purpose `Trace`. The default is off.
  std::optional<bool> time_stages;
};

/// A replacement of an operation by a cheaper one with the same result, for inputs that allow it.
struct Rewrite {
  const char* name;  ///< "sjoin of boxes"
  const Operation* from;
  const Operation* to;  ///< null if the result is an input, unchanged
};

/// A rewrite and the condition on the inputs under which its result is the same, for null and empty rows too.
template <class... Inputs>
struct RewriteRule {
  Rewrite rewrite;
  bool (*applies)(const Inputs&... inputs);
};

/// The duration of a stage: all of it with `time_stages`, otherwise the host time only.
struct StageTime {
  std::string operation;
  std::string stage;
  std::string location;  ///< "host", "opencl", "cuda"
  double ms = 0;
};

/// Selects the backend of operations. Copies share one state. The constructor reads no file and opens no driver; the
/// first decision that can select a device does. Decisions are cached by the address of the operation: an operation
/// must outlive every runtime that decided about it. Thread-safe.
class KILN_API Runtime {
 public:
  explicit Runtime(Session session, RuntimeOptions options = {});

  Session& session() const;
  const RuntimeOptions& options() const;

  /// Each setting is the override of the program, else the environment variable, else the default. A setter sets or
  /// removes the override, discards cached decisions and reads the environment again. `set_mode` also queries the
  /// devices again.
  Mode mode() const;
  SettingSource mode_source() const;
  void set_mode(std::optional<Mode> mode);
  bool rewrites() const;
  SettingSource rewrites_source() const;
  void set_rewrites(std::optional<bool> rewrites);
  bool deterministic() const;
  SettingSource deterministic_source() const;
  void set_deterministic(std::optional<bool> deterministic);
  bool allow_cpu_device() const;
  SettingSource allow_cpu_device_source() const;
  void set_allow_cpu_device(std::optional<bool> allow);
  PrecisionPolicy precision() const;
  SettingSource precision_source() const;
  void set_precision(std::optional<PrecisionPolicy> precision);
  bool time_stages() const;
  SettingSource time_stages_source() const;
  void set_time_stages(std::optional<bool> time_stages);

  /// Selects the backend of an operation and requests the units of the selected variant. Inside a `Workflow` of the
  /// calling thread, returns the workflow's decision. If mode gpu was requested and no device can run the operation,
  /// returns an error that names what is missing. A fallback in mode auto is reported by an event.
  Result<Decision> decide(const Operation& operation, const DispatchRequest& request);
  /// Requests the units of a backend's variants in the background, if this runtime can select the backend for rows on
  /// the host: not in mode cpu, not if the options leave the backend out, and not if its devices are CPUs that are not
  /// allowed. Opens no driver.
  void request(Backend backend, const Requirements& requirements);
  /// Returns true if the rewrite should be used. If rewrites are on, this emits an event. `find_rewrite` calls it.
  bool should_rewrite(const Rewrite& rewrite, std::uint64_t rows);

  /// The number of decisions and runs so far.
  struct Counts {
    std::uint64_t decisions = 0;
    std::uint64_t dispatches = 0;
    std::uint64_t on_device = 0;  ///< dispatches that ran on a device
    std::uint64_t on_gpu = 0;     ///< those of them whose device is not a CPU: `on_gpu / dispatches` is the rate
    std::uint64_t fallbacks = 0;
  };
  Counts counts() const;
  /// Returns the stages of the most recently finished outermost scope (a dispatch or a chunk of a workflow), in order
  /// of completion; at most the first 1,000.
  std::vector<StageTime> last_stages() const;

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// A scope in which the calling thread uses one decision. The decision is made at the beginning, for a backend for
/// which every operation has a variant, and again only at chunk boundaries. Its crossover is the largest one of the
/// operations. Scopes nest; the outermost decides. Destroy it on the thread that created it, after all scopes created
/// later. Not thread-safe.
class KILN_API Workflow {
 public:
  static Result<Workflow> begin(Runtime& runtime, const char* name, std::vector<const Operation*> operations,
                                const DispatchRequest& request);
  Workflow(Workflow&& other) noexcept;
  Workflow& operator=(Workflow&&) = delete;
  ~Workflow();

  const Decision& decision() const;
  /// Ends a chunk, begins another one and decides again. Does nothing inside another workflow. An error leaves the
  /// decision unchanged.
  Status next_chunk(const DispatchRequest& request);

  struct State;

 private:
  explicit Workflow(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// One run of an operation, from the decision to the end. Events of the thread carry the name of the operation during
/// this time. The run counts as run on a device only if kernels were launched. Outside a `Workflow`, it is a workflow
/// for the operations that it calls. Destroy it on the thread that created it, after all scopes created later. Not
/// thread-safe.
class KILN_API Dispatch {
 public:
  static Result<Dispatch> begin(Runtime& runtime, const Operation& operation, const DispatchRequest& request);
  Dispatch(Dispatch&& other) noexcept;
  Dispatch& operator=(Dispatch&&) = delete;
  ~Dispatch();

  const Decision& decision() const;
  const Variant& variant() const { return *decision().variant; }
  Runtime& runtime() const;
  /// Returns true if the CPU variant can take over after an error of a device variant. Emits an event and changes the
  /// decision in that case.
  [[nodiscard]] bool fall_back(const Error& error);

  struct State;

 private:
  friend class Stage;
  explicit Dispatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A named part of a dispatch. With `time_stages`, its destructor waits for the stream, if one is given.
class KILN_API Stage {
 public:
  Stage(Dispatch& dispatch, const char* name, const Stream* stream = nullptr);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// Marks the stage as computed on the host although the dispatch is on a device.
  void on_host();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Sets the purpose of the calling thread's copies during its lifetime. If the purpose is `Materialize`, the destructor
/// emits an event with the number of bytes.
class KILN_API Transfer {
 public:
  Transfer(Runtime& runtime, Purpose purpose);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  /// Adds the size of a copy to the host to the total. Call it for each such copy.
  void add_bytes(std::uint64_t bytes) { bytes_ += bytes; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::uint64_t bytes_ = 0;
};

/// Returns the rewrite of the first rule for the operation whose condition the inputs meet, and emits its event.
/// Returns null if there is none or rewrites are off; then no condition is evaluated. The caller runs `Rewrite::to`, or
/// returns the input if that is null.
template <class... Inputs, std::size_t Count>
const Rewrite* find_rewrite(Runtime& runtime, const RewriteRule<Inputs...> (&rules)[Count], const Operation& operation,
                            std::uint64_t rows, const Inputs&... inputs) {
  if (!runtime.rewrites()) return nullptr;
  for (const RewriteRule<Inputs...>& rule : rules) {
    if (rule.rewrite.from != &operation || !rule.applies(inputs...)) continue;
    return runtime.should_rewrite(rule.rewrite, rows) ? &rule.rewrite : nullptr;
  }
  return nullptr;
}

/// Decides and runs the selected variant. If a device variant fails in mode auto, runs the CPU variant. R is a Result.
template <class R, class... Parameters, std::size_t Count, class... Arguments>
R run(Runtime& runtime, const OperationOf<R(Dispatch&, Parameters...), Count>& operation,
      const DispatchRequest& request, Arguments&&... arguments) {
  Result<Dispatch> dispatch = Dispatch::begin(runtime, operation, request);
  if (!dispatch) return dispatch.error();
  R result = operation.function(dispatch->variant())(*dispatch, arguments...);
  if (result.has_value() || !dispatch->fall_back(result.error())) return result;
  return operation.function(dispatch->variant())(*dispatch, arguments...);
}

}  // namespace kiln::runtime
