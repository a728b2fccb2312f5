#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <kiln/export.hpp>
#include <kiln/work.hpp>

namespace kiln {

/// Something that kiln decided or that happened to it. `docs/events.md` lists the kinds and what to do about each.
struct Event {
  enum class Kind : unsigned char {
    Hit,                 ///< a tier had the artifact
    Miss,                ///< none had
    Waited,              ///< another thread or process was compiling it
    Compiled,            ///< a compiler ran and succeeded
    CompileFailed,       ///< a compiler ran and refused the unit
    Published,           ///< the artifact was stored
    NotPublished,        ///< it was not, and why
    EntryDropped,        ///< an entry was damaged and removed; it will be built again
    CacheUnavailable,    ///< a store cannot be used, or not be written, and why
    ClaimUnavailable,    ///< no lock could be had: at worst a duplicate compile
    WorkerUnavailable,   ///< the worker program is not there: compiling in process
    Evicted,             ///< the size bound was reached
    Configuration,       ///< an unknown key or a value that could not be used
    Requested,           ///< somebody will need it: it is in the queue
    Cancelled,           ///< nobody wants it any more
    HotCompile,          ///< a caller had to wait for a compile; the message says who asked
    Undeclared,          ///< a unit was used that no Needs had declared; the message says who asked
    Loaded,              ///< the driver took the artifact
    LoadRefused,         ///< the driver did not, and why: it is built again or asked for elsewhere
    Launched,            ///< a kernel was put on a stream
    Copied,              ///< bytes were copied between host and device
    Synchronised,        ///< the host waited for a stream
    Allocated,           ///< device memory was allocated or freed
    NoDevice,            ///< there is no device for a kind of unit: requests for it do nothing
    WorkerLost,          ///< a worker died, hung or spoke nonsense; the unit is compiled again in a fresh one
    SetAside,            ///< a unit has cost two workers: it failed, and is not tried again until `retry`
    HeadersKept,         ///< a unit's headers were precompiled, for the units that share them
    HeadersUsed,         ///< a unit's headers were not parsed: a precompiled one was used
    HeadersDropped,      ///< a precompiled header was stale, damaged or refused; it is made again at the next need
    HeadersUnavailable,  ///< headers cannot be precompiled here, and why: units are compiled in full
    CalledWarm,          ///< an algorithm that may be taken elsewhere was ready and was called
    CalledOneShot,       ///< it was not, and why: the caller's one-shot road was taken
    BundleRefused,       ///< a bundle, or a part of one, is not used, and why: the next tier is asked
    BundleUnfit,         ///< a bundle has the unit, but nothing of it that serves here; the message says what it has
    RecordUnavailable,   ///< what is asked for cannot be recorded, and why
    RemoteRefused,       ///< what a remote store had is not believed, and why: it counts as absent
    RemoteUnavailable,   ///< a server is not asked any more, and why, until it answers again
    RemoteBack,          ///< it answers again, and is asked again
    Uploaded,            ///< an artifact was sent to the remote store
    UploadDropped,       ///< it was not, and why: other hosts may have to compile it
    LeaseWaited,         ///< another host was compiling it; `selected` says how the wait ended
    Hedged,              ///< a host that waited too long compiles besides the one that it waits for
    LeaseLost,           ///< this host held the right to compile something for longer than it could keep it
    // What kiln-runtime tells of, and programs may tell of themselves.
    Decided,        ///< where a workflow runs was decided; the message says why
    FellBack,       ///< it runs elsewhere than was decided or would have been, and why
    Dispatched,     ///< an operation ran, from here to there; `selected` says where
    StageRan,       ///< a stage of an operation ran; `selected` says where
    Materialised,   ///< results were brought to the host because somebody asked for them
    Rewritten,      ///< an operation was carried out as a cheaper one that gives the same
    MemorySet,      ///< which memory tier was asked for and which is in force, and why
    MemoryRetried,  ///< memory was short: somebody was asked to free some, and it was tried again
    MemoryTrimmed,  ///< a pool gave memory back to the driver
  };
  Kind kind = Kind::Hit;
  std::string unit;           ///< the unit's name, where one is concerned
  std::string target;         ///< the target's name, likewise
  std::string key;            ///< hex, where one is known
  std::string origin;         ///< the tier concerned: memory, bundle, disk, remote, compiled
  std::string message;        ///< why, in words; never a secret
  double ms = 0;              ///< how long it took, where that makes sense; it ended when the event is told
  std::uint64_t bytes = 0;    ///< of a copy or an allocation
  std::uint64_t stream = 0;   ///< the native stream or queue, where one is concerned; zero is none or the default one
  std::uint64_t flow = 0;     ///< the same for all that happens to one unit and target in this process; zero: unknown
  std::string requested;      ///< of a decision: what was asked for: a mode, a backend, a memory tier
  std::string selected;       ///< what it became; of a refusal or a wait: why or how, in one word
  std::uint64_t blocks = 0;   ///< of a launch: in its grid …
  std::uint32_t block = 0;    ///< … the threads of each …
  std::uint32_t advised = 0;  ///< … and how many the driver would have taken; zero: not known
  Work work;                  ///< what the thread was doing, where the program says so
};

KILN_API const char* to_string(Event::Kind kind);

/// Told of each event, on whichever thread it happened; it must be quick, must not throw and must not call kiln.
using EventCallback = std::function<void(const Event&)>;

}  // namespace kiln
