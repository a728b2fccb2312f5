// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "base/once.hpp"
#include "engine/status_writer.hpp"
#include "session/components.hpp"

namespace kiln {

/// The components of a session, opened when they are first needed. Thread-safe.
class LazyComponents final : public ResolverSource {
 public:
  /// The references must outlive the object. `config` is used instead of loading one, if it has a value.
  LazyComponents(const SessionOptions& options, const std::optional<Config>& config, const EventEmitter& emitter,
                 ResultLoader& loader, StatusWriter& status)
      : options_(options), config_(config), emitter_(emitter), loader_(loader), status_(status) {}

  Components& get() {
    once_.call([this] {
      components_ = std::make_unique<Components>(config_ ? *config_ : Config::load(options_, emitter_), emitter_,
                                                 options_.trust, &loader_);
      opened_.store(components_.get(), std::memory_order_release);
    });
    return *components_;
  }
  /// Returns the components if they are open, otherwise null.
  Components* opened() const noexcept { return opened_.load(std::memory_order_acquire); }

  Resolver& resolver() override { return get().resolver(); }
  Resolver& resolver_for_task() override {
    status_.on_work_started(get().config().status_dir);
    return resolver();
  }
  Resolver* opened_resolver() noexcept override {
    Components* const components = opened();
    return components != nullptr ? &components->resolver() : nullptr;
  }

 private:
  const SessionOptions& options_;
  const std::optional<Config>& config_;
  const EventEmitter& emitter_;
  ResultLoader& loader_;
  StatusWriter& status_;
  Once once_;
  std::unique_ptr<Components> components_;
  std::atomic<Components*> opened_{nullptr};
};

}  // namespace kiln
