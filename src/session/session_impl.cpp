// SPDX-License-Identifier: Apache-2.0
#include "session/session_impl.hpp"

#include <utility>

#include "base/catch_to_error.hpp"

namespace kiln {
namespace {

EventEmitter emitter_for(const SessionOptions& options, std::shared_ptr<EventSink> trace,
                         std::shared_ptr<EventSink> metrics) {
  return EventEmitter(options.on_event, options.on_event_enabled)
      .with_sink(std::move(trace))
      .with_sink(std::move(metrics));
}

}  // namespace

SessionImpl& Session::State::impl() {
  SessionImpl* const last = impls.last();
  SessionImpl& impl = impls.get(options, config);
  if (last != nullptr && last != &impl) last->handles().drop_owners();  // in a child: they refer to this session
  return impl;
}

std::shared_ptr<Session::State> Session::State::open(SessionOptions options, std::optional<Config> config) {
  auto state = std::make_shared<State>(std::move(options), std::move(config));
  State* const opened = state.get();
  return {opened, [state = std::move(state)](State* closing) mutable {
            closing->is_closed = true;
            if (SessionImpl* impl = closing->impls.last()) impl->handles().drop_owners();
            state.reset();
          }};
}

std::shared_ptr<const detail::HandleOwner> Session::State::owner(std::shared_ptr<KernelHandleState> handle) {
  HandleTable& table = handle->table;
  if (auto kept = table.owner_of(*handle)) return kept;
  auto owner = std::make_shared<const detail::HandleOwner>(detail::HandleOwner{shared_from_this(), std::move(handle)});
  table.keep_owner(owner, is_closed);
  return owner;
}

SessionImpl::SessionImpl(const SessionOptions& options, const std::optional<Config>& config)
    : trace_(is_set(options, "trace", "KILN_TRACE") ? std::make_shared<TraceWriter>() : nullptr),
      metrics_(options.collect_metrics ? std::make_shared<Metrics>() : nullptr),
      emitter_(emitter_for(options, trace_, metrics_)),
      components_(options, config, emitter_, kernels_, status_writer_), drivers_(options, components_, emitter_),
      kernels_(engine_, requests_, drivers_, handles_, emitter_, options.record_undeclared),
      engine_(components_, {.max_threads = options.max_background_compiles, .emitter = emitter_}),
      requests_(engine_, drivers_, handles_, components_, emitter_),
      status_writer_({[this](std::size_t maximum) { return requests_.snapshot(maximum); },
                      [this](const Error& error) { warn_of_status_directory(error); }}) {
  add_process_listener(*this);
}

SessionImpl::~SessionImpl() {
  remove_process_listener(*this);
  at_exit();
}

void SessionImpl::at_exit() {
  status_writer_.stop();
  requests_.stop();
  engine_.stop();
  if (Components* opened = components_.opened()) ignore_failures([&] { opened->finish(); });
  ignore_failures([&] {
    const Status written = write_trace();
    if (!written) emitter_.emit(Event::Kind::ConfigWarning, "trace", "no trace is written: " + written.error().message);
  });
}

void SessionImpl::warn_of_status_directory(const Error& error) {
  // An unusable default directory is not reported, because the user did not choose it.
  if (components().config().status_dir.empty()) return;
  emitter_.emit(Event::Kind::ConfigWarning, "status.dir", "status.dir is not used: " + error.message);
}

std::string SessionImpl::metrics() const {
  static const Metrics nothing;
  return (metrics_ != nullptr ? *metrics_ : nothing).text(requests_.status());
}

Status SessionImpl::write_trace() {
  if (trace_ == nullptr) return {};
  return trace_->write(components().config().trace);
}

}  // namespace kiln
