// SPDX-License-Identifier: Apache-2.0
#include "backends/cccl/cccl_arguments.hpp"

#include <algorithm>

namespace kiln {

using cccl_abi::Iterator;
using cccl_abi::Op;
using cccl_abi::TypeInfo;
using cccl_abi::Value;

TypeInfo type_info(const cccl::Type& type) { return {type.size, type.alignment, static_cast<int>(type.scalar)}; }

CcclArguments::CcclArguments(const cccl::Spec& spec, const std::vector<std::string>& operators)
    : spec_(spec), operators_(operators) {
  std::size_t largest = std::max<std::size_t>(spec.type.size, 8);
  for (const cccl::Iterator& one : spec.iterators) largest = std::max(largest, one.state_size);
  for (const cccl::Operator& one : spec.operators) largest = std::max(largest, one.state_size);
  nothing_.assign(largest / 8 + 1, 0);
}

Op CcclArguments::no_op() const {
  Op op;
  op.name = "";
  op.code = "";
  op.alignment = 1;
  return op;
}

Op CcclArguments::op_of(const cccl::Operator& from) const {
  Op op = no_op();
  op.kind = static_cast<int>(from.kind);
  if (from.kind != cccl::OperatorKind::Stateless && from.kind != cccl::OperatorKind::Stateful) return op;
  op.name = from.name.c_str();
  op.code = from.source.c_str();
  op.code_size = from.source.size();
  op.code_type = cccl_abi::kCppSource;
  op.size = std::max<std::size_t>(from.state_size, 1);
  op.alignment = from.state_alignment;
  if (from.kind == cccl::OperatorKind::Stateful) op.state = const_cast<std::uint64_t*>(nothing_.data());
  return op;
}

Op CcclArguments::op(std::size_t index) const {
  Op op = op_of(spec_.operators.at(index));
  if (index < operators_.size() && !operators_[index].empty()) {
    op.code = operators_[index].data();
    op.code_size = operators_[index].size();
    op.code_type = cccl_abi::kLtoIr;
  }
  return op;
}

Iterator CcclArguments::iterator(std::size_t index) {
  const cccl::Iterator& from = spec_.iterators.at(index);
  Iterator iterator;
  iterator.size = from.custom ? from.state_size : 8;
  iterator.alignment = from.custom ? from.state_alignment : 8;
  iterator.kind = from.custom ? cccl_abi::kCustomIterator : cccl_abi::kPointer;
  if (from.custom) {
    iterator.advance = op_of(from.advance);
    iterator.dereference = op_of(from.dereference);
  }
  iterator.value = type_info(from.value);
  iterator.state = nothing_.data();
  return iterator;
}

Value CcclArguments::zero() { return {type_info(spec_.type), nothing_.data()}; }

}  // namespace kiln
