#include "compile/refusals.hpp"

#include <memory>

namespace kiln {

void Refusals::remember(const Recipe& recipe, Closure read) {
  // Shared, because a question is copied each time it is asked. The places are those of whoever asks: one request may
  // come from two checkouts.
  remember(recipe, [read = std::make_shared<const Closure>(std::move(read)), &digests = digests_](const Recipe& asked) {
    return check(*read, asked.places(), digests).has_value();
  });
}

void Refusals::remember(const Recipe& recipe, Question question) {
  const MutexLock lock(mutex_);
  if (known_.size() >= kMost) known_.clear();
  known_.insert_or_assign(recipe.request_key(), std::move(question));
}

bool Refusals::worth_another_try(const Recipe& recipe) const {
  Question question;
  {
    const MutexLock lock(mutex_);
    const auto found = known_.find(recipe.request_key());
    if (found == known_.end()) return true;
    question = found->second;
  }
  return question(recipe);  // without the lock: it reads files
}

}  // namespace kiln
