#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kiln/cccl.hpp>

#include "vendor/cccl_abi.hpp"

namespace kiln {

cccl_abi::TypeInfo type_info(const cccl::Type& type);

/// A spec in the library's own terms, and what these point to. The spec must outlive it.
class CcclArguments {
 public:
  /// `operators` is LTO-IR instead of the source of operators, in the spec's order; empty where it is the source.
  CcclArguments(const cccl::Spec& spec, const std::vector<std::string>& operators);

  /// As declared, with some state that is not null, which the library takes for a pointer that is there.
  cccl_abi::Iterator iterator(std::size_t index);
  cccl_abi::Op op(std::size_t index) const;
  /// No operator at all.
  cccl_abi::Op no_op() const;
  /// An initial value of the spec's type: the library looks at the type alone when it compiles.
  cccl_abi::Value zero();

 private:
  cccl_abi::Op op_of(const cccl::Operator& from) const;

  const cccl::Spec& spec_;
  const std::vector<std::string>& operators_;
  std::vector<std::uint64_t> nothing_;  // as large as the largest state
};

}  // namespace kiln
