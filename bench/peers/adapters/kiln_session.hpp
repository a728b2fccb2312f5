// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <kiln/kiln.hpp>

#include "bench/peers/adapters/adapter.hpp"

// The common part of the kiln adapters: one session of the shared library.
namespace kiln::peers {

class KilnSession {
 public:
  void finish(Answer& answer) const {
    answer.code = code_.view();
    if (session_) answer.compiles = session_->status().compiled;
  }

 protected:
  /// Opens the session with the cache and the limit of the first request.
  Status open(const Question& asked) {
    if (session_) return {};
    SessionOptions options;
    options.settings["cache.dir"] = asked.cache;
    if (asked.limit) options.settings["cache.max_size"] = std::to_string(*asked.limit);
    auto opened = Session::open(options);
    if (!opened) return opened.error();
    session_ = *opened;
    return {};
  }

  std::optional<Session> session_;
  Bytes code_;  ///< the last code
};

/// The main function of such an adapter.
template <class Peer>
int ask_kiln(int argc, char** argv, Peer&& peer) {
  if (!wants_version(argc, argv)) return ask(argc, argv, peer);
  std::printf("%s\n", kiln::version());
  return 0;
}

}  // namespace kiln::peers
