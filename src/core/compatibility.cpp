// SPDX-License-Identifier: Apache-2.0
#include "core/compatibility.hpp"

#include <charconv>
#include <initializer_list>

namespace kiln {
namespace {

/// The number 90 and the variant `a` of `sm_90a`; the variant is 0 if there is none.
struct Capability {
  unsigned number = 0;
  char variant = 0;

  unsigned major() const { return number / 10; }
};

std::optional<Capability> capability_of(std::string_view architecture) {
  if (!architecture.starts_with("sm_")) return std::nullopt;
  architecture.remove_prefix(3);
  Capability capability;
  if (architecture.ends_with('a') || architecture.ends_with('f')) {
    capability.variant = architecture.back();
    architecture.remove_suffix(1);
  }
  const char* const end = architecture.data() + architecture.size();
  const auto [stop, error] = std::from_chars(architecture.data(), end, capability.number);
  if (error != std::errc() || stop != end || architecture.size() > 4) return std::nullopt;
  return capability;
}

bool is_one_of(unsigned number, std::initializer_list<unsigned> numbers) {
  for (const unsigned each : numbers) {
    if (each == number) return true;
  }
  return false;
}

/// Returns whether a device neither runs machine code of other devices nor shares its own. NVIDIA's programming guide
/// (CUDA 12.9, section 6.1.2) defines compatibility between minor revisions for desktop devices only, and none with or
/// among Tegra devices. The guide does not mention 8.8; nvlink 13.0 requires an exact match for it too.
bool is_embedded_arch(unsigned number) { return is_one_of(number, {53, 62, 72, 87, 88, 101, 110}); }

/// Returns the family of a device, as the number of its first member: the table of family-specific compatibility in the
/// programming guide, as of CUDA 13.4. A device that the table does not list is its own family.
unsigned family_of(unsigned number) {
  if (is_one_of(number, {103, 107})) return 100;
  if (number == 121) return 120;
  return number;
}

/// Returns whether a device runs this machine code.
bool can_run(const Capability& made, unsigned device) {
  if (made.number == device) return true;
  if (made.variant == 'a' || made.number > device) return false;
  if (made.variant == 'f') return family_of(made.number) == family_of(device);
  return made.major() == device / 10 && !is_embedded_arch(made.number) && !is_embedded_arch(device);
}

/// Returns whether a driver compiles this PTX for a device.
bool can_jit(const Capability& made, unsigned device) {
  if (made.number == device) return true;
  if (made.variant == 'a' || made.number > device) return false;
  return made.variant != 'f' || family_of(made.number) == family_of(device);
}

// Above any value of `capability_rank`: machine code ranks above PTX, which costs a JIT compile.
constexpr unsigned kEqual = 1U << 17;
constexpr unsigned kMachineCode = 1U << 16;

/// Returns the rank: a higher number is better; for equal numbers, the variant that can use more of the device.
unsigned capability_rank(const Capability& made) {
  return made.number * 4 + (made.variant == 'a' ? 2 : made.variant == 'f' ? 1 : 0);
}

}  // namespace

std::optional<unsigned> compatibility_rank(const Target& made, const Target& wanted) {
  if (made == wanted) return kEqual;
  if (wanted.form != Form::Cubin && wanted.form != Form::Cccl) return std::nullopt;
  const std::optional<Capability> from = capability_of(made.architecture);
  // A device is identified by its number: `sm_90a` means a device of 9.0, as `sm_90` does.
  const std::optional<Capability> device = capability_of(wanted.architecture);
  if (!from || !device) return std::nullopt;
  if (made.form == wanted.form) {
    if (!can_run(*from, device->number)) return std::nullopt;
    return kMachineCode + capability_rank(*from);
  }
  if (made.form != Form::Ptx || wanted.form != Form::Cubin) return std::nullopt;
  if (!can_jit(*from, device->number)) return std::nullopt;
  return capability_rank(*from);
}

}  // namespace kiln
