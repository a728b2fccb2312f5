// Options: how a program sets kiln up.
#include <memory>
#include <utility>

#include "c/calls.hpp"

namespace kiln::c {
namespace {

// What a caller wants handed back to its functions, until nobody can call them any more.
class User {
 public:
  explicit User(void* data) : data_(data) {}
  ~User() {
    if (release_ != nullptr) release_(data_);
  }
  User(const User&) = delete;
  User& operator=(const User&) = delete;

  void* data() const { return data_; }
  // Said last, when nothing can fail any more: what a call has refused stays the caller's.
  void belongs_to_us(kiln_release_callback release) { release_ = release; }

 private:
  void* const data_;
  kiln_release_callback release_ = nullptr;
};

void tell(kiln_event_callback callback, const Event& event, void* user) noexcept {
  kiln_event told{};
  told.size = sizeof told;
  told.kind = to_string(event.kind);
  told.unit = event.unit.c_str();
  told.target = event.target.c_str();
  told.key = event.key.c_str();
  told.origin = event.origin.c_str();
  told.message = event.message.c_str();
  told.ms = event.ms;
  told.bytes = event.bytes;
  told.stream = event.stream;
  told.flow = event.flow;
  told.requested = event.requested.c_str();
  told.selected = event.selected.c_str();
  told.blocks = event.blocks;
  told.block = event.block;
  told.advised = event.advised;
  told.operation = event.work.operation.c_str();
  told.stage = event.work.stage.c_str();
  told.dispatch = event.work.dispatch;
  told.workflow = event.work.workflow;
  told.rows = event.work.rows;
  told.residency = to_string(event.work.residency);
  told.purpose = to_string(event.work.purpose);
  try {
    callback(&told, user);
  } catch (
      ...) {  // NOLINT(bugprone-empty-catch): whoever writes his callback in C++ and lets it throw is not told more
  }
}

Status take_allocator(const kiln_allocator& given, Allocator& taken) {
  if (Status there = check_address(reinterpret_cast<const void*>(given.allocate), "allocator->allocate"); !there) {
    return there;
  }
  if (Status there = check_address(reinterpret_cast<const void*>(given.release), "allocator->release"); !there) {
    return there;
  }
  const std::string kind = given.kind != nullptr ? given.kind : "";
  if (!kind.empty() && kind != "cuda" && kind != "opencl") {
    return wrong("allocator->kind is \"" + kind + "\": NULL, \"cuda\" or \"opencl\"");
  }
  const auto user = std::make_shared<User>(given.user);
  Allocator made;
  made.kind = kind;
  made.allocate = [call = given.allocate, user](std::size_t bytes, void* stream) {
    return call(bytes, stream, user->data());
  };
  made.release = [call = given.release, user](void* memory, std::size_t bytes, void* stream) {
    call(memory, bytes, stream, user->data());
  };
  if (given.why != nullptr) {
    made.why = [call = given.why, user]() -> std::string {
      const char* why = call(user->data());
      return why != nullptr ? why : "";
    };
  }
  taken = std::move(made);
  user->belongs_to_us(given.free_user);
  return {};
}

// Options with a name, to which `change` is made.
template <class Change>
kiln_code change_options(kiln_options* options, const char* text, const char* name, kiln_error** error,
                         const Change& change) noexcept {
  return answer(error, [&]() -> Status {
    if (Status right = check(options, "options"); !right) return right;
    if (Status there = check_text(text, name); !there) return there;
    return change(options->options);
  });
}

Trust::Key& key_of(Trust& trust, const std::string& text) {
  for (Trust::Key& key : trust.keys) {
    if (key.text == text) return key;
  }
  return trust.keys.emplace_back(Trust::Key{text, {}});
}

}  // namespace
}  // namespace kiln::c

using kiln::Status;
using namespace kiln::c;

kiln_code kiln_options_new(kiln_options** options, kiln_error** error) {
  return answer(error, [&]() -> Status {
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

kiln_code kiln_options_on_event(kiln_options* options, kiln_event_callback callback, void* user,
                                kiln_release_callback free_user, kiln_error** error) {
  return answer(error, [&]() -> Status {
    if (Status right = check(options, "options"); !right) return right;
    if (Status there = check_address(reinterpret_cast<const void*>(callback), "callback"); !there) return there;
    const auto kept = std::make_shared<User>(user);
    options->options.on_event = [callback, kept](const kiln::Event& event) { tell(callback, event, kept->data()); };
    kept->belongs_to_us(free_user);
    return {};
  });
}

kiln_code kiln_options_allocator(kiln_options* options, const kiln_allocator* allocator, kiln_error** error) {
  return answer(error, [&]() -> Status {
    if (Status right = check(options, "options"); !right) return right;
    kiln_allocator given{};
    if (Status right = read_struct(allocator, "allocator", given); !right) return right;
    return take_allocator(given, options->options.allocator);
  });
}

kiln_code kiln_options_opencl(kiln_options* options, void* context, void* device, kiln_error** error) {
  return answer(error, [&]() -> Status {
    if (Status right = check(options, "options"); !right) return right;
    if (Status there = check_address(context, "context"); !there) return there;
    if (Status there = check_address(device, "device"); !there) return there;
    options->options.opencl = {context, device};
    return {};
  });
}

kiln_code kiln_options_count_events(kiln_options* options, int yes, kiln_error** error) {
  return answer(error, [&]() -> Status {
    if (Status right = check(options, "options"); !right) return right;
    options->options.metrics = yes != 0;
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
    if (days < 1 || days > 365) return wrong("days is " + std::to_string(days) + ": 1 to 365");
    changed.trust.live[name_space] = days;
    return {};
  });
}

kiln_code kiln_options_revoke(kiln_options* options, const char* key, kiln_error** error) {
  return change_options(options, key, "key", error, [&](kiln::SessionOptions& changed) -> Status {
    changed.trust.revoked.emplace_back(key);
    return {};
  });
}

void kiln_options_free(kiln_options* options) { end(options); }
