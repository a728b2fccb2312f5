// SPDX-License-Identifier: Apache-2.0
// Public interfaces: sessions and the C interface. They must not throw, and none of their threads may end the process.
#include <kiln/kiln.h>
#include <kiln/kiln.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include "cache/disk_store.hpp"
#include "fault/out_of_memory.hpp"
#include "support/fakes/copying_compiler.hpp"
#include "support/fakes/failing_malloc.hpp"
#include "support/fixtures/bundles.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

struct Place {
  std::string directory;
  CopyingCompiler compiler{directory + "/compiler", directory + "/include"};
  std::string cache() const { return directory + "/cache"; }
  std::string bundle() const { return directory + "/app.kiln"; }
  Unit unit() const { return compiler.unit("unit.cu", 4'000); }
  Unit bundled() const { return CopyingCompiler{"/no/such/compiler", compiler.headers}.unit("bundled.cu", 4'000); }

  SessionOptions options() const {
    SessionOptions options;
    options.settings = {{"cache.dir", cache()},
                        {"bundles", bundle()},
                        {"trust.unsigned", "true"},
                        {"status.dir", directory + "/status"}};
    for (const auto& [name, value] : options.settings) options.locked.insert(name);
    options.collect_metrics = true;
    return options;
  }
};

Outcome right(const Result<Artifact>& artifact, const Unit& unit) {
  const Heap::Spared spared;
  if (!artifact) return Outcome::failed(artifact.error());
  return Outcome::of(artifact->bytes.view() == unit.source(), "wrong bytes");
}

// Objects that the program itself allocates before it calls kiln.
struct Given {
  explicit Given(const Place& place) : options(place.options()), unit(place.unit()), bundled(place.bundled()) {}
  SessionOptions options;
  Unit unit;
  Unit bundled;
  Target target = CopyingCompiler::target();

  Result<Session> open() { return Session::open(std::move(options)); }
};

Given given(const Place& place) {
  const Heap::Spared spared;
  return Given(place);
}

Outcome ask(Session& session, const Unit& unit, const Target& target) {
  return right(session.artifact(unit, target, std::chrono::seconds(50)), unit);
}

Outcome get(const Place& place, bool bundled) {
  Given has = given(place);
  auto session = has.open();
  if (!session) return Outcome::failed(session.error());
  return ask(*session, bundled ? has.bundled : has.unit, has.target);
}

void prepare(const std::string& directory) {
  const Place place{directory};
  place.compiler.install();
  const Unit unit = place.bundled();
  BundleMember member = member_of(unit.name(), CopyingCompiler::target());
  member.kind = unit.kind();
  member.unit = unit.key();
  member.artifact.bytes = Bytes::of(unit.source());
  member.artifact.entries = {{"one", "one"}};
  write_text(place.bundle(), image_of({member}).to_file());
  setenv("TMPDIR", directory.c_str(), 1);
  setenv("XDG_RUNTIME_DIR", directory.c_str(), 1);
}

std::vector<std::string> command_directories(const std::string& directory) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename().string().starts_with("kiln-command-")) found.push_back(entry.path().string());
  }
  return found;
}

// Checks that all entries are intact and that no partial file is left.
std::string check_cache(const std::string& directory) {
  const Place place{directory};
  setenv("TMPDIR", directory.c_str(), 1);
  if (std::filesystem::exists(place.cache() + "/v1")) {
    const auto store = DiskStore::open({place.cache(), 0, false, {}}).value();
    const auto verified = store->verify();
    if (!verified || verified->corrupt != 0) return "an entry is corrupt";
    if (!store->gc()) return "garbage collection fails";
    if (const auto left = files_below(place.cache() + "/v1/tmp"); !left.empty()) return "left behind: " + left.front();
  }
  if (const auto left = files_below(directory + "/status"); !left.empty()) return "left behind: " + left.front();
  // A compile directory that could not be removed for lack of memory is removed by the next compile, once it is a
  // minute old.
  for (const std::string& path : command_directories(directory)) {
    const timespec old[2] = {{time(nullptr) - 120, 0}, {time(nullptr) - 120, 0}};
    utimensat(AT_FDCWD, path.c_str(), old, 0);
  }
  auto session = Session::open(place.options());
  for (const Unit& unit : {place.unit(), place.compiler.unit("next.cu", 1'000)}) {
    const Outcome outcome = ask(*session, unit, CopyingCompiler::target());
    if (outcome.kind != Outcome::Kind::Right) return outcome.text;
  }
  const auto left = command_directories(directory);
  return left.empty() ? "" : "left behind: " + left.front();
}

Operation session_operation(const std::string& name, std::function<Outcome(const Place&)> run) {
  Operation operation;
  operation.name = name;
  operation.prepare = prepare;
  operation.run = [run](const std::string& directory) {
    const Place place = [&] {
      const Heap::Spared spared;
      return Place{directory};
    }();
    return run(place);
  };
  operation.check = check_cache;
  return operation;
}

Outcome cold(const Place& place) { return get(place, false); }

// Requests units, which are compiled in the background, and waits for them.
Outcome background(const Place& place) {
  Given has = given(place);
  auto session = has.open();
  if (!session) return Outcome::failed(session.error());
  Units units;
  {
    const Heap::Spared spared;
    units = {has.unit, has.bundled};
  }
  session->request(units, has.target);
  for (const Unit& unit : units) {
    Outcome outcome = ask(*session, unit, has.target);
    if (outcome.kind != Outcome::Kind::Right) return outcome;
  }
  return Outcome::right();
}

// Uses one session throughout: regardless of the first result, the next one, with memory, must be right.
Outcome recovers(const Place& place) {
  Given has = given(place);
  auto session = has.open();
  if (!session) return Outcome::failed(session.error());
  Outcome first = ask(*session, has.unit, has.target);
  (void)Heap::give_back();
  if (first.kind == Outcome::Kind::Wrong) return first;
  const Outcome second = ask(*session, has.unit, has.target);
  return second.kind == Outcome::Kind::Right ? first : Outcome::wrong("the next get: " + second.text);
}

// Owned by the caller, as in C.
struct Objects {
  kiln_options* options = nullptr;
  kiln_session* session = nullptr;
  kiln_unit* unit = nullptr;
  kiln_artifact* artifact = nullptr;
  kiln_error* error = nullptr;
  ~Objects() {
    kiln_error_free(error);
    kiln_artifact_free(artifact);
    kiln_session_free(session);
    kiln_unit_free(unit);
    kiln_options_free(options);
  }
};

kiln_code ask_in_c(const Place& place, const char* cache, const char* source, Objects& all) {
  const char* const arguments[] = {place.compiler.program.c_str(), "{source}", "{output}", "{depfile}", "{includes}"};
  kiln_code code = kiln_options_new(&all.options, &all.error);
  if (code == KILN_OK) code = kiln_options_set(all.options, "cache.dir", cache, 1, &all.error);
  if (code == KILN_OK) code = kiln_options_set(all.options, "status.dir", "off", 1, &all.error);
  if (code == KILN_OK) code = kiln_session_open(all.options, &all.session, &all.error);
  if (code == KILN_OK) code = kiln_unit_command("unit.cu", source, arguments, 5, &all.unit, &all.error);
  if (code == KILN_OK) code = kiln_unit_add_include_root(all.unit, place.compiler.headers.c_str(), nullptr, &all.error);
  if (code == KILN_OK) code = kiln_unit_add_entry(all.unit, "one", &all.error);
  if (code == KILN_OK) {
    code = kiln_session_artifact(all.session, all.unit, "compute_80", KILN_FOREVER, &all.artifact, &all.error);
  }
  return code;
}

Operation c_api() {
  static std::string source;  // created with memory: the program's own allocations are not kiln's
  static std::string cache;
  static Place place;
  Operation operation;
  operation.name = "C: session and artifact";
  operation.prepare = [](const std::string& directory) {
    prepare(directory);
    place = Place{directory};
    source = place.unit().source();
    cache = place.cache();
  };
  operation.run = [](const std::string&) {
    Objects all;
    const kiln_code code = ask_in_c(place, cache.c_str(), source.c_str(), all);
    if (code == KILN_OK) {
      const std::string_view bytes(static_cast<const char*>(kiln_artifact_data(all.artifact)),
                                   kiln_artifact_bytes(all.artifact));
      return Outcome::of(bytes == source, "wrong bytes");
    }
    const Heap::Spared spared;
    if (all.error == nullptr || kiln_error_code(all.error) != code)
      return Outcome::wrong("an error code without an error object");
    return Outcome::failed(kiln_error_message(all.error));
  };
  operation.check = check_cache;
  return operation;
}

}  // namespace

void add_sessions(std::vector<Operation>& operations) {
  Operation warm = session_operation("session: warm from disk", cold);
  warm.prepare = [](const std::string& directory) {
    prepare(directory);
    (void)cold(Place{directory});
  };
  operations.push_back(warm);
  operations.push_back(
      session_operation("session: from a bundle", [](const Place& place) { return get(place, true); }));
  operations.push_back(session_operation("session: compile", cold));
  operations.push_back(session_operation("session: in background", background));
  operations.push_back(session_operation("session: after a failure", recovers));
  operations.push_back(c_api());
}

}  // namespace kiln::test
