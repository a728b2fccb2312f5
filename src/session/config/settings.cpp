#include "session/config/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/text.hpp"
#include "trust/statement.hpp"

namespace kiln {
namespace {

constexpr unsigned kMaxJobs = 4096;
constexpr unsigned kMaxTimeLimit = 24 * 60 * 60;  // seconds
constexpr unsigned kMaxBudget = 60'000;           // milliseconds
constexpr unsigned kMaxLeaseTtl = 600;            // seconds

Error invalid_value(const std::string& text, const std::string& wanted) {
  return make_error(Code::InvalidArgument, "invalid value '" + text + "'; use " + wanted);
}

std::vector<std::string> members_of(const std::string& text, char separator) {
  std::vector<std::string> members;
  for (const std::string_view part : split(text, separator)) {
    if (!part.empty()) members.emplace_back(part);
  }
  return members;
}

// Converts a path to an absolute one once, so that a program that changes its working directory later does not move its
// cache.
std::string absolute(const std::string& path) {
  if (path.front() == '/') return path;
  char here[4096];
  if (getcwd(here, sizeof here) == nullptr) return path;
  return join_path(here, path);
}

Status apply_cache_dir(Config& config, const std::string& text) {
  if (!text.empty()) config.cache_path = {absolute(text)};
  return {};
}

Status apply_cache_path(Config& config, const std::string& text) {
  std::vector<std::string> members = members_of(text, ':');
  if (members.empty()) return {};
  for (std::string& member : members) member = absolute(member);
  config.cache_path = std::move(members);
  return {};
}

template <std::uint64_t Config::*member>
Status apply_size(Config& config, const std::string& text) {
  const Result<std::uint64_t> size = parse_size(text);
  if (!size) return size.error();
  config.*member = *size;
  return {};
}

std::optional<unsigned> number_of(const std::string& text) {
  unsigned number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

Status apply_trusted_users(Config& config, const std::string& text) {
  std::vector<unsigned> users;
  for (const std::string& member : members_of(text, ',')) {
    const std::optional<unsigned> user = number_of(member);
    if (!user) return invalid_value(text, "numeric user ids, separated by commas");
    users.push_back(*user);
  }
  config.cache_trusted_users = std::move(users);
  return {};
}

std::optional<bool> parse_bool(const std::string& text) {
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

template <bool Config::*member>
Status apply_bool(Config& config, const std::string& text) {
  const std::optional<bool> truth = parse_bool(text);
  if (!truth) return invalid_value(text, "1 or 0");
  config.*member = *truth;
  return {};
}

// Expands $ORIGIN as the dynamic loader does: a program and its bundle can be moved together.
std::string with_origin(const std::string& path) {
  constexpr std::string_view kOrigin = "$ORIGIN";
  if (!path.starts_with(kOrigin)) return absolute(path);
  char program[4096];
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program);
  if (size <= 0) return path;
  return parent_path(std::string(program, static_cast<std::size_t>(size))) + path.substr(kOrigin.size());
}

Status apply_bundles(Config& config, const std::string& text) {
  std::vector<std::string> members = members_of(text, ':');
  for (std::string& member : members) member = with_origin(member);
  config.bundles = std::move(members);
  return {};
}

Status apply_worker_readable(Config& config, const std::string& text) {
  std::vector<std::string> members = members_of(text, ':');
  for (std::string& member : members) member = absolute(member);
  config.worker_readable = std::move(members);
  return {};
}

Status apply_match(Config& config, const std::string& text) {
  if (text != "compatible" && text != "exact") return invalid_value(text, "compatible or exact");
  config.bundles_exact = text == "exact";
  return {};
}

Status apply_compile(Config& config, const std::string& text) {
  if (text != "allowed" && text != "never") return invalid_value(text, "allowed or never");
  config.may_compile = text == "allowed";
  return {};
}

Status apply_digest(Config& config, const std::string& text) {
  if (text != "stamp" && text != "always") return invalid_value(text, "stamp or always");
  config.digest_always = text == "always";
  return {};
}

Status apply_jobs(Config& config, const std::string& text) {
  const std::optional<unsigned> number = number_of(text);
  if (text != "auto" && (!number || *number > kMaxJobs)) return invalid_value(text, "auto or a number from 0 to 4096");
  config.jobs = number;
  return {};
}

std::string unit_of(std::chrono::seconds /*longest*/) { return "seconds"; }
std::string unit_of(std::chrono::milliseconds /*longest*/) { return "milliseconds"; }

template <auto member, unsigned longest>
Status apply_time(Config& config, const std::string& text) {
  const std::optional<unsigned> number = number_of(text);
  if (!number || *number == 0 || *number > longest) {
    return invalid_value(text, unit_of(config.*member) + " from 1 to " + std::to_string(longest));
  }
  config.*member = std::remove_reference_t<decltype(config.*member)>(*number);
  return {};
}

// Accepts booleans too, because `pch.mode = true` is natural in a file.
Status apply_pch_mode(Config& config, const std::string& text) {
  const std::optional<bool> truth = parse_bool(text);
  if (text != "auto" && !truth) return invalid_value(text, "on, off or auto");
  config.pch_mode = !truth ? Config::PchMode::Auto : *truth ? Config::PchMode::On : Config::PchMode::Off;
  return {};
}

Status apply_in_process(Config& config, const std::string& text) {
  if (text != "never" && text != "closed") return invalid_value(text, "never or closed");
  config.closed_in_process = text == "closed";
  return {};
}

Status apply_opencl_in_process(Config& config, const std::string& text) {
  config.opencl_in_process = members_of(text, ',');
  return {};
}

// Servers have URLs, directories have paths.
bool is_address(const std::string& text) { return text.find("://") != std::string::npos; }

Status apply_url_or_path(std::string& place, const std::string& text, const std::string& scheme,
                         const std::string& other) {
  const bool known = text.starts_with(scheme) || text.starts_with(other);
  if (is_address(text) && !known) return invalid_value(text, scheme + "…, " + other + "… or the path of a directory");
  if (!text.empty() && !known && text.front() != '/')
    return invalid_value(text, "an absolute path, or " + scheme + "…");
  place = text;
  return {};
}

Status apply_remote_url(Config& config, const std::string& text) {
  return apply_url_or_path(config.remote_url, text, "https://", "http://");
}

Status apply_lease_url(Config& config, const std::string& text) {
  return apply_url_or_path(config.lease_url, text, "redis://", "rediss://");
}

Status apply_remote_namespace(Config& config, const std::string& text) {
  if (!text.empty() && !is_name_space(text)) return invalid_value(text, "a namespace such as acme/vision");
  config.remote_namespace = text;
  return {};
}

// An invalid pattern stays in the list, where it matches nothing: a typing error must not allow everything. The session
// reports it.
Status apply_namespaces(Config& config, const std::string& text) {
  config.trust_namespaces = members_of(text, ',');
  return {};
}

Status apply_remote_epoch(Config& config, const std::string& text) {
  const std::optional<unsigned> epoch = number_of(text);
  if (!epoch) return invalid_value(text, "a number from 0 to 4294967295");
  config.remote_epoch = *epoch;
  return {};
}

Status apply_status_dir(Config& config, const std::string& text) {
  if (!text.empty() && text != "off" && text.front() != '/') return invalid_value(text, "an absolute path, or off");
  config.status_dir = text;
  return {};
}

template <std::string Config::*member>
Status apply_file(Config& config, const std::string& text) {
  config.*member = text.empty() ? text : absolute(text);
  return {};
}

constexpr SettingSpec kSettings[] = {
    {"cache.dir", "KILN_CACHE_DIR", "", "Directory for compiled code.", 0, true, apply_cache_dir},
    {"cache.path", "KILN_CACHE_PATH", "",
     "List of cache directories instead of one: the first is read and written, the others are only read.", ':', true,
     apply_cache_path},
    {"cache.max_size", "KILN_CACHE_MAX_SIZE", "20G",
     "Maximum size of the cache; beyond it, the least useful entries are evicted: bytes, or with K, M, G or T.", 0,
     false, apply_size<&Config::cache_max_bytes>},
    {"cache.trusted_users", "KILN_CACHE_TRUSTED_USERS", "",
     "Numeric ids of users whose cache directories may be read, in addition to your own and root's.", ',', false,
     apply_trusted_users},
    {"disable", "KILN_DISABLE", "false", "Compile each time, without looking anything up or storing it.", 0, false,
     apply_bool<&Config::disable>},
    {"compile", "KILN_COMPILE", "allowed", "`never` turns a miss into an error instead of a compile.", 0, false,
     apply_compile},
    {"compile.in_process", "KILN_COMPILE_IN_PROCESS", "never",
     "`closed` compiles units that read no file in the calling process instead of a worker: the first compile is "
     "faster, but a source that crashes the compiler ends the program.",
     0, false, apply_in_process},
    {"opencl.in_process", "KILN_OPENCL_IN_PROCESS", "",
     "OpenCL devices whose units are compiled in the calling process instead of a worker: targets as `kiln compile` "
     "prints them, or a prefix and `*`.",
     ',', false, apply_opencl_in_process},
    {"digest", "KILN_DIGEST", "stamp",
     "How files are checked for changes: `stamp` reads a header or compiler again only if its size, times or identity "
     "changed, `always` reads every file at every lookup.",
     0, false, apply_digest},
    {"nvrtc", "KILN_NVRTC", "", "Path of the libnvrtc that compiles CUDA, instead of the one that kiln finds.", 0, true,
     apply_file<&Config::nvrtc>},
    {"cccl", "KILN_CCCL", "",
     "Path of the CCCL library, or of the directory of a cuda-cccl installation, instead of the one that kiln finds.",
     0, true, apply_file<&Config::cccl>},
    {"worker.path", "KILN_WORKER", "", "Path of the kiln-worker program, instead of the one that kiln finds.", 0, true,
     apply_file<&Config::worker_path>},
    {"worker.memory", "KILN_WORKER_MEMORY", "4G", "Memory limit of one compile: bytes, or with K, M, G or T.", 0, false,
     apply_size<&Config::worker_memory>},
    {"worker.time_limit", "KILN_WORKER_TIME_LIMIT", "600", "Time limit of one compile in seconds.", 0, false,
     apply_time<&Config::worker_time_limit, kMaxTimeLimit>},
    {"worker.sandbox", "KILN_WORKER_SANDBOX", "on",
     "Deny compilers in workers access to the network, other programs and other users' files: `on` or `off`.", 0, false,
     apply_bool<&Config::worker_sandbox>},
    {"worker.readable", "KILN_WORKER_READABLE", "",
     "Directories that compilers in workers can read, in addition to include roots, the working directory and system "
     "directories.",
     ':', true, apply_worker_readable},
    {"jobs", "KILN_JOBS", "auto",
     "Maximum number of compile workers on this host: `auto` for as many as its cores and memory allow, 0 to compile "
     "in the calling process.",
     0, false, apply_jobs},
    {"pch.mode", "KILN_PCH", "auto",
     "Precompile headers and cache them on this host: `on`, `off`, or `auto`, which is on except in a container.", 0,
     false, apply_pch_mode},
    {"pch.max_size", "KILN_PCH_MAX_SIZE", "2G",
     "Maximum size of the precompiled headers; beyond it, the least recently used are removed: bytes, or with K, M, G "
     "or T.",
     0, false, apply_size<&Config::pch_max_bytes>},
    {"driver", "KILN_DRIVER", "", "Path of the libcuda that loads CUDA kernels, instead of the system's.", 0, true,
     apply_file<&Config::driver>},
    {"bundles", "KILN_BUNDLES", "",
     "Bundles to search before any cache: files, directories or image layouts. `$ORIGIN` is the directory of the "
     "program.",
     ':', true, apply_bundles},
    {"bundle.match", "KILN_BUNDLE_MATCH", "compatible",
     "`compatible` accepts any code that is compatible with the device, regardless of the compiler; `exact` only code "
     "that this machine's compiler and headers would produce.",
     0, false, apply_match},
    {"trust.policy", "KILN_TRUST", "", "Policy file that lists the trusted keys for bundles and remote entries.", 0,
     true, apply_file<&Config::trust_policy>},
    {"trust.unsigned", "KILN_TRUST_UNSIGNED", "false", "Trust unsigned bundles too.", 0, false,
     apply_bool<&Config::trust_unsigned>},
    {"trust.namespaces", "KILN_TRUST_NAMESPACES", "",
     "Namespaces that can serve programs from bundles and remote stores, such as `acme/vision` or `acme/*`; if empty, "
     "all trusted ones.",
     ',', false, apply_namespaces},
    {"trust.remember_epochs", "KILN_TRUST_REMEMBER_EPOCHS", "true",
     "Reject a bundle if this machine has seen a later epoch of its namespace.", 0, false,
     apply_bool<&Config::trust_remember_epochs>},
    {"remote.url", "KILN_REMOTE", "",
     "Store in which hosts share compiled code: `https://…`, or a directory that all of them can access.", 0, false,
     apply_remote_url},
    {"remote.token_file", "KILN_REMOTE_TOKEN_FILE", "", "File with the bearer token for the remote store.", 0, true,
     apply_file<&Config::remote_token_file>},
    {"remote.ca", "KILN_REMOTE_CA", "",
     "CA certificates that are accepted for the remote store, instead of the system's.", 0, true,
     apply_file<&Config::remote_ca>},
    {"remote.client_cert", "KILN_REMOTE_CLIENT_CERT", "", "Client certificate of this host for the remote store.", 0,
     true, apply_file<&Config::remote_client_cert>},
    {"remote.client_key", "KILN_REMOTE_CLIENT_KEY", "", "Key of the client certificate.", 0, true,
     apply_file<&Config::remote_client_key>},
    {"remote.budget", "KILN_REMOTE_BUDGET", "100",
     "Total time in milliseconds that servers may use for one request; after it, the request continues without them.",
     0, false, apply_time<&Config::remote_budget, kMaxBudget>},
    {"remote.signing_key", "KILN_REMOTE_SIGNING_KEY", "",
     "Secret key with which this host publishes what it compiles. Without one it only reads.", 0, true,
     apply_file<&Config::remote_signing_key>},
    {"remote.certificate", "KILN_REMOTE_CERTIFICATE", "",
     "Certificate of that key, for a host of a live namespace. Without one the key signs for `remote.namespace`.", 0,
     true, apply_file<&Config::remote_certificate>},
    {"remote.namespace", "KILN_REMOTE_NAMESPACE", "",
     "Namespace in which a key without a certificate publishes. The host also reads it if the policy trusts it.", 0,
     false, apply_remote_namespace},
    {"remote.epoch", "KILN_REMOTE_EPOCH", "0", "Epoch with which a key without a certificate publishes.", 0, false,
     apply_remote_epoch},
    {"remote.publish_logs", "KILN_REMOTE_PUBLISH_LOGS", "false",
     "Publish the compiler output, which quotes lines of sources, with an entry.", 0, false,
     apply_bool<&Config::remote_publish_logs>},
    {"lease.url", "KILN_LEASE", "",
     "Table in which hosts agree which of them compiles a unit: `redis://…`, or a directory that all of them can "
     "access.",
     0, false, apply_lease_url},
    {"lease.password_file", "KILN_LEASE_PASSWORD_FILE", "", "File with the password for the lease table.", 0, true,
     apply_file<&Config::lease_password_file>},
    {"lease.ca", "KILN_LEASE_CA", "",
     "CA certificates that are accepted for a `rediss://` server, instead of the system's.", 0, true,
     apply_file<&Config::lease_ca>},
    {"lease.ttl", "KILN_LEASE_TTL", "5",
     "Time in seconds after which the lease of a host that stops responding expires.", 0, false,
     apply_time<&Config::lease_ttl, kMaxLeaseTtl>},
    {"status.dir", "KILN_STATUS_DIR", "", "Directory for the progress files that `kiln status` reads, or `off`.", 0,
     false, apply_status_dir},
    {"record", "KILN_RECORD", "", "File to which the requests of programs are appended, to build a bundle from.", 0,
     true, apply_file<&Config::record>},
    {"trace", "KILN_TRACE", "", "File to which a trace of the session is written, for Perfetto.", 0, true,
     apply_file<&Config::trace>},
};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const SettingSpec> all_settings() { return kSettings; }

const SettingSpec* find_setting(std::string_view name) {
  for (const SettingSpec& kind : kSettings) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
  constexpr std::string_view kLetters = "KMGT";
  int shift = 0;
  bool good = error == std::errc() && number > 0;
  if (!suffix.empty()) {
    const std::size_t power = kLetters.find(suffix.front());
    const std::string_view rest = suffix.substr(1);
    good = good && power != std::string_view::npos && (rest.empty() || rest == "B" || rest == "iB");
    shift = good ? 10 * static_cast<int>(power + 1) : 0;
  }
  if (!good || number > (std::numeric_limits<std::uint64_t>::max() >> shift)) {
    return invalid_value(std::string(text), "a size above zero such as 20G or 512M");
  }
  return number << shift;
}

std::string suggest_name(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (name.size() > 64) return {};  // a typing error leaves a short name short
  std::string_view best;
  // Up to a third of the name can differ; beyond that it is another name.
  std::size_t minimum = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < minimum) {
      minimum = distance;
      best = candidate;
    }
  }
  return std::string(best);
}

}  // namespace kiln
