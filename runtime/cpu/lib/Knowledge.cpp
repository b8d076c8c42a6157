//===- Knowledge.cpp - What is known of other blocks' accesses ------------===//

#include "Knowledge.h"

#include <algorithm>

using namespace lowlp::cpu;

bool Knowledge::covers(uint32_t block, uint32_t time, uint16_t thread) const {
  auto found = blocks.find(block);
  if (found == blocks.end())
    return false;
  const Bounds &bounds = found->second;
  if (time < bounds.time)
    return true;
  return std::any_of(bounds.threads.begin(), bounds.threads.end(),
                     [&](const Bounds::OfThread &bound) {
                       return bound.thread == thread && time < bound.time;
                     });
}

void Knowledge::addBlock(uint32_t block, uint32_t time) {
  Bounds &bounds = blocks[block];
  if (time <= bounds.time)
    return;
  bounds.time = time;
  auto isOld = [&](const Bounds::OfThread &bound) {
    return bound.time <= time;
  };
  bounds.threads.erase(
      std::remove_if(bounds.threads.begin(), bounds.threads.end(), isOld),
      bounds.threads.end());
}

void Knowledge::addThread(uint32_t block, uint16_t thread, uint32_t time) {
  Bounds &bounds = blocks[block];
  if (time <= bounds.time)
    return;
  for (Bounds::OfThread &bound : bounds.threads)
    if (bound.thread == thread) {
      bound.time = std::max(bound.time, time);
      return;
    }
  bounds.threads.push_back({thread, time});
}

void Knowledge::add(const Knowledge &other) {
  for (const auto &[block, bounds] : other.blocks) {
    addBlock(block, bounds.time);
    for (const Bounds::OfThread &bound : bounds.threads)
      addThread(block, bound.thread, bound.time);
  }
}
