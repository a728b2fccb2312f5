// SPDX-License-Identifier: Apache-2.0
#include "session/config/settings.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace kiln {
namespace {

using Form = Format::Form;

constexpr std::uint64_t kMaxUnsigned = std::numeric_limits<unsigned>::max();

constexpr Format kFlag = {.valid = kBooleanValues};
// Accepts booleans too, because `pch.mode = true` is natural in a file.
constexpr Format kSwitch = {.valid = "auto, 1, true, yes, on, 0, false, no or off"};
constexpr Format kPath = {.form = Form::Path};
constexpr Format kPaths = {.form = Form::Path, .separator = ':'};
constexpr Format kBundles = {.form = Form::BundlePath, .separator = ':'};
// An invalid pattern stays in the list, where it matches nothing: a typing error must not allow everything. The session
// reports it.
constexpr Format kNames = {.separator = ','};
constexpr Format kNamespace = {.form = Form::Namespace, .valid = "a namespace such as acme/vision"};
constexpr Format kUsers = {.valid = "numeric user ids, separated by commas", .separator = ',', .most = kMaxUnsigned};
constexpr Format kJobs = {.valid = "auto or a number from 0 to 4096", .most = 4096};

constexpr Format one_of(const char* if_false, const char* if_true, const char* valid) {
  return {.form = Form::Choice, .valid = valid, .words = {if_false, if_true}};
}
constexpr Format path_or(const char* word, const char* other, const char* valid, const char* third = "") {
  return {.form = Form::Location, .valid = valid, .words = {word, other, third}};
}
constexpr Format number_from(std::uint64_t least, std::uint64_t most, const char* valid) {
  return {.valid = valid, .least = least, .most = most};
}

constexpr SettingSpec kSettings[] = {
    {"cache.dir", "KILN_CACHE_DIR", "", "Directory for compiled code.", &Config::cache_path, kPath},
    {"cache.path", "KILN_CACHE_PATH", "",
     "List of cache directories instead of one: the first is read and written, the others are only read.",
     &Config::cache_path, kPaths},
    {"cache.max_size", "KILN_CACHE_MAX_SIZE", "20G",
     "Maximum size of the cache; beyond it, the least useful entries are evicted: bytes, or with K, M, G or T.",
     &Config::cache_max_bytes, kSizeFormat},
    {"cache.trusted_users", "KILN_CACHE_TRUSTED_USERS", "",
     "Numeric ids of users whose cache directories may be read, in addition to your own and root's.",
     &Config::cache_trusted_users, kUsers},
    {"disable", "KILN_DISABLE", "false", "Compile each time, without looking anything up or storing it.",
     &Config::disable, kFlag},
    {"compile", "KILN_COMPILE", "allowed", "`never` turns a miss into an error instead of a compile.",
     &Config::may_compile, one_of("never", "allowed", "allowed or never")},
    {"compile.in_process", "KILN_COMPILE_IN_PROCESS", "never",
     "`closed` compiles units that read no file in the calling process instead of a worker: the first compile is "
     "faster, but a source that crashes the compiler ends the program.",
     &Config::closed_in_process, one_of("never", "closed", "never or closed")},
    {"opencl.in_process", "KILN_OPENCL_IN_PROCESS", "",
     "OpenCL devices whose units are compiled in the calling process instead of a worker: targets as `kiln compile` "
     "prints them, or a prefix and `*`.",
     &Config::opencl_in_process, kNames},
    {"digest", "KILN_DIGEST", "stamp",
     "How files are checked for changes: `stamp` reads a header or compiler again only if its size, times or identity "
     "changed, `always` reads every file at every lookup.",
     &Config::digest_always, one_of("stamp", "always", "stamp or always")},
    {"nvrtc", "KILN_NVRTC", "", "Path of the libnvrtc that compiles CUDA, instead of the one that kiln finds.",
     &Config::nvrtc, kPath},
    {"cccl", "KILN_CCCL", "",
     "Path of the CCCL library, or of the directory of a cuda-cccl installation, instead of the one that kiln finds.",
     &Config::cccl, kPath},
    {"worker.path", "KILN_WORKER", "", "Path of the kiln-worker program, instead of the one that kiln finds.",
     &Config::worker_path, kPath},
    {"worker.memory", "KILN_WORKER_MEMORY", "4G", "Memory limit of one compile: bytes, or with K, M, G or T.",
     &Config::worker_memory, kSizeFormat},
    {"worker.time_limit", "KILN_WORKER_TIME_LIMIT", "600", "Time limit of one compile in seconds.",
     &Config::worker_time_limit, number_from(1, 86400, "seconds from 1 to 86400")},
    {"worker.sandbox", "KILN_WORKER_SANDBOX", "on",
     "Deny compilers in workers access to the network, other programs and other users' files: `on` or `off`.",
     &Config::worker_sandbox, kFlag},
    {"worker.readable", "KILN_WORKER_READABLE", "",
     "Directories that compilers in workers can read, in addition to include roots, the working directory and system "
     "directories.",
     &Config::worker_readable, kPaths},
    {"jobs", "KILN_JOBS", "auto",
     "Maximum number of compile workers on this host: `auto` for as many as its cores and memory allow, 0 to compile "
     "in the calling process.",
     &Config::jobs, kJobs},
    {"pch.mode", "KILN_PCH", "auto",
     "Precompile headers and cache them on this host: `on`, `off`, or `auto`, which in a container uses only places "
     "that "
     "do not get into an image.",
     &Config::pch_mode, kSwitch},
    {"pch.max_size", "KILN_PCH_MAX_SIZE", "2G",
     "Maximum size of the precompiled headers; beyond it, the least recently used are removed: bytes, or with K, M, G "
     "or T.",
     &Config::pch_max_bytes, kSizeFormat},
    {"driver", "KILN_DRIVER", "", "Path of the libcuda that loads CUDA kernels, instead of the system's.",
     &Config::driver, kPath},
    {"bundles", "KILN_BUNDLES", "",
     "Bundles to search before any cache: files, directories or image layouts. `$ORIGIN` is the directory of the "
     "program.",
     &Config::bundles, kBundles},
    {"bundle.match", "KILN_BUNDLE_MATCH", "compatible",
     "`compatible` accepts any code that is compatible with the device, regardless of the compiler; `exact` only code "
     "that this machine's compiler and headers would produce.",
     &Config::bundles_exact, one_of("compatible", "exact", "compatible or exact")},
    {"trust.policy", "KILN_TRUST", "", "Policy file that lists the trusted keys for bundles and remote entries.",
     &Config::trust_policy, kPath},
    {"trust.unsigned", "KILN_TRUST_UNSIGNED", "false", "Trust unsigned bundles too.", &Config::trust_unsigned, kFlag},
    {"trust.namespaces", "KILN_TRUST_NAMESPACES", "",
     "Namespaces that can serve programs from bundles and remote stores, such as `acme/vision` or `acme/*`; if empty, "
     "all trusted ones.",
     &Config::trust_namespaces, kNames},
    {"trust.remember_epochs", "KILN_TRUST_REMEMBER_EPOCHS", "true",
     "Reject a bundle if this machine has seen a later epoch of its namespace.", &Config::trust_remember_epochs, kFlag},
    {"jit.host_code", "KILN_JIT_HOST_CODE", "",
     "Other systems whose cache entries contain host code and are placed and published nevertheless, such as "
     "`tilelang`.",
     &Config::jit_host_code, kNames},
    {"remote.url", "KILN_REMOTE", "",
     "Store in which hosts share compiled code: `https://…`, `s3://bucket/prefix`, or a directory that all of them can "
     "access.",
     &Config::remote_url, path_or("https://", "http://", "an absolute path, https://…, http://… or s3://…", "s3://")},
    {"remote.token_file", "KILN_REMOTE_TOKEN_FILE", "", "File with the bearer token for the remote store.",
     &Config::remote_token_file, kPath},
    {"remote.ca", "KILN_REMOTE_CA", "",
     "CA certificates that are accepted for the remote store, instead of the system's.", &Config::remote_ca, kPath},
    {"remote.client_cert", "KILN_REMOTE_CLIENT_CERT", "", "Client certificate of this host for the remote store.",
     &Config::remote_client_cert, kPath},
    {"remote.client_key", "KILN_REMOTE_CLIENT_KEY", "", "Key of the client certificate.", &Config::remote_client_key,
     kPath},
    {"remote.s3_path_style", "KILN_REMOTE_S3_PATH_STYLE", "auto",
     "Whether requests name the bucket of `s3://` in the path instead of the host name; `auto` does so if an endpoint "
     "is "
     "set or the bucket name contains dots.",
     &Config::remote_s3_path_style, kSwitch},
    {"remote.budget", "KILN_REMOTE_BUDGET", "100",
     "Total time in milliseconds that servers may use for one request; after it, the request continues without them.",
     &Config::remote_budget, number_from(1, 60000, "milliseconds from 1 to 60000")},
    {"remote.signing_key", "KILN_REMOTE_SIGNING_KEY", "",
     "Secret key with which this host publishes what it compiles. Without one it only reads.",
     &Config::remote_signing_key, kPath},
    {"remote.certificate", "KILN_REMOTE_CERTIFICATE", "",
     "Certificate of that key, for a host of a live namespace. Without one the key signs for `remote.namespace`.",
     &Config::remote_certificate, kPath},
    {"remote.namespace", "KILN_REMOTE_NAMESPACE", "",
     "Namespace in which a key without a certificate publishes. The host also reads it if the policy trusts it.",
     &Config::remote_namespace, kNamespace},
    {"remote.epoch", "KILN_REMOTE_EPOCH", "0", "Epoch with which a key without a certificate publishes.",
     &Config::remote_epoch, number_from(0, kMaxUnsigned, "a number from 0 to 4294967295")},
    {"remote.publish_logs", "KILN_REMOTE_PUBLISH_LOGS", "false",
     "Publish the compiler output, which quotes lines of sources, with an entry.", &Config::remote_publish_logs, kFlag},
    {"lease.url", "KILN_LEASE", "",
     "Table in which hosts agree which of them compiles a unit: `redis://…`, or a directory that all of them can "
     "access.",
     &Config::lease_url, path_or("redis://", "rediss://", "an absolute path or redis://…")},
    {"lease.password_file", "KILN_LEASE_PASSWORD_FILE", "", "File with the password for the lease table.",
     &Config::lease_password_file, kPath},
    {"lease.ttl", "KILN_LEASE_TTL", "5",
     "Time in seconds after which the lease of a host that stops responding expires.", &Config::lease_ttl,
     number_from(1, 600, "seconds from 1 to 600")},
    {"status.dir", "KILN_STATUS_DIR", "", "Directory for the progress files that `kiln status` reads, or `off`.",
     &Config::status_dir, path_or("off", "", "an absolute path, or off")},
    {"record", "KILN_RECORD", "", "File to which the requests of programs are appended, to build a bundle from.",
     &Config::record, kPath},
    {"trace", "KILN_TRACE", "", "File to which a trace of the session is written, for Perfetto.", &Config::trace,
     kPath},
};

void flatten(const TomlValue& table, const std::string& prefix, std::vector<FileSetting>& out) {
  for (const auto& [key, value] : table.fields) {
    std::string name = prefix + key;
    if (value.kind == TomlValue::Kind::Table) {
      flatten(value, name + '.', out);
      continue;
    }
    FileSetting& setting = out.emplace_back(FileSetting{std::move(name), {}, value.line});
    if (value.kind != TomlValue::Kind::Array) setting.values.push_back(text_of(value));
    for (const TomlValue& item : value.items) setting.values.push_back(text_of(item));
  }
}

}  // namespace

std::span<const SettingSpec> all_settings() { return kSettings; }

const SettingSpec* find_setting(std::string_view name) {
  const SettingSpec* const found = std::find_if(std::begin(kSettings), std::end(kSettings),
                                                [&](const SettingSpec& spec) { return name == spec.name; });
  return found == std::end(kSettings) ? nullptr : found;
}

Status SettingSpec::apply(Config& config, const std::string& text) const {
  return read_text(text, format, std::visit([&](auto member) -> Slot { return &(config.*member); }, field));
}

Result<std::vector<FileSetting>> parse_config(std::string_view text) {
  const Result<TomlValue> table = parse_toml(text);
  if (!table) return table.error();
  std::vector<FileSetting> settings;
  flatten(*table, {}, settings);
  return settings;
}

}  // namespace kiln
