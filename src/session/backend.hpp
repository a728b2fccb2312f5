#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <kiln/unit.hpp>

#include "base/mutex.hpp"
#include "base/once.hpp"
#include "device/device.hpp"
#include "device/loader.hpp"

namespace kiln {

/// Which kind of driver loads what a compiler makes of a unit: "cuda", "opencl".
const std::string& driver_kind(const Unit& unit);

/// The driver for one kind of units: opened at the first need, and what was loaded into it. Any thread.
class Backend {
 public:
  /// `loaders` are for artifacts whose form the driver does not take as it is.
  explicit Backend(std::unique_ptr<Device> device, std::vector<std::unique_ptr<Loader>> loaders = {})
      : device_(std::move(device)), loaders_(std::move(loaders)) {}

  Device& device() { return *device_; }

  /// Opens the driver, which may take a tenth of a second, unless that has been done; the targets of its devices, each
  /// once.
  const Result<std::vector<Target>>& open();
  /// The same where it has been opened, else null.
  const Result<std::vector<Target>>* opened() const;

  /// The module of an artifact. It is loaded once for its key, whoever asks first; `fresh` tells who did.
  Result<std::shared_ptr<Module>> module(const Key& key, const Artifact& artifact, bool* fresh = nullptr);
  /// These bytes turned out to be of no use when they were to be used: they are not loaded again under that key.
  void refuse(const Key& key, const Bytes& bytes);

 private:
  struct Loaded {
    Mutex mutex;
    std::shared_ptr<Module> module KILN_GUARDED_BY(mutex);
    Bytes refused KILN_GUARDED_BY(mutex);
  };
  std::shared_ptr<Loaded> loaded(const Key& key);
  Result<std::vector<Target>> list_targets();
  Result<std::shared_ptr<Module>> load(const Artifact& artifact);

  const std::unique_ptr<Device> device_;
  const std::vector<std::unique_ptr<Loader>> loaders_;
  Once once_;
  std::optional<Result<std::vector<Target>>> targets_;  // constant once it is open
  std::atomic<bool> open_{false};
  Mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<Loaded>> modules_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
