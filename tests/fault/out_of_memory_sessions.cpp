// What users call: sessions and the C interface. No exception may leave them, and no thread of theirs may end the
// process.
#include <kiln/kiln.h>
#include <kiln/kiln.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include "fault/out_of_memory.hpp"
#include "store/disk_store.hpp"
#include "support/bundles.hpp"
#include "support/copying_compiler.hpp"
#include "support/failing_malloc.hpp"
#include "support/files.hpp"

namespace kiln::test {
namespace {

struct Place {
  std::string folder;
  CopyingCompiler compiler{folder + "/compiler", folder + "/include"};
  std::string cache() const { return folder + "/cache"; }
  std::string bundle() const { return folder + "/app.kiln"; }
  Unit unit() const { return compiler.unit("unit.cu", 4'000); }
  Unit bundled() const { return CopyingCompiler{"/no/such/compiler", compiler.headers}.unit("bundled.cu", 4'000); }

  SessionOptions options() const {
    SessionOptions options;
    options.settings = {
        {"cache.dir", cache()}, {"bundles", bundle()}, {"trust.unsigned", "true"}, {"status.dir", folder + "/status"}};
    for (const auto& [name, value] : options.settings) options.locked.insert(name);
    options.metrics = true;
    return options;
  }
};

Outcome right(const Result<Artifact>& artifact, const Unit& unit) {
  const Heap::Spared spared;
  if (!artifact) return Outcome::failed(artifact.error());
  return Outcome::of(artifact->bytes.view() == unit.source(), "wrong bytes");
}

// What the program itself needs memory for, before it calls kiln.
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

void prepare(const std::string& folder) {
  const Place place{folder};
  place.compiler.install();
  const Unit unit = place.bundled();
  BundleMember member = member_of(unit.name(), CopyingCompiler::target());
  member.kind = unit.kind();
  member.unit = unit.key();
  member.artifact.bytes = Bytes::of(unit.source());
  member.artifact.entries = {{"one", "one"}};
  spit(place.bundle(), image_of({member}).whole());
  setenv("TMPDIR", folder.c_str(), 1);
  setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
}

std::vector<std::string> command_folders(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("kiln-command-")) found.push_back(entry.path().string());
  }
  return found;
}

// What is there is whole, and nothing is half-written.
std::string check_cache(const std::string& folder) {
  const Place place{folder};
  setenv("TMPDIR", folder.c_str(), 1);
  if (std::filesystem::exists(place.cache() + "/v1")) {
    const auto store = DiskStore::open({place.cache(), 0, false, {}}).value();
    const auto verified = store->verify();
    if (!verified || verified->damaged != 0) return "an entry is damaged";
    if (!store->gc()) return "it cannot be collected";
    if (const auto left = files_below(place.cache() + "/v1/tmp"); !left.empty()) return "left behind: " + left.front();
  }
  if (const auto left = files_below(folder + "/status"); !left.empty()) return "left behind: " + left.front();
  // A compile's folder for whose removal there was no memory goes with the next compile, once it is a minute old.
  for (const std::string& path : command_folders(folder)) {
    const timespec old[2] = {{time(nullptr) - 120, 0}, {time(nullptr) - 120, 0}};
    utimensat(AT_FDCWD, path.c_str(), old, 0);
  }
  auto session = Session::open(place.options());
  for (const Unit& unit : {place.unit(), place.compiler.unit("next.cu", 1'000)}) {
    const Outcome outcome = ask(*session, unit, CopyingCompiler::target());
    if (outcome.kind != Outcome::Kind::Right) return outcome.text;
  }
  const auto left = command_folders(folder);
  return left.empty() ? "" : "left behind: " + left.front();
}

Operation session_operation(const std::string& name, std::function<Outcome(const Place&)> run) {
  Operation operation;
  operation.name = name;
  operation.prepare = prepare;
  operation.run = [run](const std::string& folder) {
    const Place place = [&] {
      const Heap::Spared spared;
      return Place{folder};
    }();
    return run(place);
  };
  operation.check = check_cache;
  return operation;
}

Outcome cold(const Place& place) { return get(place, false); }

// What is requested is made in the background, and waited for.
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

// One session all the while: whatever became of the first answer, the next one, with memory, is right.
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

// Owned by whoever calls, as in C.
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
  static std::string source;  // made with memory: the program's own allocations are not kiln's
  static std::string cache;
  static Place place;
  Operation operation;
  operation.name = "C: session and artifact";
  operation.prepare = [](const std::string& folder) {
    prepare(folder);
    place = Place{folder};
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
    if (all.error == nullptr || kiln_error_code(all.error) != code) return Outcome::wrong("a code without its error");
    return Outcome::failed(kiln_error_message(all.error));
  };
  operation.check = check_cache;
  return operation;
}

}  // namespace

void add_sessions(std::vector<Operation>& operations) {
  Operation warm = session_operation("session: warm from disk", cold);
  warm.prepare = [](const std::string& folder) {
    prepare(folder);
    (void)cold(Place{folder});
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
