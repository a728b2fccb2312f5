#include "session/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "trust/statement.hpp"

namespace kiln {
namespace {

constexpr unsigned kMostJobs = 4096;
constexpr unsigned kLongestTimeLimit = 24 * 60 * 60;  // seconds
constexpr unsigned kLongestBudget = 60'000;           // milliseconds
constexpr unsigned kLongestLease = 600;               // seconds

Error no_value(const std::string& text, const std::string& wanted) {
  return failure(Code::InvalidArgument, "'" + text + "' is no value for it; give " + wanted);
}

std::vector<std::string> members_of(const std::string& text, char separator) {
  std::vector<std::string> members;
  for (const std::string_view part : split(text, separator)) {
    if (!part.empty()) members.emplace_back(part);
  }
  return members;
}

// Made absolute once, so that a program that changes its working directory later does not move its cache.
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
    if (!user) return no_value(text, "numeric user ids, separated by commas");
    users.push_back(*user);
  }
  config.cache_trusted_users = std::move(users);
  return {};
}

std::optional<bool> truth_of(const std::string& text) {
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

template <bool Config::*member>
Status apply_truth(Config& config, const std::string& text) {
  const std::optional<bool> truth = truth_of(text);
  if (!truth) return no_value(text, "1 or 0");
  config.*member = *truth;
  return {};
}

// As the dynamic loader has it: a program and its bundle may be moved together.
std::string with_origin(const std::string& path) {
  constexpr std::string_view kOrigin = "$ORIGIN";
  if (!path.starts_with(kOrigin)) return absolute(path);
  char program[4096];
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program);
  if (size <= 0) return path;
  return folder_of(std::string(program, static_cast<std::size_t>(size))) + path.substr(kOrigin.size());
}

Status apply_bundles(Config& config, const std::string& text) {
  std::vector<std::string> members = members_of(text, ':');
  for (std::string& member : members) member = with_origin(member);
  config.bundles = std::move(members);
  return {};
}

Status apply_match(Config& config, const std::string& text) {
  if (text != "pinned" && text != "exact") return no_value(text, "pinned or exact");
  config.bundles_exact = text == "exact";
  return {};
}

Status apply_compile(Config& config, const std::string& text) {
  if (text != "allowed" && text != "never") return no_value(text, "allowed or never");
  config.may_compile = text == "allowed";
  return {};
}

Status apply_jobs(Config& config, const std::string& text) {
  const std::optional<unsigned> number = number_of(text);
  if (text != "auto" && (!number || *number > kMostJobs)) return no_value(text, "auto or a number from 0 to 4096");
  config.jobs = number;
  return {};
}

std::string unit_of(std::chrono::seconds /*longest*/) { return "seconds"; }
std::string unit_of(std::chrono::milliseconds /*longest*/) { return "milliseconds"; }

template <auto member, unsigned longest>
Status apply_time(Config& config, const std::string& text) {
  const std::optional<unsigned> number = number_of(text);
  if (!number || *number == 0 || *number > longest) {
    return no_value(text, unit_of(config.*member) + " from 1 to " + std::to_string(longest));
  }
  config.*member = std::remove_reference_t<decltype(config.*member)>(*number);
  return {};
}

// The words for booleans are taken too, because `pch = true` is what a file would say.
Status apply_pch(Config& config, const std::string& text) {
  const std::optional<bool> truth = truth_of(text);
  if (text != "auto" && !truth) return no_value(text, "on, off or auto");
  config.pch = !truth ? Config::Pch::Auto : *truth ? Config::Pch::On : Config::Pch::Off;
  return {};
}

// Servers have addresses, folders have paths.
bool is_address(const std::string& text) { return text.find("://") != std::string::npos; }

Status apply_place(std::string& place, const std::string& text, const std::string& scheme, const std::string& other) {
  const bool known = text.starts_with(scheme) || text.starts_with(other);
  if (is_address(text) && !known) return no_value(text, scheme + "…, " + other + "… or the path of a folder");
  if (!text.empty() && !known && text.front() != '/') return no_value(text, "an absolute path, or " + scheme + "…");
  place = text;
  return {};
}

