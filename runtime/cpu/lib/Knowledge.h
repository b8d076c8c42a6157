//===- Knowledge.h - What is known of other blocks' accesses ----*- C++ -*-===//
//
// Between blocks nothing orders accesses but a release and the acquire that
// reads it. What a release publishes is a `Knowledge`:
//
//   block A                                     block B
//   all threads store
//   barrier            -> A up to here ...
//   thread 0 stores    -> and thread 0 up to
//   thread 0 releases     here are published
//   thread 0 stores       (this is not)         thread 7 acquires: it knows
//                                               barrier: all of B know
//
// Time in a block is counted by its barriers and releases. So what is known of
// a block is two kinds of bounds: all its accesses before one time, and those
// of single threads before a later one.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_LIB_KNOWLEDGE_H
#define LOWLP_CPU_LIB_KNOWLEDGE_H

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace lowlp {
namespace cpu {

/// Which accesses of other blocks come before what its holder does next.
class Knowledge {
public:
  /// Whether an access of `thread` of `block` at `time` is among them.
  bool covers(uint32_t block, uint32_t time, uint16_t thread) const;

  /// Whether anything of `block` is among them.
  bool knowsOf(uint32_t block) const { return blocks.count(block) != 0; }

  /// Adds the accesses of all threads of `block` before `time`.
  void addBlock(uint32_t block, uint32_t time);

  /// Adds those of one thread before `time`.
  void addThread(uint32_t block, uint16_t thread, uint32_t time);

  void add(const Knowledge &other);
  void clear() { blocks.clear(); }
  bool isEmpty() const { return blocks.empty(); }

private:
  struct Bounds {
    struct OfThread {
      uint16_t thread;
      uint32_t time;
    };
    uint32_t time = 0;             ///< of all threads
    std::vector<OfThread> threads; ///< only where they are later
  };
  std::unordered_map<uint32_t, Bounds> blocks;
};

/// What was published through each word of memory. A release and an acquire of
/// a word hold its lock, so that an acquire takes what came with the value that
/// it reads. Thread-safe.
class PublishedWords {
public:
  /// Calls `action` with what was published through the word at `address`,
  /// which it may change, while no one else is at that word.
  template <typename Action> void at(const void *address, Action action) {
    Shard &shard =
        shards[(uintptr_t(address) >> 2) * 0x9e3779b1u / 64 % shards.size()];
    std::lock_guard<std::mutex> lock(shard.mutex);
    action(shard.words[address]);
  }

private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<const void *, Knowledge> words;
  };
  std::array<Shard, 16> shards;
};

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_KNOWLEDGE_H
