// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/nvrtc_program.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include "backends/cuda/bundled_headers.hpp"
#include "backends/kernel_entries.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

// NVRTC prints this line once in a log, after the first warning.
constexpr std::string_view kRemark = "Remark: The warnings can be suppressed";

// Returns the first line of a log that refers to a precompiled header.
std::string line_about_pch(std::string_view log) {
  const std::size_t at = log.find("precompiled header");
  if (at == std::string_view::npos) return {};
  const std::size_t start = log.rfind('\n', at) + 1;
  return std::string(log.substr(start, log.find('\n', start) - start));
}

// Returns the last name in a qualified name: `c` for `a::b<x::y>::c`.
std::string_view last_name(std::string_view qualified) {
  int depth = 0;
  for (std::size_t i = qualified.size(); i-- > 1;) {
    if (qualified[i] == '>' || qualified[i] == ')') ++depth;
    if (qualified[i] == '<' || qualified[i] == '(') --depth;
    if (depth == 0 && qualified[i] == ':' && qualified[i - 1] == ':') return qualified.substr(i + 1);
  }
  return qualified;
}

// NVRTC 12 prints the mangled name of an enumerator that is in a precompiled header, `a::_ZN1a1bE`, where a plain
// compile prints `a::b`. Returns the log as a plain compile has it.
std::string with_plain_enumerators(std::string_view log) {
  constexpr std::string_view kMangled = "::_ZN";
  constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  std::string plain;
  for (;;) {
    const std::size_t at = log.find(kMangled);
    if (at == std::string_view::npos) break;
    const std::size_t start = at + 2;
    const std::string name(log.substr(start, log.find_first_not_of(kNameCharacters, start) - start));
    plain.append(log.substr(0, start));
    int status = 0;
    char* const readable = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    plain.append(readable != nullptr ? last_name(readable) : std::string_view(name));
    std::free(readable);
    log.remove_prefix(start + name.size());
  }
  return plain.append(log);
}

}  // namespace

NvrtcCompilation::~NvrtcCompilation() {
  if (program_ != nullptr) nvrtc_.destroy(&program_);
}

Status NvrtcCompilation::create(const Unit& unit) {
  std::vector<const char*> names;
  std::vector<const char*> contents;
  for (const Header& header : unit.headers()) {
    names.push_back(header.name.c_str());
    contents.push_back(header.content.c_str());
  }
  const std::string source = unit.full_source();
  if (source.find('\0') != std::string::npos) {
    return make_error(Code::InvalidArgument, "unit '" + unit.name() + "' contains a NUL byte in its source");
  }
  const int result = nvrtc_.create(&program_, source.c_str(), unit.name().c_str(), static_cast<int>(names.size()),
                                   contents.data(), names.data());
  if (result != 0) return rejected("create a program", result);
  for (const std::string& entry : unit.entries()) {
    if (const int added = nvrtc_.add_name(program_, entry.c_str()); added != 0) {
      return rejected("add the entry '" + entry + "'", added);
    }
  }
  return {};
}

Status NvrtcCompilation::compile(const Unit& unit, const std::vector<std::string>& options) {
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  const int result = nvrtc_.compile(program_, static_cast<int>(texts.size()), texts.data());
  if (result == 0) return {};
  std::string said = log();
  if (const auto unknown = find_unknown_entry(said)) return unknown_entry_error(unit, *unknown);
  const std::string reason = first_error_line(said);
  Error error = make_error(
      Code::CompileFailed,
      "NVRTC failed to compile unit '" + unit.name() + "': " + (reason.empty() ? nvrtc_.error_string(result) : reason),
      std::move(said));
  if (is_missing_header(error)) error.message += "; add the include directory that has it";
  return error;
}

Result<std::vector<EntryPoint>> NvrtcCompilation::entries(const Unit& unit) {
  std::vector<EntryPoint> entries;
  for (const std::string& name : unit.entries()) {
    const char* symbol = nullptr;
    if (nvrtc_.lowered_name(program_, name.c_str(), &symbol) != 0 || symbol == nullptr) {
      return make_error(Code::CompileFailed, "unit '" + unit.name() + "' has no kernel '" + name + "'", log());
    }
    entries.push_back({name, symbol});
  }
  return entries;
}

