//===- Traffic.h - How well each op uses memory -----------------*- C++ -*-===//

#ifndef LOWLP_CPU_LIB_TRAFFIC_H
#define LOWLP_CPU_LIB_TRAFFIC_H

#include "lowlp/CPU/Executor.h"

#include <deque>
#include <map>
#include <unordered_map>

namespace lowlp {
namespace cpu {

/// Adds up the accesses of the blocks of one worker by op, as `SiteTraffic`.
///
/// On a GPU a warp carries out an access once for all its lanes; here lanes run
/// one after another. The n-th access of a lane at a site is taken to be part
/// of the warp's n-th request there, which is how a GPU groups them wherever
/// the lanes of a warp run through the same iterations.
class Traffic {
public:
  /// Counts an access of one lane. Requires: `bytes` > 0; `byteOffset` counts
  /// from the begin of shared memory or of the argument, which on a GPU are
  /// aligned to a sector.
  void add(const char *site, int32_t thread, uint32_t warpLanes, bool isShared,
           int64_t byteOffset, int64_t bytes);

  /// Counts the requests in which not all lanes took part.
  void endBlock();

  /// By the text of the site: ops of the same name and place are one.
  std::map<std::string, SiteTraffic> takeTotals();

private:
  static constexpr int lanesPerWarp = 32;

  struct Request {
    uint32_t lanes = 0;
    int64_t byteOffsets[lanesPerWarp];
  };

  /// The requests of one warp at one site that lanes are still to join.
  struct Stream {
    int64_t bytes = 0;
    bool isShared = false;
    uint64_t numClosed = 0;
    uint64_t numByLane[lanesPerWarp] = {};
    std::deque<Request> open;
  };

  static void close(const Stream &stream, const Request &request,
                    SiteTraffic &total);

  std::unordered_map<const char *, SiteTraffic> totals;
  /// By site, then by 2 * warp + whether it is shared memory: a copy accesses
  /// both kinds.
  std::unordered_map<const char *, std::unordered_map<int32_t, Stream>> streams;
};

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_TRAFFIC_H
