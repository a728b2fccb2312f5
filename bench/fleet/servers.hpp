#pragma once

#include <cstdint>
#include <vector>

#include "bench/fleet/scenario.hpp"
#include "bench/fleet/station.hpp"

namespace kiln::fleet {

enum class Op : std::uint8_t {
  ReadHint,
  ReadAction,
  ReadContent,
  CheckAction,  ///< of an upload: whether somebody whose word weighs more has published already
  WriteContent,
  WriteAction,
  CheckHint,  ///< of an upload: which closures are known already
  WriteHint,
  ProbeHttp,
  Take,
  Renew,
  Release,
  Held,
  Draw,
  ProbeLeases,
};
constexpr bool is_lease(Op op) { return op >= Op::Take; }

/// The servers and the wires to them, as queues: says when an answer comes, and counts. What the servers have is the
/// Shelf's affair.
class Servers {
 public:
  explicit Servers(const Scenario& scenario);

  struct Reply {
    Time at{};
    bool lost = false;  ///< the server is gone: nothing comes, nothing is done
  };
  /// A question that a host sends now. `connecting`: the first on its connection.
  Reply ask(Op op, std::uint32_t host, std::uint32_t key, bool connecting, Time now);

  struct Counts {
    std::uint64_t http = 0;
    std::uint64_t leases = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;
    std::uint32_t peak_http = 0;  ///< in one second
    std::uint32_t peak_leases = 0;
    std::uint32_t peak_both = 0;
  };
  Counts counts() const;
  /// Every queue, the wires too.
  std::vector<const Station*> stations() const;

 private:
  std::uint64_t bytes_of(Op op) const;
  Time work_of(Op op, bool connecting) const;

  const Scenario& scenario_;
  std::vector<Station> http_;
  std::vector<Station> wires_;
  std::vector<Station> leases_;
  Station machine_;
  Counts counts_;
  std::vector<std::uint32_t> http_by_second_;
  std::vector<std::uint32_t> leases_by_second_;
};

}  // namespace kiln::fleet
