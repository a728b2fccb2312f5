#pragma once

#include <memory>
#include <utility>

#include "conformance/device_conformance.hpp"
#include "device/observed_device.hpp"
#include "support/event_log.hpp"

namespace kiln::test {

/// Another setup whose devices are watched, for a decorator passes the suite of what it decorates.
template <class Setup>
class ObservedSetup : public DeviceSetup {
 public:
  std::unique_ptr<Device> open(Allocator allocator) override {
    return std::make_unique<ObservedDevice>(setup_.open(std::move(allocator)), events_.observer());
  }
  Artifact artifact() override { return setup_.artifact(); }
  std::size_t too_much() override { return setup_.too_much(); }

 private:
  Setup setup_;
  EventLog events_;
};

}  // namespace kiln::test