Status apply_remote(Config& config, const std::string& text) {
  return apply_place(config.remote, text, "https://", "http://");
}

Status apply_lease(Config& config, const std::string& text) {
  return apply_place(config.lease, text, "redis://", "rediss://");
}

Status apply_remote_namespace(Config& config, const std::string& text) {
  if (!text.empty() && !is_name_space(text)) return no_value(text, "a namespace such as acme/vision");
  config.remote_namespace = text;
  return {};
}

Status apply_remote_epoch(Config& config, const std::string& text) {
  const std::optional<unsigned> epoch = number_of(text);
  if (!epoch) return no_value(text, "a number from 0 to 4294967295");
  config.remote_epoch = *epoch;
  return {};
}

Status apply_status_dir(Config& config, const std::string& text) {
  if (!text.empty() && text != "off" && text.front() != '/') return no_value(text, "an absolute path, or off");
  config.status_dir = text;
  return {};
}

template <std::string Config::*member>
Status apply_file(Config& config, const std::string& text) {
  config.*member = text.empty() ? text : absolute(text);
  return {};
}

constexpr SettingKind kSettings[] = {
    {"cache.dir", "KILN_CACHE_DIR", "", "The folder in which compiled code is kept.", 0, true, apply_cache_dir},
    {"cache.path", "KILN_CACHE_PATH", "",
     "A list of cache folders instead of one: the first is read and written, the others are only read.", ':', true,
     apply_cache_path},
    {"cache.max_size", "KILN_CACHE_MAX_SIZE", "20G",
     "How large the cache may grow before its least useful entries are evicted: bytes, or with K, M, G or T.", 0, false,
     apply_size<&Config::cache_max_bytes>},
    {"cache.trusted_users", "KILN_CACHE_TRUSTED_USERS", "",
     "Numeric ids of users whose cache folders may be read too, besides one's own and root's.", ',', false,
     apply_trusted_users},
    {"disable", "KILN_DISABLE", "false", "True: compile each time, look nothing up and keep nothing.", 0, false,
     apply_truth<&Config::disable>},
    {"compile", "KILN_COMPILE", "allowed", "`never` turns a miss into an error instead of a compile.", 0, false,
     apply_compile},
    {"nvrtc", "KILN_NVRTC", "", "The libnvrtc to compile CUDA with, by path, instead of the one that is found.", 0,
     true, apply_file<&Config::nvrtc>},
    {"cccl", "KILN_CCCL", "",
     "The CCCL library, by path, or the folder that cuda-cccl was installed into, instead of the one that is found.", 0,
     true, apply_file<&Config::cccl>},
    {"worker", "KILN_WORKER", "", "The kiln-worker program to compile in, by path, instead of the one that is found.",
     0, true, apply_file<&Config::worker>},
    {"worker.memory", "KILN_WORKER_MEMORY", "4G", "How much memory one compile may take: bytes, or with K, M, G or T.",
     0, false, apply_size<&Config::worker_memory>},
    {"worker.time_limit", "KILN_WORKER_TIME_LIMIT", "600", "How many seconds one compile may take.", 0, false,
     apply_time<&Config::worker_time_limit, kLongestTimeLimit>},
    {"jobs", "KILN_JOBS", "auto",
     "How many compile workers there may be at once on this host: `auto` for as many as its cores and memory bear, 0 "
     "to "
     "compile in this process.",
     0, false, apply_jobs},
    {"pch", "KILN_PCH", "auto",
     "Whether headers are precompiled and kept on this host: `on`, `off`, or `auto`, which is on except in a "
     "container.",
     0, false, apply_pch},
    {"pch.max_size", "KILN_PCH_MAX_SIZE", "2G",
     "How large the precompiled headers may grow before the least recently used are removed: bytes, or with K, M, G "
     "or T.",
     0, false, apply_size<&Config::pch_max_bytes>},
    {"driver", "KILN_DRIVER", "", "The libcuda to load CUDA kernels with, by path, instead of the system's.", 0, true,
     apply_file<&Config::driver>},
    {"bundles", "KILN_BUNDLES", "",
     "Bundles to take artifacts from before any cache is asked: files, folders or image layouts. `$ORIGIN` is the "
     "program's folder.",
     ':', true, apply_bundles},
    {"bundle.match", "KILN_BUNDLE_MATCH", "pinned",
     "`pinned` takes what fits the device, whichever compiler built it; `exact` only what this machine's compiler and "
     "headers would give.",
     0, false, apply_match},
    {"trust", "KILN_TRUST", "", "A file that says whose bundles and remote entries are believed.", 0, true,
     apply_file<&Config::trust>},
    {"trust.unsigned", "KILN_TRUST_UNSIGNED", "false", "True: bundles that nobody signed are believed too.", 0, false,
     apply_truth<&Config::trust_unsigned>},
    {"remote", "KILN_REMOTE", "",
     "Where hosts share what they compiled: `https://…`, or a folder that all of them see.", 0, false, apply_remote},
    {"remote.token_file", "KILN_REMOTE_TOKEN_FILE", "", "A file with the bearer token for the remote store.", 0, true,
     apply_file<&Config::remote_token_file>},
    {"remote.ca", "KILN_REMOTE_CA", "", "Whose certificates the remote store may show, instead of the system's.", 0,
     true, apply_file<&Config::remote_ca>},
    {"remote.client_cert", "KILN_REMOTE_CLIENT_CERT", "", "The certificate that this host shows to the remote store.",
     0, true, apply_file<&Config::remote_client_cert>},
    {"remote.client_key", "KILN_REMOTE_CLIENT_KEY", "", "The key of that certificate.", 0, true,
     apply_file<&Config::remote_client_key>},
    {"remote.budget", "KILN_REMOTE_BUDGET", "100",
     "How many milliseconds servers may take of one request, in all, before it goes on without them.", 0, false,
     apply_time<&Config::remote_budget, kLongestBudget>},
    {"remote.sign", "KILN_REMOTE_SIGN", "",
     "The secret key by which this host publishes what it compiles. Without one it only reads.", 0, true,
     apply_file<&Config::remote_sign>},
    {"remote.certificate", "KILN_REMOTE_CERTIFICATE", "",
     "The certificate of that key, for a host of a live namespace. Without one the key speaks for `remote.namespace`.",
     0, true, apply_file<&Config::remote_certificate>},
    {"remote.namespace", "KILN_REMOTE_NAMESPACE", "", "In whose name a key without a certificate publishes.", 0, false,
     apply_remote_namespace},
    {"remote.epoch", "KILN_REMOTE_EPOCH", "0", "The epoch that it states.", 0, false, apply_remote_epoch},
    {"lease", "KILN_LEASE", "",
     "Where hosts agree on who compiles what: `redis://…`, or a folder that all of them see.", 0, false, apply_lease},
    {"lease.password_file", "KILN_LEASE_PASSWORD_FILE", "", "A file with the password for it.", 0, true,
     apply_file<&Config::lease_password_file>},
    {"lease.ca", "KILN_LEASE_CA", "", "Whose certificates a `rediss://` server may show, instead of the system's.", 0,
     true, apply_file<&Config::lease_ca>},
    {"lease.time", "KILN_LEASE_TIME", "5",
     "After how many seconds the claim of a host that says nothing any more lapses.", 0, false,
     apply_time<&Config::lease_time, kLongestLease>},
    {"status.dir", "KILN_STATUS_DIR", "",
     "Where running programs say how far they are, for `kiln status`: a folder, or `off`.", 0, false, apply_status_dir},
    {"record", "KILN_RECORD", "", "A file to append to what programs ask for, to build a bundle from.", 0, true,
     apply_file<&Config::record>},
    {"trace", "KILN_TRACE", "", "A file to write a trace of the session to, for Perfetto.", 0, true,
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

std::span<const SettingKind> setting_kinds() { return kSettings; }

const SettingKind* find_setting(std::string_view name) {
  for (const SettingKind& kind : kSettings) {
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
    return no_value(std::string(text), "a size above zero such as 20G or 512M");
  }
  return number << shift;
}

std::string closest(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (name.size() > 64) return {};  // a typing slip leaves a short name short
  std::string_view best;
  // A third of the name may be wrong; more than that is another name.
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return std::string(best);
}

}  // namespace kiln
