#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include <kiln/artifact.hpp>
#include <kiln/event.hpp>
#include <kiln/export.hpp>
#include <kiln/result.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// How a program sets kiln up. Everything has a default; `docs/configuration.md` lists the settings.
struct SessionOptions {
  /// By name, as in a configuration file: {"cache.dir", "/var/cache/app"}. Weaker than files and KILN_* variables, so
  /// that whoever runs the program has the last word …
  std::map<std::string, std::string> settings;
  /// … except for the names given here.
  std::set<std::string> locked;
  EventCallback on_event;
};

/// kiln in a program: asks the cache, compiles what is not there, remembers it. Copies share one state. Any thread.
/// Opening it opens no library, makes no folder and starts no thread; the first request does what it needs.
class KILN_API Session {
 public:
  static Result<Session> open(SessionOptions options = {});

  /// The bytes of a unit for a target: no device, no context and no driver needed. Compiles where no tier has them.
  Result<Artifact> artifact(const Unit& unit, const Target& target);

 private:
  struct State;
  explicit Session(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace kiln