Result<Bytes> NvrtcCompilation::output(Form form) {
  switch (form) {
    case Form::Cubin: return fetch(nvrtc_.cubin_size, nvrtc_.cubin);
    case Form::Ptx: return fetch(nvrtc_.ptx_size, nvrtc_.ptx);
    case Form::LtoIr: return fetch(nvrtc_.ltoir_size, nvrtc_.ltoir);
    case Form::OpenClBinary:
    case Form::Cccl:
    case Form::External: break;
  }
  return make_error(Code::Unsupported, std::string("NVRTC does not produce ") + to_string(form));
}

std::string NvrtcCompilation::log() {
  std::size_t size = 0;
  if (program_ == nullptr || nvrtc_.log_size(program_, &size) != 0 || size <= 1) return {};
  std::string text(size, '\0');
  if (nvrtc_.log(program_, text.data()) != 0) return {};
  text.resize(text.find('\0') == std::string::npos ? size : text.find('\0'));
  return text;
}

Error NvrtcCompilation::rejected(const std::string& what, int result) {
  return make_error(Code::CompileFailed, "NVRTC failed to " + what + ": " + nvrtc_.error_string(result), log());
}

Result<Bytes> NvrtcCompilation::fetch(int (*size_of)(NvrtcProgram*, std::size_t*), int (*get)(NvrtcProgram*, char*)) {
  std::size_t size = 0;
  int result = size_of(program_, &size);
  if (result != 0) return rejected("return the size of its output", result);
  std::string bytes(size, '\0');
  result = get(program_, bytes.data());
  if (result != 0) return rejected("return its output", result);
  return Bytes::of(std::move(bytes));
}

PchResult NvrtcCompilation::take_pch_report(std::string& log, const PchRequest& order) {
  const std::string message = line_about_pch(log);
  PchResult report = kiln::take_pch_report(log, order);
  if (order.mode != PchRequest::Mode::Create) return report;
  const int status = nvrtc_.pch_create_status != nullptr ? nvrtc_.pch_create_status(program_) : 0;
  if (status == 0) return report;
  report = {PchResult::Outcome::Rejected, std::string("NVRTC created none: ") + nvrtc_.error_string(status)};
  if (!message.empty()) report.reason += " (" + message + ")";
  std::size_t required = 0;
  if (status == NvrtcLibrary::kPchHeapExhausted && nvrtc_.pch_heap_required(program_, &required) == 0)
    report.heap_required = required;
  return report;
}

PchResult take_pch_report(std::string& log, const PchRequest& order) {
  PchResult report;
  if (order.mode == PchRequest::Mode::None) return report;
  report.outcome = PchResult::Outcome::Rejected;
  log = with_plain_enumerators(log);
  std::string kept;
  bool after_ours = false;
  bool drops_remark = false;
  for (std::size_t start = 0; start < log.size();) {
    const std::size_t end = std::min(log.find('\n', start), log.size() - 1) + 1;
    const std::string_view line(log.data() + start, end - start);
    start = end;
    const bool ours = line.find(order.path) != std::string_view::npos;
    const bool is_remark = line.starts_with(kRemark);
    const bool belongs = after_ours && (line == "\n" || is_remark);
    if (!ours && !belongs && !(drops_remark && is_remark)) kept += line;
    after_ours = ours || belongs || (drops_remark && is_remark);
    if (is_remark) drops_remark = false;
    if (!ours) continue;
    if (line.find("using precompiled header file") != std::string_view::npos) {
      report.outcome = PchResult::Outcome::Used;
      // What precedes this line does not come from the headers (a warning about options) and is in their log, too.
      if (order.log.starts_with(kept)) {
        kept = order.log;
      } else if (!order.log.empty()) {
        return {PchResult::Outcome::Rejected, "NVRTC's log starts with other warnings than when it was created"};
      }
      drops_remark = order.log.find(kRemark) != std::string::npos;
    }
    if (line.find("creating precompiled header") != std::string_view::npos) {
      report.outcome = PchResult::Outcome::Created;
      report.log = kept;
    }
    if (report.outcome == PchResult::Outcome::Rejected && report.reason.empty()) {
      report.reason = line.substr(0, line.find('\n'));
    }
  }
  log = std::move(kept);
  if (report.outcome != PchResult::Outcome::Rejected) {
    report.reason.clear();
  } else if (report.reason.empty()) {
    report.reason = "NVRTC neither created nor used it and does not report why";
  }
  return report;
}

}  // namespace kiln
