// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "session/session_impl.hpp"

namespace kiln {

/// Gives other modules access to the state of a session, and opens one with a given configuration.
struct detail::SessionAccess {
  static const std::shared_ptr<Session::State>& state(const Session& session) { return session.state_; }
  static Session open(SessionOptions options, Config config) {
    return Session(Session::State::open(std::move(options), std::move(config)));
  }
  static Components& components(const Session& session) { return session.state_->impl().components(); }
};

}  // namespace kiln
