#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <kiln/cccl.hpp>

#include "cccl/temp_storage.hpp"
#include "device/cccl_module.hpp"
#include "observe/observer.hpp"

namespace kiln::cccl {

/// What copies of a callable share. Constant but for its storage.
struct Callable::State {
  struct Parts {
    std::shared_ptr<const void> owner;  ///< keeps the device; first, so that it goes last
    Device* device = nullptr;
    std::shared_ptr<const CcclModule> module;
    Spec spec;      ///< one that has passed its check
    Target target;  ///< of the devices that it is for, as these name it
    std::string unit;
    std::uint64_t flow = 0;
    Origin origin = Origin::Compiled;
    Observer observer;
  };
  explicit State(Parts from);

  Status run(const Call& call);
  Status reserve(const Call& call);
  Status release(void* stream);
  Result<std::size_t> ask(const Call& call) const;
  /// Asks for what calls of 128 items need, where that can be asked without a call: W6's first size.
  void warm_up();
  /// Whether it is for the device on which the calling thread is.
  Result<bool> is_for_here() const;

  const Parts parts;

 private:
  Status check(const Call& call) const;
  Status put_on_stream(const Call& call);
  Status with_callers_storage(const Call& call) const;
  TempStorage::Query query_for(const Call& call) const;
  void tell(const Call& call, double ms, const Status& outcome) const;

  const bool takes_storage_;
  TempStorage storage_;
};

}  // namespace kiln::cccl
