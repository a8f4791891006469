// Selects the processors of each process that is bound. Knows the machine as a list of hardware threads, so it is tested without one.
#pragma once

#include <sched.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "launch/common/processor_placement.h"

namespace starling::launch {

/// A hardware thread, and the parts of the machine that contain it.
struct HardwareThread {
    static constexpr size_t kParts = static_cast<size_t>(ProcessorPart::machine) + 1;
    uint32_t cpu = 0;                      ///< the operating system's number
    std::array<uint32_t, kParts> parts{};  ///< number of the containing part of each kind
    uint32_t processes = 0;                ///< processes of this launcher that are placed on it

    uint32_t in(ProcessorPart part) const { return parts[static_cast<size_t>(part)]; }
};

/// The processors of one process.
struct ProcessorClaim {
    cpu_set_t cpus;                 ///< hardware threads to which it is bound
    uint32_t first = 0;             ///< the system's number of the first hardware thread on which it is placed
    std::vector<uint32_t> threads;  ///< indices of the hardware threads on which it is placed; those of `cpus` or some of them
};

/// The hardware threads that this launcher may use, and how many of its processes are placed on each.
class ProcessorMap {
  public:
    ProcessorMap() = default;
    /// `threads`: in the order of the machine, so that neighbors share parts.
    explicit ProcessorMap(std::vector<HardwareThread> threads) : threads_(std::move(threads)) {}
    bool empty() const { return threads_.empty(); }
    const std::vector<HardwareThread>& threads() const { return threads_; }

    /// Takes processors for `count` processes of one job on this host, in the order of their ranks. Prefers processors with few processes,
    /// so that repeated spawns spread. Returns an empty string, or a sentence that describes the error.
    std::string claim(const ProcessorPlacement& wanted, uint32_t count, std::vector<ProcessorClaim>& out);
    void release(const ProcessorClaim& claim);
    /// Returns the claimed processors in words: "core 0", or "cpus 0-3 (package 0)".
    std::string text_of(const ProcessorClaim& claim) const;
    /// Returns the number of parts of a kind.
    uint32_t count_of(ProcessorPart part) const;

  private:
    using ThreadIndices = std::vector<uint32_t>;  ///< indices in threads_

    std::vector<ThreadIndices> parts_of(ProcessorPart kind, const ThreadIndices& among) const;
    uint32_t load(const ThreadIndices& threads) const;
    std::string take_elements(const ProcessorPlacement& wanted, const std::vector<ThreadIndices>& parts, uint32_t process,
                              ProcessorClaim& out) const;
    std::string widen(const ProcessorPlacement& wanted, const std::vector<ThreadIndices>& parts, ProcessorClaim& claim) const;
    std::string take_listed(const ThreadIndices& cpus, ProcessorClaim& out) const;
    void order_by_rank(const ProcessorPlacement& wanted, std::vector<ProcessorClaim>& claims) const;

    std::vector<HardwareThread> threads_;
};

}  // namespace starling::launch
