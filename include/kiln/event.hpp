// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kiln/export.hpp>
#include <kiln/operation_context.hpp>

namespace kiln {

/// The identity of an event that a library on top of kiln defines (an extension), for example {"runtime", "decided"}.
/// Its sinks show and count such events by category and name without knowing them. Both parts consist of a-z, 0-9 and
/// _.
struct EventType {
  std::string_view category;  ///< the library
  std::string_view name;
};

/// A decision of kiln or something that happened to it. `docs/reference/events.md` lists the kinds and the recommended
/// action for each.
struct Event {
  enum class Kind : unsigned char {
    Hit,                 ///< a tier had the artifact
    Miss,                ///< no tier had the artifact
    ClaimWaited,         ///< another process or session compiled it; this one used the result
    Compiled,            ///< a compiler ran and succeeded
    CompileFailed,       ///< a compiler ran and rejected the unit
    Published,           ///< the artifact was stored
    NotPublished,        ///< the artifact was not stored; the message has the reason
    EntryDropped,        ///< a corrupt entry was removed; it will be built again
    CacheUnavailable,    ///< a store cannot be used or written; the message has the reason
    ClaimUnavailable,    ///< no lock could be acquired; at worst a duplicate compile
    WorkerUnavailable,   ///< the worker program is missing; kiln compiles in process
    Evicted,             ///< the cache reached its size limit
    ConfigWarning,       ///< unknown key or invalid value in the configuration
    Requested,           ///< a unit was requested and is in the queue
    Cancelled,           ///< the request was canceled
    BlockingCompile,     ///< a caller had to wait for a compile; the message names the caller
    Undeclared,          ///< a unit was used that no Requirements declared; the message names the caller
    Loaded,              ///< the driver loaded the artifact
    LoadRejected,        ///< the driver rejected the artifact; it is built again or taken from another tier
    Launched,            ///< a kernel was launched on a stream
    Copied,              ///< bytes were copied between host and device
    Synchronized,        ///< the host waited for a stream
    Allocated,           ///< device memory was allocated or freed
    NoDevice,            ///< there is no device for a kind of unit; requests for it do nothing
    WorkerLost,          ///< a worker died, hung or sent an invalid reply; the unit is compiled again in a new worker
    Quarantined,         ///< a unit made two workers fail; it is quarantined until `retry`
    PchCreated,          ///< a unit's headers were precompiled for all units that share them
    PchUsed,             ///< a precompiled header was used; the unit's headers were not parsed
    PchDropped,          ///< a precompiled header was stale, corrupt or rejected; it is created again when needed
    PchUnavailable,      ///< headers cannot be precompiled here; units are compiled in full. The message has the reason
    CalledCompiled,      ///< a CCCL algorithm was put on a stream by its compiled callable
    CalledFallback,      ///< no compiled callable was ready; the caller runs its own code
    LibraryChecked,      ///< a library of an unknown release was checked; `selected` is the result
    HeadersInstalled,    ///< the headers that NVRTC bundles were installed on this host
    BundleRejected,      ///< a bundle, or a part of it, is rejected; kiln tries the next tier
    BundleIncompatible,  ///< a bundle has the unit, but no variant that works here; the message lists its variants
    RecordUnavailable,   ///< a request cannot be recorded; the message has the reason
    RemoteRejected,      ///< an entry from a remote store failed verification and is treated as a miss
    RemoteUnavailable,   ///< a server failed; kiln skips it until it responds again
    RemoteRecovered,     ///< the server responds and is used again
    Uploaded,            ///< an artifact was sent to the remote store
    UploadDropped,       ///< an artifact was not sent; other hosts may have to compile it
    LeaseWaited,         ///< another host was compiling the unit; `selected` is the outcome of the wait
    Hedged,              ///< a host that waited too long compiles the unit in parallel to the holder of the lease
    LeaseLost,           ///< this host's lease on a compile expired before the compile finished
    Extension,           ///< an event of a library on top of kiln; `category` and `name` identify it
  };
  Kind kind = Kind::Hit;
  std::string category;             ///< for an extension: the library that defines the event; otherwise empty
  std::string name;                 ///< for an extension: name of the event in its category; otherwise empty
  std::string unit;                 ///< name of the unit, if the event concerns one
  std::string target;               ///< name of the target, if the event concerns one
  std::string key;                  ///< hexadecimal key, if known
  std::string origin;               ///< tier: memory, bundle, disk, remote, compiled
  std::string message;              ///< human-readable reason; contains no secrets
  double ms = 0;                    ///< duration in milliseconds, if applicable; it ended when the event was emitted
  std::uint64_t bytes = 0;          ///< size of a copy or an allocation
  std::uint64_t stream = 0;         ///< native stream or queue; 0 means none or the default stream
  std::uint64_t task_id = 0;        ///< identifies the compile task (unit and target) in this process; 0 if unknown
  std::string requested;            ///< for a decision: the requested mode, backend or memory tier
  std::string selected;             ///< for a decision: the result; for a rejection or a wait: a reason or outcome code
  std::uint64_t grid_blocks = 0;    ///< for a launch: number of blocks in the grid
  std::uint32_t block_threads = 0;  ///< for a launch: threads per block
  std::uint32_t suggested_block_threads = 0;  ///< for a launch: block size that the driver suggests; 0 if unknown
  /// For a launch: shared memory per block in bytes, static and dynamic; 0 if unknown.
  std::uint64_t shared_bytes = 0;
  /// For a copy between host and device: whether the host memory is page-locked. Otherwise, or if unknown, no value.
  std::optional<bool> pinned;
  /// For a decision, a dispatch, a launch or a call of a CCCL algorithm: true if its device is a CPU (for example
  /// PoCL).
  bool cpu_device = false;
  /// For a decision, a dispatch or a call of a CCCL algorithm: whether its code was ready. Otherwise no value.
  std::optional<bool> warm;
  /// For an extension: further fields by name, at most `kMaxDetails`. A name consists of a-z, 0-9 and _ and is not the
  /// name of another field.
  std::vector<std::pair<std::string, std::string>> details;
  static constexpr std::size_t kMaxDetails = 16;
  OperationContext context;  ///< the operation that the thread was running, if the program declared one

  /// Returns an event of an extension.
  [[nodiscard]] static Event of(const EventType& type) {
    Event event;
    event.kind = Kind::Extension;
    event.category = type.category;
    event.name = type.name;
    return event;
  }
  /// Returns the value of a detail; empty if there is none.
  std::string_view detail(std::string_view detail_name) const {
    for (const auto& [its_name, value] : details) {
      if (its_name == detail_name) return value;
    }
    return {};
  }
  /// Returns whether this is an event of that extension type.
  bool is(const EventType& type) const {
    return kind == Kind::Extension && category == type.category && name == type.name;
  }
};

KILN_API const char* to_string(Event::Kind kind);
/// Returns the name of the event, for example "hit": the name of its kind, or for an extension its own name. Valid as
/// long as the event.
KILN_API const char* event_name(const Event& event);

/// A callback for events. kiln calls it on the thread that emits the event. It must be fast, must not throw and must
/// not call kiln.
using EventCallback = std::function<void(const Event&)>;

}  // namespace kiln
