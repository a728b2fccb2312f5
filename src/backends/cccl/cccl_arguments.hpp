// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kiln/cccl.hpp>

#include "backends/cccl/cccl_abi.hpp"

namespace kiln {

cccl_abi::TypeInfo type_info(const cccl::Type& type);

/// A spec in the library's types, and the data to which these point. The spec must outlive it. Not thread-safe.
class CcclArguments {
 public:
  /// `operators` is LTO-IR in place of the source of operators, in the spec's order; an empty element means source.
  CcclArguments(const cccl::Spec& spec, const std::vector<std::string>& operators);

  /// Returns an iterator as declared, with a state that is not null, because the library expects a valid pointer.
  cccl_abi::Iterator iterator(std::size_t index);
  cccl_abi::Op op(std::size_t index) const;
  /// Returns the null operator.
  cccl_abi::Op no_op() const;
  /// Returns an initial value of the spec's type. The library uses only the type when it compiles.
  cccl_abi::Value zero();

 private:
  cccl_abi::Op op_of(const cccl::Operator& from) const;

  const cccl::Spec& spec_;
  const std::vector<std::string>& operators_;
  std::vector<std::uint64_t> nothing_;  // as large as the largest state
};

}  // namespace kiln
