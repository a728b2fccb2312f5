// SPDX-License-Identifier: Apache-2.0
// Session options.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "c/api_call.hpp"

namespace kiln::c {
namespace {

// The user data of a callback. It is released when the callback can no longer be called.
class User {
 public:
  explicit User(void* data) : data_(data) {}
  ~User() {
    if (release_ != nullptr) release_(data_);
  }
  User(const User&) = delete;
  User& operator=(const User&) = delete;

  void* data() const { return data_; }
  // Takes ownership. Called last, when no error is possible any more: if a call fails, the caller keeps ownership.
  void belongs_to_us(kiln_release_callback release) { release_ = release; }

 private:
  void* const data_;
  kiln_release_callback release_ = nullptr;
};

void emit(kiln_event_callback callback, const Event& event, void* user) noexcept {
  kiln_event reported{};
  reported.size = sizeof reported;
  reported.kind = event_name(event);
  reported.unit = event.unit.c_str();
  reported.target = event.target.c_str();
  reported.key = event.key.c_str();
  reported.origin = event.origin.c_str();
  reported.message = event.message.c_str();
  reported.ms = event.ms;
  reported.bytes = event.bytes;
  reported.stream = event.stream;
  reported.task_id = event.task_id;
  reported.requested = event.requested.c_str();
  reported.selected = event.selected.c_str();
  reported.grid_blocks = event.grid_blocks;
  reported.block_threads = event.block_threads;
  reported.suggested_block_threads = event.suggested_block_threads;
  reported.operation = event.context.operation.c_str();
  reported.stage = event.context.stage.c_str();
  reported.dispatch = event.context.dispatch;
  reported.workflow = event.context.workflow;
  reported.rows = event.context.rows;
  reported.residency = to_string(event.context.residency);
  reported.purpose = to_string(event.context.purpose);
  reported.category = event.category.c_str();
  reported.warm = event.warm ? std::int64_t{*event.warm} : -1;
  reported.shared_bytes = event.shared_bytes;
  reported.pinned = event.pinned ? std::int64_t{*event.pinned} : -1;
  reported.cpu_device = std::int64_t{event.cpu_device};
  std::array<kiln_event_detail, Event::kMaxDetails> details{};
  reported.detail_count = std::min(event.details.size(), details.size());
  for (std::size_t i = 0; i < reported.detail_count; ++i) {
    details[i] = {event.details[i].first.c_str(), event.details[i].second.c_str()};
  }
  reported.details = reported.detail_count != 0 ? details.data() : nullptr;
  try {
    callback(&reported, user);
  } catch (...) {  // NOLINT(bugprone-empty-catch): an exception from a C++ callback is ignored
  }
}

Status take_allocator(const kiln_allocator& given, Allocator& taken) {
  if (Status there = check_address(reinterpret_cast<const void*>(given.allocate), "allocator->allocate"); !there) {
    return there;
  }
  if (Status there = check_address(reinterpret_cast<const void*>(given.release), "allocator->release"); !there) {
    return there;
  }
  std::optional<Backend> backend;
  if (static_cast<int>(given.backend) != KILN_BACKEND_ANY) {
    const auto meant = backend_of(given.backend);
    if (!meant) return meant.error();
    backend = *meant;
  }
  const auto user = std::make_shared<User>(given.user_data);
  Allocator made;
  made.backend = backend;
  made.allocate = [call = given.allocate, reason = given.last_error, user](std::size_t bytes,
                                                                           StreamRef stream) -> Result<void*> {
    void* const memory = call(bytes, stream.native(), user->data());
    if (memory != nullptr || reason == nullptr) return memory;
    const char* const text = reason(user->data());
    return Error{Code::Unavailable, text != nullptr ? text : "", {}};
  };
  made.release = [call = given.release, user](void* memory, std::size_t bytes, StreamRef stream) {
    call(memory, bytes, stream.native(), user->data());
  };
  taken = std::move(made);
  user->belongs_to_us(given.free_user_data);
  return {};
}

// Applies `change` to options, after checking the name.
template <class Change>
kiln_code change_options(kiln_options* options, const char* text, const char* name, kiln_error** error,
                         const Change& change) noexcept {
  return run_call(error, [&]() -> Status {
    if (Status right = check(options, "options"); !right) return right;
    if (Status there = check_text(text, name); !there) return there;
    return change(options->options);
  });
}

TrustOptions::Key& key_of(TrustOptions& trust, const std::string& text) {
  for (TrustOptions::Key& key : trust.keys) {
    if (key.text == text) return key;
  }
  return trust.keys.emplace_back(TrustOptions::Key{text, {}});
}

}  // namespace
}  // namespace kiln::c

