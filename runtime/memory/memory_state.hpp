// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <kiln/runtime/memory.hpp>

#include "base/mutex.hpp"
#include "base/process/process_lifecycle.hpp"
#include "events/event_emitter.hpp"
#include "runtime/memory/memory_settings.hpp"
#include "runtime/memory/memory_source.hpp"

namespace kiln::runtime {

/// The state that copies of a Memory share: the source of each device, the allocations and their sizes. No lock is held
/// during callbacks of the program or calls of the driver that allocate or free. Thread-safe.
struct Memory::State {
 public:
  explicit State(MemoryOptions options);

  Result<void*> allocate(std::size_t bytes, void* stream);
  void release(void* memory, void* stream);

  void set_emitter(EventEmitter emitter);
  Settings settings() const;
  /// Sets or removes an override of the program and reads the environment again.
  template <class T>
  Status set(std::optional<T> RequestedMemory::*setting, std::optional<T> to) {
    const MutexLock lock(mutex_);
    if (Status open = check_no_device(); !open) return open;
    overrides_.*setting = to;
    read_settings();
    return {};
  }
  std::optional<MemoryTier> tier_in_use() const;
  Usage use() const;
  Status trim();

 private:
  /// The memory of one device. Its address is stable for the lifetime of the state.
  struct DevicePool {
    std::shared_ptr<MemorySource> source;
    MemoryTier tier = MemoryTier::Plain;
    std::uint64_t bytes = 0;
  };
  struct Allocation {
    std::shared_ptr<MemorySource> source;  ///< source to which it is released
    std::size_t bytes = 0;
    cuda::DeviceNumber device = 0;
  };
  /// The result of one attempt: the memory, or the reason of the failure and whether it was out of memory.
  struct Attempt {
    void* memory = nullptr;
    std::string reason;
    bool short_of_memory = false;
  };

  /// Computes the settings from the overrides and the environment.
  void read_settings() KILN_REQUIRES(mutex_);
  /// Returns an error if a device was set up.
  Status check_no_device() const KILN_REQUIRES(mutex_);
  /// Returns an error in a forked child. Call it before taking any lock, because a lock can be held there permanently.
  Status check_process();
  Result<std::shared_ptr<const CudaApi>> open_driver();
  /// Returns the device of the current context; initializes it at first use.
  Result<cuda::DeviceNumber> current_device();
  /// Opens the memory of a device and returns the events to emit.
  std::vector<Event> set_up(cuda::DeviceNumber device) KILN_REQUIRES(mutex_);
  Attempt try_once(cuda::DeviceNumber device, std::size_t bytes, void* stream);
  bool take(cuda::DeviceNumber device, std::size_t bytes, Attempt& attempt, std::shared_ptr<MemorySource>& source);
  void give_back(cuda::DeviceNumber device, std::size_t bytes);
  /// Asks the callback of the program to free memory. Returns false if there is no callback or it frees nothing more.
  bool request_free_memory(cuda::DeviceNumber device, std::size_t bytes, void* stream, unsigned retry,
                           const std::string& reason);
  /// Waits for the stream and emits an event with the reason `reason`. The capture mode of the thread must be relaxed.
  void wait_for(const CudaApi& api, void* stream, const char* reason) const;
  Error reject(std::string reason);
  void emit_event(const Event& event) const;

  const MemoryOptions options_;
  ForkGuard opened_;
  mutable Mutex mutex_;
  RequestedMemory overrides_ KILN_GUARDED_BY(mutex_);
  Settings settings_ KILN_GUARDED_BY(mutex_);
  std::vector<std::string> warnings_ KILN_GUARDED_BY(mutex_);  ///< about the settings; reported with the first device
  MemoryDriver driver_ KILN_GUARDED_BY(mutex_);
  std::map<cuda::DeviceNumber, DevicePool> places_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<void*, Allocation> held_ KILN_GUARDED_BY(mutex_);
  std::set<std::thread::id> threads_in_callback_
      KILN_GUARDED_BY(mutex_);  ///< threads inside the callback of the program
  Usage use_ KILN_GUARDED_BY(mutex_);
  EventEmitter emitter_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln::runtime
