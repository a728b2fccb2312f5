#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "support/failing_malloc.hpp"

namespace kiln::test {

/// What came of an operation.
struct Outcome {
  enum class Kind { Right, Failed, Wrong };
  Kind kind = Kind::Right;
  std::string text;  ///< of a failure, or what was wrong

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

/// Something that kiln does, to be done with each of its allocations failing in turn.
struct Operation {
  std::string name;
  /// Whether std::bad_alloc may leave it: where a room is called directly. At what users call it must not.
  bool may_throw = false;
  /// How often it is done, with the same fault, to see whether anything grows.
  int times = 4;
  /// Makes what it works on, in a new folder and with memory.
  std::function<void(const std::string& folder)> prepare = [](const std::string&) {};
  std::function<Outcome(const std::string& folder)> run;
  /// In another process, afterwards: what is not as it must be; nothing otherwise.
  std::function<std::string(const std::string& folder)> check = [](const std::string&) { return std::string(); };
};

void add_stores(std::vector<Operation>& operations);
void add_parsers(std::vector<Operation>& operations);
void add_sessions(std::vector<Operation>& operations);

}  // namespace kiln::test
