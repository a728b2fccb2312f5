// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "support/fakes/failing_malloc.hpp"

namespace kiln::test {

/// The result of an operation.
struct Outcome {
  enum class Kind { Right, Failed, Wrong };
  Kind kind = Kind::Right;
  std::string text;  ///< message of the failure, or what was wrong

  static Outcome right() { return {}; }
  static Outcome failed(const Error& error) {
    const Heap::Spared spared;
    return {Kind::Failed, std::string(to_string(error.code)) + ": " + error.message};
  }
  static Outcome failed(const char* text) {
    const Heap::Spared spared;
    return {Kind::Failed, text};
  }
  static Outcome wrong(const std::string& text) {
    const Heap::Spared spared;
    return {Kind::Wrong, text};
  }
  static Outcome of(bool is_right, const char* what) {
    const Heap::Spared spared;
    return is_right ? right() : wrong(what);
  }
};

/// An operation of kiln that is repeated with each of its allocations failing in turn.
struct Operation {
  std::string name;
  /// True if std::bad_alloc may be thrown, for operations that call a module directly. Public functions must not throw.
  bool may_throw = false;
  /// Number of repetitions with the same fault, to detect growth.
  int times = 4;
  /// Creates the input, in a new directory and with memory.
  std::function<void(const std::string& directory)> prepare = [](const std::string&) {};
  std::function<Outcome(const std::string& directory)> run;
  /// Checks the result in another process. Returns the problem, or an empty string.
  std::function<std::string(const std::string& directory)> check = [](const std::string&) { return std::string(); };
};

void add_stores(std::vector<Operation>& operations);
void add_parsers(std::vector<Operation>& operations);
void add_sessions(std::vector<Operation>& operations);

}  // namespace kiln::test
