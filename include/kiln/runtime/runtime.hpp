#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/export.hpp>
#include <kiln/result.hpp>
#include <kiln/runtime/decision.hpp>
#include <kiln/runtime/mode.hpp>
#include <kiln/runtime/operation.hpp>
#include <kiln/session.hpp>
#include <kiln/work.hpp>

namespace kiln::runtime {

/// How a program sets its runtime up.
struct RuntimeOptions {
  /// Stronger than KILN_EXECUTION_MODE, which is stronger than auto.
  std::optional<Mode> mode;
  /// Likewise for rewrites: KILN_REWRITES is `on` or `off`, and without it they are on.
  std::optional<bool> rewrites;
  /// Only variants that give equal bytes for equal inputs.
  bool deterministic = false;
  /// The devices that may be used, the preferred first.
  std::vector<Backend> devices = {Backend::Cuda, Backend::OpenCl};
  /// What `kiln calibrate` wrote; empty: KILN_CALIBRATION, else the user's (docs/calibration-format.md).
  std::string calibration;
  /// Wait at the end of each stage, so that the trace says how long each took; KILN_TIME_STAGES=1 does too. The waits
  /// are marked as made for the trace.
  bool time_stages = false;
};

/// A cheaper operation that gives the same, for inputs that allow it.
struct Rewrite {
  const char* name;  ///< "sjoin of boxes"
  const Operation* from;
  const Operation* to;
};

/// How long a stage took: with `time_stages` all of it, else the host's part.
struct StageTime {
  std::string operation;
  std::string stage;
  std::string where;  ///< "host", "opencl", "cuda"
  double ms = 0;
};

/// Decides where operations run. Copies share one state. Any thread. Making it reads no file and opens no driver; the
/// first decision that may go to a device does.
class KILN_API Runtime {
 public:
  explicit Runtime(Session session, RuntimeOptions options = {});

  Session& session() const;
  const RuntimeOptions& options() const;

  Mode mode() const;
  Source mode_source() const;
  /// The override, or nothing for none. Decisions that were kept are discarded, and the environment is read again.
  void set_mode(std::optional<Mode> mode);
  bool rewrites() const;
  void set_rewrites(std::optional<bool> rewrites);

  /// Where an operation runs. Inside a Workflow of the calling thread it is the workflow's decision. Explicit gpu that
  /// cannot be is an error that says what is missing; an auto that falls back is told as an event. What the chosen
  /// variant needs is requested.
  Result<Decision> decide(const Operation& operation, const Request& request);
  /// Whether to go this way: where rewrites are on it is told as an event.
  bool apply(const Rewrite& rewrite, std::uint64_t rows);

  /// How many decisions and runs there were.
  struct Counts {
    std::uint64_t decisions = 0;
    std::uint64_t dispatches = 0;
    std::uint64_t on_device = 0;
    std::uint64_t fallbacks = 0;
  };
  Counts counts() const;
  /// The stages of what ended last of all that is inside of nothing else, a run or a workflow's chunk, in the order in
  /// which they ended; the first 1,000 of them.
  std::vector<StageTime> last_stages() const;

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// One decision for all that a thread does while it lives: taken at its beginning, for a backend that every operation
/// of it has a variant for, and again only at chunk boundaries. Its crossover is the largest of its operations'. Scopes
/// nest; the outermost decides. It ends on the thread on which it began, after what began later.
class KILN_API Workflow {
 public:
  static Result<Workflow> begin(Runtime& runtime, const char* name, std::initializer_list<const Operation*> operations,
                                const Request& request);
  Workflow(Workflow&& other) noexcept;
  Workflow& operator=(Workflow&&) = delete;
  ~Workflow();

  const Decision& decision() const;
  /// A chunk ends here and another begins: decides again. Inside of another workflow nothing is to be decided. An error
  /// leaves the decision as it was.
  Status next_chunk(const Request& request);

  struct State;

 private:
  explicit Workflow(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// One run of an operation, from its decision to its end: what the thread does meanwhile is told under its name. It
/// claims a device only where kernels were launched. Outside of a Workflow it is one of its own for what it calls. It
/// ends on the thread on which it began, after what began later.
class KILN_API Dispatch {
 public:
  static Result<Dispatch> begin(Runtime& runtime, const Operation& operation, const Request& request);
  Dispatch(Dispatch&& other) noexcept;
  Dispatch& operator=(Dispatch&&) = delete;
  ~Dispatch();

  const Decision& decision() const;
  const Variant& variant() const { return *decision().variant; }
  Runtime& runtime() const;
  /// After an error of a device's variant: whether the processor's may take over, which is told as an event. The
  /// decision is that one's then.
  bool fall_back(const Error& error);

  struct State;

 private:
  friend class Stage;
  explicit Dispatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A part of a dispatch, by its name. With `time_stages` its end waits for the stream, where one is given.
class KILN_API Stage {
 public:
  Stage(Dispatch& dispatch, const char* name, const Stream* stream = nullptr);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// It computes on the host, though the dispatch is on a device.
  void on_host();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// For as long as it lives copies of the calling thread are for this purpose. The end of one that materialises is told,
/// with the bytes.
class KILN_API Transfer {
 public:
  Transfer(Runtime& runtime, Purpose purpose);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  /// To be called beside each copy out, for the sum.
  void copied(std::uint64_t bytes) { bytes_ += bytes; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::uint64_t bytes_ = 0;
};

/// Decides, runs the variant, and where auto's device fails, the processor's. R is a Result.
template <class R, class... Parameters, std::size_t Count, class... Arguments>
R run(Runtime& runtime, const OperationOf<R(Dispatch&, Parameters...), Count>& operation, const Request& request,
      Arguments&&... arguments) {
  Result<Dispatch> dispatch = Dispatch::begin(runtime, operation, request);
  if (!dispatch) return dispatch.error();
  R result = operation.function(dispatch->variant())(*dispatch, arguments...);
  if (result.ok() || !dispatch->fall_back(result.error())) return result;
  return operation.function(dispatch->variant())(*dispatch, arguments...);
}

}  // namespace kiln::runtime
