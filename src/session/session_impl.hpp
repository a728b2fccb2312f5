// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include <kiln/session.hpp>

#include "base/process/per_process.hpp"
#include "base/process/process_lifecycle.hpp"
#include "engine/engine.hpp"
#include "engine/status_writer.hpp"
#include "events/event_emitter.hpp"
#include "events/metrics.hpp"
#include "events/trace_writer.hpp"
#include "session/drivers.hpp"
#include "session/handle_table.hpp"
#include "session/kernel_loader.hpp"
#include "session/lazy_components.hpp"
#include "session/session_requests.hpp"

namespace kiln {

/// The parts of a session in one process, and their lifetime. A forked child creates its own. The constructor does no
/// work; each part opens what it needs when it is first used. Thread-safe.
class SessionImpl final : public ProcessLifecycleListener {
 public:
  /// `config` is used instead of loading one, if it has a value. Both must outlive the object.
  SessionImpl(const SessionOptions& options, const std::optional<Config>& config);
  ~SessionImpl() override;

  const EventEmitter& emitter() const { return emitter_; }
  Components& components() { return components_.get(); }
  Drivers& drivers() { return drivers_; }
  SessionRequests& requests() { return requests_; }
  KernelLoader& kernels() { return kernels_; }
  HandleTable& handles() { return handles_; }

  std::string metrics() const;
  Status write_trace();

  void at_exit() override;
  void before_fork() override { handles_.before_fork(); }
  void in_parent() override { handles_.in_parent(); }
  void in_child() override { handles_.in_child(); }

 private:
  void warn_of_status_directory(const Error& error);

  const std::shared_ptr<TraceWriter> trace_;  // null if no trace is requested
  const std::shared_ptr<Metrics> metrics_;    // null if no metrics are requested
  const EventEmitter emitter_;

  LazyComponents components_;
  Drivers drivers_;
  HandleTable handles_;
  KernelLoader kernels_;
  // Last, so that their threads end before the members that they use are destroyed.
  Engine engine_;
  SessionRequests requests_;
  StatusWriter status_writer_;
};

/// The state that copies of a session share. Thread-safe.
struct Session::State : std::enable_shared_from_this<Session::State> {
  explicit State(SessionOptions its_options, std::optional<Config> its_config = std::nullopt)
      : options(std::move(its_options)), config(std::move(its_config)) {}
  /// Opens a session. The state that `Session` objects and the objects created from them share; when the last of them
  /// is destroyed, the session keeps no owners any more, and ends when the last `Kernel` and `KernelHandle` is
  /// destroyed.
  static std::shared_ptr<State> open(SessionOptions options, std::optional<Config> config = std::nullopt);

  /// Returns the parts of this process. Creates them when they are first needed, and again in a forked child.
  SessionImpl& impl();
  /// Returns what keeps a handle and its kernels alive.
  std::shared_ptr<const detail::HandleOwner> owner(std::shared_ptr<KernelHandleState> handle);

  const SessionOptions options;
  const std::optional<Config> config;  // used instead of loading one, for the command line
  PerProcess<SessionImpl> impls;
  std::atomic<bool> is_closed{false};  // no `Session` exists any more
};

}  // namespace kiln
