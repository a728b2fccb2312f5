#pragma once

#include <memory>

#include "session/session_impl.hpp"

namespace kiln {

/// Gives other modules access to the state of a session.
struct detail::SessionAccess {
  static const std::shared_ptr<Session::State>& state(const Session& session) { return session.state_; }
};

}  // namespace kiln
