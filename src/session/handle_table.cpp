// SPDX-License-Identifier: Apache-2.0
#include "session/handle_table.hpp"

#include <algorithm>
#include <utility>

namespace kiln {

KernelHandleState::KernelHandleState(HandleTable& owner, const Digest& unit, std::string which)
    : table(owner), identity(unit), entry(std::move(which)) {
  table.link(*this);
}

KernelHandleState::~KernelHandleState() { table.unlink(*this); }

const detail::KernelState* KernelHandleState::current_for(const Target& target) {
  const MutexLock lock(mutex);
  for (const detail::KernelState* kernel : current_) {
    if (kernel->target == target) return kernel;
  }
  return nullptr;
}

const detail::KernelState* KernelHandleState::find(const Target& target, const ArtifactKey& key) const {
  for (const auto& kernel : kernels) {
    if (kernel->target == target && kernel->key == key) return kernel.get();
  }
  return nullptr;
}

void KernelHandleState::publish(const detail::KernelState& kernel, std::uint64_t epoch, bool anywhere) {
  const MutexLock lock(mutex);
  if (epoch != table.epoch()) return;  // an epoch that begins after this clears what is published here
  std::erase_if(current_, [&](const detail::KernelState* other) { return other->target == kernel.target; });
  current_.push_back(&kernel);
  if (!anywhere) return;
  ready.store(&kernel, std::memory_order_release);
  table.show(*this);
}

void KernelHandleState::refresh() {
  const MutexLock lock(mutex);
  current_.clear();
  ready.store(nullptr, std::memory_order_release);
  table.hide(*this);
}

void KernelHandleState::mark_rejected(const detail::KernelState& kernel) {
  const MutexLock lock(mutex);
  const auto known =
      std::find_if(kernels.begin(), kernels.end(), [&](const auto& other) { return other.get() == &kernel; });
  if (known == kernels.end()) return;
  rejected_.push_back(std::move(*known));
  kernels.erase(known);
  std::erase(current_, &kernel);
  if (ready.load(std::memory_order_relaxed) != &kernel) return;
  ready.store(nullptr, std::memory_order_release);
  table.hide(*this);
}

std::vector<ArtifactKey> KernelHandleState::keys() {
  const MutexLock lock(mutex);
  std::vector<ArtifactKey> found;
  for (const auto& kernel : kernels) found.push_back(kernel->key);
  return found;
}

void HandleTable::link(KernelHandleState& handle) {
  const MutexLock lock(mutex_);
  handle.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &handle;
  first_ = &handle;
}

void HandleTable::unlink(KernelHandleState& handle) {
  const MutexLock lock(mutex_);
  (handle.previous_ != nullptr ? handle.previous_->next_ : first_) = handle.next_;
  if (handle.next_ != nullptr) handle.next_->previous_ = handle.previous_;
}

std::shared_ptr<KernelHandleState> HandleTable::get(const Digest& identity, const std::string& entry) {
  const auto find = [&]() KILN_REQUIRES(mutex_) -> std::shared_ptr<KernelHandleState> {
    const auto [first, last] = handles_.equal_range(identity);
    for (auto at = first; at != last; ++at) {
      if (at->second->entry == entry) return at->second;
    }
    return nullptr;
  };
  {
    const MutexLock lock(mutex_);
    if (auto known = find()) return known;
  }
  auto made = std::make_shared<KernelHandleState>(*this, identity, entry);  // its constructor takes the lock
  const MutexLock lock(mutex_);
  if (auto known = find()) return known;
  index_.reserve(handles_.size() + 1);
  handles_.emplace(identity, made);
  return made;
}

std::vector<std::shared_ptr<KernelHandleState>> HandleTable::of_unit(const Digest& identity) {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<KernelHandleState>> found;
  const auto [first, last] = handles_.equal_range(identity);
  for (auto at = first; at != last; ++at) found.push_back(at->second);
  return found;
}

std::vector<std::shared_ptr<KernelHandleState>> HandleTable::take_unit(const Digest& identity) {
  std::vector<std::shared_ptr<KernelHandleState>> taken = of_unit(identity);
  const MutexLock lock(mutex_);
  const auto [first, last] = handles_.equal_range(identity);
  for (auto at = first; at != last;) {
    // A handle that was added in the meantime stays: its creator called after this.
    if (std::find(taken.begin(), taken.end(), at->second) == taken.end()) {
      ++at;
      continue;
    }
    at->second->is_listed.store(false, std::memory_order_release);
    at->second->owner_.reset();
    index_.erase({identity, at->second->entry});
    at = handles_.erase(at);  // `taken` keeps it alive: it must not be destroyed under the lock
  }
  return taken;
}

HandleTable::ReadyKernel HandleTable::find_ready(const Digest& identity, const std::string& entry) {
  const IndexKey key(identity, entry);
  const MutexLock lock(mutex_);
  const KernelHandleState* const handle = index_.find(key);
  const detail::KernelState* const kernel = handle != nullptr ? handle->ready.load(std::memory_order_acquire) : nullptr;
  return kernel != nullptr ? ReadyKernel{kernel, handle->owner_} : ReadyKernel{};
}

std::shared_ptr<const detail::HandleOwner> HandleTable::owner_of(const KernelHandleState& handle) {
  const MutexLock lock(mutex_);
  return handle.owner_;
}

void HandleTable::keep_owner(const std::shared_ptr<const detail::HandleOwner>& owner,
                             const std::atomic<bool>& is_closed) {
  const MutexLock lock(mutex_);
  KernelHandleState& handle = *owner->handle;
  if (handle.is_listed.load(std::memory_order_relaxed) && !is_closed && handle.owner_ == nullptr) handle.owner_ = owner;
}

void HandleTable::drop_owners() {
  const MutexLock lock(mutex_);
  // Destroys no handle and no session under the lock: `handles_` and the caller keep them alive.
  for (KernelHandleState* handle = first_; handle != nullptr; handle = handle->next_) handle->owner_.reset();
}

void HandleTable::show(KernelHandleState& handle) {
  const MutexLock lock(mutex_);
  if (handle.is_listed.load(std::memory_order_relaxed)) index_.put({handle.identity, handle.entry}, handle);
}

void HandleTable::hide(const KernelHandleState& handle) {
  const MutexLock lock(mutex_);
  if (handle.is_listed.load(std::memory_order_relaxed)) index_.erase({handle.identity, handle.entry});
}

// The analysis cannot see that the lock taken before a fork is released on both sides of it.
void HandleTable::before_fork() KILN_ANNOTATE(no_thread_safety_analysis) { mutex_.lock(); }
void HandleTable::in_parent() KILN_ANNOTATE(no_thread_safety_analysis) { mutex_.unlock(); }
void HandleTable::in_child() KILN_ANNOTATE(no_thread_safety_analysis) {
  index_.hide();
  for (KernelHandleState* handle = first_; handle != nullptr; handle = handle->next_) {
    handle->ready.store(nullptr, std::memory_order_release);
    handle->kept_ = handle->weak_from_this().lock();
  }
  mutex_.unlock();
}

}  // namespace kiln
