// SPDX-License-Identifier: Apache-2.0
// What kiln.compute needs of CCCL's artifacts and of the session, besides the public functions.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "backends/cccl/cccl_library.hpp"
#include "base/catch_to_error.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/file_digest_cache.hpp"
#include "base/hash.hpp"
#include "base/process/signals.hpp"
#include "bindings.hpp"
#include "core/cccl_envelope.hpp"
#include "core/recipe.hpp"
#include "engine/resolver.hpp"
#include "errors.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

// The events of kiln.compute; docs/reference/events.md. A build puts nothing on a stream, so it is no call of an
// algorithm.
constexpr EventType kBuildServed{"compute", "build_served"};
constexpr EventType kBuildMissed{"compute", "build_missed"};

Error rejected(const std::string& reason) {
  return make_error(Code::LoadRejected, "cannot use this compiled CCCL algorithm: " + reason);
}

// The library detects few changes of a blob, and misreads a blob of another library, so all of this is checked first.
Result<std::string> blob_for(const Artifact& artifact, const Unit& unit, const std::string& library) {
  const auto envelope = decode_cccl_envelope(artifact.bytes.view());
  if (!envelope) return rejected("it is corrupt: " + envelope.error().message);
  if (envelope->spec != unit.source()) return rejected("it is of another spec: " + envelope->spec);
  if (envelope->capability != capability_of(artifact.target)) {
    return rejected("it was compiled for capability " + std::to_string(envelope->capability) + ", not for " +
                    artifact.target.architecture);
  }
  const auto candidates = cccl_candidates(library);
  const std::string present = candidates.empty() ? "none" : candidates.front().build_id;
  if (envelope->build_id != present) {
    return rejected("another library built it, of cuda-cccl " + envelope->release + " (build id " + envelope->build_id +
                    "), not " + library + " (" + present + "); remove the setting cccl (KILN_CCCL)");
  }
  return std::string(envelope->blob);
}

nb::bytes serialized_build(const Artifact& artifact, const Unit& unit, const std::string& library) {
  const std::string blob = unwrap(blob_for(artifact, unit, library));
  return nb::bytes(blob.data(), blob.size());
}

// Resolves a unit again without the bundles, one of which had an artifact that this process cannot use: in the stores,
// or by a compile. It runs on this thread, like the build of the caller that it replaces.
Result<ResolvedArtifact> resolve_without(SessionImpl& impl, const Artifact& rejected, const Unit& unit,
                                         const Target& target, Wait wait) {
  const CallDeadline deadline(wait);
  RequestContext context;
  context.deadline = deadline;
  Resolver& resolver = impl.components().resolver();
  const CompileRequest request{unit, effective_target(unit, target)};
  const auto recipe = resolver.recipe(request, context);
  if (!recipe) return recipe.error();
  const auto compiler = impl.components().compiler(unit, request.target);
  if (!compiler) return compiler.error();
  auto result = resolver.get(*recipe, **compiler, context, &rejected.bytes);
  if (!result) return std::move(result).error();
  return resolved_artifact(*std::move(result));
}

using NamedPaths = std::vector<std::pair<std::string, std::string>>;

// Adds the files below a directory, named by `prefix` and their path in it: the files of a directory before those of
// its subdirectories, each in order. Does not follow links to directories. A directory that cannot be read has no
// files.
void add_files(const std::filesystem::path& directory, const std::string& prefix, NamedPaths& files) {
  std::error_code failed;
  std::vector<std::string> names, subdirectories;
  for (std::filesystem::directory_iterator at(directory, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (at->is_directory(failed)) {
      if (name != "__pycache__" && !at->is_symlink(failed)) subdirectories.push_back(name);
    } else {
      names.push_back(name);
    }
    failed.clear();  // of a file that is gone or a dangling link: it cannot be read below
  }
  std::sort(names.begin(), names.end());
  std::sort(subdirectories.begin(), subdirectories.end());
  for (const std::string& name : names) files.emplace_back(prefix + "/" + name, directory / name);
  for (const std::string& name : subdirectories) add_files(directory / name, prefix + "/" + name, files);
}

// Returns the content digests of files, computed on all cores; those that this host remembers are not read.
std::vector<std::optional<FileDigestCache::FileDigest>> digests_of(const NamedPaths& files, FileDigestCache& digests) {
  constexpr unsigned kMaxThreads = 4;
  std::vector<std::optional<FileDigestCache::FileDigest>> found(files.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t at = next++; at < files.size(); at = next++) found[at] = digests.lookup(files[at].second);
  };
  std::vector<std::thread> threads;
  // If a thread cannot be created, this thread does its share.
  ignore_failures([&] {
    const ScopedSignalBlock blocked;
    while (threads.size() + 1 < std::min(std::thread::hardware_concurrency(), kMaxThreads))
      threads.emplace_back([&] { ignore_failures(work); });
  });
  ignore_failures(work);
  for (std::thread& thread : threads) thread.join();
  return found;
}

