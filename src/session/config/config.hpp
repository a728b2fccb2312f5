// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kiln/session.hpp>

#include "events/event_emitter.hpp"

namespace kiln {

/// One setting: its name, its value as text and its source.
struct Setting {
  std::string name;     ///< for example cache.dir
  std::string value;    ///< as written in a configuration file
  std::string origin;   ///< default, program, the path of a file with the line, or the name of the variable
  bool locked = false;  ///< true if the program locked it
};

/// All settings of a process. Precedence: default < program < system file < user file < KILN_CONFIG < KILN_* variables.
/// Loading opens at most three small files and no library. `docs/reference/configuration.md` lists the settings.
struct Config {
  /// Cache directories. The first is read and written, the others are only read. Empty if not even a temporary
  /// directory is available.
  std::vector<std::string> cache_path;
  std::uint64_t cache_max_bytes = 0;
  std::vector<unsigned> cache_trusted_users;
  bool disable = false;                                  ///< compile each time and cache nothing
  bool may_compile = true;                               ///< false means that a miss is an error
  bool digest_always = false;                            ///< read files at each lookup, regardless of their stamps
  std::string nvrtc;                                     ///< path of libnvrtc; empty means search
  std::string cccl;                                      ///< path of the CCCL library or of a cuda-cccl installation
  std::string worker_path;                               ///< path of kiln-worker; empty means search
  std::uint64_t worker_memory = std::uint64_t{4} << 30;  ///< memory limit of one compile in bytes
  std::chrono::seconds worker_time_limit{600};
  bool worker_sandbox = true;                ///< confine compilers in workers
  std::vector<std::string> worker_readable;  ///< additional directories that they can read
  /// Maximum number of workers on this host; 0 means compile in this process; no value means as many as its cores and
  /// memory allow.
  std::optional<unsigned> jobs;
  /// Compile units that read no file in this process. If false, no unit is compiled in this process while a worker
  /// program is available.
  bool closed_in_process = false;
  /// OpenCL devices whose units are compiled in process; a name, or a prefix and `*`
  std::vector<std::string> opencl_in_process;
  std::optional<bool> pch_mode;  ///< precompiled headers; no value means in a place that gets into no image
  std::uint64_t pch_max_bytes = std::uint64_t{2} << 30;
  std::string driver;                         ///< path of libcuda; empty means the system's
  std::string trace;                          ///< path of the trace file to write; empty means none
  std::vector<std::string> bundles;           ///< files, directories and image layouts, in lookup order
  bool bundles_exact = false;                 ///< query bundles by ArtifactKey, not by compatibility with the device
  std::string trust_policy;                   ///< path of the policy file; empty means none
  bool trust_unsigned = false;                ///< trust unsigned bundles
  std::vector<std::string> jit_host_code;     ///< systems with host code that `kiln jit` and `kiln run` use
  std::vector<std::string> trust_namespaces;  ///< patterns of namespaces that can serve; empty means all trusted ones
  bool trust_remember_epochs = true;          ///< reject a bundle with an older epoch than one already seen
  std::string remote_url;                     ///< URL or directory; empty means none
  std::string remote_token_file;
  std::string remote_ca;
  std::string remote_client_cert;
  std::string remote_client_key;
  std::optional<bool> remote_s3_path_style;      ///< no value: path style with an endpoint or a bucket name with dots
  std::chrono::milliseconds remote_budget{100};  ///< total time that servers may use for one request
  std::string remote_signing_key;                ///< path of a secret key; empty means that this host only reads
  std::string remote_certificate;                ///< path of the key's certificate, for a host of a live namespace
  std::string remote_namespace;                  ///< namespace of a key without a certificate
  std::uint64_t remote_epoch = 0;
  bool remote_publish_logs = false;  ///< publish entries with the compiler output
  std::string lease_url;             ///< URL or directory; empty means that hosts do not wait for each other
  std::string lease_password_file;
  std::chrono::seconds lease_ttl{5};
  std::string status_dir;  ///< directory of progress files; `off` means none; empty means the directory of the locks
  std::string record;      ///< path of the profile to append to; empty means none

  /// All of the above as text, in the order of the documentation. Of `cache.dir` and `cache.path`, the one that is not
  /// in effect shows the result of the other and names it as its origin.
  std::vector<Setting> settings;

  /// Loads the configuration. Never fails: an invalid value, an unknown key and a file that cannot be parsed are
  /// reported as events. Tests pass their own system file.
  static Config load(const SessionOptions& options, const EventEmitter& emitter,
                     const std::string& system_file = "/etc/kiln/config.toml");
};

}  // namespace kiln