using kiln::Status;
using namespace kiln::c;

kiln_code kiln_options_new(kiln_options** options, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(options, "options"); !there) return there;
    *options = new kiln_options;
    return {};
  });
}

kiln_code kiln_options_set(kiln_options* options, const char* name, const char* value, int locked, kiln_error** error) {
  return change_options(options, name, "name", error, [&](kiln::SessionOptions& changed) -> Status {
    if (Status there = check_text(value, "value"); !there) return there;
    changed.settings[name] = value;
    if (locked != 0) {
      changed.locked.insert(name);
    } else {
      changed.locked.erase(name);
    }
    return {};
  });
}

kiln_code kiln_options_on_event(kiln_options* options, kiln_event_callback callback, void* user_data,
                                kiln_release_callback free_user_data, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(options, "options"); !right) return right;
    if (Status there = check_address(reinterpret_cast<const void*>(callback), "callback"); !there) return there;
    const auto kept = std::make_shared<User>(user_data);
    options->options.on_event = [callback, kept](const kiln::Event& event) { emit(callback, event, kept->data()); };
    kept->belongs_to_us(free_user_data);
    return {};
  });
}

kiln_code kiln_options_allocator(kiln_options* options, const kiln_allocator* allocator, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(options, "options"); !right) return right;
    kiln_allocator given{};
    if (Status right = read_struct(allocator, "allocator", given); !right) return right;
    return take_allocator(given, options->options.allocator);
  });
}

kiln_code kiln_options_opencl(kiln_options* options, void* context, void* device, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(options, "options"); !right) return right;
    if (Status there = check_address(context, "context"); !there) return there;
    if (Status there = check_address(device, "device"); !there) return there;
    options->options.opencl = {context, device};
    return {};
  });
}

kiln_code kiln_options_collect_metrics(kiln_options* options, int enabled, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(options, "options"); !right) return right;
    options->options.collect_metrics = enabled != 0;
    return {};
  });
}

kiln_code kiln_options_trust(kiln_options* options, const char* key, const char* name_space, kiln_error** error) {
  return change_options(options, key, "key", error, [&](kiln::SessionOptions& changed) -> Status {
    if (Status there = check_text(name_space, "name_space"); !there) return there;
    key_of(changed.trust, key).namespaces.emplace_back(name_space);
    return {};
  });
}

kiln_code kiln_options_minimum_epoch(kiln_options* options, const char* name_space, uint64_t epoch,
                                     kiln_error** error) {
  return change_options(options, name_space, "name_space", error, [&](kiln::SessionOptions& changed) -> Status {
    changed.trust.minimum_epochs[name_space] = epoch;
    return {};
  });
}

kiln_code kiln_options_trust_live(kiln_options* options, const char* name_space, uint64_t days, kiln_error** error) {
  return change_options(options, name_space, "name_space", error, [&](kiln::SessionOptions& changed) -> Status {
    if (days < 1 || days > 365) return invalid_argument("days is " + std::to_string(days) + ": it must be 1 to 365");
    changed.trust.live_namespaces[name_space] = days;
    return {};
  });
}

kiln_code kiln_options_revoke(kiln_options* options, const char* key, kiln_error** error) {
  return change_options(options, key, "key", error, [&](kiln::SessionOptions& changed) -> Status {
    changed.trust.revoked.emplace_back(key);
    return {};
  });
}

void kiln_options_free(kiln_options* options) { destroy(options); }
