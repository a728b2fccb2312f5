#pragma once

#include <functional>
#include <map>

#include "base/file_digests.hpp"
#include "base/mutex.hpp"
#include "core/recipe.hpp"

namespace kiln {

/// The recipes that a compiler has refused, and what would have to change before it is worth asking it again. Any
/// thread.
class Refusals {
 public:
  /// Forgetting one costs a compile when it is asked for.
  static constexpr std::size_t kMost = 1024;
  /// Whether a recipe that was refused may fare otherwise now. It is asked on the thread of whoever wants to know.
  using Question = std::function<bool(const Recipe& recipe)>;

  explicit Refusals(FileDigests& digests) : digests_(digests) {}

  /// What was refused had read this, so that it would be again while all of it is as it was.
  void remember(const Recipe& recipe, Closure read);
  /// What was refused will be again until this says otherwise.
  void remember(const Recipe& recipe, Question question);

  /// Of what is not known as refused it is true.
  bool worth_another_try(const Recipe& recipe) const;

 private:
  FileDigests& digests_;
  mutable Mutex mutex_;
  std::map<RequestKey, Question> known_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
