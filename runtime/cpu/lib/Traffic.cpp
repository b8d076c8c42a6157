//===- Traffic.cpp - Sectors and banks ------------------------------------===//
//
// Global memory moves in sectors of 32 bytes: a request costs as many as it
// touches. Shared memory has 32 banks of 4 bytes, word w in bank w % 32. A
// request is served in parts of at most 128 bytes, which are all lanes, half of
// them at 8 bytes each and a quarter at 16; a part takes as many passes as the
// bank with the most different words has words.
//
//===----------------------------------------------------------------------===//

#include "Traffic.h"

#include <algorithm>

using namespace lowlp::cpu;

constexpr int64_t bytesPerSector = 32;
constexpr int64_t bytesPerWord = 4;
constexpr int64_t numBanks = 32;

static void makeUnique(std::vector<int64_t> &values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

/// The units of `unitBytes` that the lanes of the mask touch.
static std::vector<int64_t> unitsOf(uint32_t lanes, const int64_t *byteOffsets,
                                    int64_t bytes, int64_t unitBytes) {
  std::vector<int64_t> units;
  for (; lanes; lanes &= lanes - 1) {
    int64_t first = byteOffsets[__builtin_ctz(lanes)];
    for (int64_t unit = first / unitBytes;
         unit <= (first + bytes - 1) / unitBytes; ++unit)
      units.push_back(unit);
  }
  makeUnique(units);
  return units;
}

/// The passes beyond the first that one part of a request takes.
static uint64_t extraPassesOf(const std::vector<int64_t> &words) {
  uint64_t wordsInBank[numBanks] = {};
  uint64_t passes = 1;
  for (int64_t word : words)
    passes = std::max(passes, ++wordsInBank[word % numBanks]);
  return passes - 1;
}

void Traffic::close(const Stream &stream, const Request &request,
                    SiteTraffic &total) {
  ++total.requests;
  if (!stream.isShared) {
    total.sectors += unitsOf(request.lanes, request.byteOffsets, stream.bytes,
                             bytesPerSector)
                         .size();
    return;
  }
  int lanesPerPart = stream.bytes > 8 ? 8 : stream.bytes > 4 ? 16 : 32;
  for (int lane = 0; lane < lanesPerWarp; lane += lanesPerPart) {
    uint32_t part = uint32_t((uint64_t(1) << lanesPerPart) - 1) << lane;
    total.extraPasses += extraPassesOf(unitsOf(
        request.lanes & part, request.byteOffsets, stream.bytes, bytesPerWord));
  }
}

void Traffic::add(const char *site, int32_t thread, uint32_t warpLanes,
                  bool isShared, int64_t byteOffset, int64_t bytes) {
  SiteTraffic &total = totals[site];
  ++total.accesses;
  total.bytes += uint64_t(bytes);
  Stream &stream = streams[site][2 * (thread / lanesPerWarp) + isShared];
  stream.isShared = isShared;
  stream.bytes = std::max(stream.bytes, bytes);
  int lane = thread % lanesPerWarp;
  uint64_t number = stream.numByLane[lane]++ - stream.numClosed;
  if (number >= stream.open.size())
    stream.open.resize(number + 1);
  Request &request = stream.open[number];
  request.lanes |= uint32_t(1) << lane;
  request.byteOffsets[lane] = byteOffset;
  while (!stream.open.empty() && stream.open.front().lanes == warpLanes) {
    close(stream, stream.open.front(), total);
    stream.open.pop_front();
    ++stream.numClosed;
  }
}

void Traffic::endBlock() {
  for (const auto &[site, warps] : streams)
    for (const auto &[warp, stream] : warps)
      for (const Request &request : stream.open)
        close(stream, request, totals[site]);
  streams.clear();
}

std::map<std::string, SiteTraffic> Traffic::takeTotals() {
  std::map<std::string, SiteTraffic> byText;
  for (const auto &[site, total] : totals)
    byText[site] += total;
  totals.clear();
  return byText;
}
