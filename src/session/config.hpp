#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kiln/session.hpp>

#include "observe/observer.hpp"

namespace kiln {

/// One setting: its name, its value as text and who said so.
struct Setting {
  std::string name;     ///< cache.dir
  std::string value;    ///< as a configuration file would say it
  std::string origin;   ///< default, program, a file's path with its line, or the variable's name
  bool locked = false;  ///< the program keeps it as it is
};

/// All settings of a process: default < program < system file < user file < KILN_CONFIG < single KILN_* variables.
/// A value; loading opens at most three small files and no library. `docs/configuration.md` lists the settings.
struct Config {
  /// The first is written to, the others are only read. Empty where not even a temporary folder can be had.
  std::vector<std::string> cache_path;
  std::uint64_t cache_max_bytes = 0;
  std::vector<unsigned> cache_trusted_users;
  bool disable = false;                                  ///< compile and keep nothing
  bool may_compile = true;                               ///< false: a miss is an error
  std::string nvrtc;                                     ///< path of libnvrtc, empty: search
  std::string cccl;                                      ///< the CCCL library or where cuda-cccl was installed
  std::string worker;                                    ///< path of kiln-worker, empty: search
  std::uint64_t worker_memory = std::uint64_t{4} << 30;  ///< bytes that one compile may take
  std::chrono::seconds worker_time_limit{600};
  std::optional<unsigned> jobs;  ///< most workers at once on this host; zero: compile in this process; nothing: as many
                                 ///< as its cores and memory bear
  enum class Pch : unsigned char { Auto, On, Off };
  Pch pch = Pch::Auto;  ///< precompiled headers are kept; automatic: except in a container
  std::uint64_t pch_max_bytes = std::uint64_t{2} << 30;
  std::string driver;                ///< path of libcuda, empty: the system's
  std::string trace;                 ///< path of the trace file to write, empty: none
  std::vector<std::string> bundles;  ///< files, folders and image layouts, asked in this order
  bool bundles_exact = false;        ///< they are asked for the Key, not for what fits the device
  std::string trust;                 ///< path of the policy file, empty: none
  bool trust_unsigned = false;       ///< bundles that nobody signed are believed
  std::string remote;                ///< an address or a folder, empty: none
  std::string remote_token_file;
  std::string remote_ca;
  std::string remote_client_cert;
  std::string remote_client_key;
  std::chrono::milliseconds remote_budget{100};  ///< what servers may take of one request
  std::string remote_sign;                       ///< path of a secret key, empty: this host only reads
  std::string remote_certificate;                ///< path of its certificate, of a host of a live namespace
  std::string remote_namespace;                  ///< of a key without one
  std::uint64_t remote_epoch = 0;
  std::string lease;  ///< an address or a folder, empty: hosts do not wait for each other
  std::string lease_password_file;
  std::string lease_ca;
  std::chrono::seconds lease_time{5};
  std::string status_dir;  ///< where processes say how far they are; `off`: nowhere; empty: where locks are
  std::string record;      ///< path of the profile to append to, empty: none

  /// Every one of the above, as text, in the order of the documentation. Of `cache.dir` and `cache.path` the one that
  /// is not in force says what the other came to, and names it as its origin.
  std::vector<Setting> settings;

  /// Never fails: a value that cannot be used, an unknown key and a file that cannot be parsed are events. Tests have a
  /// system file of their own.
  static Config load(const SessionOptions& options, const Observer& observer,
                     const std::string& system_file = "/etc/kiln/config.toml");
};

}  // namespace kiln
