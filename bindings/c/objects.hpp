#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include <kiln/kiln.h>
#include <kiln/kiln.hpp>

/// What is behind the objects of kiln.h. Each begins with a mark of its type, which its end wipes out, so that an
/// object of another type, and in most cases one that was freed, is an error instead of a crash.
namespace kiln::c {

enum class Mark : std::uint64_t {
  Ended = 0,
  Error = 0x6b696c6e00000001,
  Unit,
  Options,
  Session,
  Artifact,
  Kernel,
  Stream,
  Buffer,
  Devices,
  Status,
  Text,
};

struct Marked {
  explicit Marked(Mark kind) : mark(kind) {}
  ~Marked() { mark = Mark::Ended; }
  Marked(const Marked&) = delete;
  Marked& operator=(const Marked&) = delete;
  volatile Mark mark;  // volatile, or the compiler would leave out a write that nobody may read
};

}  // namespace kiln::c

struct kiln_error : kiln::c::Marked {
  static constexpr kiln::c::Mark kMark = kiln::c::Mark::Error;
  explicit kiln_error(kiln::Error said) : Marked(kMark), error(std::move(said)) {}
  kiln::Error error;
};

struct kiln_unit : kiln::c::Marked {
  static constexpr kiln::c::Mark kMark = kiln::c::Mark::Unit;
  explicit kiln_unit(kiln::Unit made) : Marked(kMark), unit(std::move(made)), kind(unit.kind()), name(unit.name()) {}
  kiln::Unit unit;
  // Of their own, since what is added to a unit makes another one of it.
  const std::string kind;
  const std::string name;
};

struct kiln_options : kiln::c::Marked {
  static constexpr kiln::c::Mark kMark = kiln::c::Mark::Options;
  kiln_options() : Marked(kMark) {}
  kiln::SessionOptions options;
};

struct kiln_session : kiln::c::Marked {
  static constexpr kiln::c::Mark kMark = kiln::c::Mark::Session;
  explicit kiln_session(kiln::Session opened) : Marked(kMark), session(std::move(opened)) {}
  kiln::Session session;
};

struct kiln_artifact : kiln::c::Marked {
  static constexpr kiln::c::Mark kMark = kiln::c::Mark::Artifact;
  explicit kiln_artifact(kiln::Artifact made)
      : Marked(kMark), artifact(std::move(made)), target(artifact.target.name()) {}
  const kiln::Artifact artifact;
  const std::string target;
};

struct kiln_kernel : kiln::c::Marked {
  static constexpr kiln::c::Mark kMark = kiln::c::Mark::Kernel;
  kiln_kernel(kiln::Session of, kiln::Kernel got) : Marked(kMark), session(std::move(of)), kernel(got) {}
  const kiln::Session session;  // without which the kernel would end
  const kiln::Kernel kernel;
};

struct kiln_stream : kiln::c::Marked {
  static constexpr kiln::c::Mark kMark = kiln::c::Mark::Stream;
  explicit kiln_stream(kiln::Stream made) : Marked(kMark), stream(std::move(made)) {}
  const kiln::Stream stream;
};

struct kiln_buffer : kiln::c::Marked {
  static constexpr kiln::c::Mark kMark = kiln::c::Mark::Buffer;
  kiln_buffer(kiln::Stream of, kiln::Buffer made) : Marked(kMark), stream(std::move(of)), buffer(std::move(made)) {}
  const kiln::Stream stream;
  const kiln::Buffer buffer;
};

struct kiln_devices : kiln::c::Marked {
  static constexpr kiln::c::Mark kMark = kiln::c::Mark::Devices;
  explicit kiln_devices(std::vector<kiln::DeviceInfo> found) : Marked(kMark), devices(std::move(found)) {
    for (const kiln::DeviceInfo& device : devices) targets.push_back(device.target.name());
  }
  const std::vector<kiln::DeviceInfo> devices;
  std::vector<std::string> targets;
};

struct kiln_status : kiln::c::Marked {
  static constexpr kiln::c::Mark kMark = kiln::c::Mark::Status;
  explicit kiln_status(kiln::SessionStatus taken) : Marked(kMark), status(std::move(taken)) {}
  const kiln::SessionStatus status;
};

struct kiln_text : kiln::c::Marked {
  static constexpr kiln::c::Mark kMark = kiln::c::Mark::Text;
  explicit kiln_text(std::string said) : Marked(kMark), text(std::move(said)) {}
  const std::string text;
};
