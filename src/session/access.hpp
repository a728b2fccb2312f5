#pragma once

#include <memory>

#include "session/core.hpp"

namespace kiln {

/// For rooms above: what is behind a session.
struct detail::SessionAccess {
  static const std::shared_ptr<Session::State>& state(const Session& session) { return session.state_; }
};

}  // namespace kiln
