#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>

#include <kiln/runtime/memory.hpp>

#include "base/mutex.hpp"
#include "base/process_life.hpp"
#include "runtime/memory_source.hpp"

namespace kiln::runtime {

/// What copies of a Memory share: the source of each device, what came from where, and how much of it. No lock is held
/// while the program's callback or a listener runs, nor while the driver allocates or frees.
struct Memory::State {
 public:
  explicit State(MemoryOptions options) : options_(std::move(options)) {}

  /// Null where there is none; `why` then says why to this thread.
  void* allocate(std::size_t bytes, void* stream);
  void release(void* memory, void* stream);
  static std::string why();

  void tell(EventCallback listeners);
  MemoryTier backend() const;
  Use use() const;
  Status trim();

 private:
  /// The memory of one device. It stays where it is for as long as the state lives.
  struct Place {
    std::shared_ptr<MemorySource> source;
    MemoryTier tier = MemoryTier::Plain;
    std::uint64_t bytes = 0;
  };
  struct Held {
    std::shared_ptr<MemorySource> source;  ///< it goes back the way it came
    std::size_t bytes = 0;
    cuda::DeviceNumber device = 0;
  };
  /// One try: the memory, or why not, and whether more memory would have helped.
  struct Attempt {
    void* memory = nullptr;
    std::string why;
    bool short_of_memory = false;
  };

  /// An error in a forked child. Asked before any lock is taken: one may be held there for ever.
  Status check_process();
  Result<std::shared_ptr<const CudaApi>> open_driver();
  /// The device of the current context, set up where it was not yet.
  Result<cuda::DeviceNumber> current_device();
  void set_up(cuda::DeviceNumber device, Event& event) KILN_REQUIRES(mutex_);
  Attempt try_once(cuda::DeviceNumber device, std::size_t bytes, void* stream);
  bool take(cuda::DeviceNumber device, std::size_t bytes, Attempt& attempt, std::shared_ptr<MemorySource>& source);
  void give_back(cuda::DeviceNumber device, std::size_t bytes);
  /// Asks the program to free some. False where there is nobody to ask, or he has nothing more.
  bool make_room(cuda::DeviceNumber device, std::size_t bytes, void* stream, unsigned retry, const std::string& why);
  /// For what the stream has to do; `why` is for the event that tells of it. A thread's capture mode is relaxed here.
  void wait_for(const CudaApi& api, void* stream, const char* why) const;
  void* refuse(std::string why);
  void tell_of(const Event& event) const;

  const MemoryOptions options_;
  OpenedOnce opened_;
  mutable Mutex mutex_;
  MemoryDriver driver_ KILN_GUARDED_BY(mutex_);
  std::map<cuda::DeviceNumber, Place> places_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<void*, Held> held_ KILN_GUARDED_BY(mutex_);
  std::set<std::thread::id> asking_ KILN_GUARDED_BY(mutex_);  ///< threads that are in the program's callback
  Use use_ KILN_GUARDED_BY(mutex_);
  EventCallback listeners_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln::runtime
