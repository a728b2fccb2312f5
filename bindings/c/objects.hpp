// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include <kiln/kiln.h>
#include <kiln/kiln.hpp>
#include <kiln/operation_context.hpp>
#include <kiln/stream.hpp>

/// The objects behind kiln.h. Each begins with a tag of its type, which its destructor clears, so that an object of
/// another type, and in most cases a freed one, gives an error instead of a crash.
namespace kiln::c {

enum class TypeTag : std::uint64_t {
  Destroyed = 0,
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
  NotReady,
  Scope,
};

struct TaggedObject {
  explicit TaggedObject(TypeTag kind) : mark(kind) {}
  ~TaggedObject() { mark = TypeTag::Destroyed; }
  TaggedObject(const TaggedObject&) = delete;
  TaggedObject& operator=(const TaggedObject&) = delete;
  volatile TypeTag mark;  // volatile, because the compiler would remove a write that is never read
};

}  // namespace kiln::c

struct kiln_error : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::Error;
  explicit kiln_error(kiln::Error said) : TaggedObject(kTypeTag), error(std::move(said)) {}
  kiln::Error error;
};

struct kiln_unit : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::Unit;
  explicit kiln_unit(kiln::Unit made)
      : TaggedObject(kTypeTag), unit(std::move(made)), kind(unit.kind()), name(unit.name()) {}
  kiln::Unit unit;
  // Copies, because adding to a unit replaces it by another one.
  const std::string kind;
  const std::string name;
};

struct kiln_options : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::Options;
  kiln_options() : TaggedObject(kTypeTag) {}
  kiln::SessionOptions options;
};

struct kiln_session : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::Session;
  explicit kiln_session(kiln::Session opened) : TaggedObject(kTypeTag), session(std::move(opened)) {}
  kiln::Session session;
};

struct kiln_artifact : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::Artifact;
  explicit kiln_artifact(kiln::Artifact made)
      : TaggedObject(kTypeTag), artifact(std::move(made)), target(artifact.target.name()) {}
  const kiln::Artifact artifact;
  const std::string target;
};

struct kiln_kernel : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::Kernel;
  explicit kiln_kernel(kiln::Kernel got) : TaggedObject(kTypeTag), kernel(std::move(got)) {}
  const kiln::Kernel kernel;
};

struct kiln_stream : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::Stream;
  explicit kiln_stream(kiln::Stream made) : TaggedObject(kTypeTag), stream(std::move(made)) {}
  const kiln::Stream stream;
};

struct kiln_buffer : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::Buffer;
  kiln_buffer(kiln::Stream of, kiln::Buffer made)
      : TaggedObject(kTypeTag), stream(std::move(of)), buffer(std::move(made)) {}
  const kiln::Stream stream;
  const kiln::Buffer buffer;
};

struct kiln_devices : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::Devices;
  explicit kiln_devices(std::vector<kiln::DeviceInfo> found) : TaggedObject(kTypeTag), devices(std::move(found)) {
    for (const kiln::DeviceInfo& device : devices) targets.push_back(device.target.name());
  }
  const std::vector<kiln::DeviceInfo> devices;
  std::vector<std::string> targets;
};

struct kiln_status : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::Status;
  explicit kiln_status(kiln::SessionStatus taken) : TaggedObject(kTypeTag), status(std::move(taken)) {}
  const kiln::SessionStatus status;
};

struct kiln_not_ready : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::NotReady;
  explicit kiln_not_ready(std::vector<kiln::NotReady> found) : TaggedObject(kTypeTag), units(std::move(found)) {}
  const std::vector<kiln::NotReady> units;
};

struct kiln_string : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::Text;
  explicit kiln_string(std::string said) : TaggedObject(kTypeTag), text(std::move(said)) {}
  const std::string text;
};

struct kiln_scope : kiln::c::TaggedObject {
  static constexpr kiln::c::TypeTag kTypeTag = kiln::c::TypeTag::Scope;
  explicit kiln_scope(kiln::OperationContext work) : TaggedObject(kTypeTag), scope(std::move(work)) {}
  const kiln::OperationScope scope;
};