// Returns a digest of the names and contents of `files` and of everything below `directories`, which are named too;
// empty if one of the files cannot be read.
std::string content_digest(const SessionObject& self, NamedPaths files, const NamedPaths& directories) {
  const SharedSession session = self.get();
  return call_without_gil([&]() -> std::string {
    FileDigestCache& digests = *impl_of(session).components().params().digests;
    for (const auto& [name, path] : directories) add_files(path, name, files);
    const auto found = digests_of(files, digests);
    (void)digests.save();  // if it fails, the next process reads the files again
    Sha256 all;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (!found[i]) return {};
      all.add(as_bytes(files[i].first + '\0')).add(found[i]->digest.bytes);
    }
    return all.finish().hex();
  });
}

void emit(const SessionObject& self, const Event& event) {
  const SharedSession session = self.get();
  const GilRelease released;
  const EventEmitter& emitter = impl_of(session).emitter();
  if (emitter) emitter.emit(event);
}

// Emits why a warm-up does nothing; the kinds are those that kiln.compute uses.
void emit_failure(const SessionObject& self, const std::string& kind, const std::string& unit,
                  const std::string& target, const std::string& message) {
  for (const Event::Kind known : {Event::Kind::CompileFailed, Event::Kind::NoDevice}) {
    if (kind != to_string(known)) continue;
    Event event;
    event.kind = known;
    event.unit = unit;
    event.target = target;
    event.message = message;
    emit(self, event);
  }
}

// Emits the event of one build of cuda.compute: `origin` is the tier that served it, or empty.
void emit_build(const SessionObject& self, const std::string& unit, const std::string& target,
                const std::string& origin, const std::string& message, double ms) {
  Event event = Event::of(origin.empty() ? kBuildMissed : kBuildServed);
  event.unit = unit;
  event.target = target;
  event.origin = origin;
  event.message = message;
  event.ms = ms;
  event.warm = !origin.empty();
  emit(self, event);
}

}  // namespace

void bind_compute(nb::module_& module, nb::class_<SessionObject>& session) {
  module.def("_serialized_build", &serialized_build, nb::arg("artifact"), nb::arg("unit"), nb::arg("library"));
  session.def("_content_digest", &content_digest, nb::arg("files"), nb::arg("directories"));
  session.def("_emit_failure", &emit_failure, nb::arg("kind"), nb::arg("unit"), nb::arg("target"), nb::arg("message"));
  session.def("_emit_build", &emit_build, nb::arg("unit"), nb::arg("target"), nb::arg("origin"), nb::arg("message"),
              nb::arg("ms"));
  session.def(
      "_resolve_without",
      [](const SessionObject& self, const Artifact& rejected, const Unit& unit, nb::handle target, double timeout) {
        const Target place = required_target(target);
        const SharedSession used = self.get();
        return unwrap(
            call_interruptible(limit_of(timeout),
                               [&](Wait wait) { return resolve_without(impl_of(used), rejected, unit, place, wait); }),
            &unit);
      },
      nb::arg("rejected"), nb::arg("unit"), nb::arg("target"), nb::arg("timeout"));
  session.def(
      "_has_device",
      [](const SessionObject& self, const std::string& backend) {
        const SharedSession used = self.get();
        const GilRelease released;
        return impl_of(used).drivers().has_device(backend);
      },
      nb::arg("backend"));
}

}  // namespace kiln::python
