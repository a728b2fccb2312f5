#include <kiln/session.hpp>

#include <utility>

#include "session/toolbox.hpp"

namespace kiln {

struct Session::State {
  Toolbox toolbox;
  State(Config config, Observer observer) : toolbox(std::move(config), std::move(observer)) {}
};

Result<Session> Session::open(SessionOptions options) {
  const Observer observer(std::move(options.on_event));
  Config config = Config::load(options, observer);
  return Session(std::make_shared<State>(std::move(config), observer));
}

Result<Artifact> Session::artifact(const Unit& unit, const Target& target, std::chrono::nanoseconds /*limit*/,
                                   Caller /*caller*/) {
  auto answer = state_->toolbox.get(unit, target);
  if (!answer) return std::move(answer).error();
  return std::move(answer->artifact);
}

}  // namespace kiln
